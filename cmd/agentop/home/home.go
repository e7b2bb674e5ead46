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

// Home is the absolute path of a home directory, which need not exist.
type Home string

// Find gives $AGENTOP_HOME, else ~/.agentop.
func Find(getenv func(string) string) (Home, error) {
	if dir := getenv(EnvName); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("%s=%q: %w", EnvName, dir, err)
		}
		return Home(abs), nil
	}
	user := getenv("HOME")
	if user == "" {
		var err error
		if user, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("no home directory, and %s is not set: %w", EnvName, err)
		}
	}
	return Home(filepath.Join(user, ".agentop")), nil
}

// String is the path.
func (h Home) String() string { return string(h) }

// Config is the path of config.yaml.
func (h Home) Config() string { return h.in("config.yaml") }

// Keys is the path of the typed keys.
func (h Home) Keys() string { return h.in("keys.json") }

// Pins is the path of the pins.
func (h Home) Pins() string { return h.in("pins.json") }

// Servers is the path of what servers told of themselves when they were asked.
func (h Home) Servers() string { return h.in("servers.json") }

// LogDir is the directory of the request log and the proxy's log.
func (h Home) LogDir() string { return h.in("log") }

// ProxyLog is the path of the proxy's own log.
func (h Home) ProxyLog() string { return filepath.Join(h.LogDir(), "proxy.log") }

// Socket is the path of the control socket.
func (h Home) Socket() string { return h.in(control.SocketName) }

// Lock is the path of the file that the running supervisor holds locked.
func (h Home) Lock() string { return h.in("proxy.lock") }

// AgentsDir is the directory of what `agent enable` changed.
func (h Home) AgentsDir() string { return h.in("agents") }

func (h Home) in(name string) string { return filepath.Join(string(h), name) }

// Create makes the directory for this user alone, or closes the one that is
// there to others; Check before it tells whether it was open. A directory that
// belongs to another account is an error.
func (h Home) Create() error {
	if err := os.MkdirAll(string(h), DirMode); err != nil {
		return fmt.Errorf("make the home directory: %w", err)
	}
	info, err := os.Stat(string(h))
	if err != nil {
		return fmt.Errorf("look at the home directory: %w", err)
	}
	if owner := Owner(info); owner >= 0 && owner != os.Getuid() {
		return fmt.Errorf("%q belongs to another account (uid %d)", h, owner)
	}
	if info.Mode().Perm()&^DirMode == 0 {
		return nil
	}
	if err := os.Chmod(string(h), DirMode); err != nil {
		return fmt.Errorf("close the home directory to others: %w", err)
	}
	return nil
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
func (h Home) Check() ([]Wide, error) {
	var wide []Wide
	err := filepath.WalkDir(string(h), func(path string, e fs.DirEntry, err error) error {
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
		return wide, fmt.Errorf("check the modes in %q: %w", h, err)
	}
	return wide, nil
}
