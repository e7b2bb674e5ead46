package preflight

import (
	"strings"
	"testing"

	"agentop/agents/outline"
	"agentop/router/config"
)

// What a switch asks a server is what the agent will ask of it: its models'
// names and its API. A server that is up is not enough.
func TestPredecessor_17_TheCheckAsksForWhatTheAgentNeeds(t *testing.T) {
	glm := &config.Server{Name: "glm"}
	asked := []Asked{{Agent: "claude-code", Model: "claude-opus-5-5", Seen: true}}
	up := Answer{Up: true, Key: KeyAccepted, Listed: true, Models: []Model{{Name: "glm-5"}}}
	if got := Check(glm, &up, asked); len(got.Missing) != 1 || len(got.Rename) == 0 {
		t.Errorf("a model that is not served: %+v, want it missing and a line that helps", got)
	}
	chat := Answer{Up: true, Key: KeyAccepted, FormatsTold: true, Formats: []outline.Format{outline.ChatCompletions}}
	if got := Check(glm, &chat, asked); len(got.Trouble) == 0 || !strings.Contains(got.Trouble[0], "claude-code") {
		t.Errorf("an API that is not spoken: %q, want it told for claude-code", got.Trouble)
	}
}
