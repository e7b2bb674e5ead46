package fakeserver

import (
	"encoding/json"
	"strings"
)

// request is what the fake server looks at in a body of any of the formats.
type request struct {
	Model          string            `json:"model"`
	Stream         bool              `json:"stream"`
	System         json.RawMessage   `json:"system"`
	Instructions   json.RawMessage   `json:"instructions"`
	Messages       []json.RawMessage `json:"messages"`
	Input          json.RawMessage   `json:"input"`
	Tools          []json.RawMessage `json:"tools"`
	MaxTokens      int               `json:"max_tokens"`
	OutputConfig   schemaHolder      `json:"output_config"`
	Text           schemaHolder      `json:"text"`
	ResponseFormat *schemaFormat     `json:"response_format"`
	StreamOptions  struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	invalid bool
}

type schemaHolder struct {
	Format *schemaFormat `json:"format"`
}

type schemaFormat struct {
	Type       string  `json:"type"`
	Schema     *schema `json:"schema"`
	JSONSchema struct {
		Schema *schema `json:"schema"`
	} `json:"json_schema"`
}

type schema struct {
	Type       any                `json:"type"`
	Enum       []json.RawMessage  `json:"enum"`
	Properties map[string]*schema `json:"properties"`
}

// inputFits reports whether the input is what the Responses API takes: a text or
// a list. A preflight tells by the refusal of another that the format is spoken.
func (q *request) inputFits() bool {
	return len(q.Input) == 0 || strings.ContainsRune(`"[n`, rune(q.Input[0]))
}

// elements are the parts of the conversation in order, the system prompt
// first.
func (q *request) elements() (system json.RawMessage, messages []json.RawMessage) {
	system = q.System
	if q.Instructions != nil {
		system = q.Instructions
	}
	if q.Input == nil {
		return system, q.Messages
	}
	if json.Unmarshal(q.Input, &messages) != nil {
		return system, []json.RawMessage{q.Input}
	}
	return system, messages
}

// wantsSchema is the JSON schema that the answer has to follow; nil if none.
func (q *request) wantsSchema() *schema {
	for _, f := range []*schemaFormat{q.OutputConfig.Format, q.Text.Format, q.ResponseFormat} {
		if f == nil || f.Type != "json_schema" && f.Type != "json_object" {
			continue
		}
		if f.Schema != nil {
			return f.Schema
		}
		if f.JSONSchema.Schema != nil {
			return f.JSONSchema.Schema
		}
		return &schema{Properties: map[string]*schema{"title": {Type: "string"}}}
	}
	return nil
}

// wantsTitle says whether the request is OpenCode's for a title in plain text.
func (q *request) wantsTitle() bool {
	system, messages := q.elements()
	if len(messages) > 0 && len(system) == 0 {
		system = messages[0]
	}
	return len(q.Tools) == 0 && strings.Contains(string(system), "title generator")
}

// compacts says whether a Responses request asks for a compaction item.
func (q *request) compacts() bool {
	_, messages := q.elements()
	if len(messages) == 0 {
		return false
	}
	var item struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(messages[len(messages)-1], &item) == nil && item.Type == "compaction_trigger"
}

// instance is a value that follows the schema, its strings being title.
func (s *schema) instance(title string) any {
	if s == nil {
		return title
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	kind, _ := s.Type.(string)
	switch {
	case s.Properties != nil || kind == "object":
		v := map[string]any{}
		for name, p := range s.Properties {
			v[name] = p.instance(title)
		}
		return v
	case kind == "array":
		return []any{}
	case kind == "boolean":
		return true
	case kind == "integer" || kind == "number":
		return 1
	}
	return title
}

// title is a few words of the last user message.
func (q *request) title() string {
	_, messages := q.elements()
	text := ""
	for _, m := range messages {
		var msg struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(m, &msg) == nil && msg.Role == "user" {
			if t := texts(msg.Content); len(t) > 0 {
				text = t[len(t)-1]
			}
		}
	}
	words := strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("<>{}[]\"\\", r) {
			return ' '
		}
		return r
	}, text))
	if len(words) > 6 {
		words = words[:6]
	}
	title := strings.Join(words, " ")
	if title == "" || len(title) > 60 {
		return "A short conversation"
	}
	return title
}

// texts are the texts of a message's content, a string or a list of parts.
func texts(content json.RawMessage) []string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []string{s}
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // what does not fit has no text
	var out []string
	for _, p := range parts {
		if p.Text != "" {
			out = append(out, p.Text)
		}
	}
	return out
}
