package agents

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"agentop/agents/outline"
)

// FuzzRecognise gives arbitrary headers and bodies: no panic, nothing returned
// with an error but the agent, and the rules of brokenRule hold.
func FuzzRecognise(f *testing.F) {
	f.Add("claude-code", "/v1/messages", "X-Claude-Code-Session-Id: s\r\nX-Claude-Code-Request-Class: main\r\n",
		[]byte(`{"messages":[{"role":"user","content":"hello"}],"tools":[{"name":"Bash"}],"stream":true}`))
	f.Add("codex", "/v1/responses", "Thread-Id: t\r\nSession-Id: s\r\nX-Codex-Turn-Metadata: {\"request_kind\":\"turn\",\"window_number\":1}\r\n",
		[]byte(`{"input":"hello","stream":true}`))
	f.Add("opencode", "/v1/chat/completions", "X-Session-Id: ses_1\r\nX-Parent-Session-Id: ses_2\r\n",
		[]byte(`{"messages":[{"role":"system","content":"You are a title generator."},{"role":"user","content":"hello"}],"stream":true}`))
	f.Add("", "/messages/count_tokens", "User-Agent: claude-cli/2.1.2\r\n", []byte(`{"metadata":{"user_id":"{\"session_id\":\"x\"}"}}`))
	f.Add("", "", "Thread-Id: \xff\r\n", []byte(`{`))
	f.Fuzz(func(t *testing.T, agent, path, headers string, body []byte) {
		read, err := textproto.NewReader(bufio.NewReader(strings.NewReader(headers + "\r\n"))).ReadMIMEHeader()
		if err != nil {
			return
		}
		r := Request{Agent: Agent(agent), Method: "POST", Path: path, Header: http.Header(read), Outline: new(outline.Outline)}
		format := BodyFormatOf("POST", path)
		r.Outline.Scan(format, body, nil)
		got, err := Recognise(r)
		var refused *SessionIDError
		switch {
		case err == nil:
		case errors.As(err, &refused) && got == (Recognition{Agent: got.Agent}):
			return
		default:
			t.Fatalf("%+v, %v", got, err)
		}
		if broken := brokenRule(r, got); broken != "" {
			t.Fatalf("%s: %+v", broken, got)
		}
		if len(got.Session) > MaxSessionID || len(got.Parent) > MaxSessionID || got.Agent == "" || got.Session != "" && got.Session == got.Parent {
			t.Fatalf("%+v", got)
		}
		if title, dir := Title(r.Outline, body, got.Agent), Dir(r.Outline, body, got.Agent); !wellFormed(title) || !wellFormed(dir) {
			t.Fatalf("title %q dir %q", title, dir)
		}
		if version := Version(got.Agent, r.Header.Get("User-Agent")); !wellFormed(version) {
			t.Fatalf("version %q", version)
		}
	})
}

// FuzzMetadata gives arbitrary texts to the two readers of metadata. What the
// client wrote as JSON is found; anything else is found only by its form.
func FuzzMetadata(f *testing.F) {
	for _, text := range []string{
		`{"device_id":"d","account_uuid":"","session_id":"s"}`, "user_0a_account__session_s", "user__session_", "_session_x", "{", `{"session_id":{}}`,
		`{"request_kind":"turn","thread_source":"user","window_number":0,"window_id":"t:0","history_initialization":"new"}`,
		`{"request_kind":null,"window_number":"1"}`, `{"workspaces":{"a":{}},"forked_from_thread_id":"f"}`, "[]", "null", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		session := sessionOfUserID(text)
		if session != "" && !strings.Contains(text, session) && !json.Valid([]byte(text)) {
			t.Fatalf("session %q is not in %q", session, text)
		}
		r := Request{Header: http.Header{}, Outline: &outline.Outline{TurnMetadata: text}}
		meta, odd := readTurnMetadata(r)
		if !odd && text != "" && !json.Valid([]byte(text)) {
			t.Fatalf("%q passes for metadata: %+v", text, meta)
		}
		r.Header.Set("X-Codex-Turn-Metadata", text)
		if inHeader, oddInHeader := readTurnMetadata(r); odd != oddInHeader || (meta.RequestKind == nil) != (inHeader.RequestKind == nil) {
			t.Fatalf("%q differs between header and body", text)
		}
	})
}
