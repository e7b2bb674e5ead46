package router

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentop/agents/outline"
)

// RefusedModel is a model name that a server refused.
type RefusedModel struct {
	Asked  string // by the agent
	Sent   string // to the server
	Status int
	At     time.Time
}

// maxRefused bounds the names kept of one server, and headSize what is looked
// at of an error's body.
const (
	maxRefused = 16
	headSize   = 4 << 10
)

// refusals remembers which models each server refused last, until it takes
// them. It is for people; no rule looks at it.
type refusals struct {
	mu sync.Mutex
	by map[string][]RefusedModel // by server
}

func newRefusals() *refusals { return &refusals{by: map[string][]RefusedModel{}} }

func (r *refusals) note(server string, m RefusedModel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.DeleteFunc(r.by[server], func(o RefusedModel) bool { return o.Asked == m.Asked })
	if len(list) >= maxRefused {
		list = list[1:]
	}
	r.by[server] = append(list, m)
}

// took forgets the refusal of a name that the server has answered to.
func (r *refusals) took(server, asked string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list, ok := r.by[server]; ok {
		r.by[server] = slices.DeleteFunc(list, func(o RefusedModel) bool { return o.Asked == asked })
	}
}

func (r *refusals) list(server string) []RefusedModel {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.by[server])
}

// Refused lists the models that a server refused and has not taken since.
func (r *Router) Refused(server string) []RefusedModel { return r.refusals.list(server) }

// mayRefuseModel says whether an answer's status can mean that the model is
// not served: then the body's beginning is worth a look.
func mayRefuseModel(status int) bool {
	return status == http.StatusNotFound || status == http.StatusBadRequest ||
		status == http.StatusUnprocessableEntity || status == http.StatusForbidden
}

// refusesModel reads an error as the servers write it: a code, a type, or at
// least a sentence about a model that is not there.
func refusesModel(status int, body []byte) bool {
	if !mayRefuseModel(status) {
		return false
	}
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	var inner struct {
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) != nil {
		return false
	}
	if json.Unmarshal(e.Error, &inner) != nil {
		_ = json.Unmarshal(e.Error, &inner.Message) // a bare string, as some have it
	}
	if code, ok := inner.Code.(string); ok && (code == "model_not_found" || code == "invalid_model") {
		return true
	}
	text := strings.ToLower(inner.Message + e.Message)
	if strings.HasPrefix(text, "model: ") && inner.Type == "not_found_error" {
		return true // Anthropic
	}
	return strings.Contains(text, "model") && slices.ContainsFunc(notThere, func(words string) bool { return strings.Contains(text, words) })
}

// notThere are the words that servers have for a model that they do not serve.
var notThere = []string{"does not exist", "not found", "invalid model name", "invalid model identifier", "is not a valid model",
	"unknown model", "no such model", "model not exist", "is not supported", "not available"}

// heed watches an answer for what it says of the model's name. A refused name
// is no longer kept by the conversation: it never worked, so that the rename
// line that is written for it helps this conversation too.
func (t *turn) heed(res *http.Response) io.ReadCloser {
	asked := t.asked
	if t.server == nil || asked == "" || t.rec.Format == outline.NoFormat {
		return res.Body
	}
	if res.StatusCode/100 == 2 {
		t.r.refusals.took(t.server.Name, asked)
	}
	if !mayRefuseModel(res.StatusCode) {
		return res.Body
	}
	return &errorBody{ReadCloser: res.Body, status: res.StatusCode, refused: func() { t.noteModel(asked, res.StatusCode) }}
}

// errorBody passes an error on and looks at its beginning. It tells of a
// refusal before the bytes that say so are passed on, so that whoever has read
// them finds it noted.
type errorBody struct {
	io.ReadCloser
	status  int
	head    []byte
	refused func() // nil once told
}

func (b *errorBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.refused != nil {
		b.head = append(b.head, p[:min(n, headSize-len(b.head))]...)
		if refusesModel(b.status, bytes.TrimSpace(b.head)) {
			b.refused()
			b.refused, b.head = nil, nil
		}
	}
	return n, err
}

func (t *turn) noteModel(asked string, status int) {
	t.r.refusals.note(t.server.Name, RefusedModel{Asked: asked, Sent: t.sent, Status: status, At: t.r.Now()})
	t.r.Logger.Warn("server refused a model; `agentop server test` shows the rename line that would help",
		"server", t.server.Name, "asked", asked, "sent", t.sent, "status", status)
	t.forgetName(asked)
}

// forgetName takes a name out of the conversation's pin. It is saved at
// leisure: if that is lost, the name is refused and forgotten once more.
func (t *turn) forgetName(asked string) {
	if t.pin == nil || !isMain(t.decision.Turn) {
		return
	}
	p := (known{&turn{r: t.r}}).record(t.conv) // as it is now: another turn may have changed it
	if p == nil || p.Names[asked] == "" {
		return
	}
	names := make(map[string]string, len(p.Names))
	for k, v := range p.Names {
		if k != asked {
			names[k] = v
		}
	}
	p.Names = names
	t.r.Meter.PinWrite("model")
	// The client has its answer and may be gone; the store is not.
	if err := t.r.Pins.Put(context.WithoutCancel(t.in.Context()), pinKey(t.conv), p.encode(), pinTTL, false); err != nil {
		t.r.Logger.Warn("pin is in memory only", "agent", t.conv.Agent, "error", err)
	}
}
