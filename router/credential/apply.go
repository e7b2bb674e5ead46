package credential

import (
	"net/http"

	"agentop/agents/outline"
	"agentop/router/config"
)

// carriers are the headers that carry an agent's credential, or an account
// that is bound to one. None of them reaches a configured server but with that
// server's own key. Cookies are a login too.
var carriers = []string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Auth-Token",
	"Proxy-Authorization", "Cookie", "Chatgpt-Account-Id",
}

// Apply gives out, the headers of a request to a configured server, that
// server's key and no other credential. in is what the client sent. The key
// goes into the header(s) in which the client sent its own; a client that sent
// none is given the one usual for the format. A server whose key is the
// client's (config.KeyClient) gets the client's headers unchanged.
func Apply(in, out http.Header, kind config.KeyKind, key Secret, f outline.Format) {
	if kind == config.KeyClient {
		return
	}
	for _, name := range carriers {
		out.Del(name)
	}
	if key.IsZero() {
		return
	}
	bearer, plain := in.Get("Authorization") != "", in.Get("X-Api-Key") != ""
	if !bearer && !plain {
		plain = f == outline.Messages
		bearer = !plain
	}
	if bearer {
		out.Set("Authorization", "Bearer "+key.Reveal())
	}
	if plain {
		out.Set("X-Api-Key", key.Reveal())
	}
}
