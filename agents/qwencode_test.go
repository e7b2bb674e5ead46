package agents

import "testing"

// TestQwenCodesSubagentPlacesNoSession holds what decides where the captures
// have no case: in Responses a subagent states the session of who called it.
func TestQwenCodesSubagentPlacesNoSession(t *testing.T) {
	const (
		stated = `"prompt_cache_key":"qwen-code:s1",`
		call   = `{"type":"function_call","call_id":"c1","name":"glob","arguments":"{}"},`
		dated  = `{"type":"input_text","text":"<system-reminder>\nThe current date is: today\n</system-reminder>"},`
	)
	for _, tc := range []struct {
		name, key, system, before, date, header string
		want                                    Turn
	}{
		{"the main conversation", stated, "You are Qwen Code, an agent", "", "", "", Opening},
		{"its later turn", stated, "You are Qwen Code, an agent", call, "", "", Continuation},
		{"a prompt of the user's own", stated, "Be kind.", "", dated, "", Opening},
		{"a subagent", stated, "You are a file search specialist", "", "", "", Side},
		{"a subagent after a tool", stated, "You are a file search specialist", call, "", "", Side},
		{"a subagent of the user's own", stated, "Be kind.", "", "", "", Side},
		{"a subagent under the general header", "", "Be kind.", "", "", "x-dynamo-session-id: d1", Side},
		{"a subagent that states nothing", "", "Be kind.", "", "", "", Opening},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := `{"model":"m","stream":true,` + tc.key + `"instructions":"` + tc.system + `","tools":[{"type":"function","name":"glob"}],` +
				`"input":[` + tc.before + `{"role":"user","content":[` + tc.date + `{"type":"input_text","text":"look around"}]}]}`
			var headers []string
			if tc.header != "" {
				headers = append(headers, tc.header)
			}
			if got := unknownTurn(t, post(t, QwenCode, "/v1/responses", body, headers...)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
