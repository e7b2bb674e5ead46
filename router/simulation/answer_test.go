package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"agentop/router/fakeserver"
)

// errNoReply says that an answer held nothing that a client would keep.
var errNoReply = errors.New("no whole reply")

var signature = regexp.MustCompile(`\[([0-9A-Za-z-]+)#([0-9]+)\]|_([0-9A-Za-z-]+)_([0-9]+)_[0-9]+$`)

// readReply reads an answer as a client does. A stream without its terminator
// is no reply.
func readReply(f fakeserver.Format, stream bool, answer []byte) (reply, error) {
	var r reply
	var err error
	switch {
	case f == fakeserver.Messages && stream:
		err = r.messagesStream(answer)
	case f == fakeserver.Messages:
		err = r.messages(answer)
	case f == fakeserver.Responses && stream:
		err = r.responsesStream(answer)
	case f == fakeserver.Responses:
		err = r.responses(answer)
	case stream:
		err = r.chatStream(answer)
	default:
		err = r.chat(answer)
	}
	if err != nil {
		return r, err
	}
	signed := r.text
	if signed == "" && len(r.calls) > 0 {
		signed = r.calls[0].id
	}
	m := signature.FindStringSubmatch(signed)
	if m == nil {
		return r, fmt.Errorf("%w: unsigned %q", errNoReply, signed)
	}
	n, err := strconv.ParseInt(m[2]+m[4], 10, 64)
	r.sig = fakeserver.Signature{Server: m[1] + m[3], N: n}
	return r, err
}

// data calls fn with each event's data.
func data(stream []byte, fn func([]byte) error) error {
	for line := range strings.SplitSeq(string(stream), "\n") {
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if err := fn([]byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
}

func (r *reply) add(b block, raw json.RawMessage) {
	switch b.Type {
	case "text":
		r.text += b.Text
	case "thinking":
		r.thinking = raw
	case "tool_use":
		r.calls = append(r.calls, call{b.ID, b.Name, string(b.Input)})
	}
}

func (r *reply) messages(answer []byte) error {
	var m struct {
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return fmt.Errorf("%w: %w", errNoReply, err)
	}
	for _, raw := range m.Content {
		var b block
		if err := json.Unmarshal(raw, &b); err != nil {
			return err
		}
		r.add(b, raw)
	}
	return nil
}

func (r *reply) messagesStream(answer []byte) error {
	var now block
	var signed string
	whole := false
	err := data(answer, func(line []byte) error {
		var e struct {
			Type         string `json:"type"`
			ContentBlock block  `json:"content_block"`
			Delta        struct {
				Text, Thinking, Signature string
				PartialJSON               string `json:"partial_json"`
			} `json:"delta"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %w", errNoReply, err)
		}
		switch e.Type {
		case "content_block_start":
			now, signed = e.ContentBlock, ""
			now.Input = nil
		case "content_block_delta":
			now.Text += e.Delta.Text
			now.Thinking += e.Delta.Thinking
			signed += e.Delta.Signature
			now.Input = append(now.Input, e.Delta.PartialJSON...)
		case "content_block_stop":
			raw, _ := json.Marshal(map[string]string{"type": "thinking", "thinking": now.Thinking, "signature": signed}) // strings cannot fail
			r.add(now, raw)
		case "message_stop":
			whole = true
		}
		return nil
	})
	if err == nil && !whole {
		return errNoReply
	}
	return err
}

func (r *reply) responses(answer []byte) error {
	var m struct {
		ID     string            `json:"id"`
		Output []json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return fmt.Errorf("%w: %w", errNoReply, err)
	}
	r.response = m.ID
	for _, raw := range m.Output {
		var item struct {
			Type      string  `json:"type"`
			Content   []block `json:"content"`
			CallID    string  `json:"call_id"`
			Name      string  `json:"name"`
			Arguments string  `json:"arguments"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		switch item.Type {
		case "reasoning":
			r.thinking = raw
		case "message":
			for _, b := range item.Content {
				r.text += b.Text
			}
		case "function_call":
			r.calls = append(r.calls, call{item.CallID, item.Name, item.Arguments})
		}
	}
	return nil
}

func (r *reply) responsesStream(answer []byte) error {
	whole := errNoReply
	err := data(answer, func(line []byte) error {
		var e struct {
			Type     string          `json:"type"`
			Response json.RawMessage `json:"response"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %w", errNoReply, err)
		}
		if e.Type == "response.completed" {
			whole = r.responses(e.Response)
		}
		return nil
	})
	return errors.Join(err, whole)
}

type chatMessage struct {
	Content   string          `json:"content"`
	Reasoning json.RawMessage `json:"reasoning_content"`
	ToolCalls []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name, Arguments string
		} `json:"function"`
	} `json:"tool_calls"`
}

func (r *reply) addChat(m chatMessage) {
	r.text += m.Content
	if m.Reasoning != nil {
		r.thinking = m.Reasoning
	}
	for _, c := range m.ToolCalls {
		if c.ID != "" {
			r.calls = append(r.calls, call{id: c.ID, name: c.Function.Name})
		}
		r.calls[len(r.calls)-1].input += c.Function.Arguments
	}
}

func (r *reply) chat(answer []byte) error {
	var m struct {
		Choices []struct{ Message chatMessage } `json:"choices"`
	}
	if err := json.Unmarshal(answer, &m); err != nil || len(m.Choices) == 0 {
		return errNoReply
	}
	r.addChat(m.Choices[0].Message)
	return nil
}

func (r *reply) chatStream(answer []byte) error {
	whole := false
	err := data(answer, func(line []byte) error {
		if string(line) == "[DONE]" {
			whole = true
			return nil
		}
		var e struct {
			Choices []struct{ Delta chatMessage } `json:"choices"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %w", errNoReply, err)
		}
		if len(e.Choices) > 0 {
			r.addChat(e.Choices[0].Delta)
		}
		return nil
	})
	if err == nil && !whole {
		return errNoReply
	}
	return err
}
