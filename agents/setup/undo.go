package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// How says in which way a settings file was undone.
type How string

// The ways to undo.
const (
	HowNothing  How = "nothing to undo" // nothing of agentop's is in it
	HowExact    How = "restored"        // byte for byte
	HowKeys     How = "undone by key"   // the file has changed since, so key by key
	HowRemoved  How = "removed"         // agentop had made it
	HowUnparsed How = "left"            // it cannot be read
)

// Undone is what Disable did.
type Undone struct {
	Agent string
	Files []UndoneFile
	Notes []string
}

// Changed says whether anything was there to undo.
func (u *Undone) Changed() bool {
	return slices.ContainsFunc(u.Files, func(f UndoneFile) bool { return f.How != HowNothing && f.How != HowUnparsed })
}

// UndoneFile is what Disable did to one settings file.
type UndoneFile struct {
	File   string
	Target string
	How    How
	// Back names the keys that have their old value again or are gone.
	Back []string
	// Kept names the keys that hold something else than agentop wrote, so that
	// they stayed.
	Kept []string
	// Unknown names the keys that were taken out although their old value is
	// not known, because the record is lost.
	Unknown []string
	Diff    string

	err error
}

// Disable undoes what Enable did, with dry only in words. It needs no proxy.
// An error leaves the record in place, so that it can be run again.
func (s *Setup) Disable(agent string, dry bool) (*Undone, error) {
	if !slices.Contains(Agents, agent) {
		return nil, fmt.Errorf("%s: %w", agent, ErrUnknownAgent)
	}
	u := &Undone{Agent: agent}
	if _, err := os.Stat(s.Dir); err == nil && !dry {
		unlock, err := s.lock(agent)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	r, err := s.load(agent)
	if err != nil {
		u.Notes = append(u.Notes, fmt.Sprintf("%v: what is undone goes by the shape of the addresses", err))
		r = &record{Version: recordVersion, Agent: agent}
	}
	files := r.Files
	for _, name := range s.World.files(agent) {
		if !slices.ContainsFunc(files, func(f file) bool { return f.Name == name }) {
			files = append(files, file{Name: name, Syntax: syntaxOf(name), ByKey: true, Existed: true})
		}
	}
	var failed error
	for i := len(files) - 1; i >= 0; i-- { // the last edited first: folders were made for the first
		done := s.undo(agent, &files[i], dry)
		failed = errors.Join(failed, done.err)
		u.Files = append(u.Files, done)
	}
	if failed != nil || dry {
		return u, failed
	}
	return u, s.forget(r)
}

// forget drops the record if there is one.
func (s *Setup) forget(r *record) error {
	if _, err := os.Stat(s.Dir); err != nil {
		return nil
	}
	return s.drop(r)
}

// syntaxOf is the syntax of a settings file by its name.
func syntaxOf(name string) string {
	switch {
	case filepath.Base(name) == "settings.json":
		return strictJSON.name
	case filepath.Ext(name) == ".toml":
		return tomlSyntax.name
	}
	return looseJSON.name
}

// undo undoes one file, starting over when it changes meanwhile.
func (s *Setup) undo(agent string, f *file, dry bool) UndoneFile {
	done := UndoneFile{File: f.Name, Target: f.Target, How: HowNothing}
	for range maxTries {
		before, err := readFile(f.Name)
		if err != nil {
			done.How, done.err = HowUnparsed, s.withBackup(f, err)
			return done
		}
		done.Target = before.target
		if !dry {
			sweep(before.target)
		}
		if !before.exists {
			return done
		}
		u := s.undoOf(agent, f, before)
		done.How, done.Back, done.Kept, done.Unknown = u.how, u.back, u.kept, u.unknown
		if u.err != nil {
			done.How, done.err = HowUnparsed, s.withBackup(f, inFile(f.Name, u.err))
			return done
		}
		if u.how == HowNothing {
			return done
		}
		done.Diff = unified(before.target, before.data, u.data, true, !u.gone)
		if dry {
			return done
		}
		if u.gone {
			err = remove(before)
		} else {
			err = replace(before, u.data)
		}
		if errors.Is(err, ErrChanging) {
			continue
		}
		if err == nil && u.gone {
			removeDirs(f.Dirs)
		}
		done.err = err
		return done
	}
	done.err = fmt.Errorf("edit %q: %w, %d times", f.Name, ErrChanging, maxTries)
	return done
}

// withBackup says where the original is when a file cannot be undone.
func (s *Setup) withBackup(f *file, err error) error {
	if _, whole := s.original(f); whole {
		return fmt.Errorf("%w (the original is kept in %s)", err, s.backupName(f.Backup))
	}
	return err
}

// removeDirs removes folders that agentop made, as far as they are empty.
func removeDirs(dirs []string) {
	for i := len(dirs) - 1; i >= 0; i-- {
		if os.Remove(dirs[i]) != nil { // the agent has put something in it
			return
		}
	}
}

// undoing is what becomes of a file.
type undoing struct {
	how     How
	data    []byte // what the file is to hold; what it holds where nothing is to be undone
	gone    bool   // the file is to be removed
	back    []string
	kept    []string
	unknown []string
	err     error

	// Of a file that is undone key by key:
	syntax   *syntax
	text     []byte         // without a byte order mark, as far as it is undone
	expected map[string]any // what text must mean
}

// undoOf finds the exact way to undo a file, else goes by key.
func (s *Setup) undoOf(agent string, f *file, before content) undoing {
	if !f.ByKey {
		switch hashOf(before) {
		case f.Before:
			return undoing{how: HowNothing}
		case f.After:
			u := undoing{back: f.keys()}
			if !f.Existed {
				u.how, u.gone = HowRemoved, true
				return u
			}
			if data, whole := s.original(f); whole {
				u.how, u.data = HowExact, data
				return u
			}
		}
	}
	return s.undoKeys(agent, f, before)
}

func (f *file) keys() []string {
	names := make([]string, len(f.Keys))
	for i, k := range f.Keys {
		names[i] = dotted(k.Path)
	}
	return names
}

// undoKeys undoes a file key by key.
func (s *Setup) undoKeys(agent string, f *file, before content) undoing {
	u := undoing{how: HowNothing, data: before.data, syntax: syntaxes[f.Syntax]}
	if u.syntax == nil {
		u.err = fmt.Errorf("the record names the syntax %q, which this agentop does not know", f.Syntax)
		return u
	}
	var mark []byte
	mark, u.text = cutMark(before.data)
	if u.expected, u.err = u.syntax.decode(u.text); u.err != nil {
		return u
	}
	unknown := s.lostKeys(agent, f, u.expected)
	keys := slices.Concat(f.Keys, unknown)
	for i := len(keys) - 1; i >= 0 && u.err == nil; i-- {
		s.undoKey(&u, agent, keys[i])
	}
	if u.err != nil || len(u.back) == 0 {
		return u
	}
	for _, k := range unknown {
		u.unknown = append(u.unknown, dotted(k.Path))
	}
	u.tidy(f)
	if u.err == nil {
		u.check()
	}
	u.how = HowKeys
	slices.Reverse(u.back)
	if nothingLeft(u.expected) && (f.Blank != nil || !f.Existed) {
		if u.gone = !f.Existed; u.gone {
			u.how = HowRemoved
			return u
		}
		u.text = []byte(*f.Blank)
	}
	u.data = slices.Concat(mark, u.text)
	return u
}

// undoKey undoes one key in the text, and in what is expected of it.
func (s *Setup) undoKey(u *undoing, agent string, k key) {
	raw, found, err := u.syntax.find(u.text, k.Path)
	switch {
	case err != nil:
		u.kept = append(u.kept, fmt.Sprintf("%s (%v)", dotted(k.Path), err))
		return
	case !found, !k.Absent && string(raw) == k.Old:
		return // taken out, or put back, by somebody else
	case !u.syntax.means(raw, k.Wrote) && !s.Proxy.ours(agent, u.syntax.text(raw)):
		u.kept = append(u.kept, dotted(k.Path))
		return
	}
	var out []byte
	if k.Absent {
		out, u.err = u.syntax.unset(u.text, k.Path)
		deleteIn(u.expected, k.Path)
	} else {
		out, u.err = u.syntax.put(u.text, k.Path, k.Old)
		if old, ok := u.syntax.value([]byte(k.Old)); ok {
			assignIn(u.expected, k.Path, old)
		}
	}
	u.text = out
	u.back = append(u.back, dotted(k.Path))
}

// tidy takes out the levels that were made for the keys, the inner first, and
// gives those that were empty before their white space back.
func (u *undoing) tidy(f *file) {
	for i := len(f.Levels) - 1; i >= 0; i-- {
		next, err := u.syntax.prune(u.text, f.Levels[i])
		if err != nil {
			u.err = err
			return
		}
		if len(next) != len(u.text) {
			deleteIn(u.expected, f.Levels[i])
		}
		u.text = next
	}
	for _, h := range f.Hollows {
		next, err := u.syntax.refill(u.text, h.Path, h.Inner)
		if err != nil {
			u.err = err
			return
		}
		u.text = next
	}
}

// check makes sure that nothing but the keys differs.
func (u *undoing) check() {
	got, err := u.syntax.decode(u.text)
	switch {
	case err != nil:
		u.err = fmt.Errorf("the file would not parse afterwards: %w", err)
	case !reflect.DeepEqual(got, u.expected):
		u.err = errors.New("undoing would change more than agentop's keys")
	}
}

// nothingLeft says whether settings hold nothing that anybody put there:
// OpenCode adds $schema to every file by itself.
func nothingLeft(tree map[string]any) bool {
	_, schema := tree["$schema"]
	return len(tree) == 0 || len(tree) == 1 && schema
}

// lostKeys finds agentop's addresses that the record does not name. Claude
// Code's hint headers came with the address.
func (s *Setup) lostKeys(agent string, f *file, tree map[string]any) []key {
	var lost []key
	for _, path := range addressKeys(agent, tree) {
		address := text(tree, path...)
		if f.key(path) != nil || !s.Proxy.ours(agent, address) {
			continue
		}
		lost = append(lost, key{Path: path, Absent: true, Wrote: address})
		if agent == claudeCode && f.key(hintPath) == nil && text(tree, hintPath...) == hintOn {
			lost = append(lost, key{Path: hintPath, Absent: true, Wrote: hintOn})
		}
	}
	return lost
}

// addressKeys are the keys that can hold a base URL of the agent.
func addressKeys(agent string, tree map[string]any) [][]string {
	below := func(table string, rest ...string) [][]string {
		var paths [][]string
		all, _ := lookUp(tree, table)
		level, _ := all.(map[string]any)
		for name := range level {
			paths = append(paths, append([]string{table, name}, rest...))
		}
		slices.SortFunc(paths, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
		return paths
	}
	switch agent {
	case claudeCode:
		return [][]string{claudePath}
	case codex:
		return append([][]string{codexPath}, below("model_providers", "base_url")...)
	case openCode:
		return below("provider", "options", "baseURL")
	}
	return nil
}

// deleteIn takes a value out of decoded settings.
func deleteIn(tree map[string]any, path []string) {
	above, _ := lookUp(tree, path[:len(path)-1]...)
	if level, ok := above.(map[string]any); ok {
		delete(level, path[len(path)-1])
	}
}

// assignIn sets a value in decoded settings whose levels are there.
func assignIn(tree map[string]any, path []string, value any) {
	above, _ := lookUp(tree, path[:len(path)-1]...)
	if level, ok := above.(map[string]any); ok {
		level[path[len(path)-1]] = value
	}
}
