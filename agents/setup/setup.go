package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Setup knows where everything is.
type Setup struct {
	Dir   string // of the records: agents/ in agentop's home
	World World
	Proxy Proxy
	By    string // this agentop's version, for the record
	Now   func() time.Time
}

// World is the agents' surroundings.
type World struct {
	Getenv func(string) string
	Home   string // the user's home directory
	Work   string // the current folder, for project settings; "" = none
	Root   string // in front of the system's paths, for tests; "" on a real system
	OS     string // as runtime.GOOS has it; "" = this one
}

func (w World) getenv(name string) string {
	if w.Getenv == nil {
		return ""
	}
	return w.Getenv(name)
}

func (w World) os() string {
	if w.OS == "" {
		return runtime.GOOS
	}
	return w.OS
}

// dir is a folder named by a variable, else one below the home directory.
func (w World) dir(variable string, below ...string) string {
	if dir := w.getenv(variable); dir != "" {
		return dir
	}
	return filepath.Join(append([]string{w.Home}, below...)...)
}

// Agents are the agents whose settings files are known.
var Agents = []string{claudeCode, codex, openCode}

const (
	claudeCode = "claude-code"
	codex      = "codex"
	openCode   = "opencode"
)

// Choices are what the user may say about an edit.
type Choices struct {
	// ToolSearch writes ENABLE_TOOL_SEARCH for Claude Code: nil where agentop
	// is to judge.
	ToolSearch *bool
	// Haiku pins Claude Code's model for titles and the like; "" does not.
	Haiku string
	// Providers are OpenCode's to be moved although its files do not name them.
	Providers []string
	// Routed says that the agent's conversations go to a configured server.
	Routed bool
	// NoUpstream says that the user has no account at the agent's own upstream.
	NoUpstream bool
}

// want is one key to be written.
type want struct {
	path  []string
	value string
}

// Upstream is an address that the agent used before and that becomes its own
// upstream.
type Upstream struct {
	Provider string // of OpenCode; "" for the others
	Address  string
	From     string // where it was: a file or "your shell's environment"
	// Router says that it is on this machine, so another router's; it must be
	// asked about, and must not lead back to agentop.
	Router bool
}

// Plan is what Enable would do.
type Plan struct {
	Agent     string
	File      string // as the agent names it
	Target    string // where its symbolic links lead
	Upstreams []Upstream
	// Moved names what is pointed at agentop: keys, or OpenCode's providers.
	Moved []string
	// Left names what is not, each with the reason.
	Left []string
	// Notes are worth knowing before the edit, one line each; Warnings may keep
	// it from working.
	Notes    []string
	Warnings []string

	also    *Plan // a second file, nil for none
	choices Choices
	syntax  *syntax
	wants   []want
	seed    string // content of a new file, before the keys
	before  content
	after   []byte
	entry   *file // what the record will hold
}

// Changes says whether a settings file would change.
func (p *Plan) Changes() bool { return p.changes() || p.also != nil && p.also.changes() }

// changes says it of the plan's own file.
func (p *Plan) changes() bool { return !p.before.exists || string(p.after) != string(p.before.data) }

// Diff is the change as a unified diff; "" if there is none.
func (p *Plan) Diff() string {
	old := p.before.data
	if !p.before.exists {
		old = nil
	}
	diff := unified(p.Target, old, p.after, p.before.exists, true)
	if p.also != nil {
		diff += p.also.Diff()
	}
	return diff
}

// Plan works out what Enable would do. It reads and changes nothing.
func (s *Setup) Plan(agent string, o Choices) (*Plan, error) {
	r, err := s.load(agent)
	if err != nil {
		return nil, err
	}
	return s.plan(agent, o, r)
}

func (s *Setup) plan(agent string, o Choices, r *record) (*Plan, error) {
	p := &Plan{Agent: agent, choices: o}
	var err error
	switch agent {
	case claudeCode:
		err = s.planClaude(p)
	case codex:
		err = s.planCodex(p)
	case openCode:
		err = s.planOpenCode(p)
	default:
		return nil, fmt.Errorf("%s: %w", agent, ErrUnknownAgent)
	}
	if err != nil {
		return nil, inFile(p.File, err)
	}
	if p.also != nil {
		if err := s.edit(p.also, r); err != nil {
			return nil, err
		}
	}
	return p, s.edit(p, r)
}

// inFile names the file in an error about its syntax.
func inFile(name string, err error) error {
	var bad *SyntaxError
	if errors.As(err, &bad) && bad.File == "" {
		bad.File = name
	}
	return err
}

// read takes in the settings file of a plan.
func (p *Plan) read(name string, s *syntax) (map[string]any, error) {
	p.File, p.syntax = name, s
	var err error
	if p.before, err = readFile(name); err != nil {
		return nil, err
	}
	p.Target = p.before.target
	_, data := cutMark(p.before.data)
	return s.decode(data)
}

// edit works out the new bytes and what the record must hold to undo them.
func (s *Setup) edit(p *Plan, r *record) error {
	mark, data := cutMark(p.before.data)
	old := r.file(p.File)
	p.entry = s.entryFor(p, old)
	out := data
	if !p.before.exists && p.seed != "" {
		out = []byte(p.seed)
	}
	start := out
	for _, w := range p.wants {
		raw, found, err := p.syntax.find(out, w.path)
		if err != nil {
			return inFile(p.File, err)
		}
		k := p.entry.key(w.path)
		wasOurs := found && (s.Proxy.ours(p.Agent, p.syntax.text(raw)) || k != nil && p.syntax.means(raw, k.Wrote))
		if wasOurs && k == nil {
			// The record was lost, and with it what stood here.
			p.entry.ByKey = true
			p.entry.Keys = append(p.entry.Keys, key{Path: w.path, Absent: true, Wrote: w.value})
		}
		if found && p.syntax.means(raw, w.value) {
			continue
		}
		var c change
		if out, c, err = p.syntax.set(out, w.path, w.value); err != nil {
			return inFile(p.File, err)
		}
		p.entry.note(w, c, wasOurs)
	}
	if err := p.syntax.verify(start, out, p.wants); err != nil {
		return inFile(p.File, err)
	}
	p.after = slices.Concat(mark, out)
	p.entry.After = hashBytes(p.after)
	return nil
}

