package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"

	"agentop/router/fakeserver"
)

// style is how a client happens to write one request. None of it changes what
// the conversation is.
type style struct {
	stream     bool
	parts      bool // texts as one part instead of a string
	cacheAt    int  // message that bears cache_control; -1 for none
	noThinking bool // thinking and reasoning left out
	escaped    bool // non-ASCII characters and slashes escaped
	late       bool // the model comes last in the body
	billing    int  // number in Claude Code's billing block; 0 for none
	class      bool // Claude Code's class header
	bare       bool // a helper's request: no tools, no context management
}

func randomStyle(r *rand.Rand) style {
	return style{
		stream: r.IntN(4) > 0, parts: r.IntN(2) == 0, cacheAt: r.IntN(4) - 1, noThinking: r.IntN(3) == 0,
		escaped: r.IntN(4) == 0, late: r.IntN(2) == 0, billing: r.IntN(3) * r.IntN(1000), class: r.IntN(2) == 0,
	}
}

// quote writes a JSON string in the style.
func (s style) quote(text string) string {
	if !s.escaped {
		b, _ := json.Marshal(text) // a string cannot fail
		return string(b)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 'e' || r >= 0x7f && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r >= 0x10000:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04X\u%04x`, hi, lo)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// prompt is a system prompt in one of its versions.
func prompt(c *conversation) string {
	if c.helper != "" {
		return c.helper
	}
	return fmt.Sprintf("You are %s, version %d. Work in small steps and test what you change.", c.client.agent, c.system)
}

func reminder(c *conversation) string {
	return fmt.Sprintf("<system-reminder>\nToday is day %d.\n</system-reminder>", c.day)
}

const tools = `"tools":[{"name":"Read"},{"name":"Edit"},{"name":"Bash"},{"name":"Grep"}]`

// body writes the request that asks for the reply to user.
func body(c *conversation, user string, s style) string {
	var fields []string
	switch c.client.format {
	case fakeserver.Messages:
		fields = messagesBody(c, user, s)
	case fakeserver.Responses:
		fields = responsesBody(c, user, s)
	default:
		fields = chatBody(c, user, s)
	}
	fields = append(fields, fmt.Sprintf(`"stream":%v`, s.stream))
	if !s.bare {
		fields = append(fields, tools)
	}
	model := `"model":"m-large"`
	if s.late {
		fields = append(fields, model)
	} else {
		fields = append([]string{model}, fields...)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func messagesBody(c *conversation, user string, s style) []string {
	var system []string
	if s.billing > 0 && c.client.agent == "claude-code" {
		system = append(system, fmt.Sprintf(`{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.332; cch=%05d;"}`, s.billing))
	}
	system = append(system, `{"type":"text","text":`+s.quote(prompt(c))+cache(s.cacheAt >= 0)+`}`)
	fields := []string{`"max_tokens":32000`, `"system":[` + strings.Join(system, ",") + `]`}
	if c.client.agent == "claude-code" {
		id, _ := json.Marshal(fmt.Sprintf(`{"device_id":"d","account_uuid":"","session_id":"%s"}`, c.session)) // a string cannot fail
		fields = append(fields, `"metadata":{"user_id":`+string(id)+`}`)
		if !s.bare {
			fields = append(fields, `"context_management":{"edits":[]}`)
		}
	}
	var messages []string
	var calls []call
	for i, t := range c.turns {
		messages = append(messages, s.userMessage(c, i, t.user, calls), s.assistantMessage(t.reply))
		calls = t.reply.calls
	}
	messages = append(messages, s.userMessage(c, len(c.turns), user, calls))
	return append(fields, `"messages":[`+strings.Join(messages, ",")+`]`)
}

func cache(on bool) string {
	if on {
		return `,"cache_control":{"type":"ephemeral"}`
	}
	return ""
}

func (s style) userMessage(c *conversation, i int, text string, answered []call) string {
	var parts []string
	for _, call := range answered {
		parts = append(parts, `{"type":"tool_result","tool_use_id":"`+call.id+`","content":"done"}`)
	}
	if i == 0 && c.client.named {
		parts = append(parts, `{"type":"text","text":`+s.quote(reminder(c))+`}`)
	}
	if len(parts) == 0 && !s.parts && i != s.cacheAt {
		return `{"role":"user","content":` + s.quote(text) + `}`
	}
	parts = append(parts, `{"type":"text","text":`+s.quote(text)+cache(i == s.cacheAt)+`}`)
	return `{"content":[` + strings.Join(parts, ",") + `],"role":"user"}`
}

func (s style) assistantMessage(r reply) string {
	var parts []string
	if r.thinking != nil && !s.noThinking {
		parts = append(parts, string(r.thinking))
	}
	if r.text != "" {
		parts = append(parts, `{"text":`+s.quote(r.text)+`,"type":"text"}`)
	}
	for _, c := range r.calls {
		parts = append(parts, `{"type":"tool_use","id":"`+c.id+`","name":"`+c.name+`","input":`+c.input+`}`)
	}
	return `{"role":"assistant","content":[` + strings.Join(parts, ",") + `]}`
}

func chatBody(c *conversation, user string, s style) []string {
	messages := []string{`{"role":"system","content":` + s.chatContent(prompt(c)) + `}`}
	var calls []call
	say := func(text string) {
		for _, call := range calls {
			messages = append(messages, `{"role":"tool","tool_call_id":"`+call.id+`","content":"done"}`)
		}
		messages = append(messages, `{"role":"user","content":`+s.chatContent(text)+`}`)
	}
	for _, t := range c.turns {
		say(t.user)
		messages = append(messages, s.chatAssistant(t.reply))
		calls = t.reply.calls
	}
	say(user)
	return []string{`"messages":[` + strings.Join(messages, ",") + `]`, `"stream_options":{"include_usage":true}`}
}

func (s style) chatContent(text string) string {
	if s.parts {
		return `[{"type":"text","text":` + s.quote(text) + `}]`
	}
	return s.quote(text)
}

func (s style) chatAssistant(r reply) string {
	fields := []string{`"role":"assistant"`, `"content":null`}
	if r.text != "" {
		fields[1] = `"content":` + s.chatContent(r.text)
	}
	if r.thinking != nil && !s.noThinking {
		fields = append(fields, `"reasoning_content":`+string(r.thinking))
	}
	var calls []string
	for _, c := range r.calls {
		calls = append(calls, `{"id":"`+c.id+`","type":"function","function":{"name":"`+c.name+`","arguments":`+s.quote(c.input)+`}}`)
	}
	if calls != nil {
		fields = append(fields, `"tool_calls":[`+strings.Join(calls, ",")+`]`)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func responsesBody(c *conversation, user string, s style) []string {
	fields := []string{`"instructions":` + s.quote(prompt(c))}
	n := len(c.turns)
	if c.client.chained && n > 0 {
		return append(fields, `"previous_response_id":"`+c.turns[n-1].reply.response+`"`, `"input":[`+s.item("user", "input_text", user)+`]`)
	}
	var items []string
	if c.client.named {
		items = append(items, s.item("user", "input_text", reminder(c)))
		fields = append(fields, `"prompt_cache_key":"`+c.session+`"`)
	}
	for _, t := range c.turns {
		items = append(items, s.item("user", "input_text", t.user))
		if t.reply.thinking != nil && !s.noThinking {
			items = append(items, string(t.reply.thinking))
		}
		if t.reply.text != "" {
			items = append(items, s.item("assistant", "output_text", t.reply.text))
		}
		for _, c := range t.reply.calls {
			items = append(items,
				`{"type":"function_call","call_id":"`+c.id+`","name":"`+c.name+`","arguments":`+s.quote(c.input)+`}`,
				`{"type":"function_call_output","call_id":"`+c.id+`","output":"done"}`)
		}
	}
	items = append(items, s.item("user", "input_text", user))
	return append(fields, `"input":[`+strings.Join(items, ",")+`]`)
}

func (s style) item(role, kind, text string) string {
	return `{"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":` + s.quote(text) + `}]}`
}
