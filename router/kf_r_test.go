package router

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// The tests of this file are named by the ids of known failures of other
// proxies: request bodies. kf_r_head_test.go has what is around them.

// encode gives body a content coding.
func encode(t testing.TB, coding string, body []byte) []byte {
	t.Helper()
	return encodeAll(t, coding, bytes.NewReader(body))
}

func encodeAll(t testing.TB, coding string, body io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "raw deflate":
		w, _ = flate.NewWriter(&out, 6)
	case "br":
		w = brotli.NewWriterLevel(&out, 3)
	case "zstd":
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		t.Fatalf("no coding %q", coding)
	}
	if _, err := io.Copy(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bigClaude is a main turn of about n bytes.
func bigClaude(n int) string {
	var text strings.Builder
	for i := 0; text.Len() < n; i++ {
		fmt.Fprintf(&text, "line %d of some source file, %x; ", i, i*2654435761)
	}
	return claudeBody(user(text.String()))
}

func TestKF_R1_CodedRequestBodies(t *testing.T) {
	for _, size := range []int{1 << 10, 2 << 20} {
		plain := []byte(bigClaude(size))
		for _, coding := range []string{"zstd", "gzip", "x-gzip", "br", "deflate", "raw deflate"} {
			t.Run(fmt.Sprint(coding, " ", size), func(t *testing.T) {
				coded := encode(t, coding, plain)
				label := strings.TrimPrefix(coding, "raw ")
				header := claudeHeader("s1")
				header.Set("Content-Encoding", label)

				b := newBench(t, nil)
				res := b.do("POST", "/claude-code/v1/messages", bytes.NewReader(coded), header.Clone())
				read(t, res)
				rec := b.last("a")
				if !bytes.Equal(rec.Body, coded) || rec.Header.Get("Content-Encoding") != label {
					t.Errorf("without an edit the server got %d bytes of %q, want %d of %q", len(rec.Body), rec.Header.Get("Content-Encoding"), len(coded), label)
				}
				if got := res.Header.Get(RouteHeader); !strings.Contains(got, "turn=opening; pin=new") {
					t.Errorf("route = %q: the body was not read", got)
				}

				b.only(b.servers["a"].URL(), `key: none, rename: {"claude-*": glm-5}`)
				// Another conversation: the first one keeps the name that it was opened with.
				header.Set("X-Claude-Code-Session-Id", "s2")
				read(t, b.do("POST", "/claude-code/v1/messages", bytes.NewReader(coded), header.Clone()))
				rec = b.last("a")
				want := bytes.Replace(plain, []byte(`"claude-opus-5-5"`), []byte(`"glm-5"`), 1)
				if !bytes.Equal(rec.Body, want) || rec.Header.Get("Content-Encoding") != "" {
					t.Errorf("with an edit the server got %d bytes of %q, want %d plain", len(rec.Body), rec.Header.Get("Content-Encoding"), len(want))
				}
			})
		}
	}
}

func TestKF_R1_ABodyThatCannotBeDecodedIsAClear400(t *testing.T) {
	good := encode(t, "zstd", []byte(claudeBody(user("hello"))))
	broken := bytes.Clone(good)
	broken[len(broken)/2] ^= 0xff
	cases := []struct {
		name, label string
		body        []byte
	}{
		{"broken zstd", "zstd", broken}, {"cut zstd", "zstd", good[:len(good)-5]}, {"not gzip", "gzip", []byte("{}")},
		{"not br", "br", []byte("{}{}{}")}, {"unknown coding", "rot13", []byte("{}")},
		{"four codings", "gzip, gzip, gzip, gzip", good},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			header := claudeHeader("s1")
			header.Set("Content-Encoding", c.label)
			res := b.do("POST", "/claude-code/v1/messages", bytes.NewReader(c.body), header)
			body := read(t, res)
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "agentop: the request body cannot be read") {
				t.Errorf("answer %d %s", res.StatusCode, body)
			}
			// What nobody has to read goes as it came.
			header = claudeHeader("s1")
			header.Set("Content-Encoding", c.label)
			res = b.do("POST", "/claude-code/v1/files", bytes.NewReader(c.body), header)
			read(t, res)
			if rec := b.last("own"); !bytes.Equal(rec.Body, c.body) || rec.Header.Get("Content-Encoding") != c.label {
				t.Errorf("a file came as %d bytes of %q", len(rec.Body), rec.Header.Get("Content-Encoding"))
			}
		})
	}
}

