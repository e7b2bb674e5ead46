package outline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plainOutline is o without what a test does not compare: private fields,
// Billing, and the difference between no slice and an empty one.
func plainOutline(o *Outline) Outline {
	p := *o
	p.Billing, p.elements, p.texts, p.arena, p.buf, p.kept = Span{}, nil, nil, nil, nil, names{}
	p.ModelSpans = slices.Clip(append([]Span{}, o.ModelSpans...))
	p.Elements = append([]uint64{}, o.Elements...)
	p.Replies = append([]Reply{}, o.Replies...)
	if o.Err != nil {
		p.Err = errSyntax
	}
	for _, texts := range []*[]Text{&p.System, &p.Leading, &p.FirstUser, &p.PriorUser, &p.LastUser, &p.AfterUser} {
		copied := []Text{}
		for _, t := range *texts {
			copied = append(copied, Text{Head: append([]byte{}, t.Head...), Raw: t.Raw})
		}
		*texts = copied
	}
	return p
}

// check compares Scan with the reference, on an Outline that was used before.
func check(t *testing.T, o *Outline, f Format, body []byte) {
	t.Helper()
	before := bytes.Clone(body)
	o.Scan(f, body, jsonSum)
	got, want := plainOutline(o), plainOutline(reference(f, body))
	if !bytes.Equal(before, body) {
		t.Fatalf("scan changed the body\n%s", body)
	}
	if d := difference(got, want); d != "" {
		t.Fatalf("format %d, body\n%s\n%s", f, body, d)
	}
	checkBilling(t, o, body)
}

// difference names the exported fields in which two outlines differ.
func difference(got, want Outline) string {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	var b strings.Builder
	for i := range g.NumField() {
		if field := g.Type().Field(i); field.IsExported() {
			x, y := fmt.Sprintf("%+q", g.Field(i).Interface()), fmt.Sprintf("%+q", w.Field(i).Interface())
			if x != y {
				fmt.Fprintf(&b, "%s: got %s\nwant %s\n", field.Name, x, y)
			}
		}
	}
	return b.String()
}

// checkBilling cuts the billing block and compares what is left.
func checkBilling(t *testing.T, o *Outline, body []byte) {
	t.Helper()
	want := ""
	if top := parse(body); o.Err == nil && removeBilling(o.Format, top) {
		want = top.canonical()
	}
	if o.Billing == (Span{}) {
		if want != "" {
			t.Fatalf("no billing block found in\n%s", body)
		}
		return
	}
	edited := slices.Concat(body[:o.Billing.From], body[o.Billing.To:])
	top := parse(edited)
	if top == nil {
		t.Fatalf("cut %v leaves no JSON\n%s\n%s", o.Billing, body, edited)
	}
	if got := top.canonical(); got != want {
		t.Fatalf("cut %v of\n%s\ngot  %s\nwant %s", o.Billing, body, got, want)
	}
}

// removeBilling takes the billing block out of a tree.
func removeBilling(f Format, top *tree) bool {
	at := -1
	equal := 0
	for i, k := range top.keys {
		if k == "system" {
			at = i
			equal++
		}
	}
	if at < 0 {
		return false
	}
	system := top.values[at]
	if system.sort == '"' {
		line, rest := billingOf(f, system.text)
		if line == "" {
			return false
		}
		system.text = rest
		if rest == "" && equal == 1 {
			top.keys = slices.Delete(top.keys, at, at+1)
			top.values = slices.Delete(top.values, at, at+1)
		}
		return true
	}
	if system.sort != '[' {
		return false
	}
	for i, block := range system.values {
		if block.sort != '{' || block.hidden() {
			continue
		}
		var last *tree
		block.each(func(t *tree) {
			if t.sort == '"' {
				last = t
			}
		}, "text")
		if last == nil {
			continue
		}
		line, rest := billingOf(f, last.text)
		if line == "" {
			continue
		}
		last.text = rest
		if rest == "" {
			system.values = slices.Delete(system.values, i, i+1)
		}
		return true
	}
	return false
}

// canonical writes a tree with equal keys and order kept.
func (t *tree) canonical() string {
	switch t.sort {
	case '"':
		b, _ := json.Marshal(t.text)
		return string(b)
	case '{', '[':
		var b strings.Builder
		b.WriteByte(t.sort)
		for i, v := range t.values {
			if t.sort == '{' {
				k, _ := json.Marshal(t.keys[i])
				b.Write(k)
			}
			b.WriteString(v.canonical())
			b.WriteByte(';')
		}
		b.WriteByte(t.sort)
		return b.String()
	}
	return t.text
}

var formats = []Format{NoFormat, Messages, Responses, ChatCompletions}

// TestScanAgreesWithTheReferenceOnFixtures also takes the outline of some
// bodies in every other format: a body on the wrong path must do no harm.
func TestScanAgreesWithTheReferenceOnFixtures(t *testing.T) {
	files, err := filepath.Glob("../testdata/fixtures/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded requests in ../testdata: %v", err)
	}
	var o Outline
	bodies := 0
	for _, file := range files {
		for _, body := range recorded(t, file) {
			bodies++
			f := Messages
			switch {
			case bytes.Contains(body, []byte(`"input":`)):
				f = Responses
			case bytes.Contains(body, []byte(`"role":"tool"`)):
				f = ChatCompletions
			}
			check(t, &o, f, body)
			if bodies%16 == 0 {
				for _, f := range formats {
					check(t, &o, f, body)
				}
			}
		}
	}
	if bodies < 100 {
		t.Errorf("%d bodies in %d files", bodies, len(files))
	}
}

