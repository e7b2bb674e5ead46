package worker

import (
	"net/http"

	"agentop/router"
)

// Unserved answers every request with why nobody serves, in the shape of the
// API that the client speaks. It needs neither store nor configuration.
func Unserved(text, hint string, passing bool) http.Handler {
	return router.Unserved(text, hint, passing)
}
