package agents

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests of this file are named by the ids of known failures of other
// proxies: whose header says which conversation it is.

// idPlaces are the headers by which the recorded versions of each client tell
// their conversation; "body" where only the body does, "none" where nothing
// does and its content is what tells it.
var idPlaces = map[string][]string{
	"claude-2.0.42": {"body"}, "claude-2.1.81": {"body"},
	"claude-2.1.197": {"x-claude-code-session-id"}, "claude-2.1.252": {"x-claude-code-session-id"},
	"claude-2.1.305": {"x-claude-code-session-id"}, "claude-2.1.332": {"x-claude-code-session-id"},
	"codex-0.80.0": {"conversation_id", "session_id"}, "codex-0.98.0": {"session_id"},
	"codex-0.132.0":   {"session-id", "thread-id", "x-client-request-id"},
	"codex-0.150.1":   {"session-id", "thread-id", "x-client-request-id"},
	"codex-0.171.0":   {"session-id", "thread-id", "x-client-request-id"},
	"opencode-1.2.20": {"none"}, "opencode-1.2.27": {"none", "session_id"},
	"opencode-1.14.41": {"session_id", "x-session-affinity"}, "opencode-1.18.33": {"x-session-affinity", "x-session-id"},
	"qwen-code-0.24.4": {"body", "none"},
}

// Each version of each client ties its second turn to its first by an id of
// its own, wherever that version puts it.
func TestKF_A7_EachVersionsOwnHeaderIsKnown(t *testing.T) {
	found := map[string][]string{}
	for name, data := range fixtureFiles(t) {
		version := regexp.MustCompile(`^[a-z-]+-[0-9.]+`).FindString(name)
		openings := map[string]bool{}
		replay(t, decodeFixtures(t, name, data), nil, false, func(row fixture, got Recognition, turn Turn) {
			session, _ := row.ids()
			switch {
			case turn == Opening:
				openings[session] = true
			case turn != Continuation || !openings[session]:
				return
			}
			if got.Session != session || session == "" && !slices.Contains(idPlaces[version], "none") {
				t.Errorf("%s, row %d: session %q, want %q", name, row.N, got.Session, session)
			}
			found[version] = append(found[version], placesOf(row, session)...)
		})
	}
	for version, places := range found {
		slices.Sort(places)
		if got := slices.Compact(places); !slices.Equal(got, idPlaces[version]) {
			t.Errorf("%s tells its conversation by %q, want %q", version, got, idPlaces[version])
		}
	}
	for _, version := range slices.Sorted(maps.Keys(idPlaces)) {
		if found[version] == nil {
			t.Errorf("no conversation of two turns was recorded of %s", version)
		}
	}
}

// placesOf are the headers that hold an id, or "body", or "none".
func placesOf(row fixture, id string) (places []string) {
	if id == "" {
		return []string{"none"}
	}
	for name, value := range row.Request.Headers {
		if value == id {
			places = append(places, strings.ToLower(name))
		}
	}
	if places == nil {
		return []string{"body"}
	}
	return places
}

// OpenCode sends other headers to a provider that its user has added than to
// its own gateway. What it sends there is taken for the conversation's id: by
// the opening, by side requests and by later turns alike.
func TestKF_A8_OpenCodesHeaderForAddedProvidersIsKnown(t *testing.T) {
	seen := 0
	for name, data := range fixtureFiles(t) {
		if !strings.HasPrefix(name, "opencode-1.1") { // older ones send none
			continue
		}
		replay(t, decodeFixtures(t, name, data), nil, false, func(row fixture, got Recognition, _ Turn) {
			if !strings.HasSuffix(row.Request.Path, "/chat/completions") {
				return
			}
			id := row.Request.Headers["x-session-affinity"]
			if id == "" || got.Session != id {
				t.Errorf("%s, row %d (%s): session %q, want the header's %q", name, row.N, row.Kind, got.Session, id)
			}
			seen++
		})
	}
	if seen == 0 {
		t.Error("no request to an added provider was recorded")
	}
}
