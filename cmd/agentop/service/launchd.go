package service

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentop/cmd/agentop/home"
)

// launchd is the user's part of launchd.
type launchd struct {
	System
	home home.Home
	user string // the user's home directory
}

func newLaunchd(s System, h home.Home, user string) *launchd {
	return &launchd{System: s, home: h, user: user}
}

func (m *launchd) path() string {
	return filepath.Join(m.user, "Library", "LaunchAgents", label+".plist")
}

func (m *launchd) ctl(ctx context.Context, args ...string) (string, error) {
	return m.command(ctx, "launchctl", args...)
}

// domain is where the user's agents live: the graphical session, or over ssh
// without one the user's own.
func (m *launchd) domain(ctx context.Context) (string, error) {
	if sudo := m.Getenv("SUDO_USER"); sudo != "" && m.UID == 0 {
		return "", fmt.Errorf("%w: this is root by sudo; run it as %s, whose agents it is for", ErrNoManager, sudo)
	}
	gui := "gui/" + strconv.Itoa(m.UID)
	_, err := m.ctl(ctx, "print", gui)
	if errors.Is(err, ErrNoManager) {
		return "", err
	}
	if err != nil {
		return "user/" + strconv.Itoa(m.UID), nil
	}
	return gui, nil
}

// Usable implements Manager.
func (m *launchd) Usable(ctx context.Context) error {
	_, err := m.domain(ctx)
	return err
}

// Files implements Manager.
func (m *launchd) Files(s Spec) (map[string]string, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	withHome := s.Home.String() != filepath.Join(m.user, ".agentop")
	return map[string]string{m.path(): plist(s, withHome)}, nil
}

// Install implements Manager.
func (m *launchd) Install(ctx context.Context, s Spec) (Change, error) {
	var c Change
	files, err := m.Files(s)
	if err != nil {
		return c, err
	}
	domain, err := m.domain(ctx)
	if err != nil {
		return c, err
	}
	if err := os.MkdirAll(s.Home.LogDir(), home.DirMode); err != nil {
		return c, fmt.Errorf("make the log directory: %w", err)
	}
	r := readRecord(m.home)
	changed, err := r.put(m.path(), files[m.path()])
	if err := errors.Join(err, r.save()); err != nil {
		return c, err
	}
	if changed {
		c.did("wrote %s", m.path())
	}
	loaded := m.loaded(ctx, domain)
	if loaded && !changed {
		return c, nil
	}
	if loaded {
		if err := m.unload(ctx, domain); err != nil {
			return c, err
		}
	}
	if err := m.load(ctx, domain); err != nil {
		return c, err
	}
	c.did("started it; it starts at every login")
	c.note("it ends when you log out: launchd has agents only for who is logged in")
	return c, nil
}

func (m *launchd) loaded(ctx context.Context, domain string) bool {
	_, err := m.ctl(ctx, "print", domain+"/"+label)
	return err == nil
}

// goneWait is how long an agent may take to disappear once launchd was told.
const goneWait = 10 * time.Second

// unload takes the agent out and waits until launchd knows it no more: loading
// it before fails with an input/output error.
func (m *launchd) unload(ctx context.Context, domain string) error {
	_, err := m.ctl(ctx, "bootout", domain+"/"+label)
	for waited := time.Duration(0); m.loaded(ctx, domain); waited += 200 * time.Millisecond {
		if waited >= goneWait || ctx.Err() != nil {
			still := errors.New("launchd still has the agent, whose streams may be running; try again when they have ended")
			return errors.Join(still, err, ctx.Err())
		}
		m.Sleep(ctx, 200*time.Millisecond)
	}
	return nil
}

func (m *launchd) load(ctx context.Context, domain string) error {
	_, _ = m.ctl(ctx, "enable", domain+"/"+label) // it may have been disabled by hand
	if _, err := m.ctl(ctx, "bootstrap", domain, m.path()); err != nil {
		return fmt.Errorf("%w; `launchctl print %s/%s` tells more", err, domain, label)
	}
	return nil
}

