package outline

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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

// argument is the tally of a tool call's id, name or plain argument.
func (t *tree) argument() Reply {
	if t.sort == '"' && t.text == "" {
		return Reply{}
	}
	return t.all()
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
				part.each(func(v *tree) { r.add(v.argument()) }, "id", "name", "input")
			}
		}
	}, "content")
	function := func(v *tree) {
		if v.sort != '{' || v.hidden() {
			return
		}
		v.each(func(w *tree) { r.add(w.argument()) }, "name", "input")
		v.each(func(w *tree) { r.add(argumentsOf(w)) }, "arguments")
	}
	m.each(function, "function_call")
	m.each(func(c *tree) {
		if c.sort != '[' {
			return
		}
		for _, call := range c.values {
			if call.sort == '{' && !call.hidden() {
				call.each(func(v *tree) { r.add(v.argument()) }, "id")
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
	if !o.History {
		o.Began = len(o.Elements)
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
			last := block.lastString("text")
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
	r := history{o: o, first: true, leading: true}
	for _, m := range v.values {
		o.Count++
		o.LastRole, o.LastType = m.str("role"), ""
		if o.Format == Responses {
			o.LastType = m.str("type")
		}
		if o.LastRole == "" {
			o.LastRole = m.str("type")
		}
		if m.sort != '{' {
			sum, _ := m.sum()
			o.Elements = append(o.Elements, sum)
			continue
		}
		before, replied := len(o.Elements), o.History
		referenceElement(o, m)
		r.texts(m)
		r.answers(m)
		if o.History && !replied {
			o.Began = before
		}
	}
	r.end()
}

// history is what the reference knows of the messages before.
type history struct {
	o              *Outline
	first, leading bool
	answer         Reply
}

func (r *history) texts(m *tree) {
	o, role := r.o, m.str("role")
	texts, _ := partsOf(m)
	switch role {
	case "user":
		if r.first {
			o.FirstUser = texts
		}
		r.first = false
		o.PriorUser, o.LastUser, o.AfterUser = o.LastUser, texts, nil
	case "assistant":
		o.History = true
	case "system", "developer":
		if !r.first {
			o.AfterUser = append(o.AfterUser, texts...)
		}
		if r.leading && o.Format == ChatCompletions {
			o.System = append(o.System, texts...)
		}
		if r.leading && o.Format == Responses {
			o.Leading = append(o.Leading, texts...)
		}
	}
	r.leading = r.leading && (role == "system" || role == "developer")
	o.History = o.History || strings.HasSuffix(m.str("type"), "_call")
}

func (r *history) answers(m *tree) {
	o, role, kind := r.o, m.get("role"), m.str("type")
	_, text := partsOf(m)
	if o.Format != Responses {
		if m.str("role") == "assistant" {
			r.answer = text
			r.answer.add(callsOf(o.Format, m))
			r.end()
		}
		return
	}
	m.each(func(t *tree) {
		if t.sort == '[' {
			o.Tools += len(t.values)
		}
	}, "tools")
	add := func(t *tree) { r.answer.add(t.argument()) }
	switch {
	case m.str("role") == "assistant":
		r.answer.add(text)
	case role != nil && role.sort == '"', strings.HasSuffix(kind, "_output"), slices.Contains([]string{"compaction", "compaction_trigger", "compaction_summary"}, kind):
		r.end()
	case kind == "function_call":
		m.each(add, "call_id", "name")
		m.each(func(t *tree) { r.answer.add(argumentsOf(t)) }, "arguments")
	case kind == "custom_tool_call":
		m.each(add, "call_id", "name", "input")
	}
}

func (r *history) end() {
	if r.answer.Bytes > 0 {
		r.o.Replies = append(r.o.Replies, r.answer)
	}
	r.answer = Reply{}
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
