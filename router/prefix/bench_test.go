package prefix_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/zeebo/xxh3"

	"agentop/agents/outline"
	"agentop/router/prefix"
)

// The texts that bodies are made of. Source code has about 70 escapes in a
// kilobyte of JSON.
var (
	asciiLines = []string{
		"the server keeps what it was given and says so when it is asked, no sooner and no later than that. ",
		"Each turn goes where the last one went; a conversation that moves has to be read again from its start. ",
	}
	codeLines = []string{
		"\tif err := store.Save(ctx, \"pins\"); err != nil {\n", "\t\treturn fmt.Errorf(\"save %q: %w\", name, err)\n\t}\n",
		"\treply := map[string]string{\"role\": \"user\", \"text\": text}\n", "        self.cache[key] = value  # see \"limits\"\n",
		"    pattern = re.compile(r\"^\\s*(\\w+)\\s*=\")\n", "<div class=\"row\">{items.length}</div>\n", "}\n\n", "ok  \texample.com/pkg/config\t0.012s\n",
		"// Deliver hands the message over and waits until it was taken.\n", "   113→\tfor i := range messages {\n",
	}
	wideLines = []string{
		"Сервер помнит, где началась беседа, и ведёт её до конца. ", "会話は始まった場所で続き、途中で移ることはない。", "Größe, Übermaß, naïve façade — «tout va bien», 12 €. ",
	}
)

func textFrom(r *rand.Rand, lines []string, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(lines[r.IntN(len(lines))])
	}
	return b.String()
}

// quote writes s as JSON.stringify does.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// claudeBody is a body of the Messages API as Claude Code sends it: messages
// first, tool calls and their results in turn, then system and tools.
func claudeBody(size, messages int, lines []string) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	b.WriteString(`{"model":"claude-sonnet-4-5","messages":[`)
	each := (size - 70_000) / messages * 9 / 10
	for i := range messages {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case i == 0:
			fmt.Fprintf(&b, `{"role":"user","content":[{"type":"text","text":%s}]}`, quote(textFrom(r, asciiLines, 400)))
		case i%2 == 1:
			b.WriteString(`{"role":"assistant","content":[`)
			if i%6 == 1 {
				fmt.Fprintf(&b, `{"type":"thinking","thinking":%s,"signature":"%s"},`, quote(textFrom(r, asciiLines, 400)), strings.Repeat("QUJD", 150))
			}
			fmt.Fprintf(&b, `{"type":"text","text":%s},{"type":"tool_use","id":"toolu_%020d","name":"Edit","input":{"file_path":"/home/dev/app/file_%d.go","old_string":%s,"new_string":%s}}]}`,
				quote(textFrom(r, asciiLines, 90)), i, i, quote(textFrom(r, lines, each/3)), quote(textFrom(r, lines, each/3)))
		default:
			fmt.Fprintf(&b, `{"role":"user","content":[{"tool_use_id":"toolu_%020d","type":"tool_result","content":%s}]}`, i-1, quote(textFrom(r, lines, each*5/4)))
		}
	}
	b.WriteString(`],"system":[{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."},{"type":"text","text":`)
	fmt.Fprintf(&b, `%s,"cache_control":{"type":"ephemeral"}}],"tools":[`, quote(textFrom(r, asciiLines, 20_000)))
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"Tool%d","description":%s,"input_schema":{"type":"object","additionalProperties":false,"required":["path"],"properties":{`, i, quote(textFrom(r, asciiLines, 1800)))
		for j := range 6 {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"param%d":{"type":"string","description":%s}`, j, quote(textFrom(r, asciiLines, 70)))
		}
		b.WriteString(`}}}`)
	}
	b.WriteString(`],"metadata":{"user_id":"user_0000_account__session_4e960000-0000-4000-a000-000000000000"},"max_tokens":32000,"stream":true}`)
	return b.Bytes()
}

var benchBodies = []struct {
	name  string
	lines []string
}{{"code", codeLines}, {"ascii", asciiLines}, {"nonascii", wideLines}}

// cpuTime is what this process has used of the processors, in nanoseconds. It
// repeats where other work shares the machine, and elapsed time does not.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// plainScan goes from quote to quote by bytes.IndexByte and hashes what is
// between them, with a running key at the end of each message: the least that
// any scan without vector code does for prefix keys. It checks nothing.
func plainScan(body []byte) (keys int) {
	h := xxh3.New()
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 2 { // a message has ended, or a tool
				keys += int(h.Sum64() & 1)
			}
		case '"':
			from := i + 1
			for i = from; ; i++ {
				n := bytes.IndexByte(body[i:], '"')
				if n < 0 {
					return keys
				}
				i += n
				slashes := 0
				for body[i-1-slashes] == '\\' {
					slashes++
				}
				if slashes%2 == 0 {
					break
				}
			}
			_, _ = h.Write(body[from:i])
		}
	}
	return keys
}

// BenchmarkBody is what one request of 3.2 MB and 500 messages costs: the
// outline (turn, session), the outline with all element hashes and reply
// marks, and with the prefix keys; beside it a plain scan of the same body, and
// encoding/json, reading the top-level fields alone.
func BenchmarkBody(b *testing.B) {
	for _, c := range benchBodies {
		body := claudeBody(3_200_000, 500, c.lines)
		var o outline.Outline
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("text=%s/do=%s", c.name, name), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
		run("outline", func() { o.Scan(outline.Messages, body, nil) })
		run("hashes", func() { o.Scan(outline.Messages, body, prefix.Sum) })
		var keys []prefix.Key
		run("keys", func() {
			o.Scan(outline.Messages, body, prefix.Sum)
			keys = prefix.Chain(keys[:0], "claude-code", o.Elements)
			if len(keys) != 501 {
				b.Fatal(len(keys), o.Err)
			}
		})
		grown := outline.Outline{Known: &outline.Known{Hash: prefix.Fingerprint}, Conversed: "a"}
		grown.Scan(outline.Messages, claudeBody(3_200_000, 500, c.lines), prefix.Sum)
		run("goeson", func() {
			grown.Scan(outline.Messages, body, prefix.Sum)
			keys = prefix.Chain(keys[:0], "claude-code", grown.Elements)
			if len(keys) != 501 {
				b.Fatal(len(keys), grown.Err)
			}
		})
		run("indexbyte", func() {
			if plainScan(body) == 0 {
				b.Fatal("no keys")
			}
		})
		run("encodingjson", func() {
			var v struct {
				Model    string
				Messages []struct{ Role string }
			}
			if err := json.Unmarshal(body, &v); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSum hashes one string of 8 KB.
func BenchmarkSum(b *testing.B) {
	for _, c := range benchBodies {
		raw := []byte(quote(textFrom(rand.New(rand.NewPCG(1, 1)), c.lines, 8000)))
		raw = raw[1 : len(raw)-1]
		escaped := bytes.IndexByte(raw, '\\') >= 0
		b.Run("text="+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			before := cpuTime()
			for b.Loop() {
				prefix.Sum(raw, escaped)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
