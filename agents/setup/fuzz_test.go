package setup

import (
	"bytes"
	"reflect"
	"testing"
)

// fuzzEdit holds what must be true of each editor: what the parser accepts is
// edited or refused with a reason, nothing but the key differs afterwards, a
// second edit changes nothing, and undoing gives the bytes back.
func fuzzEdit(t *testing.T, syn *syntax, data []byte, path []string) {
	before, err := syn.decode(data)
	if err != nil {
		return
	}
	kept := bytes.Clone(data)
	const value = "http://127.0.0.1:4780/x"
	out, c, err := syn.set(data, path, value)
	if !bytes.Equal(kept, data) {
		t.Fatalf("the input was changed: %q, was %q", data, kept)
	}
	if err != nil {
		return
	}
	if err := syn.verify(data, out, []want{{path, value}}); err != nil {
		t.Fatalf("%q became %q: %v", data, out, err)
	}
	raw, found, err := syn.find(out, path)
	if err != nil || !found || syn.text(raw) != value {
		t.Fatalf("in %q the key is %q, %t, %v", out, raw, found, err)
	}
	f := &file{Syntax: syn.name}
	f.note(want{path, value}, c, false)
	u := undoing{syntax: syn, expected: map[string]any{}}
	if c.Absent {
		u.text, err = syn.unset(out, path)
	} else {
		u.text, err = syn.put(out, path, c.Old)
	}
	if err != nil {
		t.Fatalf("undo in %q: %v", out, err)
	}
	u.tidy(f)
	if u.err != nil {
		t.Fatal(u.err)
	}
	if after, err := syn.decode(u.text); err != nil || !reflect.DeepEqual(after, before) {
		t.Fatalf("%q became %q, undone %q: %v, want %v (%v)", data, out, u.text, after, before, err)
	}
	if !blank(data) && !bytes.Equal(u.text, data) {
		t.Fatalf("undone is %q, want %q (edited %q)", u.text, data, out)
	}
}

func FuzzStrictJSON(f *testing.F) {
	for _, text := range lives[claudeCode] {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzEdit(t, strictJSON, data, claudePath) })
}

func FuzzLooseJSON(f *testing.F) {
	for _, text := range lives[openCode] {
		f.Add([]byte(text))
	}
	for _, text := range []string{"{\"a\":1,//c\n}", "{//c\n\"a\":1//d\n}", "{\"a\":1/*c*/,/*d*/}", "{\"provider\":{//c\n}}", "{\"a\":1//c\n,}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzEdit(t, looseJSON, data, []string{"provider", "x", "options", "baseURL"})
	})
}

func FuzzTOML(f *testing.F) {
	for _, text := range lives[codex] {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, own bool) {
		path := codexPath
		if own {
			path = []string{"model_providers", "corp", "base_url"}
		}
		fuzzEdit(t, tomlSyntax, data, path)
	})
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nx\nc"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if got := unified("x", a, b, true, true); (got == "") != bytes.Equal(a, b) {
			t.Errorf("the diff of %q and %q is %q", a, b, got)
		}
	})
}