func TestKF_R2_LongConversationsPass(t *testing.T) {
	sizes := []int{0, 1_100_000, 10_000_000, 31_000_000}
	if full() {
		sizes = append(sizes, 64<<20, 200<<20)
	}
	b := newBench(t, scripted(fakeserver.Behaviour{Status: 200, Body: []byte("{}")}))
	b.only(b.servers["a"].URL(), "key: none")
	for _, size := range sizes {
		for _, chunked := range []bool{false, true} {
			body := claudeBody(user(strings.Repeat("x", size)))
			if size == 0 {
				body = ""
			}
			var r io.Reader = strings.NewReader(body)
			if chunked {
				r = io.MultiReader(r) // hides the length
			}
			read(t, b.do("POST", "/claude-code/v1/messages", r, claudeHeader("s1")))
			if got := b.last("a").Body; string(got) != body {
				t.Errorf("%d bytes (chunked %v) came as %d", len(body), chunked, len(got))
			}
		}
	}
}

// allocated is what f allocates in all, live or not.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestKF_R2_ReadingABodyCostsItsSizeOnceOrTwice(t *testing.T) {
	const size = 32 << 20
	body := bytes.Repeat([]byte("x"), size)
	chunked := 2.3
	if testkit.Race { // pools forget at random then
		chunked = 4.3
	}
	for _, c := range []struct {
		name   string
		length int64
		most   float64
	}{{"with a length", size, 1.05}, {"chunked", -1, chunked}} {
		req, _ := http.NewRequest("POST", "/", nil)
		req.ContentLength, req.Body = c.length, io.NopCloser(bytes.NewReader(body))
		got := float64(allocated(func() {
			if b, _, err := readBody(req, 256<<20); err != nil || len(b) != size {
				t.Errorf("%s: %d bytes, %v", c.name, len(b), err)
			}
		})) / size
		t.Logf("%s: %.2f bytes allocated for each byte of the body", c.name, got)
		if got > c.most {
			t.Errorf("%s: %.2f bytes allocated for each byte of the body, want at most %.2f", c.name, got, c.most)
		}
	}
}

func TestKF_R3_TooLargeIsA413AndTheConversationGoesOn(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.configure(fmt.Sprintf("max_body: 1 MB\nservers:\n  a: {url: %s, key: none}\nagents:\n  claude-code: {server: a}\n  codex: {server: a}\n  opencode: {server: a}\n", b.servers["a"].URL()))
			header := claudeHeader("s1")
			header.Set("Session-Id", "s1")
			header.Set("X-Session-Id", "s1")
			send := func(body string) (*http.Response, string) {
				res := b.do("POST", f.path, io.MultiReader(strings.NewReader(body)), header.Clone())
				return res, read(t, res)
			}
			send(f.body)
			pins := fmt.Sprint(b.pins.values)
			res, body := send(f.body + strings.Repeat(" ", 1<<20))
			if res.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("status %d, want 413", res.StatusCode)
			}
			for _, want := range []string{"agentop: ", "max_body", `"error"`} {
				if !strings.Contains(body, want) {
					t.Errorf("the error lacks %q: %s", want, body)
				}
			}
			if got := fmt.Sprint(b.pins.values); got != pins {
				t.Errorf("the pin changed from %s to %s", pins, got)
			}
			if res, _ := send(f.body); res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get(RouteHeader), "server=a") {
				t.Errorf("the next request: %d %s", res.StatusCode, res.Header.Get(RouteHeader))
			}
		})
	}
}

