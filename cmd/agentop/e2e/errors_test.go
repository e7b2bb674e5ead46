package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// said runs a real agent to its end, however that is, and returns what it
// printed to each stream. Colours are taken off, and line breaks that the
// agent made within a sentence are spaces.
func said(t *testing.T, dir string, env []string, program string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnv(), env...)
	cmd.WaitDelay = 5 * time.Second
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); ctx.Err() != nil {
		t.Errorf("%s did not end: %v", filepath.Base(program), e)
	}
	plain := func(s string) string {
		s = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`).ReplaceAllString(s, "")
		return strings.Join(strings.Fields(s), " ")
	}
	return plain(out.String()), plain(err.String())
}

// asker asks one question with a real agent, of a new conversation or (with
// again) of the one it opened before, and returns all that a person sees.
type asker struct {
	agent string
	ask   func(again bool, prompt string) string
}

func askers(t *testing.T, s *stage) []asker {
	both := func(out, err string) string { return out + "\n" + err }
	var list []asker
	{
		program, home, dir := claude.install(t), t.TempDir(), t.TempDir()
		env := append(claudeEnv(s, home), "CLAUDE_CODE_MAX_RETRIES=1")
		list = append(list, asker{"claude-code", func(again bool, prompt string) string {
			args := []string{"-p", prompt}
			if again {
				args = append(args, "--continue")
			}
			return both(said(t, dir, env, program, args...))
		}})
	}
	{
		program, home, dir := codex.install(t), t.TempDir(), t.TempDir()
		write(t, filepath.Join(home, "config.toml"), "openai_base_url = \""+s.base("/codex/v1")+"\"\n")
		env := []string{"HOME=" + home, "CODEX_HOME=" + home, "CODEX_API_KEY=sk-fake-key"}
		list = append(list, asker{"codex", func(again bool, prompt string) string {
			args := []string{"exec", "--skip-git-repo-check"}
			if again {
				args = append(args, "resume", "--last")
			}
			return both(said(t, dir, env, program, append(args, prompt)...))
		}})
	}
	{
		program, home, dir := opencode.install(t), t.TempDir(), t.TempDir()
		path := filepath.Join(home, ".config", "opencode")
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(path, "opencode.json"), `{"$schema":"https://opencode.ai/config.json","model":"lab/test-large","provider":{"lab":{"npm":"@ai-sdk/openai-compatible","name":"Lab",`+
			`"options":{"baseURL":"`+s.base("/opencode/lab/v1")+`","apiKey":"sk-fake-key"},"models":{"test-large":{"name":"Test"}}}}}`)
		env := []string{"HOME=" + home, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
		list = append(list, asker{"opencode", func(again bool, prompt string) string {
			args := []string{"run"}
			if again {
				args = append(args, "--continue")
			}
			return both(said(t, dir, env, program, append(args, prompt)...))
		}})
	}
	return list
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reconfigure stops the proxy, writes another config.yaml, and starts it.
func (s *stage) reconfigure(rest string) {
	s.t.Helper()
	s.kill()
	write(s.t, filepath.Join(s.home, "config.yaml"), "listen: "+s.address+"\n"+rest)
	s.start()
}

// TestAgentsShowTheirPeopleWhatAgentopSays plays what goes wrong most often.
// Each agent must show agentop's own sentence and not hide it behind its own.
func TestAgentsShowTheirPeopleWhatAgentopSays(t *testing.T) {
	s := newStage(t)
	everybody := func(choice string) string {
		return fmt.Sprintf("agents:\n  claude-code: {%s}\n  codex: {%s}\n  opencode: {%s}\n", choice, choice, choice)
	}
	for _, a := range askers(t, s) {
		t.Run(a.agent, func(t *testing.T) {
			show := func(what, screen string, want ...string) {
				t.Helper()
				for _, w := range append(want, "agentop: ") {
					if !strings.Contains(screen, w) {
						t.Errorf("%s: the screen lacks %q:\n%s", what, w, screen)
					}
				}
			}
			s.configure("a")
			s.restart()
			began := time.Now()
			if screen := a.ask(false, "hello"); strings.Contains(screen, "agentop:") {
				t.Fatalf("a plain question: %s", screen)
			}
			t.Logf("a plain question: answered after %v", time.Since(began).Round(100*time.Millisecond))

			s.reconfigure(fmt.Sprintf("servers:\n  b: {url: %s, key: none}\n", s.servers["b"].URL()) + everybody("server: b"))
			began = time.Now()
			show("removed server", a.ask(true, "go on"), `server "a"`)
			t.Logf("removed server: told after %v", time.Since(began).Round(100*time.Millisecond))

			s.reconfigure(everybody("server: \"\", upstream: none"))
			began = time.Now()
			show("no server", a.ask(false, "hello"), "agentop server use")
			t.Logf("no server: told after %v", time.Since(began).Round(100*time.Millisecond))

			if os.Getenv("AGENTOP_TEST_FULL") == "" {
				return // the agents try again for minutes before they tell
			}
			s.reconfigure("servers:\n  gone: {url: http://127.0.0.1:1, key: none}\n" + everybody("server: gone"))
			began = time.Now()
			show("server down", a.ask(false, "hello"), `server "gone" does not answer at 127.0.0.1:1`)
			t.Logf("server down: told after %v", time.Since(began).Round(100*time.Millisecond))
		})
	}
}

// TestCodexGoesOnOverHTTP: the WebSocket that Codex tries first costs neither a
// word on the screen nor a second, with a key and with a ChatGPT login, whose
// bodies are compressed.
func TestCodexGoesOnOverHTTP(t *testing.T) {
	program := codex.install(t)
	for _, login := range []bool{false, true} {
		for _, choice := range []string{"a", `""`} {
			t.Run(fmt.Sprintf("ChatGPT login %v, server %s", login, choice), func(t *testing.T) {
				s := newStage(t)
				s.configure(choice)
				s.restart()
				home := t.TempDir()
				write(t, filepath.Join(home, "config.toml"), "openai_base_url = \""+s.base("/codex/v1")+"\"\n")
				env := []string{"HOME=" + home, "CODEX_HOME=" + home}
				if login {
					write(t, filepath.Join(home, "auth.json"), chatGPTLogin(t))
				} else {
					env = append(env, "CODEX_API_KEY=sk-fake-key")
				}
				stdout, stderr := said(t, t.TempDir(), env, program, "exec", "--skip-git-repo-check", "hello")
				if strings.Contains(strings.ToLower(stdout), "websocket") || strings.Contains(stdout+stderr, "Reconnecting") {
					t.Errorf("the screen tells of it:\n%s\n%s", stdout, stderr)
				}
				if n := strings.Count(stderr, "426"); n > 1 { // one line of the log, which `exec` prints
					t.Errorf("stderr tells of it %d times: %s", n, stderr)
				}
				server := "a"
				if choice != "a" {
					server = "own"
				}
				turns := 0
				for _, rec := range s.servers[server].Records() {
					if rec.Format != fakeserver.Responses {
						continue
					}
					turns++
					if coded := rec.Header.Get("Content-Encoding"); login != (coded == "zstd") || rec.Plain == nil {
						t.Errorf("the body is coded %q", coded)
					}
					if account := rec.Header.Get("Chatgpt-Account-Id"); (account != "") != (login && server == "own") {
						t.Errorf("%s got the account %q", server, account)
					}
				}
				if turns != 1 {
					t.Errorf("%s got %d turns, want 1\n%s\n%s", server, turns, stdout, stderr)
				}
			})
		}
	}
}

// chatGPTLogin is an auth.json with made-up tokens.
func chatGPTLogin(t *testing.T) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	token := part(map[string]any{"alg": "none"}) + "." + part(map[string]any{
		"email": "somebody@example.com", "exp": time.Now().Add(24 * time.Hour).Unix(),
		"https://api.openai.com/auth": map[string]any{"chatgpt_plan_type": "pro", "chatgpt_account_id": "acc-fake", "chatgpt_user_id": "user-fake"},
	}) + ".ZmFrZQ"
	text, err := json.Marshal(map[string]any{
		"OPENAI_API_KEY": nil, "last_refresh": time.Now().UTC().Format(time.RFC3339),
		"tokens": map[string]any{"id_token": token, "access_token": token, "refresh_token": "fake", "account_id": "acc-fake"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