// recorded are the request bodies in a fixture.
func recorded(t testing.TB, file string) []json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Request struct{ Body json.RawMessage }
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil // not a list of requests
	}
	var bodies []json.RawMessage
	for _, row := range rows {
		if len(row.Request.Body) > 0 && row.Request.Body[0] == '{' {
			bodies = append(bodies, row.Request.Body)
		}
	}
	return bodies
}

// TestScanAgreesWithTheReferenceOnRandomBodies draws bodies from the words
// that mean something, in any order, nested anywhere.
func TestScanAgreesWithTheReferenceOnRandomBodies(t *testing.T) {
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 1))
	var o Outline
	for range 8_000 {
		body := randomBody(r)
		check(t, &o, formats[r.IntN(len(formats))], body)
	}
}

var (
	memberKeys = strings.Fields(`role type id content text tool_calls function_call function custom name arguments input
		call_id signature encrypted_content cache_control reasoning_content tools thinking summary output other`)
	topKeys = strings.Fields(`model stream max_tokens context_management output_config tool_choice tools metadata
		client_metadata prompt_cache_key previous_response_id system instructions messages input messages input system other`)
	sampleTexts = []string{"", "user", "assistant", "system", "developer", "tool", "text", "input_text", "output_text", "tool_use",
		"function_call", "function_call_output", "custom_tool_call", "thinking", "redacted_thinking", "reasoning", "compaction",
		"web_search_call", "custom", "message", "x-anthropic-billing-header: v=1;", "x-anthropic-billing-header: v=2;\nrest", "x-anthropic-billing-header: v\n",
		`{"a":"b","c":["d",1,{"e":""}]}`, `{"a":`, "é😀\n\t\"\\/", "\x00\x1f\u2028", "a", strings.Repeat("long \"text\" ", 40), strings.Repeat("é", 140)}
	scalars = []string{"true", "false", "null", "0", "-1", "12", "1e400", "1.5E-3", "99999999999999999999", "9223372036854775807"}
)

func randomBody(r *rand.Rand) []byte {
	var b []byte
	b = append(b, '{')
	for i := range r.IntN(6) {
		if i > 0 {
			b = append(b, ',')
		}
		k := pick(r, topKeys)
		b = randomString(b, r, k)
		b = append(space(b, r), ':')
		b = space(b, r)
		switch k {
		case "messages", "input", "system":
			b = randomArray(b, r, 4)
		case "output_config", "tool_choice", "metadata", "client_metadata":
			b = append(b, '{')
			b = randomString(b, r, pick(r, []string{"format", "type", "user_id", "x-codex-turn-metadata"}))
			b = append(b, ':')
			b = randomValue(b, r, 1)
			b = append(b, '}')
		default:
			b = randomValue(b, r, 3)
		}
		b = space(b, r)
	}
	b = append(b, '}')
	if r.IntN(20) == 0 { // spoil it
		b[r.IntN(len(b))] = " \"\\{}[],:0u\x01\xff"[r.IntN(13)]
	}
	return b
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func randomValue(b []byte, r *rand.Rand, depth int) []byte {
	switch n := r.IntN(10); {
	case n < 5 || depth == 0:
		return randomString(b, r, pick(r, sampleTexts))
	case n < 6:
		return append(b, pick(r, scalars)...)
	case n < 8:
		return randomArray(b, r, depth-1)
	}
	return randomObject(b, r, depth-1)
}

func randomArray(b []byte, r *rand.Rand, depth int) []byte {
	if r.IntN(5) == 0 {
		return randomString(b, r, pick(r, sampleTexts))
	}
	b = append(b, '[')
	for i := range r.IntN(5) {
		if i > 0 {
			b = append(space(b, r), ',')
		}
		b = space(b, r)
		if r.IntN(8) == 0 {
			b = randomValue(b, r, max(depth-1, 0))
		} else {
			b = randomObject(b, r, depth)
		}
	}
	return append(space(b, r), ']')
}

func randomObject(b []byte, r *rand.Rand, depth int) []byte {
	b = append(b, '{')
	for i := range r.IntN(6) {
		if i > 0 {
			b = append(space(b, r), ',')
		}
		b = space(b, r)
		k := pick(r, memberKeys)
		b = randomString(b, r, k)
		b = append(space(b, r), ':')
		b = space(b, r)
		switch {
		case depth > 0 && (k == "content" || k == "tool_calls" || k == "tools"):
			b = randomArray(b, r, depth-1)
		case depth > 0 && (k == "function" || k == "function_call" || k == "input"):
			b = randomObject(b, r, depth-1)
		default:
			b = randomValue(b, r, max(depth-1, 0))
		}
	}
	return append(space(b, r), '}')
}

func space(b []byte, r *rand.Rand) []byte {
	if r.IntN(6) == 0 {
		b = append(b, " \n\t\r"[r.IntN(4)])
	}
	return b
}

// randomString writes a string with escapes drawn at random, and now and then
// with what is not UTF-8 or no character.
func randomString(b []byte, r *rand.Rand, s string) []byte {
	b = append(b, '"')
	plainly := r.IntN(4) > 0
	for _, c := range s {
		switch n := r.IntN(20); {
		case c == '"' || c == '\\' || c == '/' && n < 10:
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c < ' ' || !plainly && n < 3 && c < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, string(c)...)
		}
	}
	switch r.IntN(60) {
	case 0:
		b = append(b, 0xff, 0xc3)
	case 1:
		b = append(b, `\ud83d`...)
	case 2:
		b = append(b, `\ud83d\ude00`...)
	case 3:
		b = append(b, `\ude00\ud83d\u0041`...)
	}
	return append(b, '"')
}
