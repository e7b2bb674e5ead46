package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"agentop/agents/outline"
	"agentop/router/config"
)

const planted = "sk-fake-planted-0123456789"

func TestSecretNeverPrintsItself(t *testing.T) {
	s := NewSecret(planted)
	type outer struct {
		Open   Secret
		hidden Secret
		ptr    *Secret
		inside map[string]Secret
	}
	values := []any{s, &s, outer{s, s, &s, map[string]Secret{"a": s}}, &outer{hidden: s}, []Secret{s}, map[string]Secret{"k": s},
		struct{ any }{s}, errors.Join(fmt.Errorf("x %v", s)), &Error{Server: "a", Reason: fmt.Sprint(s)}}
	var logged bytes.Buffer
	text, jsonLog := slog.New(slog.NewTextHandler(&logged, nil)), slog.New(slog.NewJSONHandler(&logged, nil))
	for _, v := range values {
		for _, verb := range "vTtbcdoOqxXUeEfFgGsp" {
			for _, flag := range []string{"", "+", "#", "-30", "030.90", " "} {
				logged.WriteString(fmt.Sprintf("%"+flag+string(verb)+"\n", v))
			}
		}
		data, _ := json.Marshal(v)
		logged.Write(data)
		text.Info("m", "v", v)
		jsonLog.Info("m", "v", v)
	}
	if key, _ := s.MarshalText(); string(key) != redacted || s.Reveal() != planted {
		t.Errorf("got %q and %q", key, s.Reveal())
	}
	hexed := fmt.Sprintf("%x", planted)
	for _, form := range []string{planted, hexed, strings.ToUpper(hexed), strings.Trim(fmt.Sprint([]byte(planted)), "[]")} {
		if strings.Contains(logged.String(), form) {
			t.Errorf("the key was printed as %q", form)
		}
	}
	if !strings.Contains(logged.String(), redacted) || !(Secret{}).IsZero() || !NewSecret("").IsZero() || s.IsZero() {
		t.Errorf("nothing was printed for it, or zero is told wrong")
	}
}

