package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentop/cmd/agentop/home"
)

// mark is in the first line of every file that this package writes.
const mark = "Written by `agentop service install`"

// record is what Install did, for Uninstall.
type record struct {
	Files  map[string]string `json:"files"` // path -> SHA-256 of what was written
	Dirs   []string          `json:"dirs,omitempty"`
	Linger bool              `json:"linger,omitempty"` // it was not on before
	path   string
}

func recordPath(h home.Home) string { return filepath.Join(h.String(), "service.json") }

// readRecord gives the record, empty if there is none or it cannot be read:
// the files bear a mark, so that they are known without it too.
func readRecord(h home.Home) *record {
	r := &record{path: recordPath(h)}
	if data, err := os.ReadFile(r.path); err == nil {
		_ = json.Unmarshal(data, r)
	}
	if r.Files == nil {
		r.Files = map[string]string{}
	}
	return r
}

func (r *record) save() error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("record what was installed: %w", err)
	}
	return writeFile(r.path, append(data, '\n'))
}

func (r *record) remove() error {
	sweep(filepath.Dir(r.path))
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record: %w", err)
	}
	return nil
}

func sum(content []byte) string {
	h := sha256.Sum256(content)
	return hex.EncodeToString(h[:])
}

// put writes a file and notes it, and says whether it changed. What is not
// agentop's is left alone.
func (r *record) put(path, content string) (changed bool, err error) {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) == content:
		r.Files[path] = sum(old)
		return false, nil
	case err == nil && !strings.Contains(string(old), mark):
		return false, fmt.Errorf("%w: %s", ErrForeign, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	// What a kill leaves half done is in the record already: directories, and
	// that the file may hold anything that bears the mark.
	delete(r.Files, path)
	if err := r.mkdir(filepath.Dir(path)); err != nil {
		return false, err
	}
	if err := r.save(); err != nil {
		return false, err
	}
	if err := writeFile(path, []byte(content)); err != nil {
		return false, err
	}
	r.Files[path] = sum([]byte(content))
	return true, nil
}

// mkdir notes what is missing of a directory and makes it.
func (r *record) mkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := r.mkdir(filepath.Dir(dir)); err != nil {
		return err
	}
	if !slices.Contains(r.Dirs, dir) {
		r.Dirs = append(r.Dirs, dir)
	}
	if err := r.save(); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the service's files: %w", err)
	}
	return nil
}

// take removes a file that agentop wrote. One that somebody has changed since
// is kept under another name, which no manager reads.
func (r *record) take(path string, c *Change) error {
	sweep(filepath.Dir(path))
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), mark) {
		c.note("%s is not agentop's and stays", path)
		return nil
	}
	if want, ok := r.Files[path]; ok && want != sum(data) {
		kept := path + ".changed-by-hand"
		if err := os.Rename(path, kept); err != nil {
			return err
		}
		c.note("%s had been changed by hand and is now %s", path, kept)
		return nil
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	c.did("removed %s", path)
	return nil
}

// takeDirs removes the directories that Install made and that are empty again.
func (r *record) takeDirs() {
	for i := len(r.Dirs) - 1; i >= 0; i-- {
		_ = os.Remove(r.Dirs[i]) // not empty: somebody else uses it
	}
}

// unfinished are the files that writeFile leaves when it is killed.
const unfinished = ".agentop-"

// sweep removes what a kill has left of files that were being written.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir) // none: nothing was left
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name())) // what cannot go is in nobody's way
		}
	}
}

// writeFile puts a whole file in place at once.
func writeFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %q: %w", path, err)
		}
	}()
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
