package outline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func scan(t *testing.T, f Format, body string) *Outline {
	t.Helper()
	var o Outline
	check(t, &o, f, []byte(body))
	if o.Err != nil {
		t.Fatalf("%v\n%s", o.Err, body)
	}
	return &o
}

func heads(texts []Text) string {
	var all []string
	for _, t := range texts {
		all = append(all, string(t.Head))
	}
	return strings.Join(all, "|")
}

func TestBillingBlockIsCutFromEveryFormOfSystem(t *testing.T) {
	const (
		block = `{"type":"text","text":"x-anthropic-billing-header: v=1; cch=2;"}`
		other = `{"type":"text","text":"You are a helper."}`
	)
	cases := []struct{ name, body, want string }{
		{"first block", `{"system":[` + block + `,` + other + `],"m":1}`, `{"system":[` + other + `],"m":1}`},
		{"middle block", `{"system":[` + other + `,` + block + `,` + other + `]}`, `{"system":[` + other + `,` + other + `]}`},
		{"last block", `{"system":[` + other + `,` + block + `]}`, `{"system":[` + other + `]}`},
		{"only block", `{"a":1,"system":[` + block + `]}`, `{"a":1,"system":[]}`},
		{"white space", "{\"system\" : [ " + block + " ,\n " + other + " ]}", "{\"system\" : [ \n " + other + " ]}"},
		{"white space at the end", "{\"system\":[" + other + " , " + block + " ]}", "{\"system\":[" + other + "  ]}"},
		{"fields in another order", `{"system":[{"cache_control":{"type":"ephemeral"},"text":"x-anthropic-billing-header: a","type":"text"}]}`, `{"system":[]}`},
		{"escaped", `{"s\u0079stem":[{"type":"text","text":"x\u002danthropic-billing-header: a"}]}`, `{"s\u0079stem":[]}`},
		{"first of two", `{"system":[` + block + `,` + block + `]}`, `{"system":[` + block + `]}`},
		{"text goes on", `{"system":[{"type":"text","text":"x-anthropic-billing-header: a\nYou are a helper."}]}`, `{"system":[{"type":"text","text":"You are a helper."}]}`},
		{"text goes on after another line break", `{"system":[{"type":"text","text":"x-anthropic-billing-header: a\u000aYou"}]}`, `{"system":[{"type":"text","text":"You"}]}`},
		{"string, first member", `{"system":"x-anthropic-billing-header: a","m":1}`, `{"m":1}`},
		{"string, middle member", `{"a":1,"system":"x-anthropic-billing-header: a","m":1}`, `{"a":1,"m":1}`},
		{"string, last member", `{"a":1, "system" : "x-anthropic-billing-header: a" }`, `{"a":1 }`},
		{"string, only member", `{"system":"x-anthropic-billing-header: a"}`, `{}`},
		{"string goes on", `{"system":"x-anthropic-billing-header: a\n\nYou","m":1}`, `{"system":"\nYou","m":1}`},
		{"string after an equal key", `{"system":"You","system":"x-anthropic-billing-header: a"}`, `{"system":"You","system":""}`},
		{"only the last of equal keys", `{"system":[` + block + `],"system":[` + other + `]}`, ""},
		{"not at the start", `{"system":[{"type":"text","text":" x-anthropic-billing-header: a"}]}`, ""},
		{"another header", `{"system":[{"type":"text","text":"x-anthropic-billing-headers: a"}]}`, ""},
		{"in a message", `{"messages":[{"role":"user","content":"x-anthropic-billing-header: a"}]}`, ""},
		{"no system", `{}`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := scan(t, Messages, c.body)
			got := ""
			if o.Billing != (Span{}) {
				got = c.body[:o.Billing.From] + c.body[o.Billing.To:]
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for _, f := range []Format{Responses, ChatCompletions, NoFormat} {
				if o := scan(t, f, c.body); o.Billing != (Span{}) {
					t.Errorf("format %d: cut %v", f, o.Billing)
				}
			}
		})
	}
}

