package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agentop/cmd/agentop/home"
)

const (
	socketName  = "agentop.socket"
	serviceName = "agentop.service"
)

// systemd is the user's own systemd.
type systemd struct {
	System
	home home.Home
	user string // the user's home directory
	dir  string // of unit files
}

func newSystemd(s System, h home.Home, user string) *systemd {
	base := s.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(user, ".config")
	}
	return &systemd{System: s, home: h, user: user, dir: filepath.Join(base, "systemd", "user")}
}

func (m *systemd) socketPath() string  { return filepath.Join(m.dir, socketName) }
func (m *systemd) servicePath() string { return filepath.Join(m.dir, serviceName) }

func (m *systemd) ctl(ctx context.Context, args ...string) (string, error) {
	return m.command(ctx, "systemctl", append([]string{"--user"}, args...)...)
}

// Usable implements Manager.
func (m *systemd) Usable(ctx context.Context) error {
	if sudo := m.Getenv("SUDO_USER"); sudo != "" && m.UID == 0 {
		return fmt.Errorf("%w: this is root by sudo; run it as %s, whose agents it is for", ErrNoManager, sudo)
	}
	if m.Getenv("XDG_RUNTIME_DIR") == "" {
		return fmt.Errorf("%w: XDG_RUNTIME_DIR is not set, as after `su`, or where systemd does not manage logins; log in properly, or run `agentop proxy` yourself", ErrNoManager)
	}
	if _, err := m.ctl(ctx, "show", "--property=Version"); err != nil {
		if errors.Is(err, ErrNoManager) {
			return fmt.Errorf("%w; run `agentop proxy` yourself, for instance in tmux", err)
		}
		return fmt.Errorf("%w: %w; in a container or without systemd, run `agentop proxy` yourself", ErrNoManager, err)
	}
	return nil
}

// Files implements Manager.
func (m *systemd) Files(s Spec) (map[string]string, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	withHome := s.Home.String() != filepath.Join(m.user, ".agentop")
	unit, err := serviceUnit(s, withHome)
	if err != nil {
		return nil, err
	}
	return map[string]string{m.socketPath(): socketUnit(s), m.servicePath(): unit}, nil
}

// Install implements Manager.
func (m *systemd) Install(ctx context.Context, s Spec) (Change, error) {
	var c Change
	files, err := m.Files(s)
	if err != nil {
		return c, err
	}
	if err := m.Usable(ctx); err != nil {
		return c, err
	}
	r := readRecord(m.home)
	socket, err := r.put(m.socketPath(), files[m.socketPath()])
	if err != nil {
		return c, err
	}
	unit, err := r.put(m.servicePath(), files[m.servicePath()])
	if err := errors.Join(err, r.save()); err != nil {
		return c, err
	}
	if socket {
		c.did("wrote %s", m.socketPath())
	}
	if unit {
		c.did("wrote %s", m.servicePath())
	}
	if socket || unit {
		if _, err := m.ctl(ctx, "daemon-reload"); err != nil {
			return c, err
		}
	}
	if _, err := m.ctl(ctx, "enable", socketName, serviceName); err != nil {
		return c, err
	}
	if err := m.bring(ctx, socket, unit, &c); err != nil {
		return c, err
	}
	m.tellLinger(ctx, &c)
	return c, nil
}

// bring makes what runs what the files say.
func (m *systemd) bring(ctx context.Context, socket, unit bool, c *Change) error {
	state, err := m.show(ctx)
	if err != nil {
		return err
	}
	active := state["ActiveState"] == "active"
	switch {
	case active && socket:
		// An address can only change while nobody has it.
		c.did("restarted it for its new addresses")
		if _, err := m.ctl(ctx, "stop", socketName, serviceName); err != nil {
			return err
		}
	case active && unit:
		c.note("what changed in the unit's own settings holds from its next start: `agentop service stop`, `start`")
		_, err := m.ctl(ctx, "reload", serviceName)
		return err
	case active:
		return nil
	}
	_, _ = m.ctl(ctx, "reset-failed", socketName, serviceName) // they may never have failed
	if _, err := m.ctl(ctx, "start", socketName, serviceName); err != nil {
		return fmt.Errorf("%w; `journalctl --user -u agentop` tells more", err)
	}
	c.did("started it; it starts at every login")
	return nil
}

// tellLinger says what becomes of the service when the user logs out.
func (m *systemd) tellLinger(ctx context.Context, c *Change) {
	on, err := m.lingers(ctx)
	switch {
	case err != nil:
		c.note("whether it lives on after a log-out could not be found out: %v", err)
	case on:
		c.note("it lives on after a log-out, and starts at boot (lingering is on)")
	default:
		c.note("it ends with your last session and starts at login; for tmux or cron on a remote machine, let it live on: `agentop service install --linger`, or `loginctl enable-linger`")
	}
}

func (m *systemd) lingers(ctx context.Context) (bool, error) {
	out, err := m.command(ctx, "loginctl", "show-user", strconv.Itoa(m.UID), "--property=Linger")
	if err != nil {
		return false, err
	}
	return strings.TrimSpace(out) == "Linger=yes", nil
}

