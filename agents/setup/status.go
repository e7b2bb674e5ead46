package setup

import (
	"fmt"
	"slices"
	"time"
)

// State is how far an agent is pointed at agentop.
type State string

// The states of an agent's settings.
const (
	StateOff     State = "not enabled"
	StateOn      State = "enabled"
	StatePartly  State = "partly enabled" // OpenCode: some of its providers
	StateStale   State = "stale"          // an address of agentop's that it does not listen on
	StateBroken  State = "not readable"   // the file does not parse, so the agent skips it
	StateUnknown State = "unknown agent"
)

// Status is what an agent's settings say, as far as files and this process's
// environment tell.
type Status struct {
	Agent   string     `json:"agent"`
	State   State      `json:"state"`
	File    string     `json:"file,omitempty"`
	Exists  bool       `json:"exists"`
	Error   string     `json:"error,omitempty"`  // why it cannot be read
	Keys    []Key      `json:"keys"`             // those that hold or held an address of agentop's
	Enabled time.Time  `json:"enabled,omitzero"` // when agentop last wrote
	Record  bool       `json:"record"`           // there is a record to undo from
	Over    []Override `json:"overrides"`        // what wins over the file
	Notes   []string   `json:"notes"`            // worth knowing
	Trouble []Trouble  `json:"trouble"`          // what keeps it from working
}

// Key is one base URL in the settings.
type Key struct {
	Path  string `json:"path"`
	Value string `json:"value"` // without user name, password and query
	Ours  bool   `json:"ours"`
	Right bool   `json:"right"` // it is where agentop listens
}