// oddBodies are bodies that a decoder would change, lose or refuse.
func oddBodies() map[string]string {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	return map[string]string{
		"numbers":            `{"model":"m","n":[1.0,1e3,12345678901234567890,-0,1e400,0.1e-999]}`,
		"unsorted":           `{"z":1,"messages":[{"role":"user","content":"a"}],"a":{"c":1,"b":2},"model":"claude-opus-5-5","stream":true}`,
		"escapes":            `{"model":"m","messages":[{"role":"user","content":"\u00e4ä\/\ud83d\ude00😀\u0041"}]}`,
		"html":               "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"<a href='x'>&amp; \\u003c\u2028\u2029\"}]}",
		"lone surrogate":     `{"model":"m","messages":[{"role":"user","content":"\ud83d and \udc00"}]}`,
		"invalid utf-8":      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xc3(\xed\xa0\x80\"}]}",
		"nul":                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\\u0000\x00\"}]}",
		"duplicate keys":     `{"model":"a","messages":[],"model":"b","messages":[{"role":"user","content":"x"}],"stream":false,"stream":true}`,
		"deep":               `{"model":"m","x":` + deep + `,"messages":[{"role":"user","content":"x"}]}`,
		"deep and open":      `{"model":"m","messages":` + strings.Repeat("[{", 50_000),
		"white space":        " \t\r\n{ \"model\" : \"m\" ,\r\n\"messages\" : [ ] } \n\n",
		"byte order mark":    "\xef\xbb\xbf{\"model\":\"m\",\"messages\":[]}",
		"not JSON":           "hello",
		"array":              "[1,2,3]",
		"null":               "null",
		"two values":         `{"model":"m"}{"model":"n"}`,
		"trailing comma":     `{"model":"m",}`,
		"cut":                `{"model":"m","messages":[{"role":"us`,
		"cache_control":      `{"model":"m","system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"a","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`,
		"future fields":      `{"model":"m","brand_new":{"deep":[{"er":null}]},"messages":[{"role":"oracle","content":[{"type":"hologram","data":{"x":1}}],"mood":"blue"}],"\u006dodel2":1}`,
		"escaped key":        `{"mod\u0065l":"claude-opus-5-5","messages":[{"role":"user","content":"x"}]}`,
		"model is an object": `{"model":{"a":1},"messages":[]}`,
		"wrong types":        `{"model":1,"messages":"x","system":7,"stream":"yes","tools":{},"metadata":[]}`,
		"nothing":            "",
		"one space":          " ",
	}
}

// Numbers, order, white space, and what is hardly JSON.
func TestKF_R4_BodiesPassByteForByte(t *testing.T) { passByteForByte(t, oddBodies()) }

// Cache markers wherever they may be, and fields and blocks that nobody knows.
func TestKF_R5_NoFieldIsTakenOut(t *testing.T) {
	bodies := map[string]string{
		"cache_control": `{"model":"m","cache_control":{"type":"ephemeral"},"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"a","input_schema":{"type":"object","properties":{"cache_control":{"type":"string"}}},"cache_control":{"type":"ephemeral"}}],` +
			`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"}}]}]}`,
		"reasoning":   `{"model":"m","include":["reasoning.encrypted_content"],"store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA="},{"type":"message","role":"user","content":"x"}],"prompt_cache_key":"k","safety_identifier":"s"}`,
		"empty parts": `{"model":"m","system":"","tools":[],"stop_sequences":null,"metadata":{},"messages":[{"role":"user","content":[]},{"role":"assistant","content":""},{"role":"user","content":null}]}`,
	}
	for _, name := range []string{"future fields", "model is an object", "wrong types"} {
		bodies[name] = oddBodies()[name]
	}
	passByteForByte(t, bodies)
}

// What Go's JSON encoder would write in another way within strings.
func TestKF_R6_NoStringIsWrittenAnew(t *testing.T) {
	bodies := map[string]string{}
	for name, text := range map[string]string{
		"plain": "<a> && </a> \u2028\u2029\x7f", "escaped": `\u003ca\u003e \u0026 \u2028\u2029 \u003C`, "slashes": `\/ / \\/`, "controls": `\b\f\n\r\t\u0008\u001f`,
		"letters": `é \u00e9 \u00E9 😀 \ud83d\ude00 \uD83D\uDE00`, "replacement": "\ufffd \\ufffd", "brackets": `{\"model\":\"x\"}]`,
	} {
		for part, body := range map[string]string{
			"text": `{"model":"m","messages":[{"role":"user","content":"%s"}],"input":"%s"}`, "key": `{"model":"m","messages":[],"%s":1,"metadata":{"%s":"x"}}`,
			"tool": `{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"%s"}}],"tool_calls":[{"id":"c","function":{"name":"f","arguments":"%s"}}]}]}`,
		} {
			bodies[name+" as "+part] = strings.ReplaceAll(body, "%s", text)
		}
	}
	passByteForByte(t, bodies)
}

// passByteForByte sends bodies on every kind of path, with and without an edit
// of the model's name.
func passByteForByte(t *testing.T, bodies map[string]string) {
	t.Helper()
	// The answer is of no interest, and the fake server's own reading neither.
	b := newBench(t, scripted(fakeserver.Behaviour{Status: 200, Body: []byte("{}")}))
	n := 0
	for _, path := range []string{"/claude-code/v1/messages", "/codex/v1/responses", "/opencode/lab/v1/chat/completions", "/claude-code/v1/messages/count_tokens", "/claude-code/v1/files"} {
		for name, body := range bodies {
			for _, rename := range []string{"", `, rename: {"claude-*": "gl\"m"}`} {
				b.only(b.servers["a"].URL(), "key: none"+rename)
				n++ // a conversation keeps the names it was opened with
				id := fmt.Sprint("s", n)
				res := b.do("POST", path, strings.NewReader(body), http.Header{"Content-Type": {"application/json"}, "X-Session-Id": {id}, "Session-Id": {id}, "X-Claude-Code-Session-Id": {id}})
				answer := read(t, res)
				if res.StatusCode != http.StatusOK {
					t.Errorf("%s %s: %d %s", path, name, res.StatusCode, answer)
					continue
				}
				want := body
				if rename != "" && !strings.HasSuffix(path, "files") {
					want = strings.Replace(body, `"claude-opus-5-5"`, `"gl\"m"`, 1)
				}
				if got := string(b.last("a").Body); got != want {
					t.Errorf("%s %s%s: the server got %.200q, want %.200q", path, name, rename, got, want)
				}
			}
		}
	}
}

func TestKF_R17_BombsCostNoMoreThanTheLimit(t *testing.T) {
	const limit = 64 << 20
	bomb := func(coding string, size int64) []byte { return encodeAll(t, coding, io.LimitReader(zeroes{}, size)) }
	single := bomb("zstd", 2<<30)
	double := encode(t, "gzip", bomb("zstd", 512<<20))
	triple := encode(t, "br", double)
	for _, c := range []struct {
		name, label string
		body        []byte
	}{
		{"zstd, 2 GB", "zstd", single}, {"gzip, 256 MB", "gzip", bomb("gzip", 256<<20)}, {"br, 256 MB", "br", bomb("br", 256<<20)},
		{"deflate, 256 MB", "deflate", bomb("deflate", 256<<20)}, {"deflate without a head, 256 MB", "deflate", bomb("raw deflate", 256<<20)},
		{"gzip of zstd", "zstd, gzip", double}, {"br of gzip of zstd", "zstd, gzip, br", triple},
	} {
		header := http.Header{"Content-Encoding": {c.label}}
		used := allocated(func() {
			if _, err := decode(c.body, header, limit); err != errTooLarge {
				t.Errorf("%s: %v, want errTooLarge", c.name, err)
			}
		})
		t.Logf("%s: %d bytes sent, %d MB allocated at a limit of %d MB", c.name, len(c.body), used>>20, limit>>20)
		if used > limit+limit/4 {
			t.Errorf("%s: %d MB were allocated, want little more than the limit of %d MB", c.name, used>>20, limit>>20)
		}
	}
	b := newBench(t, nil)
	b.configure(fmt.Sprintf("max_body: 16 MB\nservers:\n  a: {url: %s, key: none}\nagents:\n  claude-code: {server: a}\n", b.servers["a"].URL()))
	header := claudeHeader("s1")
	header.Set("Content-Encoding", "zstd")
	if res := b.do("POST", "/claude-code/v1/messages", bytes.NewReader(single), header); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", res.StatusCode)
	}
}

