package prefix_test

import (
	"slices"
	"strings"
	"testing"

	"agentop/agents/outline"
	"agentop/cmd/testkit"
	"agentop/router/prefix"
)

func keysOf(t *testing.T, f outline.Format, agent, body string) []prefix.Key {
	t.Helper()
	var o outline.Outline
	o.Scan(f, []byte(body), prefix.Sum)
	if o.Err != nil {
		t.Fatalf("%v\n%s", o.Err, body)
	}
	return prefix.Chain(nil, agent, o.Elements)
}

const (
	claude = `{"model":"m","system":[{"type":"text","text":"x-anthropic-billing-header: v=1; cch=1;"},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Hello/world \"A\"\n"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"é 😀"},{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"data"}]}],"stream":true}`
	codex = `{"model":"m","instructions":"Be brief.","input":[{"type":"message","id":"m1","role":"user","content":[{"type":"input_text","text":"Hello"}]},` +
		`{"type":"reasoning","id":"r1","summary":[],"encrypted_content":"x"},{"type":"function_call","id":"f1","call_id":"c1","name":"shell","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"data"}]}`
	chat = `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"},` +
		`{"role":"assistant","content":"Hi","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"data"}]}`
)

// TestKeysSurviveWhatClientsRewrite holds the promise of the package comment.
func TestKeysSurviveWhatClientsRewrite(t *testing.T) {
	cases := []struct {
		name    string
		format  outline.Format
		body    string
		rewrite []string // old, new, ...
	}{
		{"field order", outline.Messages, claude, []string{`{"role":"user","content":[{"type":"text","text":"Hello/world \"A\"\n"}]}`, `{"content":[{"text":"Hello/world \"A\"\n","type":"text"}],"role":"user"}`}},
		{"type after what it hides", outline.Messages, claude, []string{`{"type":"thinking","thinking":"hm","signature":"sig"}`, `{"signature":"sig","thinking":"hm","type":"thinking"}`}},
		{"top-level order", outline.Messages, claude, []string{`{"model":"m",`, `{`, `"stream":true}`, `"stream":true,"model":"m"}`}},
		{"cache_control moved", outline.Messages, claude, []string{`,"cache_control":{"type":"ephemeral"}`, ``, `"content":"data"`, `"content":"data","cache_control":{"type":"ephemeral","ttl":"1h"}`}},
		{"thinking dropped", outline.Messages, claude, []string{`{"type":"thinking","thinking":"hm","signature":"sig"},`, ``}},
		{"thinking redacted", outline.Messages, claude, []string{`{"type":"thinking","thinking":"hm","signature":"sig"}`, `{"type":"redacted_thinking","data":"zz"}`}},
		{"parts to a string", outline.Messages, claude, []string{`[{"type":"text","text":"Hello/world \"A\"\n"}]`, `"Hello/world \"A\"\n"`}},
		{"string to a part", outline.Messages, claude, []string{`"content":"data"`, `"content":[{"type":"text","text":"data"}]`}},
		{"other escapes", outline.Messages, claude, []string{`Hello/world \"A\"\n`, `\u0048ello\/world \u0022\u0041\u0022\u000a`, `é 😀`, `\u00e9 \ud83d\uDE00`}},
		{"escaped keys", outline.Messages, claude, []string{`"messages"`, `"m\u0065ssages"`, `"signature"`, `"signatur\u0065"`, `"role":"assistant"`, `"rol\u0065":"\u0061ssistant"`}},
		{"white space", outline.Messages, claude, []string{`"messages":[`, "\"messages\" : [\r\n\t "}},
		{"another model", outline.Messages, claude, []string{`"model":"m"`, `"model":"other"`}},
		{"another billing block", outline.Messages, claude, []string{`v=1; cch=1;`, `v=2; cch=99999;`}},
		{"no billing block", outline.Messages, claude, []string{`{"type":"text","text":"x-anthropic-billing-header: v=1; cch=1;"},`, ``}},
		{"billing line in one text", outline.Messages, claude, []string{`cch=1;"},{"type":"text","text":"Be`, `cch=1;\nBe`}},
		{"message id", outline.Messages, claude, []string{`{"role":"assistant"`, `{"id":"msg_1","type":"message","role":"assistant"`}},
		{"numbers and literals", outline.Messages, claude, []string{`"content":"data"`, `"content":"data","is_error":false,"n":[1,null]`}},
		{"reasoning dropped", outline.Responses, codex, []string{`{"type":"reasoning","id":"r1","summary":[],"encrypted_content":"x"},`, ``}},
		{"item ids dropped", outline.Responses, codex, []string{`"id":"m1",`, ``, `"id":"f1",`, ``}},
		{"input parts to a string", outline.Responses, codex, []string{`[{"type":"input_text","text":"Hello"}]`, `"Hello"`}},
		{"reasoning content dropped", outline.ChatCompletions, chat, []string{`"reasoning_content":"hm",`, ``}},
		{"chat string to a part", outline.ChatCompletions, chat, []string{`"content":"Hello"`, `"content":[{"type":"text","text":"Hello"}]`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, want := keysOf(t, c.format, "a", rewritten(t, c.body, c.rewrite)), keysOf(t, c.format, "a", c.body)
			if !slices.Equal(got, want) {
				t.Errorf("got %x, want %x", got, want)
			}
		})
	}
}

