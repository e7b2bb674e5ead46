package router

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentop/router/config"
)

// seenHeaders is a server that remembers the credentials that reach it.
type seenHeaders struct {
	*httptest.Server
	mu     sync.Mutex
	last   http.Header
	all    []string
	status int
}

func newListener(t *testing.T) *seenHeaders {
	t.Helper()
	s := &seenHeaders{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = r.Header.Clone()
		s.all = append(s.all, fmt.Sprint(r.Header, r.URL))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		_, _ = fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *seenHeaders) credentials() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("authorization=%s x-api-key=%s", s.last.Get("Authorization"), s.last.Get("X-Api-Key"))
}

func (s *seenHeaders) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// TestKeyOfEachSource holds where each kind of key goes: into the headers that
// the client used, to its own server.
func TestKeyOfEachSource(t *testing.T) {
	t.Setenv("FAKE_GLM_KEY", "sk-fake-env")
	printer := writeFile(t, "key.sh", "#!/bin/sh\necho sk-fake-command\n", 0o700)
	sources := []struct{ source, key string }{
		{"stored", "sk-fake-stored"}, {"env:FAKE_GLM_KEY", "sk-fake-env"}, {"{command: [" + printer + "]}", "sk-fake-command"},
		{"none", ""}, {"client", "sk-fake-client"},
	}
	clients := []struct {
		name   string
		header http.Header
		want   string // KEY is the server's key
	}{
		{"x-api-key", http.Header{"X-Api-Key": {"sk-fake-client"}}, "authorization= x-api-key=KEY"},
		{"bearer", http.Header{"Authorization": {"Bearer sk-fake-client"}}, "authorization=Bearer KEY x-api-key="},
		{"both", http.Header{"Authorization": {"Bearer sk-fake-client"}, "X-Api-Key": {"sk-fake-client"}}, "authorization=Bearer KEY x-api-key=KEY"},
		{"none", http.Header{}, "authorization= x-api-key=KEY"},
	}
	for _, src := range sources {
		for _, c := range clients {
			t.Run(src.source+"/"+c.name, func(t *testing.T) {
				s := newListener(t)
				r := newRig(t, `
servers:
  it: {url: %s, key: %s}
agents:
  claude-code: {server: it, upstream: none}
`, s.URL, src.source)
				r.store("it", "sk-fake-stored")
				header := claudeHeader("s1")
				header.Del("X-Api-Key")
				for name, v := range c.header {
					header[name] = v
				}
				r.send("/claude-code/v1/messages", claudeBody(user("hi")), header)
				want := strings.ReplaceAll(c.want, "KEY", src.key)
				switch {
				case src.key == "":
					want = "authorization= x-api-key="
				case src.source == "client" && c.name == "none":
					want = "authorization= x-api-key="
				}
				if got := s.credentials(); got != want {
					t.Errorf("the server got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestNoCredentialReachesAnotherPlace sends turns to two servers and to the
// own upstream, and looks for every key everywhere.
func TestNoCredentialReachesAnotherPlace(t *testing.T) {
	a, b, own := newListener(t), newListener(t), newListener(t)
	yaml := `
servers:
  a: {url: %s, key: stored}
  b: {url: %s, key: stored}
agents:
  claude-code: {server: %q, upstream: %s}
`
	r := newRig(t, yaml, a.URL, b.URL, "a", own.URL)
	r.store("a", "sk-fake-a")
	r.store("b", "sk-fake-b")
	send := func(session string) {
		header := claudeHeader(session)
		for _, name := range []string{"Authorization", "Cookie", "X-Goog-Api-Key", "Proxy-Authorization", "Openai-Organization", "Chatgpt-Account-Id"} {
			header.Set(name, "sk-fake-client")
		}
		r.send("/claude-code/v1/messages", claudeBody(user("hi")), header)
	}
	for i, server := range []string{"a", "b", ""} {
		r.configure(yaml, a.URL, b.URL, server, own.URL)
		send(fmt.Sprintf("s%d", i))
	}
	for _, c := range []struct {
		server *seenHeaders
		name   string
		may    string
	}{{a, "a", "sk-fake-a"}, {b, "b", "sk-fake-b"}, {own, "own", "sk-fake-client"}} {
		if len(c.server.all) != 1 {
			t.Fatalf("%s got %d requests, want 1", c.name, len(c.server.all))
		}
		for _, key := range []string{"sk-fake-a", "sk-fake-b", "sk-fake-client"} {
			if got := strings.Contains(c.server.all[0], key); got != (key == c.may) {
				t.Errorf("%s and key %s: there %v, want %v", c.name, key, got, key == c.may)
			}
		}
	}
}

// TestKeyCommandRunsAgainAfterA401 holds that a command's key is kept until
// the server refuses it.
func TestKeyCommandRunsAgainAfterA401(t *testing.T) {
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	printer := writeFile(t, "key.sh", "#!/bin/sh\necho x >> "+count+"\nn=$(wc -l < "+count+")\necho sk-fake-$((n))\n", 0o700)
	s := newListener(t)
	r := newRig(t, `
servers:
  it: {url: %s, key: {command: [%s]}}
agents:
  claude-code: {server: it, upstream: none}
`, s.URL, printer)
	send := func(status int) string {
		s.answer(status)
		res, text := r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
		if res.StatusCode != status || text != "{}" {
			t.Errorf("answer %d %s, want the server's own %d {}", res.StatusCode, text, status)
		}
		return s.credentials()
	}
	want := []struct {
		status int
		key    string
	}{{200, "sk-fake-1"}, {200, "sk-fake-1"}, {401, "sk-fake-1"}, {200, "sk-fake-2"}, {200, "sk-fake-2"}}
	for i, w := range want {
		if got := send(w.status); got != "authorization= x-api-key="+w.key {
			t.Errorf("request %d had %q, want %s", i+1, got, w.key)
		}
	}
}

func TestKeyThatCannotBeHad(t *testing.T) {
	s := newListener(t)
	failing := writeFile(t, "key.sh", "#!/bin/sh\necho sk-fake-secret >&2\nexit 3\n", 0o700)
	for _, c := range []struct{ source, want, cure string }{
		{"stored", "no key is stored for it", "agentop server add"}, {"env:NO_SUCH_FAKE_KEY", "NO_SUCH_FAKE_KEY", ""},
		{"{command: [" + failing + "]}", "exit status 3", "try it in a terminal"},
	} {
		r := newRig(t, `
servers:
  it: {url: %s, key: %s}
agents:
  claude-code: {server: it, upstream: none}
`, s.URL, c.source)
		res, text := r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(text, "agentop: ") || !strings.Contains(text, c.want) || !strings.Contains(text, c.cure) {
			t.Errorf("key %s: %d %s, want 400 with %q and what to do", c.source, res.StatusCode, text, c.want)
		}
		if strings.Contains(text, "sk-fake") {
			t.Errorf("key %s: a key is in the error: %s", c.source, text)
		}
	}
	if len(s.all) != 0 {
		t.Errorf("%d requests reached the server without its key", len(s.all))
	}
}

// TestRedirectIsReturned holds that a server's redirect is the client's to
// follow: the key never goes along.
func TestRedirectIsReturned(t *testing.T) {
	other := newListener(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		moved := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/messages", status))
		r := newRig(t, `
servers:
  it: {url: %s, key: stored}
agents:
  claude-code: {server: it, upstream: none}
`, moved.URL)
		r.store("it", "sk-fake-stored")
		res, _ := r.send("/claude-code/v1/messages", claudeBody(user("hi")), claudeHeader("s1"))
		moved.Close()
		if res.StatusCode != status || res.Header.Get("Location") != other.URL+"/v1/messages" {
			t.Errorf("answer %d to %q, want %d to %s", res.StatusCode, res.Header.Get("Location"), status, other.URL)
		}
	}
	if len(other.all) != 0 {
		t.Errorf("the other server got %v", other.all)
	}
}

// TestKeyIsInNoErrorOrLog sends to a server that is down and reads what is
// told of it.
func TestKeyIsInNoErrorOrLog(t *testing.T) {
	s := newListener(t)
	address := s.URL
	s.Close()
	r := newRig(t, `
servers:
  it: {url: %s, key: stored}
agents:
  claude-code: {server: it, upstream: none}
`, address)
	r.store("it", "sk-fake-stored")
	_, text := r.send("/claude-code/v1/messages?key=sk-fake-query", claudeBody(user("hi")), claudeHeader("s1"))
	files, err := filepath.Glob(filepath.Join(r.dir, "log", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no request log in %s: %v", r.dir, err)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text += string(content)
	}
	server, _ := r.config().Server("it")
	health, _, _, _ := r.router.ServerState(server)
	text += fmt.Sprintf("%+v %+v %+v", health, r.router.Sessions(), config.Equal(r.config(), r.config()))
	if strings.Contains(text, "sk-fake") {
		t.Errorf("a key is in %s", text)
	}
}
