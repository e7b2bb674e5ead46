package stream

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"agentop/agents/outline"
)

// writeIn writes p in pieces of 32 KB, as the router does.
func writeIn(o *Observer, p []byte) {
	for len(p) > 0 {
		n := min(32<<10, len(p))
		o.Write(p[:n])
		p = p[n:]
	}
}

// grown is the heap that do leaves in use while its result is alive.
func grown(do func() *Observer) (int64, *Observer) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o := do()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc), o
}

// TestKF_S10_LongLines gives each format one line of 70 KB, 1.5 MB and 20 MB. What
// is too long for a delta costs the mark, and nothing else.
func TestKF_S10_LongLines(t *testing.T) {
	for _, size := range []int{70 << 10, 1500 << 10, 20 << 20} {
		long := strings.Repeat("x", size)
		small := size < arenaBytes
		for name, c := range map[string]struct {
			format outline.Format
			answer string
			marked bool
		}{
			"delta": {outline.Messages, "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}\n\n" +
				"data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"" + long + "\"}}\n\n" +
				"data: {\"type\":\"content_block_stop\"}\n\ndata: {\"type\":\"message_stop\"}\n\n", small},
			"chunk": {outline.ChatCompletions, "data: {\"choices\":[{\"delta\":{\"content\":\"" + long + "\"},\"finish_reason\":\"stop\"}]}\n\n", small},
			"item": {outline.Responses, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"" + long + "\"}]}}\n\n" +
				"data: {\"type\":\"response.completed\",\"response\":{}}\n\n", true},
			"body":    {outline.Messages, "{\"content\":[{\"type\":\"text\",\"text\":\"" + long + "\"}]}", true},
			"unknown": {outline.Messages, ": " + long + "\nx-" + long + ": y\ndata: {\"" + long + "\":\"" + long + "\",\"type\":\"message_stop\"}\n\n", false},
		} {
			want := Summary{Terminated: true}
			if c.marked {
				want.Mark, want.MarkBytes = markOf(long)
			}
			grew, o := grown(func() *Observer {
				o := New(c.format, sse, fnvHash)
				writeIn(o, []byte(c.answer))
				return o
			})
			got := o.Summary()
			got.EventStream, got.Text, got.StopReason = false, "", ""
			if got != want {
				t.Errorf("%s of %d: got %+v, want %+v", name, size, got, want)
			}
			if grew > 2<<20 {
				t.Errorf("%s of %d: the observer holds %d bytes", name, size, grew)
			}
			runtime.KeepAlive(c)
		}
	}
}

// TestLostDeltaCostsTheMark loses one delta of three: a mark of the others would
// be another answer's.
func TestLostDeltaCostsTheMark(t *testing.T) {
	chunk := func(text string) []byte {
		return []byte("data: {\"choices\":[{\"delta\":{\"content\":\"" + text + "\"}}]}\n\n")
	}
	o := New(outline.ChatCompletions, sse, fnvHash)
	o.Write(chunk("before"))
	o.Write(chunk(strings.Repeat("x", arenaBytes-1)))
	if n := cap(o.w.arena); n > arenaKept {
		t.Errorf("%d bytes are kept for the next event", n)
	}
	o.Write(chunk(strings.Repeat("x", arenaBytes+1)))
	o.Write(chunk("after"))
	o.Write([]byte("data: [DONE]\n\n"))
	if got := o.Summary(); got.Mark != 0 || got.MarkBytes != 0 || !got.Terminated || !strings.HasPrefix(got.Text, "before") {
		t.Errorf("got %+v", got)
	}
}

// TestTooManyBlocksLeaveNoMark opens more blocks than are followed.
func TestTooManyBlocksLeaveNoMark(t *testing.T) {
	var b strings.Builder
	for i := range maxBlocks + 1 {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"a\"}]}}]}\n\n", i)
	}
	b.WriteString("data: [DONE]\n\n")
	o := New(outline.ChatCompletions, sse, fnvHash)
	o.Write([]byte(b.String()))
	if got := o.Summary(); got.Mark != 0 || got.MarkBytes != 0 || !got.Terminated {
		t.Errorf("got %+v", got)
	}
}

// deltas is a stream of n text events as Anthropic sends them, without its end.
func deltas(n int) []byte {
	var b bytes.Buffer
	b.WriteString("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	for i := range n {
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"token %d, \\\"and\\\" so on\\n\"}}\n\n", i)
	}
	return b.Bytes()
}

func TestEventsAllocateNothing(t *testing.T) {
	p := deltas(100)
	start, event := p[:bytes.Index(p, []byte("\n\n"))+2], p[len(p)-140:]
	event = event[bytes.Index(event, []byte("event:")):]
	chunk := []byte("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"token\",\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"ab\"}}]},\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":1234}}\n\n")
	for name, c := range map[string]struct {
		format       outline.Format
		start, event []byte
	}{
		"messages":  {outline.Messages, start, event},
		"responses": {outline.Responses, nil, []byte("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"token\"}\n\n")},
		"chat":      {outline.ChatCompletions, chunk, chunk},
	} {
		o := New(c.format, sse, fnvHash)
		o.Write(c.start)
		o.Write(c.event)
		if got := testing.AllocsPerRun(200, func() { o.Write(c.event) }); got != 0 {
			t.Errorf("%s: %v allocations per event", name, got)
		}
	}
}

func BenchmarkObserver(b *testing.B) {
	item := []byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"" +
		strings.Repeat("Some text of an answer, with \\\"escapes\\\" now and then. ", 2000) + "\"}]}}\n\n")
	for _, c := range []struct {
		name   string
		format outline.Format
		answer []byte
		events int
	}{
		{"deltas", outline.Messages, deltas(1000), 1000},
		{"item", outline.Responses, item, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := New(c.format, sse, fnvHash)
			b.SetBytes(int64(len(c.answer)))
			b.ReportAllocs()
			for b.Loop() {
				writeIn(o, c.answer)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.events), "ns/event")
		})
	}
}