// rewritten replaces pairs of texts, each of which must be there.
func rewritten(t *testing.T, body string, pairs []string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(body, pairs[i]) {
			t.Fatalf("%s is not in %s", pairs[i], body)
		}
		body = strings.ReplaceAll(body, pairs[i], pairs[i+1])
	}
	return body
}

// TestKeysTellConversationsApart says from which key on a change shows.
func TestKeysTellConversationsApart(t *testing.T) {
	cases := []struct {
		name    string
		format  outline.Format
		body    string
		from    int // first key that differs
		rewrite []string
	}{
		{"system prompt", outline.Messages, claude, 0, []string{"Be brief.", "Be long."}},
		{"first text", outline.Messages, claude, 1, []string{"Hello", "Hallo"}},
		{"role", outline.Messages, claude, 1, []string{`{"role":"user","content":[{"type":"text"`, `{"role":"system","content":[{"type":"text"`}},
		{"assistant's text", outline.Messages, claude, 2, []string{"é", "e"}},
		{"tool name", outline.Messages, claude, 2, []string{"Read", "Write"}},
		{"tool call id", outline.Messages, claude, 2, []string{`"id":"t1"`, `"id":"t2"`}},
		{"tool argument", outline.Messages, claude, 2, []string{`"path":"a"`, `"path":"b"`}},
		{"tool result", outline.Messages, claude, 3, []string{"data", "date"}},
		{"call id", outline.Responses, codex, 2, []string{`"call_id":"c1","name"`, `"call_id":"c2","name"`}},
		{"tool output", outline.Responses, codex, 3, []string{"data", "date"}},
		{"chat tool call id", outline.ChatCompletions, chat, 2, []string{`"id":"c1"`, `"id":"c2"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, base := keysOf(t, c.format, "a", rewritten(t, c.body, c.rewrite)), keysOf(t, c.format, "a", c.body)
			if len(got) != len(base) {
				t.Fatalf("%d keys, want %d", len(got), len(base))
			}
			for i := range base {
				if same := got[i] == base[i]; same != (i < c.from) {
					t.Errorf("key %d: equal %v, want %v", i, same, i < c.from)
				}
			}
		})
	}
	t.Run("order of messages", func(t *testing.T) {
		a := keysOf(t, outline.ChatCompletions, "a", `{"messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}]}`)
		b := keysOf(t, outline.ChatCompletions, "a", `{"messages":[{"role":"user","content":"y"},{"role":"user","content":"x"}]}`)
		if a[1] == b[1] {
			t.Errorf("%x and %x", a, b)
		}
	})
	t.Run("agent", func(t *testing.T) {
		a, b := keysOf(t, outline.Messages, "claude-code", claude), keysOf(t, outline.Messages, "opencode", claude)
		for i := range a {
			if a[i] == b[i] {
				t.Errorf("key %d is equal: %x", i, a[i])
			}
		}
	})
}

// TestMarksSurviveWhatClientsRewrite does the same for an answer in the history.
func TestMarksSurviveWhatClientsRewrite(t *testing.T) {
	marks := func(f outline.Format, body string) []outline.Reply {
		var o outline.Outline
		o.Scan(f, []byte(body), prefix.Sum)
		if o.Err != nil || len(o.Replies) != 1 {
			t.Fatalf("%v, %d replies in %s", o.Err, len(o.Replies), body)
		}
		return o.Replies
	}
	item := `{"type":"function_call","call_id":"c","name":"n","arguments":"{\"a\":\"x\",\"b\":[\"y\",1]}"}`
	call := func(arguments string) string {
		return `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":` + arguments + `}}]}]}`
	}
	same := []struct {
		name   string
		format outline.Format
		bodies []string
	}{
		{"arguments written in other ways", outline.ChatCompletions, []string{
			call(`"{\"a\":\"x\",\"b\":[\"y\",1]}"`), call(`"{ \"b\": [\"\\u0079\", 1.0], \"a\": \"x\" }"`), call(`{"a":"x","b":["y",1]}`),
		}},
		{"thinking in any place", outline.Messages, []string{
			`{"messages":[{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"n","input":{"a":"y"}}]}]}`,
			`{"messages":[{"content":[{"type":"thinking","thinking":"t"},{"input":{"a":"\u0079"},"name":"n","id":"c","type":"tool_use","cache_control":{"type":"e"}},{"text":"x","type":"text"},{"type":"text","text":""}],"role":"assistant"}]}`,
		}},
		{"items of one answer", outline.Responses, []string{
			`{"input":[{"role":"assistant","content":"x"},` + item + `]}`,
			`{"input":[{"type":"reasoning","summary":[{"text":"t"}]},{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"x"}]},{"type":"web_search_call","id":"w"},` + item + `,{"type":"function_call_output","call_id":"c","output":"o"}]}`,
		}},
	}
	for _, c := range same {
		t.Run(c.name, func(t *testing.T) {
			want := marks(c.format, c.bodies[0])
			for _, body := range c.bodies[1:] {
				if got := marks(c.format, body); !slices.Equal(got, want) {
					t.Errorf("got %+v, want %+v for %s", got, want, body)
				}
			}
		})
	}
}

func TestKeysAreWrittenAsSixteenDigits(t *testing.T) {
	for k, want := range map[prefix.Key]string{0: "0000000000000000", 0xabc: "0000000000000abc", 1<<64 - 1: "ffffffffffffffff"} {
		if got := prefix.Format(k); got != want {
			t.Errorf("Format(%d): got %s, want %s", k, got, want)
		}
		if got, err := prefix.Parse(want); got != k || err != nil {
			t.Errorf("Parse(%s): got %d, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "0", "00000000000000000", "+000000000000000", "000000000000000G", "ABCDEF0123456789", "0x00000000000000", " 00000000000000a"} {
		if k, err := prefix.Parse(s); err == nil {
			t.Errorf("Parse(%q): got %d, want an error", s, k)
		}
	}
}

func TestChainAppends(t *testing.T) {
	long := strings.Repeat("a", 300)
	got := prefix.Chain([]prefix.Key{1}, long, []uint64{5, 6})
	if len(got) != 3 || got[0] != 1 {
		t.Fatalf("got %x", got)
	}
	if first := prefix.Chain(nil, long, []uint64{5}); first[0] != got[1] {
		t.Errorf("a prefix has another key: %x, %x", first, got)
	}
	if none := prefix.Chain(nil, "a", nil); len(none) != 0 {
		t.Errorf("keys of nothing: %x", none)
	}
}

// TestSteadyStateAllocatesNothing scans one conversation again and again, as
// a proxy does.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	body := claudeBody(200_000, 60, codeLines)
	var o outline.Outline
	var keys []prefix.Key
	allocs := testing.AllocsPerRun(20, func() {
		o.Scan(outline.Messages, body, prefix.Sum)
		keys = prefix.Chain(keys[:0], "claude-code", o.Elements)
	})
	// The pool of decoders may be emptied by a garbage collection in between,
	// and loses some on purpose under the race detector.
	if o.Err != nil || len(keys) == 0 || allocs >= 1 && !testkit.Race {
		t.Errorf("%v allocations a scan, %d keys, %v", allocs, len(keys), o.Err)
	}
}

func TestFingerprintsTellTextsApart(t *testing.T) {
	text := []byte(strings.Repeat("0123456789abcdef", 64))
	for _, n := range []int{0, 1, 16, 17, 240, 241, 1024} {
		a := prefix.Fingerprint(text[:n])
		if b := prefix.Fingerprint([]byte(string(text[:n]))); a != b {
			t.Errorf("%d bytes: %x and %x of one text", n, a, b)
		}
		if n == 0 {
			continue
		}
		other := []byte(string(text[:n]))
		other[n/2] ^= 1
		if prefix.Fingerprint(other) == a || prefix.SumText(text[:n]) == a {
			t.Errorf("%d bytes: %x of another text, or without a seed", n, a)
		}
	}
}
