package prefix_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"agentop/agents/outline"
	"agentop/router/prefix"
)

// TestGoldenValues compares with values that testdata/golden.py computed: an
// XXH3 and a reading of the rules of its own. They may change only together
// with the version tag.
func TestGoldenValues(t *testing.T) {
	var in struct {
		Cases []struct{ Name, Format, Agent, Body, Hex string }
	}
	type reply struct {
		Mark  string
		Bytes int
	}
	type values struct {
		Name           string
		Elements, Keys []string
		Replies        []reply
	}
	var want struct {
		Hashes []struct {
			Bytes int
			Hash  string
		}
		Cases []values
	}
	readJSON(t, "testdata/inputs.json", &in)
	readJSON(t, "testdata/golden.json", &want)

	for _, h := range want.Hashes {
		text := make([]byte, h.Bytes)
		for i := range text {
			text[i] = byte(i * 7 % 251)
		}
		if got := prefix.Format(prefix.SumText(text)); got != h.Hash {
			t.Errorf("hash of %d bytes: got %s, want %s", h.Bytes, got, h.Hash)
		}
	}
	if len(in.Cases) != len(want.Cases) {
		t.Fatalf("%d inputs, %d golden values: run golden.py", len(in.Cases), len(want.Cases))
	}
	formats := map[string]outline.Format{"messages": outline.Messages, "responses": outline.Responses, "chat": outline.ChatCompletions}
	for i, c := range in.Cases {
		body := []byte(c.Body)
		if c.Hex != "" {
			body, _ = hex.DecodeString(c.Hex)
		}
		var o outline.Outline
		o.Scan(formats[c.Format], body, prefix.Sum)
		got := values{Name: c.Name, Elements: []string{}, Keys: []string{}, Replies: []reply{}}
		for _, e := range o.Elements {
			got.Elements = append(got.Elements, prefix.Format(e))
		}
		for _, k := range prefix.Chain(nil, c.Agent, o.Elements) {
			got.Keys = append(got.Keys, prefix.Format(k))
		}
		for _, r := range o.Replies {
			got.Replies = append(got.Replies, reply{prefix.Format(r.Mark), r.Bytes})
		}
		if !reflect.DeepEqual(got, want.Cases[i]) {
			t.Errorf("%s (%v):\ngot  %+v\nwant %+v", c.Name, o.Err, got, want.Cases[i])
		}
	}
}

func readJSON(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
