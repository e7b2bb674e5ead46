package filestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// exampleFile is a file with an entry of each form.
func exampleFile() string {
	recs := []*record{
		{key: "plain", val: "text \"with\" \\ and\nlines\x01", stamp: 1},
		{key: "pin", val: `{"server":"glm","n":[1,2.5e3,null,true]}`, stamp: 2, expires: 99},
		{key: "spaced", val: `{"server": "glm"}`, stamp: 3},
		{key: "raw", val: "\xff\x00", stamp: 4},
		{key: "\xff", val: "", stamp: 5},
		{key: "", val: "é😀", stamp: 6},
		{key: "hash", kind: kindHash, hash: []field{{"", "x"}, {"f", ""}}, stamp: 7},
		{key: "hash64", kind: kindHash, hash: []field{{"\xfe", "x"}}, stamp: 8, expires: 77},
		{key: "gone", kind: kindDead, stamp: 9, expires: 88},
	}
	return fileOf(recs)
}

func fileOf(recs []*record) string {
	lines := make([]string, len(recs))
	encodeMissing(recs, lines)
	var b strings.Builder
	if err := writeFile(&b, header{store: "ab12", save: 3}, lines); err != nil {
		panic(err)
	}
	return b.String()
}

// TestRoundTrip encodes what was decoded: the same bytes, and records of the
// same content.
func TestRoundTrip(t *testing.T) {
	text := exampleFile()
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON:\n%s", text)
	}
	img, err := decode([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if img.header != (header{store: "ab12", save: 3}) {
		t.Errorf("header = %+v", img.header)
	}
	for _, r := range img.records {
		r.line = ""
	}
	if got := fileOf(img.records); got != text {
		t.Errorf("encoded again:\n%s\nwant:\n%s", got, text)
	}
}

// TestFormatGolden holds the format: a program of this version must read what
// an earlier one wrote.
func TestFormatGolden(t *testing.T) {
	const name = "testdata/format1.json"
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := exampleFile(); got != string(want) {
		t.Errorf("the format has changed; %s wants:\n%s\ngot:\n%s", name, want, got)
	}
	// The spaces after the header are no part of it.
	plain := strings.Replace(string(want), strings.Repeat(" ", headerLen-len(`{"version":1,"store":"ab12","save":3,"entries":{`)-1)+"\n", "\n", 1)
	if img, err := decode([]byte(plain), nil); err != nil || len(plain) == len(want) || fileOf(img.records) != string(want) {
		t.Errorf("without the spaces after its header it is read as %+v, %v", img, err)
	}
}

// TestKnownLines decodes a file again of which all but one line is in memory:
// the known records come back themselves.
func TestKnownLines(t *testing.T) {
	text := exampleFile()
	first, err := decode([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]*record{}
	for _, r := range first.records {
		byKey[r.key] = r
	}
	delete(byKey, "plain")
	second, err := decode([]byte(text), func(key []byte) (*record, string) {
		if r := byKey[string(key)]; r != nil {
			return r, r.line
		}
		return nil, ""
	})
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i, r := range second.records {
		if r == first.records[i] {
			same++
		}
		if !sameValue(r, first.records[i]) || r.key != first.records[i].key {
			t.Errorf("record %d = %+v, want %+v", i, r, first.records[i])
		}
	}
	// The key that is not text has another name in the file.
	if want := len(first.records) - 2; same != want {
		t.Errorf("%d records were known, want %d", same, want)
	}
}

// TestNewerWins has merging choose the same whichever side it stands on.
func TestNewerWins(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b *record
		want bool // a is newer
	}{
		{"later stamp", &record{key: "k", val: "1", stamp: 2}, &record{key: "k", val: "2", stamp: 1}, true},
		{"same instant", &record{key: "k", val: "2", stamp: 1}, &record{key: "k", val: "1", stamp: 1}, true},
		{"same instant, deleted", &record{key: "k", kind: kindDead, expires: 5, stamp: 1}, &record{key: "k", val: "z", stamp: 1}, true},
	} {
		if got, back := newer(c.a, c.b), newer(c.b, c.a); got != c.want || back == got {
			t.Errorf("%s: newer = %v and %v, want %v and the opposite", c.name, got, back, c.want)
		}
	}
}

// FuzzDecode wants no panic, nothing returned with an error, whatever is
// accepted to be JSON, and to be encoded and decoded to the same.
func FuzzDecode(f *testing.F) {
	text := exampleFile()
	f.Add([]byte(text))
	f.Add([]byte(text[:len(text)/2]))
	f.Add([]byte(strings.Replace(text, `"version":1`, `"version":2`, 1)))
	f.Add([]byte(`{"version":1,"store":"ab","save":1,"entries":{}}`))
	f.Add([]byte(`{"version":1,"store":"ab","save":1,"entries":{"a":{"json":[[[[1e9]]],"\ud83d\ude00"],"at_us":1,"sum":"00000000"}}}`))
	f.Add([]byte(` { "entries" : { } , "save" : 0 , "store" : "x" , "version" : 1 } `))
	f.Fuzz(func(t *testing.T, b []byte) {
		orig := slices.Clone(b)
		img, err := decode(b, nil)
		salvage(b)
		if !slices.Equal(b, orig) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if img != nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
				t.Fatalf("decode = %v, %v", img, err)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("accepted, and not JSON: %q", b)
		}
		again, err := decode([]byte(fileOf(img.records)), nil)
		if err != nil || len(again.records) != len(img.records) {
			t.Fatalf("encoded and decoded: %v", err)
		}
		for i, r := range img.records {
			got := again.records[i]
			if got.key != r.key || got.stamp != r.stamp || !sameValue(got, r) {
				t.Fatalf("record %d became %+v, was %+v", i, got, r)
			}
		}
	})
}

