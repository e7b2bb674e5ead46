package stream

import (
	"fmt"
	"testing"

	"agentop/agents/outline"
)

// An observation that is ended as soon as Ended says so must say what one of
// the whole answer says; before the last byte that counts, Ended must not.
func TestEndedComesWithTheLastByteThatCounts(t *testing.T) {
	cases := []struct {
		name   string
		format outline.Format
		media  string
		answer string
		rest   string // what may follow without being waited for
	}{
		{"messages", outline.Messages, sse,
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n" +
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", ""},
		{"responses", outline.Responses, sse,
			"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hello\"}]}],\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}}\n\n", ""},
		{"chat: after the usage, not after the finish", outline.ChatCompletions, sse,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n" +
				"data: [DONE]\n\n", ""},
		{"JSON", outline.Messages, asJSON, `{"content":[{"type":"text","text":"hello"}],"usage":{"output_tokens":2}}`, "\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			whole := New(c.format, c.media, fnvHash)
			whole.Write([]byte(c.answer + c.rest))
			o := New(c.format, c.media, fnvHash)
			for i := range len(c.answer) {
				if o.Ended() {
					t.Fatalf("ended after %d of %d bytes", i, len(c.answer))
				}
				o.Write([]byte{c.answer[i]})
			}
			if !o.Ended() {
				t.Fatal("not ended after the last byte")
			}
			if got, want := fmt.Sprintf("%+v", o.Summary()), fmt.Sprintf("%+v", whole.Summary()); got != want {
				t.Errorf("ended early:\n got %s\nwant %s", got, want)
			}
		})
	}
}
