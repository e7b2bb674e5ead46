package stream

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"agentop/agents/outline"
)

func fnvHash() Hash { return fnv.New64a() }

var formats = []outline.Format{outline.Messages, outline.Responses, outline.ChatCompletions}

func contentType(isSSE bool) string {
	if isSSE {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

// observe writes p in pieces whose sizes rng decides; nil is one piece.
func observe(f outline.Format, isSSE bool, p []byte, rng *rand.Rand) Summary {
	o := New(f, contentType(isSSE), fnvHash)
	for len(p) > 0 {
		n := len(p)
		if rng != nil {
			n = min(n, 1+rng.IntN(1<<rng.IntN(10)))
		}
		piece := append([]byte(nil), p[:n]...)
		o.Write(piece)
		clear(piece) // nothing of it may be kept
		p = p[n:]
	}
	defer o.Free() // what is left of it must not show in the next one
	return o.Summary()
}

// bytewise writes p a byte at a time, so that no event is known but by reading
// it.
func bytewise(f outline.Format, isSSE bool, p []byte) Summary {
	o := New(f, contentType(isSSE), fnvHash)
	for i := range p {
		o.Write(p[i : i+1])
	}
	return o.Summary()
}

func checkAnswer(t *testing.T, seed uint64) {
	t.Helper()
	g := newGenerator(seed)
	f := formats[g.IntN(len(formats))]
	p, isSSE := g.answer(f)
	want := referenceSummary(f, isSSE, p)
	if got := observe(f, isSSE, p, nil); got != want {
		t.Fatalf("seed %d, format %d, in one piece:\n%s\ngot  %+v\nwant %+v", seed, f, p, got, want)
	}
	if got := observe(f, isSSE, p, g.Rand); got != want {
		t.Fatalf("seed %d, format %d, in pieces:\n%s\ngot  %+v\nwant %+v", seed, f, p, got, want)
	}
}

// TestObserverAgreesWithReference reads random answers both ways.
func TestObserverAgreesWithReference(t *testing.T) {
	for seed := range uint64(1_000) {
		checkAnswer(t, seed)
	}
}

func FuzzObserverAgreesWithReference(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkAnswer(t, seed) })
}

// FuzzObserver gives any bytes to the Observer: where the pieces end must not
// matter, and a mark has bytes.
func FuzzObserver(f *testing.F) {
	for seed := range uint64(30) {
		g := newGenerator(seed)
		format := g.IntN(len(formats))
		p, isSSE := g.answer(formats[format])
		f.Add(uint8(format), isSSE, p, seed)
	}
	f.Fuzz(func(t *testing.T, format uint8, isSSE bool, p []byte, seed uint64) {
		api := formats[int(format)%len(formats)]
		whole := observe(api, isSSE, p, nil)
		if pieces := observe(api, isSSE, p, rand.New(rand.NewPCG(seed, 2))); pieces != whole {
			t.Errorf("in pieces %+v\nwhole     %+v", pieces, whole)
		}
		if read := bytewise(api, isSSE, p); read != whole {
			t.Errorf("each byte %+v\nwhole     %+v", read, whole)
		}
		if whole.MarkBytes == 0 && whole.Mark != 0 && whole.Mark%refHash("") != 0 || len(whole.Text) > headBytes {
			t.Errorf("summary %+v", whole)
		}
	})
}

// deltaEvents are events that come many times in a row, with % where their
// words stand.
var deltaEvents = []struct {
	format outline.Format
	event  string
}{
	{outline.Messages, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%\"}}\n\n"},
	{outline.Messages, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"thinking\":\"%\",\"type\":\"thinking_delta\"}}\r\n\r\n"},
	{outline.Messages, "id: 7\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"%\"}}\nretry: 9\n\n"},
	{outline.Messages, "event: content_block_delta\ndata: {\"delta\":{\"text\":\"%\",\"text\":\"twice\"},\"error\":{\"type\":\"%\"}}\n\n"},
	{outline.Messages, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"text\":\"%\"},\"delta\":{\"text\":\"%\"}}\n\n"},
	{outline.Responses, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":\"%\"}\n\n"},
	{outline.Responses, "data: {\"type\":\"response.output_text.delta\",\"%\":\"response.failed\",\"response\":{\"status\":\"failed\"}}\n\n"},
	{outline.Responses, "data: {\"type\":\"response.x.delta\",%\rdata: {\"type\":\"response.completed\",\"response\":{}}\n\n"},
	{outline.ChatCompletions, "data: {\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%\"},\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":3}}\n\n"},
	{outline.ChatCompletions, "data: {\"choices\":[{\"delta\":{\"content\":\"%\",\"reasoning_content\":\"%\"},\"finish_reason\":\"%\"}]}\n\n"},
	{outline.ChatCompletions, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"%\"}},{\"index\":1,\"custom\":{\"input\":\"%\"}}]}},{\"index\":1,\"delta\":{\"content\":\"%\"}}]}\n\n"},
	{outline.ChatCompletions, "event: error\ndata: {\"choices\":[{\"delta\":{\"content\":\"%\"}}]}\n\n"},
}

