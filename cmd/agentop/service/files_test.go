package service

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentop/cmd/agentop/home"
	"agentop/cmd/testkit"
)

func unitOf(t *testing.T, s Spec) string {
	t.Helper()
	unit, err := serviceUnit(s, false)
	if err != nil {
		t.Fatal(err)
	}
	return unit
}

func installedStatus(t *testing.T, goos string, answer func(string) (string, error)) (Status, *place) {
	t.Helper()
	p := newPlace(t)
	m := p.manager(goos)
	p.fake.launchd()
	if _, err := m.Install(t.Context(), p.spec()); err != nil {
		t.Fatal(err)
	}
	p.fake.answer = answer
	s, err := m.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func TestStatusReadsTheFilesAndTheManager(t *testing.T) {
	linger := false
	for _, tc := range []struct {
		goos, answer string
		want         Status
	}{
		{"linux", "ActiveState=active\nSubState=running\nMainPID=42\nNRestarts=2\nUnitFileState=enabled\nStatusText=serving on [a]\n", Status{
			Manager: Systemd, Installed: true, Enabled: true, Active: true, State: "active (running): serving on [a]", PID: 42, Restarts: 2,
			Linger: &linger, Addresses: []string{"127.0.0.1:4780", "[::1]:4780"}, Logs: "journalctl --user -u agentop",
		}},
		{"darwin", "dev.agentop.proxy = {\n\tstate = running\n\tpid = 42\n}", Status{
			Manager: Launchd, Installed: true, Enabled: true, Active: true, State: "running", PID: 42,
		}},
	} {
		t.Run(tc.goos, func(t *testing.T) {
			got, p := installedStatus(t, tc.goos, func(string) (string, error) { return tc.answer, nil })
			tc.want.Binary = p.program()
			tc.want.Env = append([]Variable{{EnvName, tc.want.Manager}}, p.spec().Env...)
			if tc.goos == "darwin" {
				tc.want.Logs = "tail " + errorLog(p.home)
			}
			tc.want.Files = got.Files
			if len(got.Files) == 0 || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// The files name the stable path, not what it leads to; when that is gone,
// status says so.
func TestKF_L10_FilesNameTheStablePath(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			s, p := installedStatus(t, goos, nil)
			if s.Binary != filepath.Join(p.user, "agentop") {
				t.Errorf("the files name %s", s.Binary)
			}
			if err := os.Remove(filepath.Join(p.user, "agentop-1.2")); err != nil {
				t.Fatal(err)
			}
			s, err := p.manager(goos).Status(t.Context())
			if err != nil || !slices.ContainsFunc(s.Problems, func(text string) bool { return strings.Contains(text, "is not there any more") }) {
				t.Errorf("problems %q, %v", s.Problems, err)
			}
		})
	}
}

func TestKF_L7_UnitsStartAtLogin(t *testing.T) {
	s := newPlace(t).spec()
	if unit := unitOf(t, s); !strings.Contains(unit, "\n[Install]\nWantedBy=default.target\n") {
		t.Errorf("the service is not wanted by default.target:\n%s", unit)
	}
	if unit := socketUnit(s); !strings.Contains(unit, "\n[Install]\nWantedBy=sockets.target\n") {
		t.Errorf("the socket is not wanted by sockets.target:\n%s", unit)
	}
}

// The managers wait longer for a stop than streams are given, and do not end
// the workers themselves.
func TestKF_L9_ManagersWaitForStreams(t *testing.T) {
	s := newPlace(t).spec()
	unit := unitOf(t, s)
	for _, want := range []string{"\nTimeoutStopSec=1860\n", "\nKillMode=process\n", "\nExecReload=/bin/kill -HUP $MAINPID\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("%q is not in\n%s", want, unit)
		}
	}
	values := parse(t, plist(s, false))
	if values["ExitTimeOut"] != "1860" || values["AbandonProcessGroup"] != "true" {
		t.Errorf("the agent has %v", values)
	}
}

// The service may do what it needs and no more, and others may read nothing
// that it writes.
func TestUnitGivesFewRights(t *testing.T) {
	unit := unitOf(t, newPlace(t).spec())
	for _, want := range []string{
		"UMask=0077", "NoNewPrivileges=yes", "RestrictSUIDSGID=yes", "RestrictRealtime=yes", "LockPersonality=yes", "SystemCallArchitectures=native",
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
	} {
		if !strings.Contains(unit, "\n"+want+"\n") {
			t.Errorf("%q is not in\n%s", want, unit)
		}
	}
}

// The second copy's exit code is one that systemd does not answer with a
// start.
func TestKF_L3_SystemdDoesNotRetryTheSecondCopy(t *testing.T) {
	unit := unitOf(t, newPlace(t).spec())
	for _, want := range []string{"RestartPreventExitStatus=3\n", "StartLimitIntervalSec=60\n", "StartLimitBurst=10\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("%q is not in\n%s", want, unit)
		}
	}
}