// Trouble is one thing that keeps an agent from reaching agentop, with the
// command or edit that cures it.
type Trouble struct {
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Status tells what an agent's settings say. It changes nothing.
func (s *Setup) Status(agent string) Status {
	st := Status{Agent: agent, State: StateUnknown}
	if !slices.Contains(Agents, agent) {
		return st
	}
	st.State = StateOff
	st.Record = s.Recorded(agent)
	if r, err := s.load(agent); err == nil {
		st.Enabled = r.Enabled
	}
	st.File = s.settingsFile(agent)
	st.Exists = exists(st.File)
	c, err := readFile(st.File)
	if err != nil {
		return st.broken(err)
	}
	_, data := cutMark(c.data)
	tree, err := syntaxes[syntaxOf(st.File)].decode(data)
	if err != nil {
		return st.broken(inFile(st.File, err))
	}
	s.addresses(&st, tree)
	s.surroundings(&st, tree)
	return st
}

func (st Status) broken(err error) Status {
	st.State, st.Error = StateBroken, err.Error()
	st.Trouble = append(st.Trouble, Trouble{err.Error(), "correct " + st.File})
	return st
}

func (s *Setup) settingsFile(agent string) string {
	switch agent {
	case claudeCode:
		return s.World.claudeFile()
	case codex:
		return s.World.codexFile()
	}
	return s.World.openCodeFile()
}

// addresses looks at every base URL of the agent.
func (s *Setup) addresses(st *Status, tree map[string]any) {
	ours, right := 0, 0
	for _, path := range addressKeys(st.Agent, tree) {
		if st.Agent == codex {
			if decides, err := codexKey(tree); err != nil || !slices.Equal(decides, path) {
				continue
			}
		}
		address := text(tree, path...)
		if address == "" {
			continue
		}
		k := Key{Path: dotted(path), Value: withoutSecrets(address), Ours: s.Proxy.ours(st.Agent, address)}
		k.Right = k.Ours && s.Proxy.Here(address)
		if k.Ours {
			ours++
		}
		if k.Right {
			right++
		}
		k.Value = s.Proxy.hide(k.Value)
		st.Keys = append(st.Keys, k)
	}
	switch {
	case ours == 0:
	case right < ours:
		st.State = StateStale
		st.Trouble = append(st.Trouble, Trouble{st.File + " points at an address where agentop does not listen", "agentop agent enable " + st.Agent})
	case right < len(st.Keys):
		st.State = StatePartly
	default:
		st.State = StateOn
	}
}

// surroundings looks at what wins over the file and at what gets in the way.
func (s *Setup) surroundings(st *Status, tree map[string]any) {
	w := s.World
	switch st.Agent {
	case claudeCode:
		st.Over = w.claudeOver()
		s.claudeSurroundings(st, tree)
	case codex:
		st.Over = w.codexOver()
		if _, err := codexKey(tree); err != nil {
			st.Notes = append(st.Notes, err.Error())
		}
	case openCode:
		st.Over = w.openCodeOver(nil)
		if st.State == StateOn || st.State == StatePartly {
			p := &Plan{Agent: openCode}
			if s.planOpenCode(p) == nil {
				st.Notes = append(st.Notes, p.Left...)
			}
		}
	}
	for _, o := range st.Over {
		if s.Proxy.Here(o.Value) || o.When != "" {
			continue
		}
		st.Trouble = append(st.Trouble, Trouble{o.String(), "take " + o.Key + " out of " + o.Where + ", or leave it if it is meant to win there"})
	}
	for i := range st.Over {
		st.Over[i].Value = s.Proxy.hide(withoutSecrets(st.Over[i].Value))
	}
	if st.State == StateOff || st.Agent == claudeCode {
		return
	}
	envFile := ""
	if st.Agent == codex {
		envFile = s.codexEnv()
	}
	for _, text := range w.caught(st.Agent, envFile) {
		st.Trouble = append(st.Trouble, Trouble{text, "export NO_PROXY=127.0.0.1,localhost,::1"})
	}
}

// claudeSurroundings looks at what only concerns Claude Code.
func (s *Setup) claudeSurroundings(st *Status, tree map[string]any) {
	if st.State == StateOff {
		return
	}
	for _, name := range claudeElsewhere {
		if s.World.getenv(name) != "" || text(tree, "env", name) != "" {
			st.Trouble = append(st.Trouble, Trouble{name + " is set, so Claude Code does not use " + claudeBase, "unset " + name})
		}
	}
	if shell := s.World.getenv(claudeBase); shell != "" && !s.Proxy.ours(claudeCode, shell) {
		st.Notes = append(st.Notes, "this shell exports "+claudeBase+"; settings.json wins over it")
	}
	p := &Plan{Agent: claudeCode}
	s.claudeProxy(p, tree)
	if len(p.wants) > 0 {
		st.Trouble = append(st.Trouble, Trouble{"an HTTP proxy is set, and would catch requests to agentop, credential included", "agentop agent enable claude-code"})
	}
}

// lastSeen197 and firstSeen332 are the versions of Claude Code of which it is
// known that they do, and no longer do, leave something out.
var lastSeen197, firstSeen332 = [3]int{2, 1, 197}, [3]int{2, 1, 332}

// Losses says what an enabled Claude Code leaves out because the address is
// not Anthropic's, and what gives it back. version is that of its program; ""
// where that is not known.
func (s *Setup) Losses(version string) []string {
	tree := readTree(s.World.claudeFile(), strictJSON)
	if !s.Proxy.ours(claudeCode, text(tree, claudePath...)) {
		return nil
	}
	var lost []string
	if v, known := parseVersion(version); !known || less(v, firstSeen332) {
		says := "this version"
		if !known || less(lastSeen197, v) {
			says = "Claude Code up to 2.1.197, and perhaps later,"
		}
		if text(tree, searchPath...) != "true" && s.World.getenv("ENABLE_TOOL_SEARCH") == "" {
			lost = append(lost, says+" turns tool search off here: agentop agent enable claude-code --tool-search")
		}
		lost = append(lost, says+" takes 200k as the context of some models here: choose a model with [1m]")
	}
	if text(tree, haikuPath...) == "" && s.World.getenv("ANTHROPIC_DEFAULT_HAIKU_MODEL") == "" && s.World.getenv("ANTHROPIC_SMALL_FAST_MODEL") == "" {
		lost = append(lost, "titles may be asked of the main model here: agentop agent enable claude-code --haiku SMALLER-MODEL")
	}
	return lost
}

// parseVersion reads the numbers of a version.
func parseVersion(text string) (v [3]int, ok bool) {
	n, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2])
	return v, err == nil && n == 3
}

func less(a, b [3]int) bool { return slices.Compare(a[:], b[:]) < 0 }

func (s *Setup) codexEnv() string { return s.World.codexDir() + "/.env" }

// ByHand are the lines that point an agent at agentop whose settings file
// agentop does not know.
func (s *Setup) ByHand(agent string) []string {
	base := s.Proxy.Base() + "/" + agent
	return []string{
		"let agentop know it:          agentop server use NAME --agent " + agent,
		"base URL for Anthropic's API: " + base,
		"base URL for OpenAI's API:    " + base + "/v1",
		"as environment variables, where the agent reads them:",
		"  export ANTHROPIC_BASE_URL=" + base,
		"  export OPENAI_BASE_URL=" + base + "/v1",
	}
}

// HasLogin says whether the user seems to have a credential for the agent's
// own upstream. Files are looked at, not read for what is in them; where the
// system keeps logins in a keychain, the answer is yes.
func (s *Setup) HasLogin(agent string) bool {
	w := s.World
	if w.os() == "darwin" {
		return true
	}
	switch agent {
	case claudeCode:
		return s.claudeCredential(readTree(w.claudeFile(), strictJSON))
	case codex:
		return w.getenv("CODEX_API_KEY") != "" || exists(w.codexDir()+"/auth.json")
	case openCode:
		return len(w.openCodeLogins()) > 0 || w.getenv("ANTHROPIC_API_KEY") != "" || w.getenv("OPENAI_API_KEY") != ""
	}
	return false
}
