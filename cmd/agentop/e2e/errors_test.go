package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
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

// question is one that a person asks with a real agent.
type question struct {
	again bool   // in the conversation that is open, and not in a new one
	id    string // of the session, in the header that outranks the agent's own; "" for none
	quick bool   // do not try again for long, where the agent lets its person say so
}

// asker asks with one of the real agents and returns all that a person sees.
type asker struct {
	agent string
	start func(t *testing.T, s *stage) func(q question) string
}

var askers = []asker{{"claude-code", claudeAsker}, {"codex", codexAsker}, {"opencode", openCodeAsker}}

func claudeAsker(t *testing.T, s *stage) func(question) string {
	program, home, dir := claude.install(t), agentDir(t), agentDir(t)
	return func(q question) string {
		env, args := claudeEnv(s, home), []string{"-p", "hello"}
		if q.again {
			args = append(args, "--continue")
		}
		if q.id != "" {
			env = append(env, "ANTHROPIC_CUSTOM_HEADERS=X-Dynamo-Session-Id: "+q.id)
		}
		if q.quick {
			env = append(env, "CLAUDE_CODE_MAX_RETRIES=1")
		}
		return both(said(t, dir, env, program, args...))
	}
}

func codexAsker(t *testing.T, s *stage) func(question) string {
	program, home, dir := codex.install(t), agentDir(t), agentDir(t)
	write(t, filepath.Join(home, "config.toml"), "openai_base_url = \""+s.base("/codex/v1")+"\"\n")
	env := []string{"HOME=" + home, "CODEX_HOME=" + home, "CODEX_API_KEY=sk-fake-key"}
	return func(q question) string {
		args := []string{"exec", "--skip-git-repo-check"}
		if q.id != "" { // only a provider of one's own has headers
			args = append(args, "-c", `model_provider="lab"`, "-c", fmt.Sprintf(
				`model_providers.lab={name="Lab",base_url=%q,env_key="CODEX_API_KEY",wire_api="responses",http_headers={"x-dynamo-session-id"=%q}}`, s.base("/codex/v1"), q.id))
		}
		if q.again {
			args = append(args, "resume", "--last")
		}
		return both(said(t, dir, env, program, append(args, "hello")...))
	}
}

func openCodeAsker(t *testing.T, s *stage) func(question) string {
	program, home, dir := opencode.install(t), agentDir(t), agentDir(t)
	env := []string{"HOME=" + home, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
	path := filepath.Join(home, ".config", "opencode")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return func(q question) string {
		headers := "{}"
		if q.id != "" {
			headers = fmt.Sprintf(`{"x-dynamo-session-id":%q}`, q.id)
		}
		write(t, filepath.Join(path, "opencode.json"), fmt.Sprintf(`{"$schema":"https://opencode.ai/config.json","model":"lab/test-large","provider":{"lab":{"npm":"@ai-sdk/openai-compatible","name":"Lab",`+
			`"options":{"baseURL":%q,"apiKey":"sk-fake-key","headers":%s},"models":{"test-large":{"name":"Test"}}}}}`, s.base("/opencode/lab/v1"), headers))
		args := []string{"run"}
		if q.again {
			args = append(args, "--continue")
		}
		return both(said(t, dir, env, program, append(args, "hello")...))
	}
}

func both(out, err string) string { return out + "\n" + err }

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

// trouble is one thing that goes wrong, and what a person must then read.
type trouble struct {
	name     string
	servers  string // in config.yaml
	choice   string // each agent's
	question question
	want     []string
	asks     bool // the agent asks again before it tells
	long     bool // only in the full form
}

// troubles are what goes wrong most often. Each ends in a sentence of
// agentop's, but the key that the server refuses: that is the server's.
func troubles(t *testing.T, s *stage) []trouble {
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0)
	unknown.StartTLS()
	t.Cleanup(unknown.Close)
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","code":"invalid_api_key","message":"this key is not known to the lab"}}`)
	}))
	t.Cleanup(strict.Close)
	server := func(url, more string) string { return fmt.Sprintf("  lab: {url: %q, %s}\n", url, more) }
	return []trouble{
		{name: "removed server", servers: server(s.servers["b"].URL(), "key: none"), choice: "server: lab", question: question{again: true}, want: []string{"agentop: ", `server "a"`}},
		{name: "no server", choice: `server: "", upstream: none`, want: []string{"agentop: ", "agentop server use"}},
		{name: "server down", servers: server("http://127.0.0.1:1", "key: none"), choice: "server: lab", asks: true,
			want: []string{"agentop: ", `server "lab" does not answer at 127.0.0.1:1`, "the conversation is kept", "agentop sessions move"}},
		{name: "name not found", servers: server("http://glm.invalid", "key: none"), choice: "server: lab", asks: true, long: true,
			want: []string{"agentop: ", `the name glm.invalid of server "lab" was not found`}},
		{name: "unknown authority", servers: server(unknown.URL, "key: none"), choice: "server: lab", long: true,
			want: []string{"agentop: ", `the certificate of server "lab"`, "ca_file"}},
		{name: "no key", servers: server(s.servers["b"].URL(), "key: env:AGENTOP_TEST_NO_SUCH_KEY"), choice: "server: lab", long: true,
			want: []string{"agentop: ", `server "lab" cannot be used`, "AGENTOP_TEST_NO_SUCH_KEY"}},
		{name: "refused key", servers: server(strict.URL, "key: none"), choice: "server: lab", question: question{quick: true}, long: true,
			want: []string{"this key is not known to the lab"}},
		{name: "too large id", servers: server(s.servers["b"].URL(), "key: none"), choice: "server: lab", question: question{id: strings.Repeat("x", 257)}, long: true,
			want: []string{"agentop: ", "session id", "256"}},
	}
}

