package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentop/cmd/testkit"
	"agentop/router/control"
)

// TestPromise5_KF_X3_X5_X8_NoSecretLeaves plants keys wherever a key can be, makes
// everything happen that prints, and looks for them everywhere. It holds what
// KF-X3 (logs and screens), KF-X5 (arguments and environments of processes)
// and KF-X8 (ordinary request lines) are about.
func TestPromise5_KF_X3_X5_X8_NoSecretLeaves(t *testing.T) {
	v := newVault(t)
	v.drive()
	v.names = append(v.names, "config")
	for _, text := range badConfigs(planted("config")) {
		v.write("config.yaml", "listen: "+v.address+"\n"+text)
		v.clean("config check of "+strings.ReplaceAll(text, planted("config"), "KEY"), v.command("", "config", "check"))
		v.clean("status with "+strings.ReplaceAll(text, planted("config"), "KEY"), v.command("", "status"))
	}
	v.write("config.yaml", v.yaml("stored"))
	v.awaitChoice("stored")
	v.tools()
	v.commands("running")
	v.screens()
	v.processes()
	v.crash()
	v.commands("not running")
	v.files()
	v.atServers()
	v.brokenKeys()
}

// tools reads the files of other tools, and edits those of the agents; they
// hold keys of their own.
func (v *vault) tools() {
	v.t.Helper()
	v.names = append(v.names, "imported", "settings")
	ccr := `{"Providers": [{"name": "deepseek", "api_base_url": "http://127.0.0.1:1/chat/completions?key=` + planted("imported") + `", "api_key": "` + planted("imported") + `", "models": ["m"]}]`
	for path, text := range map[string]string{
		".claude-code-router/config.json": ccr + "}", ".ccr-broken.json": ccr,
		".claude/settings.json":          `{"env": {"ANTHROPIC_AUTH_TOKEN": "` + planted("settings") + `", "ANTHROPIC_BASE_URL": "http://u:` + planted("settings") + `@127.0.0.1:1"}}`,
		".codex/config.toml":             "[model_providers.x]\nname = \"x\"\nbase_url = \"http://127.0.0.1:1\"\nexperimental_bearer_token = \"" + planted("settings") + "\"\n",
		".config/opencode/opencode.json": `{"provider": {"openai": {"options": {"apiKey": "` + planted("settings") + `"}}}}`,
	} {
		file := filepath.Join(v.user, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			v.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			v.t.Fatal(err)
		}
		v.holders = append(v.holders, file)
	}
	for _, args := range [][]string{
		{"server", "import", "--from", "ccr", "--yes"}, {"server", "import", "--from", "ccr", "--yes", "--json"}, {"server", "import", "--from", "ccr", "--file", v.holders[0]},
		{"server", "import", "--from", "ccr", "--file", filepath.Join(v.user, ".ccr-broken.json")}, {"server", "import", "--from", "cc-switch", "--file", filepath.Join(v.user, ".ccr-broken.json")},
		{"agent", "enable", "claude-code", "--yes"}, {"agent", "enable", "codex", "--yes"}, {"agent", "enable", "opencode", "--yes"}, {"agent", "status"}, {"agent", "status", "--json"}, {"doctor"},
		{"agent", "disable", "claude-code", "--yes"}, {"agent", "disable", "codex", "--yes"},
	} {
		v.clean("agentop "+strings.Join(args, " "), v.command("", args...))
	}
}

// screens walks through the TUI in a terminal.
func (v *vault) screens() {
	v.t.Helper()
	testkit.Need(v.t, "tmux")
	term := newTerminal(v.t)
	term.run(v.home, v.environment(), binary)
	term.await("claude-code")
	for _, key := range []string{"", "Tab", "Down", "Enter", "Escape", "l", "Escape", "a", "Escape", "?", "Escape", "s", "Down", "Enter", "Escape", "t", "Escape", "/", "Escape"} {
		if key != "" {
			term.tmux("send-keys", key)
		}
		v.clean("the TUI after "+key, []byte(term.screen()))
	}
	term.tmux("send-keys", "q")
}

