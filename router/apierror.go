package router

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"agentop/agents/outline"
)

// failure is an answer that agentop itself makes: what happened, to what, and
// what to do. No server's words and no credential ever go into its text.
type failure struct {
	status int
	// retryAfter is in seconds; 0 leaves the header out. Claude Code obeys up
	// to 60 s and fails at once beyond (seen with 2.1.332).
	retryAfter int
	noRetry    bool   // the agent has tried for long enough
	class      string // for the request log: one word for the kind of failure
	text       string
	hint       string
}

func (f *failure) Error() string {
	if f.hint == "" {
		return f.text
	}
	return f.text + "; " + f.hint
}

// statusRefused is the status on which Claude Code, Codex and OpenCode all
// show the text at once and neither retry nor ask the user to sign in.
const statusRefused = http.StatusBadRequest

// refuse is a failure that no retry can mend.
func refuse(class, text, hint string) *failure {
	return &failure{status: statusRefused, class: class, text: text, hint: hint}
}

// unavailable is a failure that may pass; the agent is told to try again.
func unavailable(class, text, hint string) *failure {
	return &failure{status: http.StatusServiceUnavailable, retryAfter: retryPause, class: class, text: text, hint: hint}
}

// write sends f in the error shape of the API format that the client spoke.
// An unknown format gets OpenAI's shape, which Claude Code reads too.
func (f *failure) write(w http.ResponseWriter, format outline.Format, id string) {
	body, err := json.Marshal(f.shape(format, id))
	if err != nil { // cannot be: plain strings only
		body = []byte(`{"error":{"message":"agentop: internal error"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Request-Id", id)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.noRetry {
		h.Set("X-Should-Retry", "false")
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(body) // the client may be gone; nobody else would want the error
}

func (f *failure) shape(format outline.Format, id string) any {
	message := "agentop: " + f.Error()
	if format == outline.Messages {
		return map[string]any{
			"type":       "error",
			"error":      map[string]any{"type": f.messagesType(), "message": message, "source": "agentop"},
			"request_id": id,
		}
	}
	return map[string]any{"error": map[string]any{
		"message": message, "type": f.openAIType(), "code": f.code(), "source": "agentop",
	}}
}

func (f *failure) messagesType() string {
	switch {
	case f.status == http.StatusNotFound:
		return "not_found_error"
	case f.status == http.StatusForbidden:
		return "permission_error"
	case f.status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case f.status < 500:
		return "invalid_request_error"
	}
	return "api_error"
}

func (f *failure) openAIType() string {
	if f.status < 500 {
		return "invalid_request_error"
	}
	return "server_error"
}

// code makes Codex show the text alone: on a 4xx it prints the raw JSON
// unless the code is one of a few it knows (seen with 0.171.0).
func (f *failure) code() string {
	if f.status < 500 {
		return "invalid_prompt"
	}
	return "agentop_" + f.class
}

// fail builds a one-off failure with a formatted text.
func fail(status int, class, format string, args ...any) *failure {
	return &failure{status: status, class: class, text: fmt.Sprintf(format, args...)}
}
