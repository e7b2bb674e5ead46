package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentop/agents/outline"
	"agentop/router/prefix"
)

// place is a body with the places that the two permitted edits touch: parts
// are the bytes between and around them, models and billing are what is
// between. Put together in order it is the body.
type place struct {
	before []byte
	what   string // model, billing or "" at the end
	is     []byte
}

func join(places []place, model []byte, keepBilling bool) []byte {
	var out []byte
	for _, p := range places {
		out = append(out, p.before...)
		switch {
		case p.what == "model" && model != nil:
			out = append(out, model...)
		case p.what == "billing" && !keepBilling:
		default:
			out = append(out, p.is...)
		}
	}
	return out
}

// jsonText is any JSON value, written in odd ways.
func jsonText(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth <= 0 && kind > 4 {
		kind %= 5
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"1.0", "1e400", "-0", "12345678901234567890", "0.1e-9", "null", "true", "false"}).Draw(t, "scalar")
	case 1, 2, 3, 4:
		return jsonString(t)
	case 5:
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return space(t) + jsonText(t, depth-1) + space(t) }), 0, 4).Draw(t, "list")
		return "[" + strings.Join(list, ",") + "]"
	}
	members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		return space(t) + jsonString(t) + space(t) + ":" + space(t) + jsonText(t, depth-1) + space(t)
	}), 0, 4).Draw(t, "members")
	return "{" + strings.Join(members, ",") + "}"
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t", "\r\n  "}).Draw(t, "space")
}

func jsonString(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "model", "system", "x-anthropic-billing-header: cc_version=1;", "ä", "😀", `\u00e4`, `\ud83d\ude00`, `\ud800`, `\\`, `\"`, `\/`, `\n`, "<&>", "\u2028", "\xff", "{", "}", "[", ",", ":",
	}), 0, 6).Draw(t, "string")
	return `"` + strings.Join(pieces, "") + `"`
}

// bodyWithPlaces draws a Messages body.
func bodyWithPlaces(t *rapid.T) []place {
	var places []place
	rest := bytes.Buffer{}
	cut := func(what, is string) {
		places = append(places, place{append([]byte(nil), rest.Bytes()...), what, []byte(is)})
		rest.Reset()
	}
	rest.WriteString(space(t) + "{")
	fields := rapid.SliceOfN(rapid.SampledFrom([]string{"model", "messages", "odd", "odd", "metadata"}), 1, 6).Draw(t, "fields")
	billingAt := rapid.IntRange(-1, len(fields)-1).Draw(t, "billing at")
	for i, f := range fields {
		if i > 0 {
			rest.WriteString("," + space(t))
		}
		switch f {
		case "model":
			rest.WriteString(rapid.SampledFrom([]string{`"model"`, `"mod\u0065l"`, `"\u006dodel"`}).Draw(t, "key") + space(t) + ":" + space(t))
			cut("model", `"claude-opus-5-5"`)
		case "messages":
			rest.WriteString(`"messages":` + space(t) + `[{"role":"user","content":` + jsonString(t) + `,"extra":` + jsonText(t, 2) + `}]`)
		default:
			rest.WriteString(fmt.Sprintf(`"odd%d":%s%s`, i, space(t), jsonText(t, 3)))
		}
		if i == billingAt {
			block := `{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=1;"}`
			rest.WriteString(`,"system":[`)
			cut("billing", block+",")
			rest.WriteString(`{"type":"text","text":` + jsonString(t) + `}]`)
		}
	}
	rest.WriteString(space(t) + "}" + space(t))
	cut("", "")
	return places
}