// FuzzRepeatedEvents holds events that repeat the one before them, but for some
// words, against the same read byte by byte.
func FuzzRepeatedEvents(f *testing.F) {
	for i, e := range deltaEvents {
		for _, words := range []string{"", "some words", `\"quoted\" é\u00e9\ud83d\ude00`, `\ud800`, "\xe2\x82", `end","type":"error`, "a\nb", `\x`, `\`, `"`} {
			f.Add(uint8(i), e.event, words, "others")
			f.Add(uint8(i), e.event, "others", words)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, event, first, second string) {
		format := deltaEvents[int(i)%len(deltaEvents)].format
		one, two := []byte(strings.ReplaceAll(event, "%", first)), []byte(strings.ReplaceAll(event, "%", second))
		var start []byte
		if format == outline.Messages {
			start = []byte("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n" +
				"data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\"}}\n\n")
		}
		end := []byte("data: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n" +
			"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
		pieces := [][]byte{start, one, one, two, two, one, []byte("data\n\n"), one, []byte("event: x\n\n"), two, end}
		whole := bytes.Join(pieces, nil)
		want := bytewise(format, true, whole)
		if got := observe(format, true, whole, nil); got != want {
			t.Errorf("in one piece %+v\neach byte    %+v\n%s", got, want, whole)
		}
		o := New(format, contentType(true), fnvHash)
		for _, p := range pieces {
			o.Write(p)
		}
		if got := o.Summary(); got != want {
			t.Errorf("event by event %+v\neach byte      %+v\n%s", got, want, whole)
		}
	})
}

// FuzzArguments holds the JSON reader against encoding/json: what it takes for
// JSON, and the strings it finds.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"a":"b","c":[1,2.5e-3,true,false,null,"\ud83d\ude00\ud800"]}`, `"x"`, ` 12 `, `01`, `-`, `1.`, `1e`, `[`, `{"a"}`,
		`{"a":1,}`, `[1,]`, "\"\x01\"", `"\x"`, `{} {}`, `tru`, `nulll`, "\"\xff\xe2\x82\"", `{"a":{"type":"text","text":""}}`, "", " ",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, p []byte, seed uint64) {
		r := &reference{}
		if len(p) > 0 {
			if v, ok := parseJSON(p); ok && !repeatsKey(p) {
				r.addValues(v)
			} else if ok {
				return // which of two equal keys holds is the client's to say
			} else {
				r.add(string(p))
			}
		}
		want := tally{r.sum.Mark, r.sum.MarkBytes}
		var a arguments
		a.whole.newHash, a.value.newHash = fnvHash, fnvHash
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 2 { // the second time, what the first left behind would show
			for rest := p; len(rest) > 0; {
				n := 1 + rng.IntN(len(rest))
				a.write(rest[:n])
				rest = rest[n:]
			}
			if got := a.take(); got != want {
				t.Errorf("arguments %q: got %+v, want %+v", p, got, want)
			}
		}
	})
}

// repeatsKey says whether an object in valid JSON has two equal keys.
func repeatsKey(p []byte) bool {
	var strings, values int
	d := json.NewDecoder(bytes.NewReader(p))
	for {
		tok, err := d.Token()
		if err != nil {
			break
		}
		if _, ok := tok.(string); ok {
			strings++
		}
	}
	v, _ := parseJSON(p)
	values = countStrings(v)
	return strings != values
}

// countStrings counts the strings and keys of a decoded value.
func countStrings(v any) int {
	n := 0
	switch v := v.(type) {
	case string:
		return 1
	case []any:
		for _, e := range v {
			n += countStrings(e)
		}
	case map[string]any:
		for _, e := range v {
			n += 1 + countStrings(e)
		}
	}
	return n
}
