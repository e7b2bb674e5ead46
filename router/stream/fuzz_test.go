package stream

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
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
		if whole.MarkBytes == 0 && whole.Mark != 0 && whole.Mark%refHash("") != 0 || len(whole.Text) > headBytes {
			t.Errorf("summary %+v", whole)
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
