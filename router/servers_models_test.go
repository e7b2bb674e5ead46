package router

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentop/agents/outline"
	"agentop/router/fakeserver"
	"agentop/router/prefix"
)

// TestConversationKeepsItsModelsName holds a name over every change of the
// configuration and a restart, be it renamed or not.
func TestConversationKeepsItsModelsName(t *testing.T) {
	s := fakeserver.New(fakeserver.Options{Name: "it"})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const yaml = `
servers:
  it: {url: %s, key: none%s}
agents:
  claude-code: {server: it, upstream: none}
`
	rename := func(lines string) string { return ", rename: {" + lines + "}" }
	for _, c := range []struct{ name, before, want string }{
		{"renamed", rename(`"claude-*": glm-5`), "glm-5"},
		{"sent as asked", "", "claude-opus-5-5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Reset()
			r := newRig(t, yaml, s.URL(), c.before)
			session := "s-" + c.want
			r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader(session))
			for _, after := range []string{"", rename(`"claude-*": glm-6`), rename(`"claude-opus*": other, "*": third`)} {
				r.configure(yaml, s.URL(), after)
				r.send("/claude-code/v1/messages", claudeBody(user("hi")+","+assistant("x")+","+user("on")), claudeHeader(session))
			}
			r.restart()
			r.send("/claude-code/v1/messages", claudeBody(user("hi")+","+assistant("x")+","+user("on")), claudeHeader(session))
			for i, rec := range s.Records() {
				if rec.Model != c.want {
					t.Errorf("turn %d went with %q, want %q", i+1, rec.Model, c.want)
				}
			}
			if n := len(s.Records()); n != 5 {
				t.Errorf("%d turns, want 5", n)
			}
			// A name that is asked for first now is the configuration's matter.
			r.configure(yaml, s.URL(), rename(`"claude-*": glm-7`))
			r.send("/claude-code/v1/messages", strings.Replace(claudeBody(user("hi")), "claude-opus-5-5", "claude-sonnet-5-5", 1), claudeHeader(session))
			if got := s.Records()[5].Model; got != "glm-7" {
				t.Errorf("a new name of the conversation went with %q, want glm-7", got)
			}
			// Moving it asks the configuration anew.
			if err := r.router.Move(t.Context(), r.router.Conversation("claude-code", session), "it"); err != nil {
				t.Fatal(err)
			}
			r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader(session))
			if got := s.Records()[6].Model; got != "glm-7" {
				t.Errorf("after a move it went with %q, want glm-7", got)
			}
		})
	}
}

