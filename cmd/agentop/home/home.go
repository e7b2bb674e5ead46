// Package home is agentop's home directory: where it is, what its files are
// called, and that they belong to this user alone. It reads no file's content.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"agentop/router/control"
)

// EnvName is the environment variable that names another home directory.
const EnvName = "AGENTOP_HOME"

// Modes of what is in the home directory.
const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// Dir is the absolute path of a home directory, which need not exist.
type Dir string

// Find gives $AGENTOP_HOME, else ~/.agentop.
func Find(getenv func(string) string) (Dir, error) {
	if dir := getenv(EnvName); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("%s=%q: %w", EnvName, dir, err)
		}
		return Dir(abs), nil
	}
	user := getenv("HOME")
	if user == "" {
		var err error
		if user, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("no home directory, and %s is not set: %w", EnvName, err)
		}
	}
	return Dir(filepath.Join(user, ".agentop")), nil
}

// String is the path.
func (d Dir) String() string { return string(d) }

// Config is the path of config.yaml.
func (d Dir) Config() string { return d.in("config.yaml") }

// Keys is the path of the typed keys.
func (d Dir) Keys() string { return d.in("keys.json") }

// Pins is the path of the pins.
func (d Dir) Pins() string { return d.in("pins.json") }

// Log is the directory of the request log and the proxy's log.
func (d Dir) Log() string { return d.in("log") }

// ProxyLog is the path of the proxy's own log.
func (d Dir) ProxyLog() string { return filepath.Join(d.Log(), "proxy.log") }

// Socket is the path of the control socket.
func (d Dir) Socket() string { return d.in(control.SocketName) }

// Agents is the directory of what `agent enable` changed.
func (d Dir) Agents() string { return d.in("agents") }

func (d Dir) in(name string) string { return filepath.Join(string(d), name) }

// Create makes the directory for this user alone, or makes sure that the one
// that is there is. narrowed says that others could enter it until now. A
// directory that belongs to another account is an error.
func (d Dir) Create() (narrowed bool, err error) {
	if err := os.MkdirAll(string(d), DirMode); err != nil {
		return false, fmt.Errorf("make the home directory: %w", err)
	}
	info, err := os.Stat(string(d))
	if err != nil {
		return false, fmt.Errorf("look at the home directory: %w", err)
	}
	if owner := owner(info); owner >= 0 && owner != os.Getuid() {
		return false, fmt.Errorf("%q belongs to another account (uid %d)", d, owner)
	}
	if info.Mode().Perm()&^DirMode == 0 {
		return false, nil
	}
	if err := os.Chmod(string(d), DirMode); err != nil {
		return false, fmt.Errorf("close the home directory to others: %w", err)
	}
	return true, nil
}

// Wide is a file or directory that others may read, write or enter.
type Wide struct {
	Path string
	Mode fs.FileMode
	Want fs.FileMode
}

// String says what is wrong and what cures it.
func (w Wide) String() string {
	return fmt.Sprintf("%s has mode %04o, so that others can reach it: chmod %o %s", w.Path, w.Mode.Perm(), w.Want, w.Path)
}

// Check lists what in the home directory is open to others, without changing
// it. What does not exist is no finding.
func (d Dir) Check() ([]Wide, error) {
	var wide []Wide
	err := filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed while we looked
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(path) // a symlink is as open as its target
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		want := FileMode
		if info.IsDir() {
			want = DirMode
		}
		if info.Mode().Perm()&^want != 0 {
			wide = append(wide, Wide{Path: path, Mode: info.Mode(), Want: want})
		}
		return nil
	})
	if err != nil {
		return wide, fmt.Errorf("check the modes in %q: %w", d, err)
	}
	return wide, nil
}