// FuzzValue wants any key and value to come back as they were, and the file
// to be JSON.
func FuzzValue(f *testing.F) {
	for _, val := range []string{"", "v", `{"a":1}`, `{"a":1} `, "[", "\xff", "\u2028", "{\"a\":\"\x01\"}", `{"a":"\ud800"}`, `[1,2`} {
		f.Add("key", val)
	}
	f.Add("\xff", "v")
	f.Fuzz(func(t *testing.T, key, val string) {
		text := fileOf([]*record{{key: key, val: val, stamp: 1}, {key: key + "h", kind: kindHash, hash: []field{{key, val}}, stamp: 2}})
		if !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %q", text)
		}
		img, err := decode([]byte(text), nil)
		if err != nil || len(img.records) != 2 {
			t.Fatalf("decode %q: %v", text, err)
		}
		if r := img.records[0]; r.key != key || r.val != val {
			t.Fatalf("%q: %q came back as %q: %q", key, val, r.key, r.val)
		}
		if h := img.records[1].hash; len(h) != 1 || h[0] != (field{key, val}) {
			t.Fatalf("hash came back as %q", h)
		}
	})
}

// TestScannerAgrees holds the scanner against the standard library on what
// is JSON and what is not.
func TestScannerAgrees(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "01", "-", "1.", "1.5", ".5", "1e5", "1e", "1E+5", "true", "tru", "nul", "null", "\"", `"a`, `"\x"`,
		`"\u12"`, `"\u1234"`, "\"\t\"", "[]", "[,]", "[1,]", "[1 2]", "{}", "{,}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`,
		"[1, 2 , 3 ]", ` [ ] `, "[[[]]]", "[}", "", " ",
	} {
		s := &scanner{b: []byte(text)}
		_, _, err := s.value()
		s.space()
		got, want := err == nil && s.i == len(text), json.Valid([]byte(text))
		if got != want {
			t.Errorf("%q: accepted %v, want %v", text, got, want)
		}
	}
	deep := strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2)
	s := &scanner{b: []byte(deep)}
	if _, _, err := s.value(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("nesting %d deep: %v, want ErrCorrupt", maxDepth+2, err)
	}
}

// Example of the file that docs/filestore.md shows.
func ExampleFileURL() {
	fmt.Println(FileURL("/home/me/.agentop/pins.json"))
	// Output: file:///home/me/.agentop/pins.json
}
