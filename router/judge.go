package router

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"agentop/agents/outline"
)

// judge notes what the head of an answer says of its server. Nothing is done
// about it: people are told, and the answer passes as it is.
func (t *turn) judge(res *http.Response, to *target) {
	t.r.retries.answered(t.asking())
	state, reason := healthOK, ""
	switch {
	case res.StatusCode == http.StatusUnauthorized && t.server != nil:
		t.r.Credentials.Rejected(t.server.Name)
		state, reason = healthFailing, "it refused the key (401)"
		t.r.Logger.Warn("the server refused its key", "server", to.place, "url", redacted(to.url),
			"key", to.mode, "headers", headerNames(t.in.Header))
	case res.StatusCode >= 500:
		state, reason = healthFailing, statusWords(res.StatusCode)
	default:
		if reason = t.wrongAddress(res); reason != "" {
			state = healthFailing
			t.r.Logger.Warn("wrong base URL? the server's answer is not the API's", "server", to.place,
				"url", redacted(to.url), "status", res.StatusCode, "answer", reason)
		}
	}
	t.r.health.note(to.place, state, reason, t.r.Now())
}

// wrongAddress says why an inference request seems to have met something that
// is not the API: a web page, a redirect, or a 404 that no API wrote. "" when
// it does not seem so.
func (t *turn) wrongAddress(res *http.Response) string {
	if t.rec.Format == outline.NoFormat {
		return "" // servers lack some of the other paths, which says nothing of the base URL
	}
	typed := res.Header["Content-Type"]
	if res.StatusCode/100 == 2 && len(typed) == 1 && (strings.HasPrefix(typed[0], "text/event-stream") || strings.HasPrefix(typed[0], "application/json")) {
		return "" // as it is with nearly all
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode/100 == 3 && res.Header.Get("Location") != "":
		return fmt.Sprintf("it redirects elsewhere (%d): wrong base URL?", res.StatusCode)
	case media == "text/html" && res.StatusCode < 500:
		return fmt.Sprintf("it answers with a web page (%d): wrong base URL?", res.StatusCode)
	case res.StatusCode == http.StatusNotFound && !strings.HasSuffix(media, "json"):
		return "it has no such path (404): wrong base URL?"
	}
	return ""
}

// maxHeaderNames is how many are named in a log line.
const maxHeaderNames = 64

// statusOverloaded is the status of Anthropic's API for too much to do; no RFC
// has it.
const statusOverloaded = 529

// statusWords is a status in words. The server's own may be anything.
func statusWords(status int) string {
	text := http.StatusText(status)
	if status == statusOverloaded {
		text = "Overloaded"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, text))
}

// headerNames are the names of headers, never a value.
func headerNames(h http.Header) string {
	names := slices.Sorted(maps.Keys(h))
	return strings.Join(names[:min(len(names), maxHeaderNames)], " ")
}