// entryFor begins the record of a file, from the record that is there.
func (s *Setup) entryFor(p *Plan, old *file) *file {
	if old == nil || !old.ByKey && hashOf(p.before) == old.Before {
		// Never edited, or the edit was not finished, or undone by other means.
		e := &file{Name: p.File, Target: p.before.target, Syntax: p.syntax.name, Existed: p.before.exists, Before: hashOf(p.before)}
		if old != nil {
			e.Backup, e.Dirs = old.Backup, old.Dirs
		}
		if _, data := cutMark(p.before.data); p.before.exists && blank(data) {
			white := string(data)
			e.Blank = &white
		}
		return e
	}
	e := *old
	e.Keys, e.Levels, e.Hollows = slices.Clone(old.Keys), slices.Clone(old.Levels), slices.Clone(old.Hollows)
	e.Target = p.before.target
	return &e
}

// note adds one written key. What was first recorded of it stays if what is
// replaced was agentop's own: our own address is never an original.
func (f *file) note(w want, c change, wasOurs bool) {
	k := f.key(w.path)
	switch {
	case k != nil && wasOurs:
		k.Wrote = w.value
		return
	case k != nil:
		k.Absent, k.Old, k.Wrote = c.Absent, c.Old, w.value
	default:
		f.Keys = append(f.Keys, key{Path: w.path, Absent: c.Absent, Old: c.Old, Wrote: w.value})
	}
	deep := len(w.path) - 1 - c.Made
	for i := deep + 1; i < len(w.path); i++ {
		f.Levels = append(f.Levels, slices.Clone(w.path[:i]))
	}
	if c.Inner != nil {
		f.Hollows = append(f.Hollows, hollow{Path: slices.Clone(w.path[:deep]), Inner: *c.Inner})
	}
}

// Enable does what the plan says. If the settings file changed since, it is
// planned again; if that leads to another own upstream, it gives ErrChanging.
func (s *Setup) Enable(p *Plan) (*Plan, error) {
	unlock, err := s.lock(p.Agent)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range maxTries {
		r, err := s.load(p.Agent)
		if err != nil {
			return nil, err
		}
		now, err := s.plan(p.Agent, p.choices, r)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(now.Upstreams, p.Upstreams) {
			return nil, fmt.Errorf("%s: %w: run it again", p.File, ErrChanging)
		}
		sweep(now.before.target)
		if err := s.applyAll(now, r); !errors.Is(err, ErrChanging) {
			return now, err
		}
	}
	return nil, fmt.Errorf("edit %q: %w, %d times", p.File, ErrChanging, maxTries)
}

// applyAll writes the files of a plan that would change: what lets the agent
// reach agentop comes before what sends it here.
func (s *Setup) applyAll(p *Plan, r *record) error {
	if p.also != nil && p.also.changes() {
		sweep(p.also.before.target)
		if err := s.apply(p.also, r); err != nil {
			return err
		}
	}
	if !p.changes() {
		return nil
	}
	return s.apply(p, r)
}

// apply saves original and record, and then the settings.
func (s *Setup) apply(p *Plan, r *record) error {
	if r.Version > recordVersion {
		return fmt.Errorf("%s: %w", s.recordName(p.Agent), ErrNewerRecord)
	}
	dirs, err := makeDirs(filepath.Dir(p.before.target))
	if err != nil {
		return err
	}
	p.entry.Dirs = append(p.entry.Dirs, dirs...)
	if err := s.keep(p, r); err != nil {
		return err
	}
	if i := slices.IndexFunc(r.Files, func(f file) bool { return f.Name == p.File }); i >= 0 {
		r.Files[i] = *p.entry
	} else {
		r.Files = append(r.Files, *p.entry)
	}
	r.By, r.Enabled = s.By, s.Now().UTC().Truncate(time.Second)
	if err := s.save(r); err != nil {
		return err
	}
	return replace(p.before, p.after)
}

// keep makes sure that the exact original is saved. Where the user has edited
// the file since it was enabled, the original is what undoing by key makes of
// it.
func (s *Setup) keep(p *Plan, r *record) error {
	old := r.file(p.File)
	switch {
	case p.entry.ByKey:
		return nil // what stood there before is not known
	case old == nil || hashOf(p.before) == old.Before:
		if !p.before.exists {
			return nil
		}
		return s.keepOriginal(p.Agent, p.entry, p.before.data)
	case hashOf(p.before) == old.After:
		return nil // the original that was kept is still right
	}
	u := s.undoKeys(p.Agent, old, p.before)
	if u.err != nil || u.gone {
		p.entry.ByKey = true
		return nil
	}
	p.entry.Existed, p.entry.Before = true, hashBytes(u.data)
	return s.keepOriginal(p.Agent, p.entry, u.data)
}

// Recorded says whether a record of the agent is there.
func (s *Setup) Recorded(agent string) bool {
	_, err := os.Stat(s.recordName(agent))
	return err == nil
}
