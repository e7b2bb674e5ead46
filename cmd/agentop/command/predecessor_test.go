package command

import (
	"strings"
	"testing"

	"agentop/router/control"
)

func TestPredecessor_19_StayIsSaidWithItsExceptions(t *testing.T) {
	none := []control.AgentStatus{{Agent: "opencode", Upstream: "none"}, {Agent: "codex"}}
	for _, tt := range []struct {
		name   string
		status control.Status
		change control.Switch
		want   []string // a part of each line
	}{
		{"no exception", control.Status{Agents: none}, control.Switch{Agent: "codex", Server: "lab"}, nil},
		{"no own upstream", control.Status{Agents: none}, control.Switch{Agent: "opencode", Server: "lab"},
			[]string{"a conversation that began before agentop saw it goes to lab too"}},
		{"no own upstream and no server", control.Status{Agents: none}, control.Switch{Agent: "opencode"}, []string{"new conversations are refused"}},
		{"a disk that refuses", control.Status{Store: control.Store{Error: "no space left on device"}}, control.Switch{Agent: "codex", Server: "lab"},
			[]string{"stay only until the proxy ends: no space left on device"}},
		{"a newer format", control.Status{Store: control.Store{ReadOnly: "pins.json is of a newer agentop"}}, control.Switch{Agent: "codex", Server: "lab"},
			[]string{"stay only until the proxy ends: pins.json is of a newer agentop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _, errs, _ := testApp(t, "")
			if err := a.tellSwitch(&overview{Status: tt.status}, tt.change, false); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
			if len(tt.want) == 0 && errs.Len() > 0 || len(tt.want) > 0 && len(lines) != len(tt.want) {
				t.Fatalf("told %q, want %d lines", errs, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("told %q, want %q in it", lines[i], want)
				}
			}
		})
	}
}

func TestPredecessor_20_NoCountIsSaidWithItsReason(t *testing.T) {
	a, out, _, _ := testApp(t, "")
	if err := a.tellSwitch(&overview{}, control.Switch{Agent: "codex", Server: "lab", Stay: map[string]int{}}, false); err != nil {
		t.Fatal(err)
	}
	want := "new codex conversations -> lab; how many running ones stay is not known, because no agentop proxy is running\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
