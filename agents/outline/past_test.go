package outline

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
)

var knownSeed = maphash.MakeSeed()

func seededHash(b []byte) uint64 { return maphash.Bytes(knownSeed, b) }

// talk is a conversation's body that grows: what stands before its messages,
// the messages, and what stands behind them.
type talk struct {
	before   string
	messages [][]byte
	behind   string
}

func (c *talk) body(key string) []byte {
	return fmt.Appendf(nil, `{%s%q:[%s]%s`, c.before, key, bytes.Join(c.messages, []byte(" , ")), c.behind)
}

// long is a message that is long enough for a mark behind every few.
func long(r *rand.Rand) []byte {
	if r.IntN(4) == 0 {
		return randomObject(nil, r, 2)
	}
	role := pick(r, []string{"user", "assistant", "system", "tool"})
	text := strings.Repeat(pick(r, []string{"plain ", `\n\"`, "é", `\\`}), 400+r.IntN(1200))
	return fmt.Appendf(nil, `{"role":"%s","content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"i","name":"n","input":{"a":"%s"}}],"type":"%s"}`,
		role, text, text[:r.IntN(3)*24], pick(r, []string{"message", "function_call", "reasoning", "x_output"}))
}

// next makes the conversation go on, or another one of it.
func (c *talk) next(r *rand.Rand) {
	n := len(c.messages)
	switch at := 0; r.IntN(6) {
	case 0: // a message is another
		at = r.IntN(n)
		c.messages[at] = long(r)
	case 1: // a byte is another
		at = r.IntN(n)
		c.messages[at] = bytes.Clone(c.messages[at])
		c.messages[at][r.IntN(len(c.messages[at]))] = " \"\\{}[],:0u\x01\xffx"[r.IntN(14)]
	case 2: // the end is cut off
		c.messages = c.messages[:1+r.IntN(n)]
	case 3: // what is before them is another
		c.before = fmt.Sprintf(`"model":"m%d",`, r.IntN(3))
	}
	c.messages = append(c.messages, long(r))
}

// checkPast holds that a conversation's bodies have the same outlines with a
// Known that has seen those before as without. rest is what follows the
// messages: the members of an object, which may have messages again.
func checkPast(t *testing.T, r *rand.Rand, f Format, rest []byte) (resumed int) {
	t.Helper()
	behind := "}"
	if i := bytes.IndexByte(rest, '{'); i >= 0 && len(bytes.TrimLeft(rest[i+1:], " \t\r\n}")) > 0 {
		behind = "," + string(rest[i+1:])
	}
	c := talk{behind: behind, messages: [][]byte{long(r)}}
	key := map[Format]string{Responses: "input"}[f]
	if key == "" {
		key = "messages"
	}
	known := &Known{Hash: seededHash}
	for range 10 {
		c.next(r)
		body := c.body(key)
		if _, n := known.pasts.find("a", f, body, seededHash); n > 0 {
			resumed++
		}
		changesNothing(t, Outline{Known: known, Conversed: "a"}, f, body)
	}
	return resumed
}

func TestKnownBeginningsChangeNothing(t *testing.T) {
	everyKernel(func(string) {
		r, resumed := rand.New(rand.NewPCG(5, 6)), 0
		for range 40 {
			resumed += checkPast(t, r, formats[r.IntN(len(formats))], randomBody(r))
		}
		if resumed < 50 {
			t.Errorf("%d of 400 bodies went on from what was known", resumed)
		}
	})
}

func TestABeginningIsKnownUpToItsFirstDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	c := talk{behind: `,"system":"s"}`}
	for range 40 {
		c.messages = append(c.messages, fmt.Appendf(nil, `{"role":"user","content":"%s"}`, strings.Repeat("words ", 300)))
	}
	known := &Known{Hash: seededHash}
	o := Outline{Known: known, Conversed: "a"}
	o.Scan(Messages, c.body("messages"), jsonSum)
	_, all := known.pasts.find("a", Messages, c.body("messages"), seededHash)
	if all < 4 {
		t.Fatalf("%d marks in %d bytes", all, len(c.body("messages")))
	}
	c.messages = append(c.messages, long(r))
	for name, check := range map[string]struct {
		conversation string
		format       Format
		body         []byte
		want         int
	}{
		"it went on":           {"a", Messages, c.body("messages"), all},
		"another conversation": {"b", Messages, c.body("messages"), 0},
		"none":                 {"", Messages, c.body("messages"), 0},
		"another format":       {"a", ChatCompletions, c.body("messages"), 0},
		"the first byte":       {"a", Messages, append([]byte(" "), c.body("messages")...), 0},
		"cut before a mark":    {"a", Messages, c.body("messages")[:5<<10], 0},
	} {
		if _, got := known.pasts.find(check.conversation, check.format, check.body, seededHash); got != check.want {
			t.Errorf("%s: %d marks, want %d", name, got, check.want)
		}
	}
	body := c.body("messages")
	body[len(body)*2/3] = 'x'
	if _, n := known.pasts.find("a", Messages, body, seededHash); n < 1 || n >= all {
		t.Errorf("%d of %d marks with another byte at two thirds", n, all)
	}
	// Two that go by one name do not push each other out.
	other := talk{behind: c.behind, before: `"model":"other",`, messages: c.messages}
	o.Scan(Messages, other.body("messages"), jsonSum)
	for name, body := range map[string][]byte{"one": c.body("messages"), "other": other.body("messages")} {
		if _, n := known.pasts.find("a", Messages, body, seededHash); n < all {
			t.Errorf("%s: %d marks, want at least %d", name, n, all)
		}
	}
	for i := range knownPasts {
		o.Conversed = fmt.Sprint(i)
		o.Scan(Messages, c.body("messages"), jsonSum)
	}
	if _, n := known.pasts.find("a", Messages, c.body("messages"), seededHash); n != 0 {
		t.Error("the oldest is still known")
	}
}
