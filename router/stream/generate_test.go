package stream

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"agentop/agents/outline"
)

// generator writes random answers: the shapes that servers send, in any key
// order, with any escapes, and with what a reader has to pass over.
type generator struct {
	*rand.Rand
	shuffle bool
	escape  bool
	junk    bool
	ending  string // of lines
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), ending: "\n"}
	g.shuffle, g.escape, g.junk = g.IntN(2) == 0, g.IntN(2) == 0, g.IntN(2) == 0
	g.ending = []string{"\n", "\r\n", "\r"}[g.IntN(3)]
	return g
}

type pair struct {
	name  string
	value any
}

// obj is an object with its members in order; see generator.json.
type obj []pair

type raw string

func (g *generator) json(v any) string {
	space := ""
	if g.junk && g.IntN(4) == 0 {
		space = strings.Repeat(" ", g.IntN(3)) + []string{"", "\t"}[g.IntN(2)]
	}
	switch v := v.(type) {
	case raw:
		return string(v)
	case string:
		return g.quote(v)
	case obj:
		return g.object(v, space)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = g.json(e)
		}
		return "[" + space + strings.Join(parts, ","+space) + "]"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

func (g *generator) object(o obj, space string) string {
	o = append(obj(nil), o...)
	if g.junk && g.IntN(3) == 0 {
		o = append(o, pair{"x-" + g.word(), g.junkValue(3)})
	}
	if g.shuffle {
		g.Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
	}
	parts := make([]string, len(o))
	for i, p := range o {
		parts[i] = g.quoteKey(p.name) + space + ":" + space + g.json(p.value)
	}
	return "{" + strings.Join(parts, ",") + space + "}"
}

func (g *generator) junkValue(depth int) any {
	switch n := g.IntN(7); {
	case n == 0 && depth > 0:
		return obj{{"type", "text"}, {"text", g.text()}, {"index", g.junkValue(depth - 1)}}
	case n == 1 && depth > 0:
		return []any{g.junkValue(depth - 1), g.junkValue(depth - 1)}
	case n == 2:
		return g.text()
	case n == 3:
		return raw("-1.5e+3")
	case n == 4:
		return true
	case n == 5:
		return nil
	}
	return g.IntN(1000)
}

// quote writes a string value, sometimes with what is no character in it.
func (g *generator) quote(s string) string {
	q := g.quoteKey(s)
	if g.escape && g.IntN(20) == 0 {
		odd := []string{`\ud800`, `\udc00`, `\ud800\ud83d\ude00`, `\ud83dx`, "\xff", "\xe2\x82", `\/`}
		q = q[:len(q)-1] + odd[g.IntN(len(odd))] + `"`
	}
	return q
}

func (g *generator) quoteKey(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x20 || g.escape && g.IntN(5) == 0:
			if r >= 0x10000 {
				r -= 0x10000
				fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (g *generator) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz_"
	b := make([]byte, 1+g.IntN(10))
	for i := range b {
		b[i] = letters[g.IntN(len(letters))]
	}
	return string(b)
}

func (g *generator) text() string {
	alphabet := []rune("abc def\n\"\\{}[]:,é日😀\u0001/ ")
	n := g.IntN(30)
	if g.IntN(30) == 0 {
		n = g.IntN(700)
	}
	b := make([]rune, n)
	for i := range b {
		b[i] = alphabet[g.IntN(len(alphabet))]
	}
	return string(b)
}

// arguments are a tool call's: JSON mostly, sometimes not.
func (g *generator) arguments() string {
	switch g.IntN(8) {
	case 0:
		return ""
	case 1:
		return g.text()
	case 2:
		return g.json(g.text())
	}
	return g.json(obj{{"a-" + g.word(), g.text()}, {"type", g.word()}, {"b-" + g.word(), g.junkValue(4)}})
}

func (g *generator) pieces(s string) []string {
	runes := []rune(s)
	var out []string
	for len(runes) > 0 {
		n := 1 + g.IntN(len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

// stream writes events as a server would, with comments, pings and events that
// mean nothing in between.
func (g *generator) stream(f outline.Format, list []obj) []byte {
	var b bytes.Buffer
	line := func(s string) { b.WriteString(s + g.ending) }
	if g.IntN(8) == 0 {
		b.WriteString("\xEF\xBB\xBF")
	}
	for _, e := range list {
		if g.junk && g.IntN(4) == 0 {
			line([]string{": keep-alive", "id: 7", "retry: 10", "unknown field", ":"}[g.IntN(5)])
			if g.IntN(2) == 0 {
				line("")
			}
		}
		if g.junk && g.IntN(6) == 0 {
			line([]string{"data: not json", "data", "data: {\"type\":\"ping\"}", "data: [1,2", "data: 12"}[g.IntN(5)])
			line("")
		}
		if f != outline.ChatCompletions && g.IntN(3) > 0 {
			line("event: " + e[0].value.(string))
		}
		colon := []string{"data: ", "data:"}[g.IntN(2)]
		text := g.json(e)
		if i := strings.IndexByte(text, ':'); i > 0 && g.IntN(10) == 0 && strings.Count(text[:i], `"`) == 2 {
			line(colon + text[:i]) // a line feed is white space there
			text = text[i:]
			colon = "data: "
		}
		line(colon + text)
		line("")
	}
	if f == outline.ChatCompletions && g.IntN(2) == 0 {
		line("data: [DONE]")
		line("")
	}
	return b.Bytes()
}

// answer is a random answer of a format, and whether it is a stream. Some are
// cut.
func (g *generator) answer(f outline.Format) (p []byte, isSSE bool) {
	isSSE = g.IntN(3) > 0
	switch {
	case f == outline.Messages && isSSE:
		p = g.stream(f, g.messagesEvents())
	case f == outline.Messages:
		p = []byte(g.json(g.messagesAnswer()))
	case f == outline.Responses && isSSE:
		p = g.stream(f, g.responsesEvents())
	case f == outline.Responses:
		p = []byte(g.json(g.responsesAnswer("completed", g.items())))
	case isSSE:
		p = g.stream(f, g.chatEvents())
	default:
		p = []byte(g.json(g.chatAnswer()))
	}
	if g.IntN(4) == 0 {
		p = p[:g.IntN(len(p)+1)]
	}
	return p, isSSE
}
