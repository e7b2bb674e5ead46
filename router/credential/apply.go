package credential

import (
	"net/http"
	"slices"
	"strings"

	"agentop/agents/outline"
	"agentop/router/config"
)

// carriers are the headers that carry a client's credential, and those that
// name the account it belongs to: an account's id means nothing to another
// server, makes OpenAI refuse the key of another account, and is nobody
// else's business.
var carriers = []string{
	"Authorization", "X-Api-Key", "Api-Key", "Apikey", "X-Goog-Api-Key", "X-Auth-Token", "X-Access-Token",
	"Proxy-Authorization", "Cookie", "Cookie2", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token",
	"Chatgpt-Account-Id", "Openai-Organization", "Openai-Project", "X-Oai-Attestation",
}

// carrierEnds find the credentials that have no name of their own here, such
// as a gateway's x-gateway-api-key.
var carrierEnds = []string{"-Api-Key", "-Apikey", "-Auth-Token", "-Access-Token", "-Authorization", "-Password", "-Secret"}

func isCarrier(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return slices.Contains(carriers, name) ||
		slices.ContainsFunc(carrierEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Apply gives out, the headers of a request to a configured server, that
// server's key and no other credential. in is what the client sent. The key
// goes into the header(s) in which the client sent its own; a client that sent
// none is given the one usual for the format. A server whose key is the
// client's (config.KeyClient) gets the client's headers unchanged, as an own
// upstream does, for which Apply is not called. in is not changed.
func Apply(in, out http.Header, kind config.KeyKind, key Secret, f outline.Format) {
	if kind == config.KeyClient {
		return
	}
	bearer, plain := in.Get("Authorization") != "", in.Get("X-Api-Key") != ""
	for name := range out {
		if isCarrier(name) {
			delete(out, name)
		}
	}
	if kind == config.KeyNone || key.IsZero() {
		return
	}
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
