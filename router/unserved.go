package router

import (
	"net/http"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/router/placement"
)

// Unserved answers every request with one error of agentop's own, in the
// shape of the API that the client speaks: for when nothing can be served. It
// needs no configuration. passing says that trying again may help.
func Unserved(text, hint string, passing bool) http.Handler {
	f := refuse("unserved", text, hint)
	if passing {
		f = unavailable("unserved", text, hint)
	}
	any := func(string) bool { return true } // which agents there are is not known
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer, format := f, outline.NoFormat
		rt := route{agent: agents.Other, pin: string(placement.PinNone), server: "-"}
		if split, err := agents.SplitPath(req.URL.EscapedPath(), any); err == nil {
			format = agents.BodyFormatOf(req.Method, split.Path)
			if split.Agent != "" {
				rt.agent = split.Agent
			}
		}
		if path := req.URL.Path; path == pathReady || path == pathHealthy {
			answer = unavailable("unserved", text, hint) // whoever asks so looks at the status
		}
		if reason := guard(req); reason != "" {
			answer = fail(http.StatusForbidden, "guard", "refused: %s", reason)
		}
		rt.set(w.Header())
		answer.write(w, format, "req_unserved")
	})
}