// TestAgentsShowTheirPeopleWhatAgentopSays plays what goes wrong most often.
// Each agent must show the sentence, and not hide it behind one of its own; and
// it must come to that soon, without a storm of requests.
func TestAgentsShowTheirPeopleWhatAgentopSays(t *testing.T) {
	for _, a := range askers {
		t.Run(a.agent, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			ask := a.start(t, s)
			if screen := ask(question{}); strings.Contains(screen, "agentop:") {
				t.Fatalf("a plain question: %s", screen)
			}
			for _, c := range troubles(t, s) {
				if c.long && os.Getenv("AGENTOP_TEST_FULL") == "" {
					continue
				}
				s.reconfigure("servers:\n" + c.servers + fmt.Sprintf("agents:\n  claude-code: {%s}\n  codex: {%s}\n  opencode: {%s}\n", c.choice, c.choice, c.choice))
				before := len(s.failures())
				screen := ask(c.question)
				until(t, func() bool { return len(s.failures()) > before }, "the log has a line")
				times := s.failures()[before:]
				for _, w := range c.want {
					if !strings.Contains(screen, w) {
						t.Errorf("%s: the screen lacks %q:\n%s", c.name, w, screen)
					}
				}
				if len(times) > 10 {
					t.Errorf("%s: %d requests", c.name, len(times))
					continue
				}
				took := times[len(times)-1].Sub(times[0])
				t.Logf("%s: told after %d requests in %.1f s", c.name, len(times), took.Seconds())
				// Without agentop's word Claude Code asks for three minutes.
				if c.asks && (len(times) < 3 || took > 90*time.Second) {
					t.Errorf("%s: %d requests in %v: it gave up too early or asked for too long", c.name, len(times), took)
				}
			}
		})
	}
}

// failures are the times of the requests that were answered with an error, as
// the request log has them.
func (s *stage) failures() (times []time.Time) {
	s.t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.home, "log", "requests-*.jsonl"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var l struct {
				Time   time.Time `json:"t"`
				Turn   string    `json:"turn"`
				Status int       `json:"status"`
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
			if l.Status >= 400 && l.Status != http.StatusUpgradeRequired && l.Turn != "side" {
				times = append(times, l.Time)
			}
		}
	}
	return times
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
				home := agentDir(t)
				write(t, filepath.Join(home, "config.toml"), "openai_base_url = \""+s.base("/codex/v1")+"\"\n")
				env := []string{"HOME=" + home, "CODEX_HOME=" + home}
				if login {
					write(t, filepath.Join(home, "auth.json"), chatGPTLogin(t))
				} else {
					env = append(env, "CODEX_API_KEY=sk-fake-key")
				}
				stdout, stderr := said(t, agentDir(t), env, program, "exec", "--skip-git-repo-check", "hello")
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