// PATH and proxy variables reach the service whatever they hold.
func TestKF_L5_KF_L6_VariablesReachTheService(t *testing.T) {
	s := newPlace(t).spec()
	s.Env = []Variable{
		{"PATH", `/opt/a b/bin:/opt/50%/bin:/opt/q"q/bin:/opt/back\slash`},
		{"HTTPS_PROXY", "http://squid.example:3128/?a=1&b=<2>"},
		{"NO_PROXY", "127.0.0.1,localhost"},
	}
	want := append([]Variable{{EnvName, Systemd}}, s.Env...)
	var got Status
	parseUnits(socketUnit(s), unitOf(t, s), &got)
	if !reflect.DeepEqual(got.Env, want) {
		t.Errorf("systemd: got %q, want %q", got.Env, want)
	}
	got = Status{}
	want[0].Value = Launchd
	if err := parsePlist([]byte(plist(s, false)), &got); err != nil || !reflect.DeepEqual(got.Env, want) {
		t.Errorf("launchd: got %q, want %q, %v", got.Env, want, err)
	}
}

func TestAnotherHomeIsNamed(t *testing.T) {
	p := newPlace(t)
	s := p.spec()
	s.Home = home.Home(filepath.Join(p.user, "else where"))
	for _, goos := range []string{"linux", "darwin"} {
		for own, spec := range map[bool]Spec{true: p.spec(), false: s} {
			files, err := p.manager(goos).Files(spec)
			if err != nil {
				t.Fatal(err)
			}
			all := ""
			for _, content := range files {
				all += content
			}
			if strings.Contains(all, home.EnvName) == own {
				t.Errorf("%s, usual home %v:\n%s", goos, own, all)
			}
		}
	}
}

func TestValuesThatNoFileCanHoldAreRefused(t *testing.T) {
	p := newPlace(t)
	for _, value := range []string{"a\nb", "a\x00b", "a\rb"} {
		s := p.spec()
		s.Env = []Variable{{"PATH", value}}
		if _, err := p.manager("linux").Files(s); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
	for _, path := range []string{`/a"b`, `/a'b`, `/a\b`} {
		s := p.spec()
		s.Binary = path
		if _, err := p.manager("linux").Files(s); err == nil {
			t.Errorf("systemd's unit took the program %s", path)
		}
	}
}

// parse reads a property list as its DTD describes it: one dictionary of keys,
// each followed by one value. Values of inner dictionaries have the path of
// their keys.
func parse(t *testing.T, text string) map[string]string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = true
	values := map[string]string{}
	var path []string // of open elements and, in dictionaries, the last key
	var keys []string
	data := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, text)
		}
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
			if e.Name.Local == "dict" || e.Name.Local == "array" {
				keys = append(keys, "")
			}
			data = ""
		case xml.CharData:
			data += string(e)
		case xml.EndElement:
			path = path[:len(path)-1]
			name := func() string {
				return strings.Join(slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "" }), ".")
			}
			switch e.Name.Local {
			case "dict", "array":
				if keys = keys[:len(keys)-1]; len(keys) > 0 {
					keys[len(keys)-1] = ""
				}
			case "key":
				if keys[len(keys)-1] != "" {
					t.Errorf("key %s has no value", name())
				}
				keys[len(keys)-1] = data
			case "true", "false":
				values[name()] = e.Name.Local
				keys[len(keys)-1] = ""
			case "string", "integer":
				if path[len(path)-1] == "array" {
					n := 0
					for values[fmt.Sprintf("%s.%d", name(), n)] != "" {
						n++
					}
					values[fmt.Sprintf("%s.%d", name(), n)] = data
					continue
				}
				values[name()] = data
				keys[len(keys)-1] = ""
			case "plist":
			default:
				t.Errorf("a property list has no <%s>", e.Name.Local)
			}
		}
	}
	return values
}

func TestPropertyListIsWhatLaunchdReads(t *testing.T) {
	p := newPlace(t)
	s := p.spec()
	want := map[string]string{
		"Label": label, "ProgramArguments.0": s.Binary, "ProgramArguments.1": "proxy",
		"EnvironmentVariables." + EnvName: Launchd, "EnvironmentVariables.PATH": s.Env[0].Value,
		"EnvironmentVariables.HTTPS_PROXY": s.Env[1].Value,
		"RunAtLoad":                        "true", "KeepAlive.SuccessfulExit": "false", "ThrottleInterval": "5", "ExitTimeOut": "1860",
		"ProcessType": "Interactive", "AbandonProcessGroup": "true", "Umask": "63",
		"SoftResourceLimits.NumberOfFiles": "8192", "StandardErrorPath": errorLog(p.home),
	}
	if got := parse(t, plist(s, false)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// systemd's own check finds nothing to say about the units.
func TestSystemdAcceptsTheUnits(t *testing.T) {
	testkit.Need(t, "systemd-analyze")
	p := newPlace(t)
	s := p.spec()
	s.Binary = filepath.Join(p.user, `an odd $name 50%`)
	if err := os.WriteFile(s.Binary, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Home = home.Home(filepath.Join(p.user, "else where"))
	files, err := p.manager("linux").Files(s)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for path, content := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	cmd := exec.Command("systemd-analyze", append([]string{"--user", "verify"}, paths...)...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "HOME="+p.user, "XDG_CONFIG_HOME=")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
