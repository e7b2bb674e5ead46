package stream

import (
	"hash"
	"hash/fnv"
	"testing"

	"agentop/agents/outline"
)

func fnvHash() Hash { return fnv.New64a() }

var _ Hash = hash.Hash64(nil)

func TestSmoke(t *testing.T) {
	o := New(outline.Messages, "text/event-stream", fnvHash)
	o.Write([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"glm\",\"content\":[],\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\n" +
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"héllo\"}}\n\n" +
		"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n" +
		"data: {\"type\":\"message_stop\"}\n\n"))
	t.Logf("%+v", o.Summary())
}
