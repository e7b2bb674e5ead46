package stream

import (
	"fmt"
	"testing"

	"agentop/agents/outline"
	"agentop/router/prefix"
)

// BenchmarkEvents passes an answer of 200 events of a dozen words, an event
// a piece, and says what one event takes.
func BenchmarkEvents(b *testing.B) {
	const n = 200
	words := "some words, as a model says them one after the other"
	for _, c := range []struct {
		name   string
		format outline.Format
		event  string
	}{
		{"messages", outline.Messages, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%d " + words + "\"}}\n\n"},
		{"thinking", outline.Messages, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"%d " + words + "\"}}\n\n"},
		{"call", outline.Messages, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"[%d,\\\"" + words + "\\\"]\"}}\n\n"},
		{"responses", outline.Responses, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_000\",\"output_index\":0,\"content_index\":0,\"delta\":\"" + words + "\",\"logprobs\":[],\"obfuscation\":\"abcdefgh\"}\n\n"},
		{"chat", outline.ChatCompletions, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d " + words + "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			start := ""
			if c.format == outline.Messages {
				start = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
					"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Read\",\"input\":{}}}\n\n"
			}
			pieces := make([][]byte, n)
			for i := range pieces {
				pieces[i] = fmt.Appendf(nil, c.event, i)
			}
			b.ReportAllocs()
			b.SetBytes(int64(n * len(pieces[0])))
			for b.Loop() {
				o := New(c.format, sse, func() Hash { return new(prefix.Text) })
				o.Write([]byte(start))
				for _, p := range pieces {
					o.Write(p)
				}
				o.Close()
				o.Free()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}