func TestApplyGivesTheServersKeyAndNoOther(t *testing.T) {
	own := http.Header{"Authorization": {"Bearer client"}, "X-Api-Key": {"client", "client2"}, "Cookie": {"a=client"}, "Api-Key": {"client"},
		"X-Goog-Api-Key": {"client"}, "Proxy-Authorization": {"client"}, "Chatgpt-Account-Id": {"client"}, "Openai-Organization": {"client"},
		"X-Litellm-Api-Key": {"client"}, "X-Gateway-Authorization": {"client"}, "Anthropic-Beta": {"a", "b"}, "X-Claude-Code-Session-Id": {"s"},
		"Session-Id": {"s"}, "X-Codex-Turn-Metadata": {"m"}, "Openai-Beta": {"x"}}
	rest := http.Header{"Anthropic-Beta": {"a", "b"}, "X-Claude-Code-Session-Id": {"s"}, "Session-Id": {"s"}, "X-Codex-Turn-Metadata": {"m"}, "Openai-Beta": {"x"}}
	with := func(h http.Header, pairs ...string) http.Header {
		h = h.Clone()
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	key := NewSecret(planted)
	for _, c := range []struct {
		name     string
		in, want http.Header
		kind     config.KeyKind
		key      Secret
		format   outline.Format
	}{
		{"both headers", own, with(rest, "Authorization", "Bearer "+planted, "X-Api-Key", planted), config.KeyStored, key, outline.Messages},
		{"x-api-key", http.Header{"X-Api-Key": {"c"}}, http.Header{"X-Api-Key": {planted}}, config.KeyEnv, key, outline.Responses},
		{"authorization", http.Header{"Authorization": {"Basic c"}}, http.Header{"Authorization": {"Bearer " + planted}}, config.KeyCommand, key, outline.Messages},
		{"none sent, Messages", rest, with(rest, "X-Api-Key", planted), config.KeyStored, key, outline.Messages},
		{"none sent, Responses", rest, with(rest, "Authorization", "Bearer "+planted), config.KeyStored, key, outline.Responses},
		{"none sent, another request", rest, with(rest, "Authorization", "Bearer "+planted), config.KeyStored, key, outline.NoFormat},
		{"empty header is none", http.Header{"Authorization": {""}}, http.Header{"X-Api-Key": {planted}}, config.KeyStored, key, outline.Messages},
		{"another header is none", http.Header{"Api-Key": {"c"}}, http.Header{"Authorization": {"Bearer " + planted}}, config.KeyStored, key, outline.Responses},
		{"no key", own, rest, config.KeyNone, Secret{}, outline.Messages},
		{"no key, though one is known", own, rest, config.KeyNone, key, outline.Messages},
		{"the client's", own, own, config.KeyClient, key, outline.Messages},
	} {
		in, out := c.in.Clone(), c.in.Clone()
		Apply(in, out, c.kind, c.key, c.format)
		if !reflect.DeepEqual(out, c.want) || !reflect.DeepEqual(in, c.in) {
			t.Errorf("%s:\ngot  %v\nwant %v", c.name, out, c.want)
		}
	}
}

func resolver(t *testing.T) (*Resolver, string) {
	path := filepath.Join(t.TempDir(), "keys.json")
	return NewResolver(path), path
}

func server(kind config.KeyKind, command ...string) *config.Server {
	return &config.Server{Name: "glm", Key: config.KeySource{Kind: kind, Env: "GLM_KEY", Command: command}}
}

func expect(t *testing.T, what string, r *Resolver, s *config.Server, want string) {
	t.Helper()
	key, err := r.Key(context.Background(), s)
	if err != nil || key.Reveal() != want {
		t.Errorf("%s: got %q, %v, want %q", what, key.Reveal(), err, want)
	}
}

// expectError wants an *Error with the server's name and the words given, and
// the planted key nowhere.
func expectError(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Server != "glm" || e.Do == "" {
		t.Errorf("%s: got %v, want an error about the server that says what to do", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got %v, want %q in it", what, err, w)
		}
	}
	if strings.Contains(fmt.Sprintf("%+v %#v", err, err), planted) {
		t.Errorf("%s: the error holds the key: %v", what, err)
	}
}

func keyError(r *Resolver, s *config.Server) error {
	_, err := r.Key(context.Background(), s)
	return err
}

func TestStoredKeysAreKeptAndRotated(t *testing.T) {
	r, path := resolver(t)
	ctx, s := context.Background(), server(config.KeyStored)
	expectError(t, "nothing stored", keyError(r, s), "no key is stored", "agentop server add glm URL")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a file: %v", err)
	}
	for _, key := range []string{"sk-fake-1", "sk-fake-2\n"} {
		if err := r.Store(ctx, "glm", config.KeyStored, NewSecret(key)); err != nil {
			t.Fatal(err)
		}
		expect(t, "stored", r, s, strings.TrimSpace(key))
	}
	if err := r.Store(ctx, "other", config.KeyStored, NewSecret("sk-fake-3")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want 0600", info.Mode(), err)
	}
	again := NewResolver(path)
	expect(t, "after a restart", again, s, "sk-fake-2")
	if err := r.Remove(ctx, "glm", config.KeyStored); err != nil {
		t.Fatal(err)
	}
	again.Invalidate("glm")
	expectError(t, "removed", keyError(again, s), "no key is stored")
	if data, _ := os.ReadFile(path); string(data) != "{\n  \"other\": \"sk-fake-3\"\n}\n" {
		t.Errorf("left in the file: %s", data)
	}
	for _, bad := range []string{"", "  ", "two words", "two\nlines", "bell\a", "sk-fake-\u00e9"} {
		expectError(t, "bad key", r.Store(ctx, "glm", config.KeyStored, NewSecret(bad)), "the key ")
	}
	expectError(t, "nowhere to keep", r.Store(ctx, "glm", config.KeyEnv, NewSecret("x")), "not kept by agentop")
}

