package outline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The reference computes an Outline the slow and obvious way: from a tree of
// the body that encoding/json's tokens build.

// tree is one JSON value with where it stands in the text.
type tree struct {
	sort    byte // '{', '[', '"', or 0 for a number or literal
	text    string
	keys    []string // of an object's members, with equal ones
	values  []*tree  // of an object's members, or an array's elements
	from    int
	to      int
	keyFrom []int
}

func parse(body []byte) *tree {
	if !json.Valid(body) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return parseValue(d, body)
}

func parseValue(d *json.Decoder, body []byte) *tree {
	from := int(d.InputOffset())
	for strings.IndexByte(" \t\r\n:,", body[from]) >= 0 {
		from++
	}
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	t := &tree{from: from}
	switch v := token.(type) {
	case string:
		t.sort, t.text = '"', v
	case json.Delim:
		t.sort = byte(v)
		for d.More() {
			if v == '{' {
				key := parseValue(d, body)
				t.keys = append(t.keys, key.text)
				t.keyFrom = append(t.keyFrom, key.from)
			}
			t.values = append(t.values, parseValue(d, body))
		}
		if _, err := d.Token(); err != nil {
			panic(err)
		}
	default:
		t.text = fmt.Sprint(v)
	}
	t.to = int(d.InputOffset())
	return t
}

// get is the last member with that key, nil if there is none.
func (t *tree) get(key string) *tree {
	if t == nil || t.sort != '{' {
		return nil
	}
	for i := len(t.keys) - 1; i >= 0; i-- {
		if t.keys[i] == key {
			return t.values[i]
		}
	}
	return nil
}

func (t *tree) str(key string) string {
	if v := t.get(key); v != nil && v.sort == '"' {
		return v.text
	}
	return ""
}

// each calls f for every member with one of keys.
func (t *tree) each(f func(*tree), keys ...string) {
	for i, k := range t.keys {
		if slices.Contains(keys, k) {
			f(t.values[i])
		}
	}
}

func (t *tree) raw() Span { return Span{t.from + 1, t.to - 1} }

