package command

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// programs are the agents' own programs.
var programs = map[string]string{"claude-code": "claude", "codex": "codex", "opencode": "opencode", "qwen-code": "qwen"}

// programOf finds an agent's program on PATH; "" if it is not installed.
func (a *App) programOf(agent string) string {
	name := programs[agent]
	if name == "" {
		return ""
	}
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// versionLimit bounds how long an agent may take to say its version.
const versionLimit = 10 * time.Second

var versionNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+\.\d+\.\d+[\w.+-]*`) })

// versionOf asks an installed agent for its version; "" if it does not say.
func (a *App) versionOf(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return versionNumber().FindString(string(out))
}