// Linger implements Manager.
func (m *systemd) Linger(ctx context.Context) error {
	if on, err := m.lingers(ctx); err != nil || on {
		return err
	}
	r := readRecord(m.home)
	r.Linger = true // ahead, as a kill in between must not leave it on unknown
	if err := r.save(); err != nil {
		return err
	}
	if _, err := m.command(ctx, "loginctl", "enable-linger"); err != nil {
		r.Linger = false
		return errors.Join(fmt.Errorf("%w; an administrator may have to do it", err), r.save())
	}
	return nil
}

// Uninstall implements Manager.
func (m *systemd) Uninstall(ctx context.Context) (Change, error) {
	var c Change
	r := readRecord(m.home)
	reachable := m.Usable(ctx)
	if reachable == nil {
		// Each may be gone already: what can be undone is.
		_, _ = m.ctl(ctx, "disable", "--now", "--no-block", socketName)
		_, _ = m.ctl(ctx, "disable", "--now", "--no-block", serviceName)
	} else {
		c.note("the user's systemd was not told: %v", reachable)
		for _, link := range []string{"sockets.target.wants/" + socketName, "default.target.wants/" + serviceName} {
			_ = os.Remove(filepath.Join(m.dir, link)) // what disable would remove
		}
	}
	err := errors.Join(r.take(m.socketPath(), &c), r.take(m.servicePath(), &c))
	for _, wants := range []string{"sockets.target.wants", "default.target.wants"} {
		_ = os.Remove(filepath.Join(m.dir, wants)) // only if enable made it: it is empty then
	}
	r.takeDirs()
	if reachable == nil {
		_, reload := m.ctl(ctx, "daemon-reload")
		err = errors.Join(err, reload)
		_, _ = m.ctl(ctx, "reset-failed", socketName, serviceName) // they may never have failed
	}
	if r.Linger {
		if _, e := m.command(ctx, "loginctl", "disable-linger"); e != nil {
			err = errors.Join(err, e)
		} else {
			c.did("turned lingering off again")
		}
	}
	if err != nil {
		return c, err
	}
	return c, r.remove()
}

// Start implements Manager.
func (m *systemd) Start(ctx context.Context) error {
	if err := m.installed(ctx); err != nil {
		return err
	}
	_, _ = m.ctl(ctx, "reset-failed", socketName, serviceName) // they may never have failed
	_, err := m.ctl(ctx, "start", socketName, serviceName)
	return err
}

// Stop implements Manager. The socket goes too: it would start the service
// again at the next connection.
func (m *systemd) Stop(ctx context.Context) error {
	if err := m.installed(ctx); err != nil {
		return err
	}
	_, err := m.ctl(ctx, "stop", "--no-block", socketName, serviceName)
	return err
}

func (m *systemd) installed(ctx context.Context) error {
	if _, err := os.Stat(m.servicePath()); err != nil {
		return ErrNotInstalled
	}
	return m.Usable(ctx)
}

// show asks systemd for the service's properties.
func (m *systemd) show(ctx context.Context) (map[string]string, error) {
	out, err := m.ctl(ctx, "show", serviceName,
		"--property=ActiveState,SubState,MainPID,NRestarts,Result,UnitFileState,StatusText,NeedDaemonReload")
	if err != nil {
		return nil, err
	}
	state := map[string]string{}
	for line := range strings.SplitSeq(out, "\n") {
		if name, value, ok := strings.Cut(line, "="); ok {
			state[name] = value
		}
	}
	return state, nil
}

// Status implements Manager.
func (m *systemd) Status(ctx context.Context) (Status, error) {
	s := Status{Manager: Systemd, Logs: "journalctl --user -u agentop"}
	socket, _ := os.ReadFile(m.socketPath()) // none: not installed
	service, err := os.ReadFile(m.servicePath())
	s.Installed = err == nil
	if !s.Installed {
		s.State = "not installed"
		return s, nil
	}
	s.Files = []string{m.socketPath(), m.servicePath()}
	parseUnits(string(socket), string(service), &s)
	s.Problems = append(s.Problems, binaryProblem(s.Binary)...)
	if err := m.Usable(ctx); err != nil {
		s.State = "unknown"
		s.Problems = append(s.Problems, err.Error())
		return s, nil
	}
	state, err := m.show(ctx)
	if err != nil {
		return s, err
	}
	s.Active = state["ActiveState"] == "active"
	s.Enabled = state["UnitFileState"] == "enabled"
	s.State = state["ActiveState"] + " (" + state["SubState"] + ")"
	s.PID, _ = strconv.Atoi(state["MainPID"])
	s.Restarts, _ = strconv.Atoi(state["NRestarts"])
	if text := state["StatusText"]; text != "" && s.Active {
		s.State += ": " + text
	}
	if state["ActiveState"] == "failed" {
		s.Problems = append(s.Problems, "systemd gave up ("+state["Result"]+"): `journalctl --user -u agentop` tells why, `agentop service start` tries again")
	}
	if state["NeedDaemonReload"] == "yes" {
		s.Problems = append(s.Problems, "the unit's file has changed since systemd read it: `systemctl --user daemon-reload`")
	}
	if on, err := m.lingers(ctx); err == nil {
		s.Linger = &on
	}
	return s, nil
}

// binaryProblem finds a program that an upgrade has taken away.
func binaryProblem(path string) []string {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
		return nil
	}
	return []string{fmt.Sprintf("the service's program %s is not there any more: `agentop service install` from the present one mends it", path)}
}