func TestScanFindsFields(t *testing.T) {
	cases := []struct {
		name, body string
		format     Format
		get        func(*Outline) any
		want       any
	}{
		{"model", `{"model":"a"}`, Messages, func(o *Outline) any { return o.Model }, "a"},
		{"model, escaped", `{"model":"a\u0062\n"}`, Messages, func(o *Outline) any { return o.Model }, "ab\n"},
		{"model, last of two", `{"model":"a","model":"b"}`, Messages, func(o *Outline) any { return o.Model }, "b"},
		{"model, last is no string", `{"model":"a","model":1}`, Messages, func(o *Outline) any { return o.Model }, ""},
		{"model spans", `{"model":"a","x":{"model":"n"}, "model" : "b"}`, Messages, func(o *Outline) any { return o.ModelSpans }, []Span{{9, 12}, {42, 45}}},
		{"stream", `{"stream":true}`, Messages, func(o *Outline) any { return o.Stream }, true},
		{"stream, last of two", `{"stream":true,"stream":false}`, Messages, func(o *Outline) any { return o.Stream }, false},
		{"stream as text", `{"stream":"true"}`, Messages, func(o *Outline) any { return o.Stream }, false},
		{"max_tokens", `{"max_tokens":1}`, Messages, func(o *Outline) any { return o.MaxTokens }, int64(1)},
		{"max_tokens, absent", `{}`, Messages, func(o *Outline) any { return o.MaxTokens }, int64(-1)},
		{"max_tokens, a fraction", `{"max_tokens":1.0}`, Messages, func(o *Outline) any { return o.MaxTokens }, int64(-1)},
		{"max_tokens, too large", `{"max_tokens":9223372036854775808}`, Messages, func(o *Outline) any { return o.MaxTokens }, int64(-1)},
		{"max_tokens, huge", `{"max_tokens":1e400}`, Messages, func(o *Outline) any { return o.MaxTokens }, int64(-1)},
		{"context_management", `{"context_management":{}}`, Messages, func(o *Outline) any { return o.ContextManagement }, true},
		{"output format", `{"output_config":{"format":{"type":"json_schema"}}}`, Messages, func(o *Outline) any { return o.OutputFormat }, true},
		{"output effort alone", `{"output_config":{"effort":"low"}}`, Messages, func(o *Outline) any { return o.OutputFormat }, false},
		{"tool_choice", `{"tool_choice":{"name":"x","type":"tool"}}`, Messages, func(o *Outline) any { return o.ToolChoice }, "tool"},
		{"tool_choice as a word", `{"tool_choice":"auto"}`, ChatCompletions, func(o *Outline) any { return o.ToolChoice }, ""},
		{"tools", `{"tools":[{"name":"a"},{"type":"web_search_20250305"},{"type":"custom"},{"input_schema":{"type":"object"}}]}`, Messages,
			func(o *Outline) any { return [2]int{o.Tools, o.ServerTools} }, [2]int{4, 1}},
		{"tools in the input", `{"tools":[],"input":[{"type":"additional_tools","tools":[{"name":"a"},{"name":"b"}]},{"role":"user","content":"x"}]}`, Responses,
			func(o *Outline) any { return o.Tools }, 2},
		{"user id", `{"metadata":{"user_id":"{\"session_id\":\"s\"}"}}`, Messages, func(o *Outline) any { return o.UserID }, `{"session_id":"s"}`},
		{"turn metadata", `{"client_metadata":{"x-codex-turn-metadata":"{\"a\":1}"}}`, Responses, func(o *Outline) any { return o.TurnMetadata }, `{"a":1}`},
		{"prompt_cache_key", `{"prompt_cache_key":"k"}`, Responses, func(o *Outline) any { return o.PromptCacheKey }, "k"},
		{"previous_response_id", `{"previous_response_id":"r"}`, Responses, func(o *Outline) any { return o.PreviousResponseID }, "r"},
		{"last role", `{"messages":[{"role":"user","content":"x"},{"content":"{","role":"assistant"}]}`, Messages, func(o *Outline) any { return o.LastRole }, "assistant"},
		{"last role and type of an item", `{"input":[{"type":"compaction_trigger"}]}`, Responses, func(o *Outline) any { return o.LastRole + o.LastType }, "compaction_triggercompaction_trigger"},
		{"history, an assistant", `{"messages":[{"role":"assistant"}]}`, Messages, func(o *Outline) any { return o.History }, true},
		{"history, a function call", `{"input":[{"type":"function_call"}]}`, Responses, func(o *Outline) any { return o.History }, true},
		{"no history", `{"input":[{"role":"developer"},{"role":"user"}]}`, Responses, func(o *Outline) any { return o.History }, false},
		{"signed thinking", `{"messages":[{"role":"assistant","content":[{"signature":"s","type":"thinking"}]}]}`, Messages, func(o *Outline) any { return o.Signed }, true},
		{"a signature elsewhere", `{"messages":[{"role":"assistant","content":[{"signature":"s","type":"text"}]}]}`, Messages, func(o *Outline) any { return o.Signed }, false},
		{"encrypted reasoning", `{"input":[{"type":"reasoning","encrypted_content":"e"}]}`, Responses, func(o *Outline) any { return o.Signed }, true},
		{"reasoning in the clear", `{"input":[{"type":"reasoning","encrypted_content":null}]}`, Responses, func(o *Outline) any { return o.Signed }, false},
		{"last messages of two", `{"messages":[{"role":"assistant","content":"a"}],"messages":[{"role":"user","content":"b"}]}`, Messages,
			func(o *Outline) any {
				return fmt.Sprint(o.Count, o.History, len(o.Elements), len(o.Replies)) + heads(o.FirstUser)
			}, "1 false 1 0b"},
		{"messages that are no list", `{"messages":"x"}`, Messages, func(o *Outline) any { return len(o.Elements) }, 0},
		{"reasoning is no element", `{"input":[{"role":"user"},{"type":"reasoning"}]}`, Responses, func(o *Outline) any { return [2]int{o.Count, len(o.Elements)} }, [2]int{2, 1}},
		{"empty system is no element", `{"system":[],"messages":[{"role":"user"}]}`, Messages, func(o *Outline) any { return len(o.Elements) }, 1},
		{"texts", `{"system":[{"text":"s1"},{"text":"s2"}],"messages":[{"role":"user","content":[{"type":"text","text":"f\u0031"},{"type":"text","text":"f2"}]},` +
			`{"role":"user","content":"p"},{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"tool_result","content":"r"},{"type":"text","text":"l"}]},{"role":"system","content":"n"}]}`, Messages,
			func(o *Outline) any {
				return heads(o.System) + " " + heads(o.FirstUser) + " " + heads(o.PriorUser) + " " + heads(o.LastUser) + " " + heads(o.AfterUser)
			}, "s1|s2 f1|f2 p l n"},
		{"leading system messages", `{"messages":[{"role":"system","content":"a"},{"role":"developer","content":"b"},{"role":"user","content":"c"},{"role":"system","content":"d"}]}`, ChatCompletions,
			func(o *Outline) any { return heads(o.System) + " " + heads(o.AfterUser) }, "a|b d"},
		{"messages that lead an input", `{"instructions":"i","input":[{"role":"developer","content":"a"},{"role":"user","content":"b"},{"role":"developer","content":"c"}]}`, Responses,
			func(o *Outline) any { return heads(o.System) + " " + heads(o.Leading) }, "i a"},
		{"instructions", `{"instructions":"i","input":"x"}`, Responses, func(o *Outline) any { return heads(o.System) + heads(o.LastUser) + o.LastRole }, "ixuser"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.get(scan(t, c.format, c.body)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestHeadsAreCutAtACharacter(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 300), strings.Repeat("é", 200), strings.Repeat("a", 255) + "é", strings.Repeat("a", 255) + `\u00e9`, "short", `\n`} {
		o := scan(t, Messages, `{"messages":[{"role":"user","content":"`+text+`"}]}`) // compares with the reference
		if head := o.FirstUser[0].Head; len(head) > HeadBytes {
			t.Errorf("%q: head of %d bytes", text[:5], len(head))
		}
	}
}

// TestMessageOfManyTextsIsBounded keeps the first texts and the last one.
func TestMessageOfManyTextsIsBounded(t *testing.T) {
	part := `{"type":"text","text":"x"},`
	body := `{"messages":[{"role":"user","content":[` + strings.Repeat(part, 5000) + `{"type":"text","text":"last"}]}]}`
	var o Outline
	o.Scan(Messages, []byte(body), jsonSum)
	if n := len(o.LastUser); n != maxTexts || string(o.LastUser[n-1].Head) != "last" {
		t.Errorf("%d texts, the last is %q", n, o.LastUser[n-1].Head)
	}
}

// TestReuseForgetsTheBodyBefore scans a rich body and then a poor one, and
// checks that no copied string hangs on the first body's memory.
func TestReuseForgetsTheBodyBefore(t *testing.T) {
	rich := []byte(`{"model":"m","stream":true,"max_tokens":1,"system":[{"text":"x-anthropic-billing-header: a"},{"text":"s"}],"tools":[{}],` +
		`"metadata":{"user_id":"u"},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`)
	var o Outline
	o.Scan(Messages, rich, jsonSum)
	model, role := o.Model, o.LastRole
	clear(rich)
	if model != "m" || role != "assistant" {
		t.Errorf("copied strings changed with the body: %q, %q", model, role)
	}
	for _, poor := range []string{`{}`, `{"messages":[]}`, `nonsense`} {
		o.Scan(Messages, []byte(`{"model":"m","messages":[{"role":"assistant","content":"x"}]}`), jsonSum)
		check(t, &o, Messages, []byte(poor))
	}
}

func TestNoSumMeansNoHashes(t *testing.T) {
	var o, hashed Outline
	body := []byte(`{"model":"m","system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","input":{}}]}]}`)
	o.Scan(Messages, body, nil)
	hashed.Scan(Messages, body, jsonSum)
	if len(o.Elements) != 0 || len(o.Replies) != 0 {
		t.Errorf("hashes without a Sum: %v %v", o.Elements, o.Replies)
	}
	hashed.Elements, hashed.Replies, hashed.Began = nil, nil, 0
	if d := difference(plainOutline(&o), plainOutline(&hashed)); d != "" {
		t.Error(d)
	}
}

func TestStringsSumsAnArgumentText(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
		ok   bool
	}{
		{`{"a":"x","b":["y",{"type":"z"}],"c":1}`, []string{"x", "y", "z"}, true},
		{` "x" `, []string{"x"}, true},
		{`1`, nil, true},
		{`{"a":"x"`, nil, false},
		{`{"a":"x"}}`, nil, false},
		{``, nil, false},
	} {
		hash, n, ok := Strings([]byte(c.text), jsonSum)
		if ok != c.ok {
			t.Errorf("%s: accepted %v, want %v", c.text, ok, c.ok)
		}
		var want Reply
		for _, s := range c.want {
			want.add(Reply{hashText(s), len(s)})
		}
		if got := (Reply{hash, n}); ok && got != want {
			t.Errorf("%s: got %v, want %v", c.text, got, want)
		}
	}
}

func TestFixtureToolCounts(t *testing.T) {
	bodies := recorded(t, "../testdata/fixtures/codex-0.171.0-x-simple-tool.json")
	var counts []int
	for _, b := range bodies {
		counts = append(counts, scan(t, Responses, string(b)).Tools)
	}
	if !slices.Equal(counts, []int{9, 9}) {
		t.Errorf("tools of a recorded conversation: got %v, want 9 each", counts)
	}
}
