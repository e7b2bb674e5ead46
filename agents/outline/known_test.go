package outline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// toolsOf is a list of tools of at least size bytes, with all that could be
// taken for its end.
func toolsOf(size int) []byte {
	b := []byte("[")
	for i := 0; len(b) < size; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, ` {"name":"tool \"%d\"","description":"ends \\"  ,"type":"%s","schema":{"a":[1,{"]":"}"}],"\u0022":null}}`, i, []string{"custom", "web_search"}[i%2])
	}
	return append(b, ']')
}

// checkKnown holds that a body with a list of tools in it, at all places
// relative to the blocks that are looked at in one go, has the same outline
// with a Known that knows the list as without.
func checkKnown(t *testing.T, f Format, body []byte) {
	t.Helper()
	rest := bytes.TrimLeft(body, " \t\r\n")
	if len(rest) == 0 || rest[0] != '{' {
		return
	}
	r := rand.New(rand.NewPCG(uint64(len(body)), 7))
	list := toolsOf(smallestKnown + r.IntN(3*words*64))
	known, read := &Known{Hash: seededHash}, false
	for range 3 {
		whole := fmt.Appendf(nil, `{"x":"%s","tools":%s`, strings.Repeat("-", r.IntN(2*words*64)), list)
		if after := bytes.TrimLeft(rest[1:], " \t\r\n"); len(after) > 0 && after[0] != '}' {
			whole = append(whole, ',')
		}
		whole = append(whole, rest[1:]...)
		var with, without Outline
		with.Known = known
		with.Scan(f, whole, jsonSum)
		without.Scan(f, whole, jsonSum)
		with.Known, read = nil, read || without.Err == nil
		if d := difference(plainOutline(&with), plainOutline(&without)); d != "" {
			t.Fatalf("format %d, body\n%s\nwith what was known %s", f, whole, d)
		}
	}
	if read && known.find(toolLists, list) == nil && !bytes.Contains(body, []byte("tools")) {
		t.Fatal("the list is not known after it was read")
	}
}

func TestKnownToolsChangeNothing(t *testing.T) {
	everyKernel(func(string) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 60 {
			checkKnown(t, formats[r.IntN(len(formats))], randomBody(r))
		}
	})
}

// systemOf writes a system prompt in one of the ways in which a text can stand
// there.
func systemOf(r *rand.Rand, f Format, text string) string {
	key := "system"
	if f == Responses {
		key = "instructions"
	}
	return fmt.Sprintf(pick(r, []string{
		`%q:"%s"`,
		`%q:[{"type":"text","text":"x-anthropic-billing-header: v"},{"type":"text","text":"%s","cache_control":{"type":"ephemeral"}}]`,
		`%q:[{"text":"%s","type":"thinking"},"%[2]s",{"text":"%[2]s","text":"short"}]`,
		`%q:[{"text":"short","text":"%s","text":"%[2]s"}],%[1]q:"%[2]s"`,
	}), key, text)
}

// checkKnownTexts holds that bodies whose system prompts have long texts in
// common have the same outlines with a Known as without.
func checkKnownTexts(t *testing.T, r *rand.Rand, rest []byte) (met int) {
	t.Helper()
	after := ""
	if i := bytes.IndexByte(rest, '{'); i >= 0 && len(bytes.TrimLeft(rest[i+1:], " \t\r\n}")) > 0 {
		after = "," + string(rest[i+1:])
	} else {
		after = "}"
	}
	begin := pick(r, []string{"", "", "x-anthropic-billing-header: v", `x-anthropic-billing-header: v\n`})
	text := begin + strings.Repeat(pick(r, []string{"plain ", `\n\"`, "é", `\\`, "\xff"}), smallestKnown/2+r.IntN(2*words*64))
	known := &Known{Hash: seededHash}
	for range 8 {
		now := text
		switch at := r.IntN(len(text)); r.IntN(4) {
		case 0:
			now = text[:at] + string(" \"\\{}[],:0u\x01\xffx"[r.IntN(14)]) + text[at+1:]
		case 1:
			now = text + "more"
		}
		f := []Format{Messages, Responses, ChatCompletions}[r.IntN(5)/2]
		body := fmt.Appendf(nil, `{"x":"%s",%s%s`, strings.Repeat("-", r.IntN(2*words*64)), systemOf(r, f, now), after)
		if known.find(systemTexts, []byte(now+`"`)) != nil {
			met++
		}
		changesNothing(t, Outline{Known: known}, f, body)
	}
	return met
}

// changesNothing scans a body with what with knows, and without.
func changesNothing(t *testing.T, with Outline, f Format, body []byte) {
	t.Helper()
	var without Outline
	with.Scan(f, body, jsonSum)
	without.Scan(f, body, jsonSum)
	with.Known, with.Conversed = nil, ""
	if d := difference(plainOutline(&with), plainOutline(&without)); d != "" {
		t.Fatalf("format %d, body\n%s\nwith what was known %s", f, body, d)
	}
}

func TestKnownTextsChangeNothing(t *testing.T) {
	everyKernel(func(string) {
		r, met := rand.New(rand.NewPCG(8, 9)), 0
		for range 60 {
			met += checkKnownTexts(t, r, randomBody(r))
		}
		if met < 40 {
			t.Errorf("%d of 480 texts were known", met)
		}
	})
}

func TestOnlyWholeAndEqualListsAreKnown(t *testing.T) {
	k := &Known{Hash: seededHash}
	list := toolsOf(8 << 10)
	var o Outline
	o.Known = k
	o.Scan(Messages, fmt.Appendf(nil, `{"tools":%s}`, list), nil)
	tools, server := o.Tools, o.ServerTools
	if k.find(toolLists, list) == nil || tools == 0 || server == 0 {
		t.Fatalf("%d tools, %d of the server's", tools, server)
	}
	for name, other := range map[string][]byte{
		"a byte is another":     append(append(bytes.Clone(list[:len(list)/2]), '!'), list[len(list)/2+1:]...),
		"its end is cut":        list[:len(list)-1],
		"shorter than its head": list[:knownHead/2],
		"nothing":               nil,
	} {
		if k.find(toolLists, other) != nil {
			t.Errorf("%s: found", name)
		}
	}
	// What follows the list is read as ever.
	for _, after := range []string{``, `]`, `,`, `"`, `,"model":"m"`, `,"a":"` + "\x01" + `"`} {
		body := fmt.Appendf(nil, `{"tools":%s%s}`, list, after)
		var plain Outline
		plain.Scan(Messages, body, nil)
		o.Scan(Messages, body, nil)
		if (o.Err == nil) != (plain.Err == nil) || o.Model != plain.Model || o.Tools != plain.Tools {
			t.Errorf("%q: %v, model %q, %d tools; want %v, %q, %d", after, o.Err, o.Model, o.Tools, plain.Err, plain.Model, plain.Tools)
		}
	}
	// A broken list is not remembered.
	broken := append(bytes.Clone(list[:len(list)-1]), `,"`...)
	o.Scan(Messages, fmt.Appendf(nil, `{"tools":%s`, broken), nil)
	if n := k.values[toolLists].next; n != 1 {
		t.Errorf("%d lists are known, want 1", n)
	}
	// Old ones make room.
	for i := range knownValues {
		o.Scan(Messages, fmt.Appendf(nil, `{"tools":%s}`, toolsOf((20+i)<<10)), nil)
	}
	if k.find(toolLists, list) != nil {
		t.Error("the oldest list is still known")
	}
}