// processes looks at the command line of the proxy and what it started, and at
// the environment of what it started.
func (v *vault) processes() {
	v.t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		v.t.Fatal(err)
	}
	for _, file := range entries {
		if args, err := os.ReadFile(file); err == nil && bytes.HasPrefix(args, []byte(binary)) {
			v.clean("a command line: "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})), args)
			limits, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "limits")) // it may have ended
			if bytes.Contains(args, []byte("\x00proxy")) && bytes.Contains(limits, []byte("Max core")) && !regexp.MustCompile(`Max core file size +0 +0 `).Match(limits) {
				v.t.Errorf("a crash of %q would write its memory to a file:\n%s", args, limits)
			}
		}
	}
}

// crash ends the proxy with all its goroutines' stacks, as a fatal mistake would.
func (v *vault) crash() {
	v.t.Helper()
	worker := v.status(v.control(), func(control.Status) bool { return true }).PID
	_ = syscall.Kill(-v.proxy.Process.Pid, syscall.SIGQUIT)
	_ = v.proxy.Wait()
	v.proxy = nil
	until(v.t, func() bool { return ended(worker) }, "the worker has crashed too")
	if said := v.said(); !strings.Contains(said, "goroutine ") {
		v.t.Errorf("the proxy did not crash:\n%s", said)
	}
}

// files looks through everything that was written but what holds keys.
func (v *vault) files() {
	v.t.Helper()
	v.clean("what the proxy said", []byte(v.said()))
	for _, root := range []string{v.home, v.user} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			name := filepath.Base(path)
			// An agent's settings as they were stand in a private copy, so that
			// disable can put them back byte for byte.
			original := filepath.Ext(name) == ".orig" && filepath.Base(filepath.Dir(path)) == "agents"
			if name == "keys.json" || name == "key.sh" || original || slices.Contains(v.holders, path) {
				if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
					v.t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
				}
				return nil
			}
			text, err := os.ReadFile(path)
			v.clean(path, text)
			return err
		})
		if err != nil {
			v.t.Error(err)
		}
	}
}

// atServers asserts that each server was sent its own key alone. The body and
// the query are every server's; the rest of the client's goes to its own
// upstream, and to the server that is paid with it.
func (v *vault) atServers() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, text := range v.seen {
		allowed := []string{name, "client-body", "client-tool", "client-query"}
		if name == "own" || name == "client" {
			allowed = append(allowed, "client-x-api-key", "client-bearer", "client-cookie", "client-goog", "client-gateway")
		}
		if name == "stored" || name == "denied" {
			allowed = append(allowed, "typed") // the server that was added has its address
		}
		v.clean("what was sent to "+name, text, allowed...)
		if _, keyed := rawServers[name]; (keyed || name == "stored" || name == "env" || name == "command") && !slices.Contains(findPlanted(text, []string{name}), name) {
			v.t.Errorf("%s did not get its own key", name)
		}
	}
}

// brokenKeys starts the proxy with a keys.json that cannot be read as one.
func (v *vault) brokenKeys() {
	v.t.Helper()
	for _, text := range []string{
		`{"stored": "` + planted("stored") + `", `, `{"stored": ["` + planted("stored") + `"]}`, planted("stored"),
		`{"stored": "` + planted("stored") + ` x"}`, `{"stored": "` + planted("stored") + `\n"` + planted("stored"),
	} {
		v.write("keys.json", text)
		v.launch()
		v.ours(v.ask("POST", "/claude-code/v1/messages", "", `{"model":"m","stream":true,"tools":[{"name":"Bash"}],"metadata":{"user_id":"late"},"messages":[{"role":"user","content":"hello"}]}`, "claude-cli/2.1.332"))
		for _, c := range [][]string{{"status"}, {"server"}, {"server", "test", "stored"}} {
			v.clean("with a broken keys.json, "+strings.Join(c, " "), v.command("", c...))
		}
		v.kill()
	}
	v.clean("what the proxy said", []byte(v.said()))
	log, err := os.ReadFile(filepath.Join(v.home, "log", "proxy.log"))
	if err != nil {
		v.t.Error(err)
	}
	v.clean("proxy.log", log)
}

