package preflight

import (
	"strings"
	"testing"
)

// FuzzAnswers reads any bytes as each list that servers give: no panic, no
// model without a name, and nothing from what is no list.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"object":"list","data":[{"id":"glm-5","max_model_len":131072,"owned_by":"vllm"}]}`, `{"models":[{"name":"qwen:7b"}]}`,
		`{"data":[{"model_name":"x","model_info":{"max_input_tokens":"many"}}]}`, `{"data":null,"models":[]}`, `{"data":[1,null,[],{"id":7}]}`,
		`{"data":[{"id":"x","meta":{"n_ctx":-1}}]}`, `{"default_generation_settings":{"n_ctx":8192}}`, `[]`, `<html>`, strings.Repeat(`{"data":[`, 5000),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, ok := entries(body)
		if !ok && len(list) > 0 {
			t.Errorf("%d models of what is no list", len(list))
		}
		for _, m := range modelsOf(list) {
			if m.Name == "" || m.Context < 0 {
				t.Errorf("model %+v", m)
			}
		}
		a := &asking{}
		a.readTags(body)
		a.readContexts(body)
		a.readProps(body)
		for _, m := range a.answer.Models {
			if m.Name == "" {
				t.Error("a model without a name")
			}
		}
	})
}
