package stream

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"agentop/agents/outline"
)

type flusher interface {
	io.WriteCloser
	Flush() error
}

// encode codes the pieces, flushed one by one as a server flushes events.
func encode(t testing.TB, coding string, pieces ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w flusher
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw":
		w, _ = flate.NewWriter(&b, flate.DefaultCompression)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	}
	for _, p := range pieces {
		if _, err := io.WriteString(w, p); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var codedEvents = []string{
	"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
	"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"hello\"}}\n\n",
	"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
	"data: {\"type\":\"message_stop\"}\n\n",
}

func TestCodedAnswerIsRead(t *testing.T) {
	mark, n := markOf("hello")
	want := Summary{Mark: mark, MarkBytes: n, Terminated: true, EventStream: true, Text: "hello"}
	for coding, header := range map[string]string{
		"gzip": "GZIP", "deflate": "deflate", "raw": "deflate", "br": "br", "zstd": "identity, zstd",
	} {
		coded := encode(t, coding, codedEvents...)
		for _, step := range []int{1, 11, len(coded)} {
			o := NewDecoded(outline.Messages, sse, header, fnvHash)
			for rest := coded; len(rest) > 0; {
				k := min(step, len(rest))
				o.Write(rest[:k])
				rest = rest[k:]
			}
			if got := o.Summary(); got != want {
				t.Errorf("%s in steps of %d\ngot  %+v\nwant %+v", coding, step, got, want)
			}
		}
	}
}

func TestTwoCodingsAreUndoneInTurn(t *testing.T) {
	coded := encode(t, "br", string(encode(t, "gzip", codedEvents...)))
	o := NewDecoded(outline.Messages, sse, "gzip, br", fnvHash)
	o.Write(coded)
	if got := o.Summary(); !got.Terminated || got.Text != "hello" {
		t.Errorf("got %+v", got)
	}
}

// TestCutCodedAnswerKeepsWhatCame cuts a coded stream at each byte: it may
// never pass for a broken one or for a whole one.
func TestCutCodedAnswerKeepsWhatCame(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		coded := encode(t, coding, codedEvents[:3]...)
		for n := range coded {
			o := NewDecoded(outline.Messages, sse, coding, fnvHash)
			o.Write(coded[:n])
			if got := o.Summary(); got.Unread || got.Terminated {
				t.Fatalf("%s, %d of %d bytes: got %+v", coding, n, len(coded), got)
			}
		}
	}
}

func TestBrokenOrUnknownCodingIsUnread(t *testing.T) {
	broken := encode(t, "gzip", codedEvents...)
	broken[len(broken)/2] ^= 0x55
	for name, c := range map[string]struct {
		coding string
		answer []byte
	}{
		"not gzip at all": {"gzip", []byte(strings.Join(codedEvents, ""))},
		"a flipped byte":  {"gzip", append(broken, make([]byte, 64)...)},
		"unknown":         {"rot13", []byte("qngn")},
		"too many":        {"gzip, gzip, gzip, gzip", encode(t, "gzip", "x")},
	} {
		o := NewDecoded(outline.Messages, sse, c.coding, fnvHash)
		o.Write(c.answer)
		o.Write(c.answer)
		if got := o.Summary(); !got.Unread || got.Mark != 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestBombIsGivenUp writes answers that decode to 32 MB.
func TestBombIsGivenUp(t *testing.T) {
	zeros := strings.Repeat(" ", 1<<20)
	pieces := make([]string, 32)
	for i := range pieces {
		pieces[i] = zeros
	}
	for _, coding := range []string{"gzip", "br", "zstd"} {
		coded := encode(t, coding, pieces...)
		o := NewDecoded(outline.Messages, sse, coding, fnvHash)
		o.Write(coded)
		if o.decoder.plain > plainFree+plainFactor*int64(len(coded))+16<<10 {
			t.Errorf("%s: %d bytes were decoded of %d", coding, o.decoder.plain, len(coded))
		}
		if got := o.Summary(); !got.Unread {
			t.Errorf("%s, %d coded bytes: got %+v", coding, len(coded), got)
		}
	}
}

// TestCloseFreesDecoders counts goroutines: a coroutine that waits for ever
// would be one.
func TestCloseFreesDecoders(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		coded := encode(t, coding, codedEvents...)
		for range 50 {
			o := NewDecoded(outline.Messages, sse, coding, fnvHash)
			o.Write(coded[:len(coded)/2])
			o.Close()
			o.Close()
			o.Write(coded[len(coded)/2:])
			NewDecoded(outline.Messages, sse, coding, fnvHash).Close()
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func FuzzDecoded(f *testing.F) {
	names := []string{"gzip", "deflate", "br", "zstd"}
	for i, coding := range names {
		f.Add(uint8(i), encode(f, coding, codedEvents...), uint8(9))
	}
	f.Fuzz(func(t *testing.T, coding uint8, p []byte, step uint8) {
		o := NewDecoded(outline.Messages, sse, names[int(coding)%len(names)], fnvHash)
		for rest := p; len(rest) > 0; {
			n := min(int(step)+1, len(rest))
			o.Write(rest[:n])
			rest = rest[n:]
		}
		o.Summary()
	})
}