// Uninstall implements Manager.
func (m *launchd) Uninstall(ctx context.Context) (Change, error) {
	var c Change
	r := readRecord(m.home)
	domain, err := m.domain(ctx)
	if err != nil {
		c.note("launchd was not told: %v", err)
	} else if m.loaded(ctx, domain) {
		// The agent may take its time to finish streams: the file can go.
		_, _ = m.ctl(ctx, "bootout", domain+"/"+label)
		c.did("told launchd to end it")
	}
	if err := r.take(m.path(), &c); err != nil {
		return c, err
	}
	r.takeDirs()
	return c, r.remove()
}

// Start implements Manager.
func (m *launchd) Start(ctx context.Context) error {
	domain, err := m.installed(ctx)
	if err != nil {
		return err
	}
	if !m.loaded(ctx, domain) {
		return m.load(ctx, domain)
	}
	_, err = m.ctl(ctx, "kickstart", domain+"/"+label)
	return err
}

// Stop implements Manager.
func (m *launchd) Stop(ctx context.Context) error {
	domain, err := m.installed(ctx)
	if err != nil {
		return err
	}
	_, err = m.ctl(ctx, "kill", "SIGTERM", domain+"/"+label)
	return err
}

func (m *launchd) installed(ctx context.Context) (domain string, err error) {
	if _, err := os.Stat(m.path()); err != nil {
		return "", ErrNotInstalled
	}
	return m.domain(ctx)
}

// Linger implements Manager.
func (m *launchd) Linger(context.Context) error {
	return errors.New("macOS has agents only for who is logged in; stay logged in, or run `agentop proxy` in tmux")
}

var (
	printedPID   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*pid = (\d+)`) })
	printedState = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*state = (.+)$`) })
)

// Status implements Manager.
func (m *launchd) Status(ctx context.Context) (Status, error) {
	s := Status{Manager: Launchd, Logs: "tail " + errorLog(m.home)}
	data, err := os.ReadFile(m.path())
	s.Installed = err == nil
	if !s.Installed {
		s.State = "not installed"
		return s, nil
	}
	s.Files = []string{m.path()}
	if err := parsePlist(data, &s); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	s.Problems = append(s.Problems, binaryProblem(s.Binary)...)
	domain, err := m.domain(ctx)
	if err != nil {
		s.State = "unknown"
		s.Problems = append(s.Problems, err.Error())
		return s, nil
	}
	out, err := m.ctl(ctx, "print", domain+"/"+label)
	if err != nil {
		s.State = "not loaded"
		s.Problems = append(s.Problems, "launchd does not know the agent: `agentop service start`")
		return s, nil
	}
	s.Enabled, s.State = true, "loaded"
	if found := printedState().FindStringSubmatch(out); found != nil {
		s.State = found[1]
	}
	if found := printedPID().FindStringSubmatch(out); found != nil {
		s.PID, _ = strconv.Atoi(found[1])
		s.Active = true
	}
	return s, nil
}

// parsePlist reads back what the file names: the strings after the keys that
// matter.
func parsePlist(data []byte, s *Status) error {
	d := xml.NewDecoder(strings.NewReader(string(data)))
	var section, key, element string
	for {
		token, err := d.Token()
		if token == nil || err != nil {
			if s.Binary == "" {
				return fmt.Errorf("%s names no program", label)
			}
			return nil
		}
		switch t := token.(type) {
		case xml.StartElement:
			element = t.Name.Local
		case xml.EndElement:
			element = ""
		case xml.CharData:
			switch {
			case element == "key" && (string(t) == "ProgramArguments" || string(t) == "EnvironmentVariables" || string(t) == "RunAtLoad"):
				section = string(t)
			case element == "key":
				key = string(t)
			case element == "string" && section == "ProgramArguments" && s.Binary == "":
				s.Binary = string(t)
			case element == "string" && section == "EnvironmentVariables":
				s.Env = append(s.Env, Variable{key, string(t)})
			}
		}
	}
}
