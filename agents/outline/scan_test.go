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
			if x, y := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(x, y) {
				fmt.Fprintf(&b, "%s: got %+q %[2]v\nwant %+[3]q %[3]v\n", field.Name, x, y)
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
	at, equal := -1, 0
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
	if system.sort == '[' {
		return removeBillingBlock(f, system)
	}
	line, rest := billingOf(f, system.text)
	if system.sort != '"' || line == "" {
		return false
	}
	system.text = rest
	if rest == "" && equal == 1 {
		top.keys = slices.Delete(top.keys, at, at+1)
		top.values = slices.Delete(top.values, at, at+1)
	}
	return true
}

func removeBillingBlock(f Format, system *tree) bool {
	for i, block := range system.values {
		if block.sort != '{' || block.hidden() {
			continue
		}
		last := block.lastString("text")
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
