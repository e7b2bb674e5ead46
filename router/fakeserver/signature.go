package fakeserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Signature names one reply: the server that made it and its number there.
type Signature struct {
	Server string
	N      int64
}

// String is the signature as it stands in a reply's text.
func (s Signature) String() string { return fmt.Sprintf("[%s#%d]", s.Server, s.N) }

// id is the signature as it stands in a tool call's id.
func (s Signature) id(prefix string) string {
	return fmt.Sprintf("%s_%s_%d", prefix, s.Server, s.N)
}

var (
	inText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[([0-9A-Za-z-]+)#([0-9]+)\]`) })
	inID   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:toolu|call)_([0-9A-Za-z-]+)_([0-9]+)`) })
)

// Signed finds the signatures in the history of a request's body, oldest
// first, each once: in the texts of assistant messages and the ids of tool
// calls. A body that cannot be read has none. It is the oracle that tests judge
// agentop by, so it knows nothing of agentop's own parsers.
func Signed(body []byte) []Signature {
	var q request
	_ = json.Unmarshal(body, &q) // what was read before an error still counts
	_, messages := q.elements()
	var found []Signature
	seen := map[Signature]bool{}
	add := func(match []string) {
		if match == nil {
			return
		}
		n, err := strconv.ParseInt(match[2], 10, 64)
		if sig := (Signature{match[1], n}); err == nil && !seen[sig] {
			seen[sig] = true
			found = append(found, sig)
		}
	}
	for _, raw := range messages {
		var m historyMessage
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if m.Role == "assistant" {
			for _, text := range texts(m.Content) {
				add(inText().FindStringSubmatch(text))
			}
		}
		for _, id := range m.callIDs() {
			add(inID().FindStringSubmatch(id))
		}
	}
	return found
}

// historyMessage is a message or input item of any format.
type historyMessage struct {
	Role      string          `json:"role"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

func (m *historyMessage) callIDs() []string {
	if m.Role == "" && strings.HasSuffix(m.Type, "_call") {
		return []string{m.CallID}
	}
	if m.Role != "assistant" {
		return nil
	}
	var ids []string
	for _, c := range m.ToolCalls {
		ids = append(ids, c.ID)
	}
	var blocks []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	_ = json.Unmarshal(m.Content, &blocks) // a string has no tool calls
	for _, b := range blocks {
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

var phrases = []string{
	"I read the file and the test beside it.", "The loop ends one step too early.",
	"Here is what I would change first.", "The error comes from an empty list.",
	"Both callers pass the same options.", "A table of cases makes this easier to follow.",
	"That function can be split in two.", "The build passes with this in place.",
	"Naïve rounding loses a cent here; 日本語 text is fine.", "Next I would look at the log.",
	"The value is read before it is set.", "This keeps the old behaviour for everyone else.",
}

// filler is text of about n bytes, the same for the same reply, and different
// for the next one.
func filler(sig Signature, n int) string {
	var b strings.Builder
	for i := sig.N; b.Len() < n; i++ {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(phrases[i*7%int64(len(phrases))])
	}
	return b.String()
}
