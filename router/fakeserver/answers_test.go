package fakeserver

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentop/agents/outline"
	"agentop/router/prefix"
	"agentop/router/stream"
)

var update = flag.Bool("update", false, "rewrite the golden answers")

// outlines maps the formats to agentop's own.
var outlines = map[Format]outline.Format{
	Messages: outline.Messages, Responses: outline.Responses, ChatCompletions: outline.ChatCompletions,
}

func observe(f Format, media, coding, answer string) stream.Summary {
	o := stream.NewDecoded(outlines[f], media, coding, func() stream.Hash { return new(prefix.Text) })
	o.Write([]byte(answer))
	return o.Summary()
}

func ask(streamed bool) string {
	s := "false"
	if streamed {
		s = "true"
	}
	return `{"model":"glm-5","stream":` + s + `,"stream_options":{"include_usage":true},` +
		`"messages":[{"role":"user","content":"Why does the build fail?"}]}`
}

// TestAnswersKeepTheirShape compares an answer with thinking, text and a tool
// call with the golden one, in each format.
func TestAnswersKeepTheirShape(t *testing.T) {
	times := regexp.MustCompile(`"(created|created_at)":[0-9]+`)
	for _, format := range []Format{Messages, Responses, ChatCompletions} {
		for _, streamed := range []bool{true, false} {
			s := start(t, Options{Name: "alpha", Models: []string{"glm-5"}, Script: func(*Record) Behaviour {
				return Behaviour{Thinking: "Let me look.", Events: 2, Tools: []ToolCall{{"Read", `{"path":"main.go"}`}}}
			}})
			resp, text, err := post(t, s, "/v1/"+string(format), ask(streamed))
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v %v", format, resp, err)
			}
			name := strings.ReplaceAll(string(format), "/", "-")
			if streamed {
				name += "-stream"
			}
			golden(t, name, times.ReplaceAllString(text, `"$1":0`))
			sum := observe(format, resp.Header.Get("Content-Type"), "", text)
			if !sum.Terminated || sum.EventStream != streamed || sum.MarkBytes < 48 || sum.Usage.Input == 0 || sum.Usage.Output == 0 || sum.Model != "glm-5" {
				t.Errorf("%s: an observer reads %+v", name, sum)
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestStreamAndWholeAnswerSayTheSame puts a streamed answer and a whole one
// side by side, as an observer reads them.
func TestStreamAndWholeAnswerSayTheSame(t *testing.T) {
	for _, format := range []Format{Messages, Responses, ChatCompletions} {
		var sums [2]stream.Summary
		for i, streamed := range []bool{true, false} {
			s := start(t, Options{Name: "alpha"})
			resp, text, err := post(t, s, "/"+string(format), ask(streamed))
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = observe(format, resp.Header.Get("Content-Type"), "", text)
			sums[i].EventStream = false
		}
		if sums[0] != sums[1] {
			t.Errorf("%s: streamed %+v\nwhole %+v", format, sums[0], sums[1])
		}
	}
}

// TestSignaturesAreFoundInHistory answers three turns of each format, and finds
// them all in the third request.
func TestSignaturesAreFoundInHistory(t *testing.T) {
	for name, body := range map[string]string{
		"messages":         `{"messages":[{"role":"user","content":"[user#1]"},{"role":"assistant","content":[{"type":"text","text":"[alpha#1] yes"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_beta_2_0","name":"x","input":{}}]}]}`,
		"responses":        `{"input":[{"type":"message","role":"user","content":"[user#1]"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[alpha#1] yes"}]},{"type":"function_call","call_id":"call_beta_2_0"},{"type":"function_call_output","call_id":"call_beta_2_0"}]}`,
		"chat":             `{"messages":[{"role":"user","content":"[user#1]"},{"role":"assistant","content":"[alpha#1] yes"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_beta_2_0"},{"id":"call_beta_2_1"}]}]}`,
		"one said by both": `{"messages":[{"role":"assistant","content":[{"type":"text","text":"[alpha#1] yes"},{"type":"tool_use","id":"toolu_alpha_1_0"},{"type":"tool_use","id":"toolu_beta_2_0"}]}]}`,
	} {
		got := Signed([]byte(body))
		if want := []Signature{{"alpha", 1}, {"beta", 2}}; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, none := range []string{``, `{`, `[]`, `{"messages":5}`, `{"input":"[alpha#1]"}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_use","id":"toolu_alpha_1_0"},{"type":"text","text":"[alpha#1]"}]}]}`} {
		if got := Signed([]byte(none)); len(got) != 0 {
			t.Errorf("%q: got %v, want none", none, got)
		}
	}
}

// TestCacheReadsWhatWasSeen holds the simulated cache: a continuation reads the
// turn before from it, another server nothing, a rewritten beginning nothing.
func TestCacheReadsWhatWasSeen(t *testing.T) {
	alpha, beta := New(Options{Name: "alpha"}), New(Options{Name: "beta"})
	cost := func(s *Server, body string) Usage {
		rec := &Record{Format: Messages}
		if err := json.Unmarshal([]byte(body), &rec.request); err != nil {
			t.Fatal(err)
		}
		return s.usage(rec, 40)
	}
	first := `{"system":"be brief, and always answer in full","messages":[{"role":"user","content":"What is this project about, in one line?"}`
	second := first + `,{"role":"assistant","content":"A proxy."},{"role":"user","content":[{"type":"text","text":"And then?","cache_control":{"type":"ephemeral"}}]}`
	third := strings.ReplaceAll(second, `[{"type":"text","text":"And then?","cache_control":{"type":"ephemeral"}}]`, `"And then?"`) + `,{"role":"user","content":"Go on."}`
	if got := cost(alpha, first+"]}"); got.CacheRead != 0 || got.Input == 0 || got.Output != 10 {
		t.Errorf("opening: %+v", got)
	}
	a, b := cost(alpha, second+"]}"), cost(alpha, third+"]}")
	if a.CacheRead == 0 || a.CacheRead >= a.Input || b.CacheRead <= a.CacheRead {
		t.Errorf("continuations: %+v, %+v", a, b)
	}
	if got := cost(beta, third+"]}"); got.CacheRead != 0 {
		t.Errorf("on another server: %+v", got)
	}
	if got := cost(alpha, strings.Replace(third, "be brief", "be long", 1)+"]}"); got.CacheRead != 0 {
		t.Errorf("with another system prompt: %+v", got)
	}
	alpha.Reset()
	if got := cost(alpha, second+"]}"); got.CacheRead != 0 {
		t.Errorf("after a reset: %+v", got)
	}
}

// TestSideRequestsGetWhatTheyAskFor asks for titles in each way clients do,
// for a compaction, and for things that are not inference.
func TestSideRequestsGetWhatTheyAskFor(t *testing.T) {
	s := start(t, Options{Name: "alpha", Models: []string{"glm-5", "glm-air"}})
	schema := `{"type":"object","properties":{"title":{"type":"string"},"isNewTopic":{"type":"boolean"}}}`
	user := `"messages":[{"role":"user","content":"rename the variable x"}]`
	for _, c := range []struct{ name, path, body, want string }{
		{"title by schema, Messages", "/v1/messages", `{"output_config":{"format":{"type":"json_schema","schema":` + schema + `}},` + user + `}`, `{\"isNewTopic\":true,\"title\":\"rename the variable x\"}`},
		{"title by schema, Responses", "/responses", `{"text":{"format":{"type":"json_schema","schema":` + schema + `}},"input":[{"role":"user","content":[{"type":"input_text","text":"rename it"}]}]}`, `\"title\":\"rename it\"`},
		{"title by schema, Chat Completions", "/v1/chat/completions", `{"response_format":{"type":"json_schema","json_schema":{"schema":` + schema + `}},` + user + `}`, `\"title\":\"rename the variable x\"`},
		{"title by prompt", "/chat/completions", `{"messages":[{"role":"system","content":"You are a title generator."},{"role":"user","content":"rename it"}]}`, `"content":"rename it"`},
		{"plain compaction", "/v1/messages", `{"messages":[{"role":"user","content":"Summarise."}]}`, `[alpha#`},
		{"compaction item", "/v1/responses", `{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`, `"type":"compaction","encrypted_content":`},
		{"token count", "/v1/messages/count_tokens", `{` + user + `}`, `{"input_tokens":16}`},
	} {
		resp, text, err := post(t, s, c.path, c.body)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v %v, got %s, want %s in it", c.name, resp, err, text, c.want)
		}
	}
}

// TestOtherPaths asks for lists and for what is not there.
func TestOtherPaths(t *testing.T) {
	s := start(t, Options{Name: "alpha", Models: []string{"glm-5", "glm-air"}, Window: 1000})
	for _, c := range []struct {
		name, method, path, version string
		status                      int
		want                        string
	}{
		{"OpenAI's list", "GET", "/v1/models", "", 200, `{"object":"list","data":[{"id":"glm-5","object":"model","created":1767225600,"owned_by":"alpha","max_model_len":1000}`},
		{"Anthropic's list", "GET", "/models?limit=9", "2023-06-01", 200, `"has_more":false,"first_id":"glm-5","last_id":"glm-air"}`},
		{"a path that is not there", "POST", "/v1/embeddings", "", 404, `{"error":{"message":"no such path: POST /v1/embeddings","type":"not_found_error"`},
		{"one of Anthropic's", "GET", "/v1/messages/batches", "", 404, `{"type":"error","error":{"type":"not_found_error"`},
		{"health", "GET", "/health", "", 200, `{"status":"ok","name":"alpha"}`},
		{"probe", "HEAD", "/", "", 200, ""},
	} {
		req, err := http.NewRequest(c.method, s.URL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.version != "" {
			req.Header.Set("anthropic-version", c.version)
		}
		resp, text, err := do(req)
		if err != nil || resp.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v %v, got %s, want %d and %s in it", c.name, resp, err, text, c.status, c.want)
		}
	}
}

// TestRefusals asks without the key, for a model that is not there, with a
// broken body and for a WebSocket.
func TestRefusals(t *testing.T) {
	s := start(t, Options{Name: "alpha", Models: []string{"glm-5"}, Strict: true, Key: "sk-fake-1"})
	for _, c := range []struct {
		name, path, key, body string
		status                int
		want                  string
	}{
		{"no key", "/v1/messages", "", `{"model":"glm-5"}`, 401, `{"type":"error","error":{"type":"authentication_error"`},
		{"another key", "/v1/responses", "sk-fake-2", `{"model":"glm-5"}`, 401, `{"error":{"message":"invalid api key","type":"authentication_error"`},
		{"another model", "/v1/responses", "sk-fake-1", `{"model":"gpt"}`, 404, `"code":"model_not_found"`},
		{"a broken body", "/v1/chat/completions", "sk-fake-1", `{"model":`, 400, `"type":"invalid_request_error"`},
		{"an input that is none", "/v1/responses", "sk-fake-1", `{"model":"glm-5","input":0}`, 400, `"type":"invalid_request_error"`},
		{"all right", "/v1/messages", "sk-fake-1", `{"model":"glm-5"}`, 200, `[alpha#1]`},
	} {
		req, err := http.NewRequest("POST", s.URL()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		resp, text, err := do(req)
		if err != nil || resp.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v %v, got %s, want %d and %s in it", c.name, resp, err, text, c.status, c.want)
		}
	}
}
