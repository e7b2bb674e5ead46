package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// recordVersion is the format of the record. Fields may be added within one
// version; none changes its name or meaning, in any version. So an older
// agentop can undo what a newer one did to the keys that it names.
const recordVersion = 1

// record is what was changed for one agent: agents/AGENT.json.
type record struct {
	Version int       `json:"version"`
	Agent   string    `json:"agent"`
	By      string    `json:"by,omitempty"` // the agentop that wrote it
	Enabled time.Time `json:"enabled,omitzero"`
	Files   []file    `json:"files"`
}

// file is what was changed in one settings file.
type file struct {
	Name    string `json:"name"` // as the agent names it
	Target  string `json:"file"` // where its symbolic links led
	Syntax  string `json:"syntax"`
	Existed bool   `json:"existed"`
	Before  string `json:"hash_before"` // "" for a file that was not there
	After   string `json:"hash_after"`
	Backup  string `json:"backup,omitempty"` // file beside the record with the exact original
	// ByKey says that the hashes cannot undo: what stood there is not known.
	ByKey bool `json:"by_key,omitempty"`
	// Blank is the original where it held white space or nothing.
	Blank   *string    `json:"blank,omitempty"`
	Dirs    []string   `json:"dirs,omitempty"`   // folders made for it, the uppermost first
	Keys    []key      `json:"keys"`             // in the order of writing
	Levels  [][]string `json:"levels,omitempty"` // objects made for the keys, the outer first
	Hollows []hollow   `json:"hollows,omitempty"`
}

// key is one value that was written.
type key struct {
	Path   []string `json:"path"`
	Absent bool     `json:"absent,omitempty"` // it was not there
	Old    string   `json:"old,omitempty"`    // its value as it was written, when it was
	Wrote  string   `json:"wrote"`
}

// hollow is an object that had no members, with what stood between its braces.
type hollow struct {
	Path  []string `json:"path"`
	Inner string   `json:"inner"`
}

func (r *record) file(name string) *file {
	for i := range r.Files {
		if r.Files[i].Name == name {
			return &r.Files[i]
		}
	}
	return nil
}

func (f *file) key(path []string) *key {
	for i := range f.Keys {
		if slices.Equal(f.Keys[i].Path, path) {
			return &f.Keys[i]
		}
	}
	return nil
}

func (s *Setup) recordName(agent string) string { return filepath.Join(s.Dir, agent+".json") }

// load reads an agent's record; an empty one if there is none. One that does
// not parse is an error that Disable passes over: it then goes by the shape of
// the addresses.
func (s *Setup) load(agent string) (*record, error) {
	r := &record{Version: recordVersion, Agent: agent}
	data, err := os.ReadFile(s.recordName(agent))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the record of %s: %w", agent, err)
	}
	var got record
	if err := json.Unmarshal(data, &got); err != nil {
		return r, fmt.Errorf("read the record of %s: %w", agent, err)
	}
	return &got, nil
}

// save writes an agent's record, synced.
func (s *Setup) save(r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", r.Agent, err)
	}
	if err := savePrivate(s.recordName(r.Agent), append(data, '\n')); err != nil {
		return err
	}
	reached("record")
	return nil
}

// drop removes an agent's record and its backups.
func (s *Setup) drop(r *record) error {
	for _, f := range r.Files {
		if name := s.backupName(f.Backup); name != "" {
			_ = os.Remove(name) // without its record nobody reads it
		}
	}
	err := os.Remove(s.recordName(r.Agent))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of %s: %w", r.Agent, err)
	}
	reached("record gone")
	return syncDir(s.Dir)
}

// backupName is the path of a backup; "" for a name that leads elsewhere.
func (s *Setup) backupName(name string) string {
	if name == "" || filepath.Base(name) != name {
		return ""
	}
	return filepath.Join(s.Dir, name)
}

// original gives the exact original of a file, if it is there and whole.
func (s *Setup) original(f *file) ([]byte, bool) {
	name := s.backupName(f.Backup)
	if name == "" {
		return nil, false
	}
	data, err := os.ReadFile(name)
	return data, err == nil && hashBytes(data) == f.Before
}

// keepOriginal saves the exact original of a file beside the record.
func (s *Setup) keepOriginal(agent string, f *file, data []byte) error {
	if f.Backup == "" {
		f.Backup = fmt.Sprintf("%s-%s.orig", agent, hashBytes([]byte(f.Name))[7:19])
	}
	if err := savePrivate(s.backupName(f.Backup), data); err != nil {
		return err
	}
	reached("backup")
	return nil
}