func TestPromise4_OnlyTheTwoPermittedEditsChangeABody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := bodyWithPlaces(t)
		body := join(places, nil, true)
		original := bytes.Clone(body)
		var o outline.Outline
		o.Scan(outline.Messages, body, prefix.Sum)
		if o.Err != nil {
			t.Fatalf("%q: %v", body, o.Err)
		}
		name := rapid.SampledFrom([]string{"glm-5", "a/b:c", `q"uote\`, "ünï", "claude-opus-5-5"}).Draw(t, "name")
		quoted, _ := json.Marshal(name)
		for _, rename := range []bool{false, true} {
			for _, drop := range []bool{false, true} {
				sent, model := "", []byte(nil)
				if rename && o.Model != "" {
					sent, model = name, quoted
				}
				got, want := edited(body, &o, sent, drop), join(places, model, !drop)
				if o.Billing.To == o.Billing.From {
					want = join(places, model, true)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("rename %v, drop %v:\nbody %q\ngot  %q\nwant %q", rename, drop, body, got, want)
				}
				if !rename && !drop && !sameBytes(got, body) {
					t.Fatal("a body without an edit was copied")
				}
			}
		}
		if !bytes.Equal(body, original) {
			t.Fatal("the client's bytes were changed in place")
		}
	})
}

func TestPromise4_ByteExactForRecordedBodies(t *testing.T) {
	files, _ := filepath.Glob("../agents/testdata/fixtures/*.json")
	n := 0
	// A bench for each edit: a conversation keeps the names it was opened with.
	plain, renaming := newBench(t, nil), newBench(t, nil)
	plain.only(plain.servers["a"].URL(), "key: none, keep_billing_block: true")
	renaming.only(renaming.servers["a"].URL(), `key: none, rename: {"*": renamed}`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, body := range recordedBodies(text) {
			n++
			id := fmt.Sprintf("%s-%d", filepath.Base(file), i)
			for _, b := range []*bench{plain, renaming} {
				// A token count: it has the same body and waits for no opening.
				read(t, b.do("POST", "/claude-code/v1/messages/count_tokens", bytes.NewReader(body), http.Header{"X-Claude-Code-Session-Id": {id}}))
			}
			if got := plain.last("a").Body; !bytes.Equal(got, body) {
				t.Errorf("%s: %d bytes came, %d were sent", id, len(got), len(body))
			}
			checkEdited(t, id, body, renaming.last("a").Body)
		}
	}
	if n == 0 {
		t.Fatal("no recorded body was found")
	}
	t.Logf("%d recorded bodies", n)
}

// recordedBodies are the request bodies in a fixture.
func recordedBodies(text []byte) (bodies [][]byte) {
	var entries []struct {
		Request struct {
			Body json.RawMessage `json:"body"`
		} `json:"request"`
	}
	_ = json.Unmarshal(text, &entries) // what is no fixture has none
	for _, e := range entries {
		if len(e.Request.Body) > 0 && e.Request.Body[0] == '{' {
			bodies = append(bodies, e.Request.Body)
		}
	}
	return bodies
}

// checkEdited asserts that got is body but for a run of bytes at most: the
// model's name, and the billing block.
func checkEdited(t *testing.T, id string, body, got []byte) {
	t.Helper()
	var o outline.Outline
	o.Scan(outline.Messages, body, prefix.Sum)
	want := string(body)
	if o.Billing.To > o.Billing.From {
		want = strings.Replace(want, string(body[o.Billing.From:o.Billing.To]), "", 1)
	}
	if o.Model != "" {
		want = strings.Replace(want, string(body[o.ModelSpans[0].From:o.ModelSpans[0].To]), `"renamed"`, 1)
	}
	if string(got) != want {
		t.Errorf("%s: edited to\n%.300q, want\n%.300q", id, got, want)
	}
}

// FuzzDecode feeds any bytes under any coding to the reader of bodies: it must
// not panic, not return with an error, and stay within its limit.
func FuzzDecode(f *testing.F) {
	plain := []byte(claudeBody(user("hello")))
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		f.Add(coding, encode(f, coding, plain))
	}
	f.Add("gzip, zstd", encode(f, "zstd", encode(f, "gzip", plain)))
	f.Add("identity,, GZIP ", plain)
	f.Fuzz(func(t *testing.T, label string, body []byte) {
		const limit = 1 << 20
		original := bytes.Clone(body)
		got, err := decode(body, http.Header{"Content-Encoding": {label}}, limit)
		if err != nil && got != nil {
			t.Errorf("%d bytes with an error", len(got))
		}
		if len(got) > limit && !sameBytes(got, body) {
			t.Errorf("%d bytes, over the limit", len(got))
		}
		if !bytes.Equal(body, original) {
			t.Error("the body was changed")
		}
	})
}

// FuzzEdit edits any bytes that the outline accepts: what is outside the spans
// must stay, and the result must be as good JSON as the body was.
func FuzzEdit(f *testing.F) {
	for _, body := range oddBodies() {
		if len(body) < 10_000 {
			f.Add([]byte(body), "glm-5")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, name string) {
		var o outline.Outline
		o.Scan(outline.Messages, body, prefix.Sum)
		got := edited(body, &o, name, true)
		if o.Err != nil && !sameBytes(got, body) {
			t.Errorf("a body that could not be read was edited: %q", got)
		}
		if json.Valid(body) && !json.Valid(got) && json.Valid([]byte(quote(name))) {
			t.Errorf("%q became %q", body, got)
		}
	})
}
