package agents

import (
	"net/http"
	"testing"
)

func TestHeadersNameALikelyConversation(t *testing.T) {
	for _, name := range stating {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("%s is never found: headers come as %s", name, http.CanonicalHeaderKey(name))
		}
		if got := Likely(http.Header{name: {"s"}, "Accept": {"x"}}); got != "s" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Likely(http.Header{"Thread-Id": {""}, "Session-Id": {"root"}}); got != "root" {
		t.Errorf("with an empty header before: %q", got)
	}
	if got := Likely(http.Header{"Accept": {"x"}}); got != "" {
		t.Errorf("with none: %q", got)
	}
}