func TestKF_R17_ABombDisturbsNoStream(t *testing.T) {
	step := newLockstep(t, "")
	b := newBench(t, scripted(fakeserver.Behaviour{Events: 100, TextBytes: 4000, Gate: step.gate}))
	b.configure(fmt.Sprintf("max_body: 16 MB\nservers:\n  a: {url: %s, key: none}\nagents:\n  claude-code: {server: a}\n", b.servers["a"].URL()))
	bomb := encodeAll(t, "zstd", io.LimitReader(zeroes{}, 256<<20))
	streaming := b.claude("s1", user("hello"))
	statuses := make(chan int)
	for i := range 4 {
		go func() {
			header := claudeHeader(fmt.Sprint("bomb-", i))
			header.Set("Content-Encoding", "zstd")
			req, _ := http.NewRequest("POST", b.url+"/claude-code/v1/messages", bytes.NewReader(bomb))
			req.Header = header
			res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				statuses <- 0
				return
			}
			_ = res.Body.Close()
			statuses <- res.StatusCode
		}()
	}
	events := step.read(t, streaming)
	for range 4 {
		if got := <-statuses; got != http.StatusRequestEntityTooLarge {
			t.Errorf("a bomb was answered %d, want 413", got)
		}
	}
	if got, want := strings.Join(events, ""), string(b.last("a").Answer); got != want || len(events) < 100 {
		t.Errorf("beside the bombs the client got %d events, %d bytes, of %d bytes that were sent", len(events), len(got), len(want))
	}
}

func TestKF_R17_AWindowLargerThanNeededIsRefused(t *testing.T) {
	// A frame header alone that asks for a window of 3.75 TB.
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x01, 0x00, 0x00}
	used := allocated(func() {
		if _, err := decode(frame, http.Header{"Content-Encoding": {"zstd"}}, 1<<30); err == nil {
			t.Error("it was decoded")
		}
	})
	if used > 8<<20 {
		t.Errorf("%d MB were allocated for it", used>>20)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }
