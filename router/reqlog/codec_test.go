package reqlog

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fullLine has every field set.
func fullLine() Line {
	return Line{
		Time: at(1234567 * time.Microsecond), Kind: KindTurn, ID: "req-1", Agent: "codex", Session: "0199-abc",
		Turn: TurnOpening, Side: "title", Pin: PinNew, Server: "lab/gpu1", Why: "opened when codex was set to lab",
		Format: "responses", Method: "POST", Path: "/v1/responses", ModelAsked: "gpt-5", ModelSent: "glm-5",
		Status: 200, Cut: "client", Error: "refused", Input: 120000, CacheRead: 110000, CacheWrite: 9000, Output: 512,
		BytesIn: 1 << 40, BytesOut: 77, FirstMS: 250, TotalMS: 61000,
		Key: Hex(0xfedcba9876543210), Mark: Hex(1), Responses: []string{"resp_a", "resp_b"},
		Turns: 12, Opened: at(-time.Hour),
	}
}

func TestLineSurvivesTheCodec(t *testing.T) {
	noUTC := fullLine()
	noUTC.Time = noUTC.Time.In(time.FixedZone("x", 5*3600))
	cases := map[string]struct{ in, want Line }{
		"every field": {fullLine(), fullLine()},
		"the least":   {Line{Time: at(0), Kind: KindPin}, Line{Time: at(0), Kind: KindPin}},
		"local time":  {noUTC, fullLine()},
		"a name that must be escaped": {
			Line{Time: at(0), Kind: KindPin, Session: "\x01px:00ff\"\\\n\t\x7fé日本😀\u2028"},
			Line{Time: at(0), Kind: KindPin, Session: "\x01px:00ff\"\\\n\t\x7fé日本😀\u2028"},
		},
		"bytes that are no text": {
			Line{Time: at(0), Kind: KindTurn, Path: "/a\xff\xfeb\xc3"},
			Line{Time: at(0), Kind: KindTurn, Path: "/a\ufffd\ufffdb\ufffd"},
		},
		"nanoseconds are cut": {
			Line{Time: at(1999), Kind: KindTurn}, Line{Time: at(time.Microsecond), Kind: KindTurn},
		},
		"a long path is cut between characters": {
			Line{Time: at(0), Kind: KindTurn, Path: "x" + strings.Repeat("é", 4000)},
			Line{Time: at(0), Kind: KindTurn, Path: "x" + strings.Repeat("é", 255)},
		},
		"a long session is left out whole": {
			Line{Time: at(0), Kind: KindPin, Session: strings.Repeat("s", maxString+1)}, Line{Time: at(0), Kind: KindPin},
		},
		"a long response id is left out, the fifth too": {
			Line{Time: at(0), Kind: KindTurn, Responses: append([]string{"", strings.Repeat("r", 2000)}, strings.Split("abcdefghij", "")...)},
			Line{Time: at(0), Kind: KindTurn, Responses: strings.Split("abcd", "")},
		},
	}
	for name, c := range cases {
		b := appendLine(nil, &c.in)
		if n := bytes.Count(b, []byte{'\n'}); n != 1 || b[len(b)-1] != '\n' {
			t.Errorf("%s: %d newlines in %q", name, n, b)
		}
		var r raw
		if !r.parse(b[:len(b)-1]) {
			t.Errorf("%s: not read the fast way: %q", name, b)
		}
		if got, ok := DecodeLine(b); !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, got, ok, c.want)
		}
		var std Line
		if err := json.Unmarshal(b, &std); err != nil || !reflect.DeepEqual(std, c.want) {
			t.Errorf("%s: encoding/json got %+v, %v\nwant %+v", name, std, err, c.want)
		}
	}
}

// A field that is added to Line must be added to the codec: it is written by
// hand.
func TestCodecKnowsEveryField(t *testing.T) {
	v := reflect.ValueOf(fullLine())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("fullLine leaves %s out", v.Type().Field(i).Name)
		}
	}
}

func TestEncoderNeverExceedsTheLongestLine(t *testing.T) {
	l := fullLine()
	v := reflect.ValueOf(&l).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind().String() == "string" {
			v.Field(i).SetString(strings.Repeat("\x01", 5000))
		}
	}
	l.Session = l.Session[:maxString]
	l.Responses = nil
	for range 6 {
		l.Responses = append(l.Responses, strings.Repeat("\x01", maxString))
	}
	if n := len(appendLine(nil, &l)); n > maxLine {
		t.Errorf("a line of %d bytes", n)
	}
}

func TestWhatIsNoLineIsRefused(t *testing.T) {
	good := string(appendLine(nil, &Line{Time: at(0), Kind: KindTurn}))
	for name, s := range map[string]string{
		"nothing":         "",
		"newline":         "\n",
		"empty object":    "{}",
		"null":            "null",
		"array":           "[]",
		"no kind":         `{"t":"2026-03-10T12:00:00.000000Z"}`,
		"no time":         `{"k":"turn"}`,
		"no such day":     `{"t":"2026-02-30T12:00:00.000000Z","k":"turn"}`,
		"no such hour":    `{"t":"2026-03-10T24:00:00.000000Z","k":"turn"}`,
		"half":            good[:len(good)-4],
		"two":             strings.TrimSpace(good) + good,
		"zero bytes":      "\x00\x00" + good,
		"wrong type":      `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":"200"}`,
		"raw control":     "{\"t\":\"2026-03-10T12:00:00.000000Z\",\"k\":\"tu\x01rn\"}",
		"too large":       `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":99999999999999999999}`,
		"leading zero":    `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":01}`,
		"trailing comma":  `{"t":"2026-03-10T12:00:00.000000Z","k":"turn",}`,
		"longer than may": `{"t":"2026-03-10T12:00:00.000000Z", "k":"turn","x":"` + strings.Repeat("x", maxLine) + `"}`,
	} {
		if l, ok := DecodeLine([]byte(s)); ok {
			t.Errorf("%s: %q was read as %+v", name, s, l)
		}
	}
}

// What parse leaves alone is read all the same: by encoding/json.
func TestUnusualLinesAreRead(t *testing.T) {
	want := Line{Time: at(0), Kind: KindTurn, Status: 200, Server: "glm"}
	for name, s := range map[string]string{
		"spaces":          ` { "t" : "2026-03-10T12:00:00.000000Z", "k":"turn" , "status": 200, "server":"glm"} `,
		"a newer field":   `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":200,"server":"glm","later":{"a":[1]}}`,
		"null":            `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":200,"server":"glm","id":null}`,
		"another time":    `{"t":"2026-03-10T12:00:00Z","k":"turn","status":200,"server":"glm"}`,
		"another order":   `{"server":"glm","status":200,"k":"turn","t":"2026-03-10T12:00:00.000000Z"}`,
		"carriage return": `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":200,"server":"glm"}` + "\r\n",
		"the last of two": `{"t":"2026-03-10T12:00:00.000000Z","k":"turn","status":1,"status":200,"server":"glm"}`,
	} {
		if got, ok := DecodeLine([]byte(s)); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, ok, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	full := fullLine()
	f.Add(appendLine(nil, &full))
	f.Add([]byte(`{"t":"2026-03-10T12:00:00.000000Z","k":"turn","session":"\u0001px:\ud83d\ude00\n\/","resp":["a","b"]}`))
	f.Add([]byte(`{"t":"2026-03-10T12:00:00.000000Z","k":"turn","T":"x","resp":[],"status":-0}`))
	f.Add([]byte(`{"t":"1969-12-31T23:59:59.999999Z","k":"turn","in":1e3}`))
	f.Add([]byte("{\"t\":\"2026-03-10T12:00:00.000000Z\",\"k\":\"t\xffurn\"}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var want Line
		err := json.Unmarshal(b, &want)
		var r raw
		if r.parse(b) {
			if err != nil {
				t.Fatalf("parse took %q, encoding/json says %v", b, err)
			}
			if got := r.line(); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q\nparse %+v\njson  %+v", b, got, want)
			}
		}
		got, ok := DecodeLine(b)
		if !ok && !reflect.DeepEqual(got, Line{}) {
			t.Fatalf("%q refused, but returned %+v", b, got)
		}
		if !ok {
			return
		}
		// What was read is written and read again as the same line.
		again, ok := DecodeLine(appendLine(nil, &got))
		if once, _ := DecodeLine(appendLine(nil, &again)); !ok || !reflect.DeepEqual(again, once) {
			t.Fatalf("%q\nfirst  %+v\nsecond %+v", b, again, once)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("s1", "/v1/messages", "resp_1", int64(5))
	f.Add("\x01px:\"\\", "/\xff\u2028</script>", "\x00", int64(-1))
	f.Fuzz(func(t *testing.T, session, path, resp string, n int64) {
		l := Line{Time: at(0), Kind: KindTurn, Session: session, Path: path, Responses: []string{resp}, Input: n}
		b := appendLine(nil, &l)
		var std Line
		if err := json.Unmarshal(b, &std); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if got, ok := DecodeLine(b); !ok || !reflect.DeepEqual(got, std) {
			t.Fatalf("%q\ngot  %+v\njson %+v", b, got, std)
		}
	})
}

func FuzzLoad(f *testing.F) {
	full := fullLine()
	one := appendLine(nil, &full)
	f.Add(bytes.Repeat(one, 3))
	f.Add(append(append([]byte(nil), one[:40]...), one...))
	f.Add(append([]byte("\x00\x00\x00\n\n"), one[:len(one)-1]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		// All ways to read a file find the same lines.
		var back []string
		rev := func(line []byte) bool { back = append(back, string(line)); return true }
		if err := backward(t.Context(), bytes.NewReader(b), int64(len(b)), rev); err != nil {
			t.Fatal(err)
		}
		var fwd []string
		end, err := forward(bytes.NewReader(b), 0, int64(len(b)), make([]byte, 2*maxLine), func(off int64, line []byte) bool {
			if string(b[off:off+int64(len(line))]) != string(line) {
				t.Fatalf("offset %d of %q is wrong", off, line)
			}
			fwd = append(fwd, string(line))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if rest := b[end:]; len(rest) > 0 {
			fwd = append(fwd, string(rest))
		}
		if len(b) < maxLine && !reflect.DeepEqual(reversed(back), fwd) {
			t.Fatalf("backward %q\nforward  %q", reversed(back), fwd)
		}
		d := loader{index: NewIndex(Limits{Conversations: 4, Keys: 8, Marks: 8, Responses: 8}, nil), names: map[string]string{}}
		if err := backward(t.Context(), bytes.NewReader(b), int64(len(b)), d.line); err != nil {
			t.Fatal(err)
		}
	})
}

func reversed(s []string) []string {
	var out []string
	for i := range s {
		out = append(out, s[len(s)-1-i])
	}
	return out
}

// Blocks end anywhere in a line; no line is lost or seen twice.
func TestBackwardCutsBlocksRight(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		var want []string
		var file bytes.Buffer
		for file.Len() < 3*blockSize {
			n := rnd.IntN(3000)
			if rnd.IntN(20) == 0 {
				n = maxLine - 1 + rnd.IntN(3)
			}
			if rnd.IntN(60) == 0 {
				n = maxLine + rnd.IntN(2*blockSize)
			}
			line := strings.Repeat(string(rune('a'+rnd.IntN(26))), n)
			file.WriteString(line + "\n")
			if n > maxLine {
				line = "too long"
			}
			want = append(want, line)
		}
		var got []string
		err := backward(t.Context(), bytes.NewReader(file.Bytes()), int64(file.Len()), func(b []byte) bool {
			if b == nil {
				b = []byte("too long")
			}
			got = append(got, string(b))
			return true
		})
		if err != nil || !reflect.DeepEqual(reversed(got), want) {
			t.Fatalf("%v: got %d lines, want %d", err, len(got), len(want))
		}
	}
}
