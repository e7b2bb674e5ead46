package outline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// verdicts are bodies at the edge of what JSON allows.
var verdicts = []struct {
	name, body string
	ok         bool
}{
	{"empty object", `{}`, true},
	{"white space around", " \t\r\n{ } \n", true},
	{"nothing", ``, false},
	{"white space only", ` `, false},
	{"array", `[]`, false},
	{"string", `"a"`, false},
	{"null", `null`, false},
	{"byte order mark", "\xef\xbb\xbf{}", false},
	{"no-break space", "\u00a0{}", false},
	{"vertical tab", "{\v}", false},
	{"nul at the end", "{}\x00", false},
	{"two values", `{}{}`, false},
	{"trailing comma", `{"a":1,}`, false},
	{"trailing comma in array", `{"a":[1,]}`, false},
	{"leading comma", `{,"a":1}`, false},
	{"two commas", `{"a":1,,"b":2}`, false},
	{"no comma", `{"a":1 "b":2}`, false},
	{"no colon", `{"a" 1}`, false},
	{"no value", `{"a":}`, false},
	{"number as key", `{1:2}`, false},
	{"bare key", `{a:1}`, false},
	{"open object", `{"a":1`, false},
	{"open array", `{"a":[1`, false},
	{"open string", `{"a":"b`, false},
	{"open escape", `{"a":"b\`, false},
	{"open unicode escape", `{"a":"\u00`, false},
	{"wrong bracket", `{"a":[1}`, false},
	{"numbers", `{"a":[0,-0,1,-1,0.5,1e1,1E+1,1e-1,1e400,123456789012345678901234567890]}`, true},
	{"leading zero", `{"a":01}`, false},
	{"plus", `{"a":+1}`, false},
	{"minus alone", `{"a":-}`, false},
	{"no digit after point", `{"a":1.}`, false},
	{"no digit before point", `{"a":.5}`, false},
	{"no digit in exponent", `{"a":1e}`, false},
	{"no digit after sign", `{"a":1e+}`, false},
	{"hex", `{"a":0x1}`, false},
	{"NaN", `{"a":NaN}`, false},
	{"literals", `{"a":[true,false,null]}`, true},
	{"cut literal", `{"a":tru}`, false},
	{"long literal", `{"a":truee}`, false},
	{"capital literal", `{"a":True}`, false},
	{"all escapes", `{"a":"\"\\\/\b\f\n\r\t\u0041\uD83D\uDE00"}`, true},
	{"unknown escape", `{"a":"\a"}`, false},
	{"capital u", `{"a":"\U0041"}`, false},
	{"bad hex", `{"a":"\u00g0"}`, false},
	{"escaped newline byte", "{\"a\":\"\\\n\"}", false},
	{"lone surrogates", `{"a":"\ud83d \ude00 \ud83dx\u0041"}`, true},
	{"control byte", "{\"a\":\"\x01\"}", false},
	{"tab byte", "{\"a\":\"\t\"}", false},
	{"newline byte", "{\"a\":\"\n\"}", false},
	{"delete byte", "{\"a\":\"\x7f\"}", true},
	{"control byte in key", "{\"\x1f\":1}", false},
	{"not UTF-8", "{\"a\":\"\xff\xc0\xaf\xed\xa0\x80\"}", true},
	{"not UTF-8 outside", "{\"a\":\xff}", false},
	{"backslash outside", `{\"a":1}`, false},
	{"comment", `{"a":1/**/}`, false},
	{"equal keys", `{"a":1,"a":"b"}`, true},
	{"empty key", `{"":{"":[]}}`, true},
	{"quotes after a backslash run", `{"a":"\\\\","b":"\\\"","c":"\\"}`, true},
	{"deepest", `{"a":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`, true},
	{"too deep", `{"a":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`, false},
	{"deepest objects", strings.Repeat(`{"a":`, 9999) + `{}` + strings.Repeat("}", 9999), true},
	{"too deep objects", strings.Repeat(`{"a":`, 10000) + `{}` + strings.Repeat("}", 10000), false},
	{"deep and never closed", `{"a":` + strings.Repeat("[", 1_000_000), false},
	{"deep in messages", `{"messages":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`, true},
	{"deep in content", `{"messages":[{"content":[{"text":` + strings.Repeat(`[{"x":`, 4000) + "1" + strings.Repeat("}]", 4000) + `}]}]}`, true},
}

func TestScanAcceptsWhatEncodingJSONAccepts(t *testing.T) {
	var o Outline
	for _, c := range verdicts {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(c.body)
			oracle := json.Valid(body) && bytes.TrimLeft(body, " \t\r\n")[0] == '{'
			if oracle != c.ok {
				t.Fatalf("the table says %v, encoding/json %v", c.ok, oracle)
			}
			for _, f := range formats {
				o.Scan(f, body, jsonSum)
				if got := o.Err == nil; got != c.ok {
					t.Errorf("format %d: got accepted %v (%v), want %v", f, got, o.Err, c.ok)
				}
				if o.Err != nil && (len(o.Elements) > 0 || len(o.Replies) > 0 || len(o.ModelSpans) > 0 || o.Billing != Span{}) {
					t.Errorf("format %d: something is known of a refused body: %+v", f, o)
				}
			}
		})
	}
}

// TestScanAgreesWithEncodingJSONOnEveryCut cuts a body at every byte, puts
// every byte anywhere, and asks both.
func TestScanAgreesWithEncodingJSONOnEveryCut(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a\n\"b\\ \u0041\ud83d\ude00 é and some more text so that it is long enough for a wide step"}]}],"n":[-1.5e+3,true,null]}`)
	var o Outline
	ask := func(b []byte) {
		t.Helper()
		o.Scan(Messages, b, jsonSum)
		trimmed := bytes.TrimLeft(b, " \t\r\n")
		if want := json.Valid(b) && trimmed[0] == '{'; want != (o.Err == nil) {
			t.Errorf("%q: got %v, want accepted %v", b, o.Err, want)
		}
	}
	for i := range body {
		ask(body[:i])
	}
	changed := bytes.Clone(body)
	for i, old := range body {
		for c := range 256 {
			changed[i] = byte(c)
			ask(changed)
		}
		changed[i] = old
	}
}
