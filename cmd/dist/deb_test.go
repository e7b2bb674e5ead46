package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// TestDebianPackageWorksInACleanRoot installs the package by dpkg into an
// empty root, works with what is there and nothing else, and removes it. Where
// there is no right to change the root it is unpacked and run in place.
func TestDebianPackageWorksInACleanRoot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("packages are made for Linux")
	}
	testkit.Need(t, "dpkg", "dpkg-deb")
	deb := filepath.Join(releaseDir(t), "agentop_linux_"+runtime.GOARCH+".deb")
	r := newCleanRoot(t)
	r.install(deb)

	if got, want := r.agentop("version"), "agentop "+testVersion+" commit fade of "+testDate+" ("+runtime.Version()+" linux/"+runtime.GOARCH+")\n"; got != want {
		t.Errorf("version says %q, want %q", got, want)
	}
	for _, f := range []string{"usr/share/man/man1/agentop-server-add.1.gz", "usr/share/bash-completion/completions/agentop",
		"usr/share/zsh/vendor-completions/_agentop", "usr/share/fish/vendor_completions.d/agentop.fish", "usr/share/doc/agentop/README.md"} {
		if info, err := os.Stat(filepath.Join(r.dir, f)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, mode %v", f, err, info)
		}
	}
	r.proxyAnswers()
	r.remove()
}

// cleanRoot is a root that holds nothing but a package database, and /dev/null
// where it could be made.
type cleanRoot struct {
	t      *testing.T
	dir    string
	change bool // it can be made the root
	home   string
}

func newCleanRoot(t *testing.T) cleanRoot {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ao-root") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "dev", "tmp", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := cleanRoot{t: t, dir: dir, home: filepath.Join(dir, "root", "home")}
	if os.Geteuid() == 0 {
		null := syscall.Mknod(filepath.Join(dir, "dev/null"), syscall.S_IFCHR|0o666, 1<<8|3)
		r.change = null == nil
		if !r.change {
			t.Logf("no device can be made here (%v): the package is run without another root", null)
		}
	}
	if r.change {
		r.home = "/root/home"
	}
	return r
}

func (r cleanRoot) install(deb string) {
	r.t.Helper()
	cmd := exec.Command("dpkg-deb", "-x", deb, r.dir)
	if r.change {
		cmd = exec.Command("dpkg", "--root="+r.dir, "-i", deb)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// command runs the installed program, in the root where that is possible.
func (r cleanRoot) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.dir, "usr/bin/agentop"), args...)
	if r.change {
		cmd = exec.Command("/usr/bin/agentop", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.dir}
		cmd.Dir = "/"
	}
	cmd.Env = []string{"HOME=" + filepath.Dir(r.home), "AGENTOP_HOME=" + r.home, "PATH=/usr/bin"}
	return cmd
}

func (r cleanRoot) agentop(args ...string) string {
	r.t.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("agentop %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// proxyAnswers configures a server, starts the proxy and asks it.
func (r cleanRoot) proxyAnswers() {
	r.t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		r.t.Fatal(err)
	}
	inside := filepath.Join(r.dir, "root", "home")
	if err := os.Mkdir(inside, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, "config.yaml"), []byte("listen: "+address+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.agentop("server", "add", "desk", "http://127.0.0.1:9", "--no-key")
	proxy := r.command("proxy")
	var said strings.Builder
	proxy.Stderr = &said
	if err := proxy.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- proxy.Wait() }()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := ready(ctx, "http://"+address+"/-/ready", ended); err != nil {
		r.t.Fatalf("%v\n%s", err, said.String())
	}
	if status := r.agentop("status"); !strings.Contains(status, "desk") {
		r.t.Errorf("status does not name the server:\n%s", status)
	}
	_ = proxy.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		r.t.Errorf("the proxy ended with %v\n%s", err, said.String())
	}
}

// ready asks until it is answered 200, the proxy has ended or ctx is done.
func ready(ctx context.Context, url string, ended chan error) error {
	for {
		resp, err := http.Get(url) //nolint:noctx // it is on this machine
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		select {
		case end := <-ended:
			return fmt.Errorf("the proxy ended: %w", end)
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond): // between looks at another process
		}
	}
}

func (r cleanRoot) remove() {
	r.t.Helper()
	if !r.change {
		return
	}
	if out, err := exec.Command("dpkg", "--root="+r.dir, "--purge", "agentop").CombinedOutput(); err != nil {
		r.t.Fatalf("dpkg --purge: %v\n%s", err, out)
	}
	for _, left := range []string{"usr/bin/agentop", "usr/share/man", "usr/share/doc/agentop"} {
		if _, err := os.Stat(filepath.Join(r.dir, left)); err == nil {
			r.t.Errorf("%s is left after the package was removed", left)
		}
	}
}
