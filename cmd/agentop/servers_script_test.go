package main

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentop/router/control"
	"agentop/router/preflight/kinds"
)

// cmdKind starts a fake of a kind of server and puts its address into the
// variable URL, and its port into HOST; with "tls" it speaks https, and CA is
// its authority's file.
//
//	kind NAME [tls]
func cmdKind(ts *testscript.TestScript, _ bool, args []string) {
	k := kinds.Named(args[0])
	start := k.Start
	if len(args) > 1 && args[1] == "tls" {
		start = k.StartTLS
	}
	s := start()
	ts.Defer(s.Close)
	ts.Setenv("URL", k.URL(s.Server))
	ts.Setenv("HOST", s.Listener.Addr().String())
	if len(args) > 1 {
		ca := ts.MkAbs("ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ca, block, 0o600))
		ts.Setenv("CA", ca)
	}
}

// cmdProxy runs a real proxy in the home from here on, and returns when it
// answers.
func cmdProxy(ts *testscript.TestScript, _ bool, _ []string) {
	program, err := exec.LookPath("agentop")
	ts.Check(err)
	home := state(ts).home
	cmd := exec.Command(program, "proxy")
	cmd.Env = append(os.Environ(), "AGENTOP_HOME="+home, "GOCOVERDIR="+ts.Getenv("GOCOVERDIR"))
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it ends its own processes
		killer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killer.Stop()
	})
	socket := filepath.Join(home, control.SocketName)
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(socket); err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the proxy does not answer on %s", socket)
		}
		time.Sleep(5 * time.Millisecond) // between looks for another process' file
	}
}
