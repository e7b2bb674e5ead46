package stream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentop/agents/outline"
	"agentop/router/fakeserver"
	"agentop/router/prefix"
	"agentop/router/stream"
)

// history is the request that a client would send after an answer: it puts the
// answer's own words into its history, in its own way of writing JSON.
func history(t *testing.T, f fakeserver.Format, answer []byte) []byte {
	t.Helper()
	var a struct {
		Content []json.RawMessage
		Output  []json.RawMessage
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	var body any
	user := map[string]any{"role": "user", "content": "go on"}
	switch f {
	case fakeserver.Messages:
		body = map[string]any{"messages": []any{user, map[string]any{"role": "assistant", "content": a.Content}, user}}
	case fakeserver.Responses:
		input := []any{user}
		for _, item := range a.Output {
			input = append(input, item)
		}
		body = map[string]any{"input": append(input, user)}
	default:
		body = map[string]any{"messages": []any{user, a.Choices[0].Message, user}}
	}
	text, err := json.MarshalIndent(body, "", "  ") // escapes <, > and & in its own way
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMarkIsThatOfTheNextRequest takes an answer, streamed and whole, and holds
// its mark against the one that package outline reads from the next request.
func TestMarkIsThatOfTheNextRequest(t *testing.T) {
	formats := map[fakeserver.Format]outline.Format{
		fakeserver.Messages: outline.Messages, fakeserver.Responses: outline.Responses,
		fakeserver.ChatCompletions: outline.ChatCompletions,
	}
	behaviours := map[string]fakeserver.Behaviour{
		"text":     {},
		"thinking": {Thinking: "let me see <this>", Text: "a & b \u2028 \"日本\" 😀 and some more to be long enough"},
		"tools": {Tools: []fakeserver.ToolCall{
			{Name: "Read", Input: `{"path":"a/<b>.go","range":[1,2],"opts":{"type":"text","why":"é\n\u0041"}}`},
			{Name: "Bash", Input: `{ "command" : "go test ./... && echo \"done\"", "empty":"" }`},
		}},
		"tool alone": {NoText: true, Tools: []fakeserver.ToolCall{{Name: "TodoWrite", Input: `{"todos":[{"content":"write it down, then do it"}]}`}}},
	}
	for name, b := range behaviours {
		// Equal answers are needed, streamed and whole, so each server gives its first.
		for format, api := range formats {
			var marks [2]stream.Summary
			var body []byte
			for i, streamed := range []bool{true, false} {
				s := fakeserver.New(fakeserver.Options{Name: "alpha", Script: func(*fakeserver.Record) fakeserver.Behaviour { return b }})
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
				media, answer := ask(t, s, format, streamed)
				o := stream.New(api, media, func() stream.Hash { return new(prefix.Text) })
				o.Write(answer)
				marks[i], body = o.Summary(), answer
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			var o outline.Outline
			o.Scan(api, history(t, format, body), prefix.Sum)
			if len(o.Replies) != 1 {
				t.Fatalf("%s, %s: replies %v of %s", name, format, o.Replies, body)
			}
			for i, how := range []string{"streamed", "whole"} {
				got := outline.Reply{Mark: marks[i].Mark, Bytes: marks[i].MarkBytes}
				if want := o.Replies[0]; got != want || !marks[i].Terminated {
					t.Errorf("%s, %s, %s: got %+v (%+v), the next request says %+v", name, format, how, got, marks[i], want)
				}
			}
		}
	}
}

func ask(t *testing.T, s *fakeserver.Server, f fakeserver.Format, streamed bool) (media string, answer []byte) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":%v,"input":"hello","messages":[{"role":"user","content":"hello"}]}`, streamed)
	resp, err := http.Post(s.URL()+"/v1/"+string(f), "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Get("Content-Type"), answer
}