// TestDropForgetsAKeyThatItsServerHasNotNamedLately holds for a configuration
// whose `key: stored` was changed by hand: the secret goes with the server.
func TestDropForgetsAKeyThatItsServerHasNotNamedLately(t *testing.T) {
	for _, kind := range []config.KeyKind{config.KeyStored, config.KeyNone, config.KeyEnv} {
		r, path := resolver(t)
		for _, name := range []string{"glm", "other"} {
			if err := r.Store(t.Context(), name, config.KeyStored, NewSecret("sk-fake-"+name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Drop(t.Context(), "glm", kind); err != nil {
			t.Error(err)
		}
		if data, _ := os.ReadFile(path); string(data) != "{\n  \"other\": \"sk-fake-other\"\n}\n" {
			t.Errorf("%s: left in the file: %s", kind, data)
		}
	}
	r, path := resolver(t)
	if err := r.Drop(t.Context(), "glm", config.KeyNone); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where no key is kept, a file was made: %v", err)
	}
}

func TestStoredKeysAreSafeInOddFiles(t *testing.T) {
	ctx, s := context.Background(), server(config.KeyStored)
	for name, data := range map[string]string{
		"empty": "", "cut": `{"glm": "` + planted, "list": `["` + planted + `"]`, "newer": `{"version": 2, "keys": {"glm": "` + planted + `"}}`, "null": "null",
	} {
		r, path := resolver(t)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		expectError(t, name, keyError(r, s), path)
		err := r.Store(ctx, "glm", config.KeyStored, NewSecret("sk-fake-new"))
		if !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), planted) {
			t.Errorf("%s: stored over it: %v", name, err)
		}
		if got, _ := os.ReadFile(path); string(got) != data {
			t.Errorf("%s: the file was changed to %q", name, got)
		}
	}
	r, path := resolver(t)
	target := filepath.Join(filepath.Dir(path), "secrets.json")
	if err := os.WriteFile(target, []byte(`{"glm": "sk-fake-a"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("secrets.json", path); err != nil {
		t.Fatal(err)
	}
	expect(t, "through a link", r, s, "sk-fake-a")
	if info, _ := os.Stat(target); info.Mode().Perm() != 0o600 || len(r.Warnings()) != 1 || !strings.Contains(r.Warnings()[0], "could be read by others") {
		t.Errorf("rights %v, warnings %q", info.Mode(), r.Warnings())
	}
	if err := r.Store(ctx, "b", config.KeyStored, NewSecret("sk-fake-b")); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(path); err != nil || to != "secrets.json" {
		t.Errorf("the link is %q, %v", to, err)
	}
}

func TestKeysStoredAtTheSameTimeAreAllKept(t *testing.T) {
	_, path := resolver(t)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if err := NewResolver(path).Store(context.Background(), fmt.Sprint("s", i), config.KeyStored, NewSecret("sk-fake")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	var keys map[string]string
	if err != nil || json.Unmarshal(data, &keys) != nil || len(keys) != 10 {
		t.Errorf("got %s, %v, want 10 keys", data, err)
	}
}

func TestKeysFromTheEnvironmentAndOfNone(t *testing.T) {
	r, _ := resolver(t)
	env := map[string]string{"GLM_KEY": " sk-fake-env\n"}
	r.getenv = func(name string) string { return env[name] }
	expect(t, "env", r, server(config.KeyEnv), "sk-fake-env")
	env["GLM_KEY"] = planted + "\nsecond line"
	expectError(t, "env, two lines", keyError(r, server(config.KeyEnv)), "GLM_KEY", "more than one line")
	delete(env, "GLM_KEY")
	expectError(t, "env, not set", keyError(r, server(config.KeyEnv)), "environment variable GLM_KEY, which the proxy does not have")
	for _, kind := range []config.KeyKind{config.KeyNone, config.KeyClient, ""} {
		expect(t, string(kind), r, server(kind), "")
	}
}

func TestKeysFromTheKeychain(t *testing.T) {
	r, _ := resolver(t)
	ctx, s := context.Background(), server(config.KeyKeychain)
	keyring.MockInit()
	expectError(t, "nothing there", keyError(r, s), "the system's keychain has no key for it")
	if err := r.Store(ctx, "glm", config.KeyKeychain, NewSecret("sk-fake-chain")); err != nil {
		t.Fatal(err)
	}
	expect(t, "keychain", r, s, "sk-fake-chain")
	if err := errors.Join(r.Remove(ctx, "glm", config.KeyKeychain), r.Remove(ctx, "glm", config.KeyKeychain)); err != nil {
		t.Error(err)
	}
	expectError(t, "removed", keyError(r, s), "has no key for it")
	keyring.MockInitWithError(errors.New("no D-Bus session"))
	expectError(t, "no keychain", keyError(r, s), "cannot be used here: no D-Bus session", "`agentop server add glm URL --keychain=false` keeps the key in keys.json")
	expectError(t, "no keychain to keep it", r.Store(ctx, "glm", config.KeyKeychain, NewSecret(planted)), "--keychain=false")
}

// TestKeychainThatAsksIsLeftBehind holds that a keychain which waits for its
// user holds nobody up.
func TestKeychainThatAsksIsLeftBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	open := make(chan struct{})
	defer close(open)
	err := askKeychain(ctx, func() error { <-open; return nil })
	if !errors.Is(err, errNoAnswer) {
		t.Errorf("got %v, want %v", err, errNoAnswer)
	}
}

// counting is a command that counts its runs in a file.
func counting(t *testing.T, script string) (command []string, runs func() int) {
	file := filepath.Join(t.TempDir(), "runs")
	return []string{"/bin/sh", "-c", "echo >> '" + file + "'; " + script}, func() int {
		data, _ := os.ReadFile(file)
		return bytes.Count(data, []byte("\n"))
	}
}

func TestKeyCommandRunsWhenNeeded(t *testing.T) {
	r, _ := resolver(t)
	command, runs := counting(t, "echo '  sk-fake-command '")
	s := server(config.KeyCommand, command...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { expect(t, "at once", r, s, "sk-fake-command") })
	}
	wg.Wait()
	expect(t, "later", r, s, "sk-fake-command")
	if runs() != 1 {
		t.Errorf("ran %d times, want once", runs())
	}
	r.Invalidate("other")
	expect(t, "another server's 401", r, s, "sk-fake-command")
	r.Invalidate("glm")
	expect(t, "after a 401", r, s, "sk-fake-command")
	if runs() != 2 {
		t.Errorf("ran %d times, want twice", runs())
	}
	changed := server(config.KeyCommand, "/bin/echo", "sk-fake-changed")
	expect(t, "another command", r, changed, "sk-fake-changed")
}

func TestKeyCommandFailsInWords(t *testing.T) {
	failing, runs := counting(t, "echo "+planted+"; echo "+planted+" >&2; exit 3")
	for _, c := range []struct {
		name    string
		command []string
		want    string
	}{
		{"exit", failing, `key command "/bin/sh" failed (exit status 3); try it in a terminal`},
		{"nothing", []string{"/bin/sh", "-c", ":"}, "printed something that is empty; make it print the key alone"},
		{"lines", []string{"/bin/sh", "-c", "echo " + planted + "; echo user"}, "printed something that has more than one line"},
		{"endless", []string{"/bin/sh", "-c", "yes " + planted + " | head -n 100000"}, "more than one line"},
		{"shell words are not read", []string{"/bin/echo", "$HOME", planted}, "has a space"},
		{"not found", []string{"no-such-program-here"}, `"no-such-program-here" was not found; write its absolute path`},
		{"absolute, not found", []string{"/no/such/program"}, "cannot be run"},
		{"relative", []string{"./key"}, "is given by a relative path"},
		{"not a program", []string{"/etc"}, "cannot be run"},
	} {
		r, _ := resolver(t)
		expectError(t, c.name, keyError(r, server(config.KeyCommand, c.command...)), c.want)
	}
	r, _ := resolver(t)
	_, _ = keyError(r, server(config.KeyCommand, failing...)), keyError(r, server(config.KeyCommand, failing...))
	if runs() != 3 {
		t.Errorf("ran %d times, want 3: a failure is not kept", runs())
	}
}

func TestKeyCommandIsEndedWithItsChildren(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := fromCommand(ctx, server(config.KeyCommand, "/bin/sh", "-c", "sleep 1000 > '"+pipe+"' & wait"))
		failed <- err
	}()
	held, err := os.Open(pipe) // waits for the child, which holds the other end
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cancel()
	expectError(t, "slow", <-failed, "did not end in time")
	if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := held.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the command's child still runs: read %d, %v", n, err)
	}
}

func TestKeyEndsWithItsRequestAndTheRunGoesOn(t *testing.T) {
	r, _ := resolver(t)
	gate := filepath.Join(t.TempDir(), "gate")
	s := server(config.KeyCommand, "/bin/sh", "-c", "until test -e '"+gate+"'; do sleep 0.01; done; echo sk-fake-late")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Key(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the request's end", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "the same run", r, s, "sk-fake-late")
}

// What was read before a 401 must not be taken for new after it.
func TestInvalidateDuringARun(t *testing.T) {
	r, _ := resolver(t)
	s := server(config.KeyCommand, "unused")
	first, release := make(chan struct{}), make(chan struct{})
	old := make(chan string, 1)
	go func() {
		key, _ := r.shared(context.Background(), s, func(context.Context, *config.Server) (Secret, error) {
			close(first)
			<-release
			return NewSecret("old"), nil
		})
		old <- key.Reveal()
	}()
	<-first
	r.Invalidate("glm")
	fresh := func(context.Context, *config.Server) (Secret, error) { return NewSecret("new"), nil }
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if key, err := r.shared(ctx, s, fresh); err != nil || key.Reveal() != "new" {
		t.Errorf("got %q, %v, want new", key.Reveal(), err)
	}
	close(release)
	if got := <-old; got != "old" {
		t.Errorf("who waited got %q", got)
	}
	if key, _ := r.shared(context.Background(), s, fresh); key.Reveal() != "new" {
		t.Errorf("the old key came back")
	}
}