// hashText stands for the hash that package prefix uses.
func hashText(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// jsonSum is a Sum by encoding/json.
func jsonSum(raw []byte, escaped bool) (uint64, int) {
	if escaped != bytes.Contains(raw, []byte(`\`)) {
		panic("escaped is wrong")
	}
	s := decoded(raw)
	return hashText(s), len(s)
}

func decoded(raw []byte) string {
	var s string
	if err := json.Unmarshal(slices.Concat([]byte(`"`), raw, []byte(`"`)), &s); err != nil {
		panic(err)
	}
	return s
}

var hiddenTypes = []string{"thinking", "redacted_thinking", "reasoning"}

func (t *tree) hidden() bool { return slices.Contains(hiddenTypes, t.str("type")) }

// sum is what a value adds to its element, and how many strings were counted.
func (t *tree) sum(skip ...string) (sum uint64, count int) {
	switch t.sort {
	case '"':
		return hashText(t.text), 1
	case '{':
		if t.hidden() {
			return 0, 0
		}
	}
	for i, v := range t.values {
		if t.sort == '{' {
			switch k := t.keys[i]; {
			case slices.Contains([]string{"type", "cache_control", "signature", "encrypted_content", "reasoning_content"}, k), slices.Contains(skip, k):
				continue
			}
		}
		s, n := v.sum()
		sum += s
		count += n
	}
	return sum, count
}

// all is the tally of all strings in a value.
func (t *tree) all() (r Reply) {
	if t.sort == '"' {
		return Reply{hashText(t.text), len(t.text)}
	}
	for _, v := range t.values {
		r.add(v.all())
	}
	return r
}

func (r *Reply) add(s Reply) { r.Mark += s.Mark; r.Bytes += s.Bytes }

// argumentsOf is the tally of a tool call's arguments where they may be JSON
// in a string.
func argumentsOf(t *tree) Reply {
	if t.sort != '"' {
		return t.all()
	}
	if t.text == "" {
		return Reply{}
	}
	if inner := parse([]byte(t.text)); inner != nil {
		return inner.all()
	}
	return t.all()
}

func textOf(s string, raw Span) Text {
	head := s
	if len(head) > HeadBytes {
		head = head[:HeadBytes]
		for !utf8.ValidString(head) {
			head = head[:len(head)-1]
		}
	}
	return Text{Head: []byte(head), Raw: raw}
}

// partsOf are the texts in a message's content, and their tally.
func partsOf(m *tree) (texts []Text, r Reply) {
	add := func(t *tree) {
		texts = append(texts, textOf(t.text, t.raw()))
		if t.text != "" {
			r.add(t.all())
		}
	}
	m.each(func(c *tree) {
		if c.sort == '"' {
			add(c)
		}
		if c.sort != '[' {
			return
		}
		for _, part := range c.values {
			switch part.str("type") {
			case "", "text", "input_text", "output_text":
				if kind := part.get("type"); kind != nil && kind.sort == '"' && kind.text == "" {
					continue // a type that is stated, and none that is known
				}
				var last *tree
				part.each(func(v *tree) {
					if v.sort == '"' {
						last = v
					}
				}, "text")
				if part.sort == '{' && last != nil {
					add(last)
				}
			}
		}
	}, "content")
	return texts, r
}

// callsOf is the tally of the tool calls in a message of the Messages or the
// Chat Completions API.
func callsOf(f Format, m *tree) (r Reply) {
	m.each(func(c *tree) {
		if c.sort != '[' {
			return
		}
		for _, part := range c.values {
			switch part.str("type") {
			case "tool_use", "server_tool_use", "mcp_tool_use":
				part.each(func(v *tree) { r.add(v.all()) }, "id", "name", "input")
			}
		}
	}, "content")
	function := func(v *tree) {
		if v.sort != '{' || v.hidden() {
			return
		}
		v.each(func(w *tree) { r.add(w.all()) }, "name", "input")
		v.each(func(w *tree) { r.add(argumentsOf(w)) }, "arguments")
	}
	m.each(function, "function_call")
	m.each(func(c *tree) {
		if c.sort != '[' {
			return
		}
		for _, call := range c.values {
			if call.sort == '{' && !call.hidden() {
				call.each(func(v *tree) { r.add(v.all()) }, "id")
				call.each(function, "function", "custom")
			}
		}
	}, "tool_calls")
	return r
}

// signed says that a message holds what only its maker can read.
func signed(m *tree) bool {
	found := m.str("encrypted_content") != ""
	m.each(func(v *tree) { found = found || v.sort == '"' && v.text != "" }, "encrypted_content")
	m.each(func(c *tree) {
		if c.sort != '[' {
			return
		}
		for _, part := range c.values {
			if part.sort != '{' {
				continue
			}
			switch part.str("type") {
			case "thinking", "reasoning":
				found = found || part.str("signature") != ""
			case "redacted_thinking":
				found = true
			}
			part.each(func(v *tree) { found = found || v.sort == '"' && v.text != "" }, "encrypted_content")
		}
	}, "content")
	return found
}

// reference is the Outline that Scan must find, but for Billing.
func reference(f Format, body []byte) *Outline {
	o := &Outline{Format: f, MaxTokens: -1}
	top := parse(body)
	if top == nil || top.sort != '{' {
		o.Err = errSyntax
		return o
	}
	o.Model = top.str("model")
	top.each(func(v *tree) {
		if v.sort == '"' {
			o.ModelSpans = append(o.ModelSpans, Span{v.from, v.to})
		}
	}, "model")
	if v := top.get("stream"); v != nil {
		o.Stream = v.sort == 0 && v.text == "true"
	}
	if v := top.get("max_tokens"); v != nil && v.sort == 0 {
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			o.MaxTokens = n
		}
	}
	o.ContextManagement = top.get("context_management") != nil
	o.OutputFormat = top.get("output_config").get("format") != nil
	o.ToolChoice = top.get("tool_choice").str("type")
	o.UserID = top.get("metadata").str("user_id")
	o.PromptCacheKey = top.str("prompt_cache_key")
	o.PreviousResponseID = top.str("previous_response_id")
	o.TurnMetadata = top.get("client_metadata").str("x-codex-turn-metadata")
	if v := top.get("tools"); v != nil && v.sort == '[' {
		for _, tool := range v.values {
			o.Tools++
			if kind := tool.get("type"); kind != nil && kind.sort == '"' && kind.text != "custom" {
				o.ServerTools++
			}
		}
	}
	systemKey, key := "system", "messages"
	switch f {
	case Responses:
		systemKey, key = "instructions", "input"
	case ChatCompletions:
		systemKey = ""
	case NoFormat:
		return o
	}
	if v := top.get(systemKey); v != nil && systemKey != "" {
		referenceSystem(o, v)
	}
	if v := top.get(key); v != nil {
		referenceMessages(o, v)
	}
	return o
}

// billingOf splits a system text after its billing line; rest is all of it if
// it has none.
func billingOf(f Format, text string) (line, rest string) {
	if f != Messages || !strings.HasPrefix(text, "x-anthropic-billing-header:") {
		return "", text
	}
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}

func referenceSystem(o *Outline, v *tree) {
	sum, count := v.sum()
	drop := func(t *tree) {
		line, rest := billingOf(o.Format, t.text)
		if line == "" {
			return
		}
		sum -= hashText(t.text)
		count--
		if rest != "" {
			sum += hashText(rest)
			count++
		}
	}
	if v.sort == '"' {
		o.System = append(o.System, textOf(v.text, v.raw()))
		drop(v)
	}
	if v.sort == '[' {
		for _, block := range v.values {
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
			o.System = append(o.System, textOf(last.text, last.raw()))
			if line, rest := billingOf(o.Format, last.text); line != "" && rest == "" {
				s, n := block.sum()
				sum -= s
				count -= n
				continue
			}
			drop(last)
		}
	}
	if count > 0 {
		o.Elements = append(o.Elements, sum)
	}
}

func referenceMessages(o *Outline, v *tree) {
	o.Conversation = Span{v.from, v.to}
	if v.sort == '"' && o.Format == Responses {
		text := []Text{textOf(v.text, v.raw())}
		o.Count, o.LastRole, o.FirstUser, o.LastUser = 1, "user", text, text
		o.Elements = append(o.Elements, hashText(v.text)+hashText("user"))
		return
	}
	if v.sort != '[' {
		return
	}
	var answer Reply
	end := func() {
		if answer.Bytes > 0 {
			o.Replies = append(o.Replies, answer)
		}
		answer = Reply{}
	}
	first, leading := true, true
	for _, m := range v.values {
		o.Count++
		o.LastRole, o.LastType = m.str("role"), ""
		if o.Format == Responses {
			o.LastType = m.str("type")
		}
		if r := m.get("role"); r == nil || r.sort != '"' {
			o.LastRole = m.str("type")
		}
		if o.LastRole == "" {
			o.LastRole = m.str("type")
		}
		if m.sort != '{' {
			sum, _ := m.sum()
			o.Elements = append(o.Elements, sum)
			continue
		}
		referenceElement(o, m)
		texts, text := partsOf(m)
		role := m.str("role")
		hasRole := m.get("role") != nil && m.get("role").sort == '"'
		switch role {
		case "user":
			if first {
				o.FirstUser = texts
			}
			first = false
			o.PriorUser, o.LastUser, o.AfterUser = o.LastUser, texts, nil
		case "assistant":
			o.History = true
		case "system", "developer":
			if !first {
				o.AfterUser = append(o.AfterUser, texts...)
			}
			if leading && o.Format == ChatCompletions {
				o.System = append(o.System, texts...)
			}
			if leading && o.Format == Responses {
				o.Leading = append(o.Leading, texts...)
			}
		}
		leading = leading && (role == "system" || role == "developer")
		kind := m.str("type")
		o.History = o.History || strings.HasSuffix(kind, "_call")
		if o.Format != Responses {
			if role == "assistant" {
				answer = text
				answer.add(callsOf(o.Format, m))
				end()
			}
			continue
		}
		m.each(func(t *tree) {
			if t.sort == '[' {
				o.Tools += len(t.values)
			}
		}, "tools")
		switch {
		case role == "assistant":
			answer.add(text)
		case hasRole, strings.HasSuffix(kind, "_output"), slices.Contains([]string{"compaction", "compaction_trigger", "compaction_summary"}, kind):
			end()
		case kind == "function_call":
			m.each(func(t *tree) { answer.add(t.all()) }, "call_id", "name")
			m.each(func(t *tree) { answer.add(argumentsOf(t)) }, "arguments")
		case kind == "custom_tool_call":
			m.each(func(t *tree) { answer.add(t.all()) }, "call_id", "name", "input")
		}
	}
	end()
}

func referenceElement(o *Outline, m *tree) {
	o.Signed = o.Signed || signed(m)
	if m.hidden() {
		return
	}
	sum, _ := m.sum("id", "role")
	if r := m.get("role"); r != nil && r.sort == '"' {
		sum += hashText(r.text)
	}
	o.Elements = append(o.Elements, sum)
}
