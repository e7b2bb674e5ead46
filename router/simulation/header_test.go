package simulation

import (
	"fmt"
	"net/http"
)

// header are the headers of a main turn.
func header(c *conversation, s style) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-fake-client"}}
	switch c.client.name {
	case "claude":
		h.Set("User-Agent", "claude-cli/2.1.332 (external, cli)")
		h.Set("X-Claude-Code-Session-Id", c.session)
		if s.class {
			h.Set("X-Claude-Code-Request-Class", "main")
		}
	case "claude-old":
		h.Set("User-Agent", "claude-cli/2.1.81 (external, cli)")
	case "codex":
		h.Set("User-Agent", "codex_cli_rs/0.171.0")
		h.Set("Originator", "codex_cli_rs")
		h.Set("Session-Id", c.session)
		h.Set("Thread-Id", c.session)
		h.Set("X-Codex-Turn-Metadata", codexMetadata(c))
	case "opencode":
		h.Set("User-Agent", "opencode/1.18.33")
		h.Set("X-Session-Id", c.session)
		h.Set("X-Session-Affinity", c.session)
	case "opencode-old":
		h.Set("User-Agent", "opencode/1.2.20")
	default:
		h.Set("User-Agent", "python-requests/2.32")
	}
	return h
}

func codexMetadata(c *conversation) string {
	how, fork := "new", ""
	if c.forkOf != "" {
		how, fork = "cold_fork", fmt.Sprintf(`,"forked_from_thread_id":%q`, c.forkOf)
	}
	return fmt.Sprintf(`{"request_kind":"turn","thread_source":"user","history_initialization":%q,"window_number":%d,"window_id":"w:%d"%s}`,
		how, c.window, c.window, fork)
}
