package agents

import "net/http"

// stating are the headers in which agents name a conversation, the narrowest
// first.
var stating = []string{"Thread-Id", "X-Claude-Code-Session-Id", "X-Session-Id", "X-Session-Affinity", "Session_id", "Session-Id", "Conversation_id", "X-Dynamo-Session-Id"}

// Likely names the conversation that a request is likely of by its headers
// alone, before the body has been read; "" where they name none. It may be
// wrong: Recognise judges.
func Likely(header http.Header) string {
	for _, name := range stating {
		if values := header[name]; len(values) > 0 && values[0] != "" {
			return values[0]
		}
	}
	return ""
}