// TestRefusedModel holds which answers are taken for the refusal of a name.
func TestRefusedModel(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   bool
	}{
		{"Anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, true},
		{"OpenAI", 404, "{\"error\":{\"message\":\"The model `x` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}", true},
		{"vLLM before 0.10", 404, "{\"object\":\"error\",\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}", true},
		{"LM Studio", 400, `{"error":{"message":"Invalid model identifier \"x\". Please specify a valid downloaded model","code":"model_not_found"}}`, true},
		{"z.ai", 400, `{"error":{"code":"1211","message":"Unknown Model, please check the model code."}}`, true},
		{"a bare string", 404, `{"error":"model 'x' not found, try pulling it first"}`, true},
		{"no such path", 404, `{"detail":"Not Found"}`, false},
		{"a bad request", 400, `{"error":{"message":"messages: Input should be a valid list","type":"invalid_request_error"}}`, false},
		{"a context that is too long", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}`, false},
		{"a failure", 500, `{"error":{"message":"model x not found"}}`, false},
		{"no JSON", 404, `model not found`, false},
		{"empty", 404, ``, false},
	}
	for _, c := range tests {
		if got := refusesModel(c.status, []byte(c.body)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestEditIsASplice holds that nothing but the value of model changes in a
// body, whatever the order of keys, equal keys, escapes and white space.
func TestEditIsASplice(t *testing.T) {
	space := rapid.StringMatching(`[ \n\t\r]{0,3}`)
	key := rapid.SampledFrom([]string{`"model"`, `"mod\u0065l"`, `"Model"`, `"models"`, `"messages"`, `"stream"`, `"x\"model"`, `"metadata"`, `""`, `"\ud83d\ude00"`})
	value := rapid.SampledFrom([]string{`"m"`, `"claude\u002dopus"`, `null`, `-1.5e+3`, `true`, `[]`, `{}`, `{"model":"inner","a":[{"model":"deep"}]}`,
		`"\"model\":\"no\""`, `[1,"model",{"model":"m"}]`, `"😀 \\ \u0000"`, `[{"role":"user","content":"hi"}]`})
	names := rapid.SampledFrom([]string{"glm-5", `a"b\c`, "zai-org/GLM-5", "größer", "qwen3:30b"})
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		var in, want bytes.Buffer
		both := func(s string) { in.WriteString(s); want.WriteString(s) }
		both(space.Draw(t, "s") + "{")
		n := rapid.IntRange(1, 8).Draw(t, "members")
		models := 0
		for i := range n {
			if i > 0 {
				both(",")
			}
			k, v := key.Draw(t, "key"), value.Draw(t, "value")
			isModel := k == `"model"` || k == `"mod\u0065l"`
			if isModel && v[0] != '"' {
				v = `"m"` // a model that is no name is the server's to refuse
			}
			both(space.Draw(t, "s") + k + space.Draw(t, "s") + ":" + space.Draw(t, "s"))
			in.WriteString(v)
			if isModel {
				models++
				want.WriteString(quote(name))
			} else {
				want.WriteString(v)
			}
			both(space.Draw(t, "s"))
		}
		both("}" + space.Draw(t, "s"))
		for _, f := range []outline.Format{outline.Messages, outline.Responses, outline.ChatCompletions} {
			var o outline.Outline
			body := bytes.Clone(in.Bytes())
			o.Scan(f, body, prefix.Sum)
			got := edited(body, &o, name, false)
			switch {
			case o.Err != nil:
				t.Fatalf("format %d: %s cannot be read: %v", f, body, o.Err)
			case models == 0 && !sameBytes(got, body):
				t.Fatalf("format %d: %s was edited to %s", f, body, got)
			case models > 0 && o.Model != name && !bytes.Equal(got, want.Bytes()):
				t.Fatalf("format %d: got\n%s, want\n%s", f, got, want.Bytes())
			}
			if !bytes.Equal(body, in.Bytes()) {
				t.Fatalf("format %d: the client's bytes were changed", f)
			}
		}
	})
}

// TestCodedBodyIsEditedDecoded holds that a compressed body goes as it came,
// or decoded where it must be edited.
func TestCodedBodyIsEditedDecoded(t *testing.T) {
	s := fakeserver.New(fakeserver.Options{Name: "it"})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	plain := claudeBody(user("hi"))
	var coded bytes.Buffer
	w := gzip.NewWriter(&coded)
	_, _ = fmt.Fprint(w, plain)
	_ = w.Close()
	for _, c := range []struct {
		rename, coding, want string
	}{
		{"", "gzip", coded.String()},
		{`, rename: {"claude-*": glm-5}`, "", strings.Replace(plain, "claude-opus-5-5", "glm-5", 1)},
	} {
		s.Reset()
		r := newRig(t, oneServer, s.URL(), c.rename)
		header := claudeHeader("s1")
		header.Set("Content-Encoding", "gzip")
		res, text := r.send("/claude-code/v1/messages", coded.String(), header)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", res.StatusCode, text)
		}
		rec := s.Records()[0]
		if got := rec.Header.Get("Content-Encoding"); got != c.coding || string(rec.Body) != c.want {
			t.Errorf("rename %q: coding %q and %d bytes, want %q and %d", c.rename, got, len(rec.Body), c.coding, len(c.want))
		}
	}
}
