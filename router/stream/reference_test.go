package stream

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentop/agents/outline"
)

// The slow reading of an answer that the Observer is held against: the whole
// answer at once, through encoding/json, sharing nothing with it but the
// meaning of a Summary.

type refBlock struct {
	index     int64
	call      bool
	text      string
	id, name  string
	arguments string
	input     any
	plain     string // input of a custom tool
}

type reference struct {
	format outline.Format
	sum    Summary
	usage  Usage
	text   string
	blocks []*refBlock

	anyItem     bool
	seen, ended uint64
	last        int64
}

func refHash(s string) uint64 {
	h := fnvHash()
	_, _ = io.WriteString(h, s)
	return h.Sum64()
}

func (r *reference) add(s string) {
	if s != "" {
		r.sum.Mark += refHash(s)
		r.sum.MarkBytes += len(s)
	}
}

// addValues adds each string of a value, empty ones too.
func (r *reference) addValues(v any) {
	switch v := v.(type) {
	case string:
		r.sum.Mark += refHash(v)
		r.sum.MarkBytes += len(v)
	case []any:
		for _, e := range v {
			r.addValues(e)
		}
	case map[string]any:
		for _, e := range v {
			r.addValues(e)
		}
	}
}

func (r *reference) addArguments(v any) {
	text, isString := v.(string)
	if !isString {
		r.addValues(v)
		return
	}
	if inner, ok := parseJSON([]byte(text)); ok {
		r.addValues(inner)
		return
	}
	r.add(text)
}

func parseJSON(p []byte) (any, bool) {
	if !json.Valid(p) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}

// at follows names into v; nil where there is nothing.
func at(v any, names ...string) any {
	for _, n := range names {
		m, _ := v.(map[string]any)
		v = m[n]
	}
	return v
}

// str is a string or a short number, as text.
func str(v any, names ...string) string {
	switch v := at(v, names...).(type) {
	case string:
		return v
	case json.Number:
		if len(v) <= 32 {
			return string(v)
		}
	}
	return ""
}

func num(v any, names ...string) (int64, bool) {
	s := str(v, names...)
	if len(s) > 15 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

func array(v any, names ...string) []any {
	a, _ := at(v, names...).([]any)
	return a
}

// referenceSummary reads the answer; isSSE is what its content type says.
func referenceSummary(f outline.Format, isSSE bool, p []byte) Summary {
	r := &reference{format: f}
	p = bytes.TrimPrefix(p, []byte("\xEF\xBB\xBF"))
	p = bytes.TrimLeft(p, " \t\r\n")
	switch {
	case len(p) == 0:
		r.sum.EventStream = isSSE
	case p[0] == '{':
		r.body(p)
	case isSSE || strings.ContainsRune(":deir", rune(p[0])):
		r.sum.EventStream = true
		r.events(p)
	default:
		r.sum.Unread = true
	}
	if f == outline.Messages {
		r.usage.Input += r.usage.CacheRead + r.usage.CacheWrite
	}
	r.sum.Usage = r.usage
	r.sum.Text = r.text
	if len(r.text) > 512 {
		n := 512
		for !utf8.RuneStart(r.text[n]) {
			n--
		}
		r.sum.Text = r.text[:n]
	}
	return r.sum
}

func (r *reference) events(p []byte) {
	text := strings.ReplaceAll(string(p), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n") + "\n\n"
	var (
		data    []string
		name    string
		hasData bool
	)
	for _, line := range strings.Split(text, "\n") {
		if line == "" {
			if hasData {
				r.event(name, strings.Join(data, "\n"))
			}
			data, name, hasData = nil, "", false
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data, hasData = append(data, value), true
		case "event":
			name = value
		}
	}
	if r.format == outline.Messages && r.sum.Terminated && r.sum.Error == "" {
		r.finish(func(*refBlock) bool { return true })
	}
	if r.format == outline.ChatCompletions {
		if r.seen != 0 && r.seen == r.ended {
			r.sum.Terminated = true
		}
		if r.ended&1 == 1 || r.sum.Terminated && r.sum.Error == "" {
			r.finish(func(*refBlock) bool { return true })
		}
	}
}

func (r *reference) event(name, data string) {
	if r.format == outline.ChatCompletions && len(data) <= 16 && strings.TrimSpace(data) == "[DONE]" {
		r.sum.Terminated = true
		return
	}
	v, ok := parseJSON([]byte(data))
	if !ok {
		return
	}
	kind := str(v, "type")
	if kind == "" {
		kind = name
	}
	switch r.format {
	case outline.Messages:
		r.messages(kind, v)
	case outline.Responses:
		r.responses(kind, v)
	case outline.ChatCompletions:
		r.chat(name, v)
	}
}