// leaves finds every command by its help; groups are run as commands too.
func (v *vault) leaves(path ...string) (all [][]string) {
	v.t.Helper()
	out := string(v.command("", append(slices.Clone(path), "--help")...))
	all = append(all, path)
	_, list, ok := strings.Cut(out, "Available Commands:\n")
	if !ok {
		return all
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.SplitSeq(list, "\n") {
		if f := strings.Fields(line); len(f) > 0 {
			all = append(all, v.leaves(append(slices.Clone(path), f[0])...)...)
		}
	}
	return all
}

// unfit are commands that do not end, or that change the machine.
var unfit = []string{"proxy", "demo", "setup", "uninstall", "service install", "service uninstall", "service start", "service stop", "service restart"}

// commands runs every command there is, and those that take keys with keys.
func (v *vault) commands(when string) {
	v.t.Helper()
	for _, c := range v.leaves() {
		if slices.Contains(unfit, strings.Join(c, " ")) {
			continue
		}
		more := [][]string{nil, {"--json"}}
		if when == "running" {
			more = append(more, []string{"stored"}, []string{"secret-0-0", "env"})
		}
		for _, more := range more {
			args := append(slices.Clone(c), more...)
			v.clean(when+": agentop "+strings.Join(args, " "), v.command("", args...))
		}
	}
	v.names = append(v.names, "typed", "pasted", "url")
	for _, c := range []struct {
		stdin string
		args  []string
	}{
		{planted("typed") + "\n", []string{"server", "add", "typed", v.raw["stored"], "--key-stdin", "--yes"}},
		{planted("typed") + "\n", []string{"server", "add", "typed", v.raw["denied"], "--key-stdin", "--yes", "--json"}},
		{planted("typed") + "\n" + planted("pasted"), []string{"server", "add", "typed2", v.raw["stored"], "--key-stdin"}},
		{"", []string{"server", "add", "url1", "http://user:" + planted("url") + "@127.0.0.1:1", "--no-key"}},
		{"", []string{"server", "add", "url2", "http://127.0.0.1:1/v1?key=" + planted("url"), "--no-key"}},
		{"", []string{"server", "add", "url3", "http://127.0.0.1:1", "--key-env", planted("pasted")}},
		{"", []string{"server", "test", "denied"}},
		{"", []string{"server", "test", "echo"}},
		{"", []string{"server", "use", "reason", "--agent", "codex"}},
		{"", []string{"logs", "-n", "1000", "--json"}},
		{"", []string{"sessions", "--all", "--json"}},
		{"", []string{"server", "remove", "typed", "--yes"}},
	} {
		v.clean(when+": agentop "+strings.Join(c.args[:3], " "), v.command(c.stdin, c.args...))
	}
}

// badConfigs are slips of people who write config.yaml, each with a key where
// none belongs.
func badConfigs(k string) []string {
	return []string{
		"servers:\n  x: {url: http://127.0.0.1:1, key: " + k + "}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, kee: " + k + "}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, key: \"" + k + "}\n",
		"servers:\n  x: {url: \"http://u:" + k + "@127.0.0.1:1\"}\n",
		"servers:\n  x: {url: \"http://127.0.0.1:1/?key=" + k + "\"}\n",
		"servers:\n  x: {url: \"http://127.0.0.1:1/#" + k + "\"}\n",
		"servers:\n  x: {url: \"http://127.0.0.1:x" + k + "/\"}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, key: 'env:" + k + "'}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, key: {stored: " + k + "}}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, key: [" + k + "]}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, key: 'command:" + k + "'}\n",
		"servers:\n  x: {url: http://127.0.0.1:1, key: 'command:[nothing, " + k + "'}\n",
		"token: " + k[:10] + "\nservers: {}\n",
		"token: \"" + k + " \"\nservers: {}\n",
		"key: " + k + "\n",
		"servers:\n  x:\n    url: http://127.0.0.1:1\n   key: " + k + "\n",
		"\t" + k + "\n",
		k + "\n",
	}
}
