package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"agentop/cmd/testkit"
)

// installation is a machine for install.sh: a home, a prefix and a PATH that
// holds the named tools alone.
type installation struct {
	home, prefix, path string
}

func newInstallation(t *testing.T, tools ...string) installation {
	t.Helper()
	dir := t.TempDir()
	m := installation{filepath.Join(dir, "home"), filepath.Join(dir, "prefix"), filepath.Join(dir, "path")}
	for _, d := range []string{m.home, m.path} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	basics := []string{"sed", "uname", "mktemp", "rm", "mkdir", "cp", "mv", "chmod", "cat", "tar", "gzip", "basename", "dirname"}
	for _, tool := range append(basics, tools...) {
		real, err := exec.LookPath(tool)
		if err != nil {
			t.Logf("%s is not here", tool)
			continue
		}
		if err := os.Symlink(real, filepath.Join(m.path, tool)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// say puts a program into the PATH that says one line.
func (m installation) say(t *testing.T, name, line string) {
	t.Helper()
	path := filepath.Join(m.path, name)
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+line+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// run runs the install.sh of a folder.
func (m installation) run(script string, args ...string) (string, error) {
	cmd := exec.Command("/bin/sh", append([]string{script}, args...)...)
	cmd.Env = []string{"PATH=" + m.path, "HOME=" + m.home, "AGENTOP_PREFIX=" + m.prefix}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m installation) nothingInstalled(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(m.prefix); err == nil {
		t.Errorf("something was installed to %s", m.prefix)
	}
}

func checksumTool() string {
	if runtime.GOOS == "darwin" {
		return "shasum"
	}
	return "sha256sum"
}

// serveRelease serves the release, with some files replaced.
func serveRelease(t *testing.T, replaced map[string]string) *httptest.Server {
	t.Helper()
	files := http.FileServer(http.Dir(releaseDir(t)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := replaced[strings.TrimPrefix(r.URL.Path, "/")]; ok {
			if text == "" {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write([]byte(text))
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestInstallScriptInstalls(t *testing.T) {
	server := serveRelease(t, nil)
	dir := releaseDir(t)
	alone := filepath.Join(t.TempDir(), "install.sh") // as it is when it was fetched by itself
	if err := os.WriteFile(alone, read(t, filepath.Join(dir, "install.sh")), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tools  []string
		script string
		args   []string
	}{
		"with curl":                 {[]string{"curl", checksumTool()}, alone, []string{"--from", server.URL + "/"}},
		"with wget":                 {[]string{"wget", checksumTool()}, alone, []string{"--from", server.URL}},
		"from a folder":             {[]string{checksumTool()}, alone, []string{"--from", dir}},
		"from the folder it is in":  {[]string{checksumTool()}, filepath.Join(dir, "install.sh"), nil},
		"with shasum, as macOS has": {[]string{"shasum", "perl"}, filepath.Join(dir, "install.sh"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Need(t, c.tools...)
			m := newInstallation(t, c.tools...)
			for range 2 { // the second time is an upgrade
				out, err := m.run(c.script, c.args...)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for _, want := range []string{"installed " + m.prefix + "/bin/agentop: agentop " + testVersion + " commit fade of " + testDate + " (" + runtime.Version(),
					m.prefix + "/bin is not in your PATH", "next: agentop setup"} {
					if !strings.Contains(out, want) {
						t.Errorf("it does not say %q:\n%s", want, out)
					}
				}
			}
			for _, f := range []string{"bin/agentop", "share/man/man1/agentop-server.1", "share/bash-completion/completions/agentop",
				"share/zsh/site-functions/_agentop", "share/fish/vendor_completions.d/agentop.fish"} {
				if _, err := os.Stat(filepath.Join(m.prefix, f)); err != nil {
					t.Error(err)
				}
			}
			if names := list(t, filepath.Join(m.prefix, "bin")); len(names) != 1 {
				t.Errorf("bin holds %v", names)
			}
		})
	}
}

func TestInstallScriptRefuses(t *testing.T) {
	archive := "agentop_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	whole := []string{"curl", checksumTool()}
	for name, c := range map[string]struct {
		tools    []string
		replaced map[string]string
		machine  string // of `uname`
		args     []string
		want     string
	}{
		"a changed archive":         {tools: whole, replaced: map[string]string{archive: "changed on the way"}, want: archive + " is not what checksums.txt says"},
		"an archive not listed":     {tools: whole, replaced: map[string]string{"checksums.txt": "0000  other\n"}, want: "does not name " + archive},
		"no checksums":              {tools: whole, replaced: map[string]string{"checksums.txt": ""}, want: "cannot fetch"},
		"no archive":                {tools: whole, replaced: map[string]string{archive: ""}, want: "cannot fetch"},
		"nothing to fetch with":     {tools: []string{checksumTool()}, want: "neither curl nor wget"},
		"nothing to check with":     {tools: []string{"curl"}, want: "neither sha256sum nor shasum"},
		"another system":            {tools: whole, machine: "SunOS", want: "there is no agentop for SunOS"},
		"an argument that is none":  {tools: whole, args: []string{"--form"}, want: "unknown argument --form"},
		"an option without a value": {tools: whole, args: []string{"--prefix"}, want: "--prefix needs a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Need(t, c.tools...)
			m := newInstallation(t, c.tools...)
			if c.machine != "" {
				m.say(t, "uname", c.machine)
			}
			server := serveRelease(t, c.replaced)
			out, err := m.run("install.sh", append([]string{"--from", server.URL}, c.args...)...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("exit %v, want a failure that says %q:\n%s", err, c.want, out)
			}
			m.nothingInstalled(t)
		})
	}
	t.Run("no place to fetch from", func(t *testing.T) {
		testkit.Need(t, whole...)
		m := newInstallation(t, whole...)
		out, err := m.run("install.sh")
		if err == nil || !strings.Contains(out, "from where?") {
			t.Errorf("exit %v:\n%s", err, out)
		}
		m.nothingInstalled(t)
	})
}
