package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/fakeserver"
	"agentop/router/preflight/kinds"
)

// TestTroubleSaysWhichAndWhatToType holds the one line for each thing that can
// be wrong with a server that was added.
func TestTroubleSaysWhichAndWhatToType(t *testing.T) {
	good := kinds.Named("vllm").Start()
	defer good.Close()
	secure := kinds.Named("vllm").StartTLS()
	defer secure.Close()
	router := kinds.Named("openrouter").Start()
	defer router.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, "<!doctype html><title>Sign in</title>")
	}))
	defer page.Close()
	moved := httptest.NewServer(http.RedirectHandler("https://new.example.com/api/v1/models", http.StatusMovedPermanently))
	defer moved.Close()
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer starting.Close()
	tests := []struct {
		name, url, key string
		kind           config.KeyKind
		up             bool
		want           string
	}{
		{"nothing listens", "http://" + unused(t), kinds.Key, config.KeyStored, false,
			"glm: nothing listens at HOST (connection refused); start the server, or correct the URL: `agentop server add glm URL`"},
		// No name at all, which is known without a name server.
		{"no such name", "http://no-such-host..invalid", kinds.Key, config.KeyStored, false,
			"glm: the host name no-such-host..invalid was not found; correct the URL: `agentop server add glm URL`"},
		{"unknown authority", secure.URL, kinds.Key, config.KeyStored, false,
			"glm: the certificate of HOST is signed by an authority that is not known here; write `ca_file: /path/to/ca.pem` under glm in config.yaml"},
		{"https to a plain server", "https" + strings.TrimPrefix(good.URL, "http"), kinds.Key, config.KeyStored, false,
			"glm: HOST speaks http, not https; correct the URL: `agentop server add glm http://HOST`"},
		{"http to a TLS server", "http" + strings.TrimPrefix(secure.URL, "https"), kinds.Key, config.KeyStored, true,
			"glm: HOST speaks https, not http; correct the URL: `agentop server add glm https://HOST`"},
		{"wrong path", good.URL + "/llm", kinds.Key, config.KeyStored, true,
			"glm: HOST has none of the three APIs there (404), but at http://HOST; correct the URL: `agentop server add glm http://HOST`"},
		{"missing path", router.URL, kinds.Key, config.KeyStored, true,
			"glm: HOST has none of the three APIs there (404), but at http://HOST/api; correct the URL: `agentop server add glm http://HOST/api`"},
		{"a web page", page.URL, kinds.Key, config.KeyStored, true,
			"glm: HOST answers with a web page, not with an API; its API may be under another path: `agentop server add glm http://HOST/PATH`"},
		{"a redirect", moved.URL, kinds.Key, config.KeyStored, true,
			"glm: HOST redirects to https://new.example.com/api, and a key is never carried along; correct the URL: `agentop server add glm https://new.example.com/api`"},
		{"wrong stored key", good.URL, "sk-fake-wrong", config.KeyStored, true,
			"glm: it refuses the key; give it the right one: `agentop server add glm http://HOST`"},
		{"wrong key in the environment", good.URL, "sk-fake-wrong", config.KeyEnv, true,
			"glm: it refuses the key that is in GLM_KEY; set the right one where the proxy is started, then `agentop service restart`"},
		{"wrong key of a command", good.URL, "sk-fake-wrong", config.KeyCommand, true,
			"glm: it refuses the key that its command prints; mend the command under glm in config.yaml"},
		{"no key", good.URL, "", config.KeyNone, true,
			"glm: it wants a key; give it one: `agentop server add glm http://HOST`"},
		{"still starting", starting.URL, kinds.Key, config.KeyStored, true,
			"glm: HOST answers 503 to everything; it may still be starting, ask again: `agentop server test glm`"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			a := asker(c.url, c.kind, c.key).Ask(context.Background())
			if a.Up != c.up {
				t.Errorf("up %v, want %v", a.Up, c.up)
			}
			u, _ := url.Parse(c.url)
			want := strings.ReplaceAll(c.want, "HOST", u.Host)
			if len(a.Trouble) == 0 || a.Trouble[0] != want {
				t.Errorf("trouble\n%q, want\n%q", a.Trouble, want)
			}
		})
	}
}

// unused is an address where nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	address, err := fakeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// TestRedirectIsNotFollowed holds that a key goes to no other server.
func TestRedirectIsNotFollowed(t *testing.T) {
	reached := make(chan string, 16)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Header.Get("Authorization") }))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/models", http.StatusTemporaryRedirect))
	defer moved.Close()
	asker(moved.URL, config.KeyStored, kinds.Key).Ask(context.Background())
	select {
	case got := <-reached:
		t.Errorf("the other server was asked, with the credential %q", got)
	default:
	}
}

// TestAskEndsInTime holds the limit against a server that never answers.
func TestAskEndsInTime(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hang)
	ask := asker(server.URL, config.KeyStored, kinds.Key)
	ask.Limit = 50 * time.Millisecond
	done := make(chan Answer)
	go func() { done <- ask.Ask(context.Background()) }()
	select {
	case a := <-done:
		if a.Up || len(a.Trouble) != 1 || !strings.Contains(a.Trouble[0], "did not answer within 50ms") {
			t.Errorf("answer %+v", a)
		}
	case <-time.After(time.Minute):
		t.Fatal("the preflight does not end")
	}
}

// TestGuardThatAnswersEverything holds that a server which answers every path
// in the same way is not believed to speak every format.
func TestGuardThatAnswersEverything(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusOK} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"error":"no"}`)
		}))
		a := asker(server.URL, config.KeyStored, kinds.Key).Ask(context.Background())
		server.Close()
		if len(a.Formats) != 0 {
			t.Errorf("status %d to everything: formats %v, want none", status, a.Formats)
		}
	}
}

// TestGatewayThatFindsItsWayByTheModel holds that a gateway without a way for a
// name that nobody serves is not taken for one without the format.
func TestGatewayThatFindsItsWayByTheModel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"glm-5","object":"model"}]}`)
		case r.URL.Path == "/v1/messages", r.URL.Path == "/v1/chat/completions" && strings.Contains(string(body), `"glm-5"`):
			http.Error(w, `{"error":"not a list"}`, http.StatusBadRequest)
		default:
			http.Error(w, "no way", http.StatusNotFound)
		}
	}))
	defer server.Close()
	a := asker(server.URL, config.KeyStored, kinds.Key).Ask(context.Background())
	want := []outline.Format{outline.Messages, outline.ChatCompletions}
	if !slices.Equal(a.Formats, want) || !a.FormatsTold {
		t.Errorf("formats %v (told %v), want %v", a.Formats, a.FormatsTold, want)
	}
}

// TestWhatPassesTellsNothingOfAFormat holds that a path which is out of order
// for the moment is not taken for one that is not there.
func TestWhatPassesTellsNothingOfAFormat(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/messages":
			http.Error(w, `{"error":"not a list"}`, http.StatusBadRequest)
		case "/v1/responses":
			http.Error(w, "one moment", http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	a := asker(server.URL, config.KeyStored, kinds.Key).Ask(context.Background())
	if !slices.Equal(a.Formats, []outline.Format{outline.Messages}) || a.FormatsTold {
		t.Errorf("formats %v (told %v), want messages, and nothing told of the others", a.Formats, a.FormatsTold)
	}
}

// TestAServerThatTakesAnythingTellsNothing holds that a server which answers
// well to whatever it is sent is not taken for one without the formats.
func TestAServerThatTakesAnythingTellsNothing(t *testing.T) {
	for _, bad := range []string{"", "/v1/chat/completions"} { // the path whose bodies it looks at
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == bad {
				http.Error(w, `{"error":"not a list"}`, http.StatusBadRequest)
				return
			}
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"glm-5","object":"model"}]}`)
		}))
		a := asker(server.URL, config.KeyStored, kinds.Key).Ask(context.Background())
		server.Close()
		if a.FormatsTold {
			t.Errorf("bad bodies refused at %q: only %v are said to be spoken", bad, a.Formats)
		}
	}
}

func TestPoolIsAskedMemberByMember(t *testing.T) {
	one, two := kinds.Named("vllm").Start(), kinds.Named("vllm").Start()
	other := kinds.Named("sglang").Start()
	defer one.Close()
	defer two.Close()
	defer other.Close()
	pool := func(urls ...string) Asker {
		a := asker("", config.KeyStored, kinds.Key)
		for _, u := range urls {
			a.Server.Pool = append(a.Server.Pool, config.Member{Name: u, URL: u})
		}
		return a
	}
	a := pool(one.URL, two.URL).Ask(context.Background())
	if !a.Up || a.Key != KeyAccepted || len(a.Models) != 1 || len(a.Formats) != 3 {
		t.Errorf("equal members: %+v", a)
	}
	a = pool("http://"+unused(t), two.URL).Ask(context.Background())
	if !a.Up || !slices.ContainsFunc(a.Trouble, func(s string) bool { return strings.Contains(s, "connection refused") }) {
		t.Errorf("one member down: %+v", a)
	}
	a = pool(one.URL, other.URL).Ask(context.Background())
	if !slices.ContainsFunc(a.Trouble, func(s string) bool { return strings.Contains(s, "serve different models") }) {
		t.Errorf("unequal members: %q", a.Trouble)
	}
}

func TestCheckProposesTheMissingLines(t *testing.T) {
	server := func(rename ...config.Rename) *config.Server { return &config.Server{Name: "glm", Rename: rename} }
	usualOf := func(agents ...string) []Asked {
		var list []Asked
		for _, agent := range agents {
			for _, m := range Usual(agent) {
				list = append(list, Asked{Agent: agent, Model: m})
			}
		}
		return list
	}
	glm := Answer{Listed: true, Models: []Model{{Name: "glm-5"}, {Name: "glm-air"}}}
	tests := []struct {
		name    string
		server  *config.Server
		answer  Answer
		asked   []Asked
		missing []string
		rename  []config.Rename
		trouble int
	}{
		{"nothing served of what is asked", server(), glm, usualOf("claude-code"),
			[]string{"claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-5-5"}, []config.Rename{{Glob: "claude-*haiku*", Name: "glm-air"}, {Glob: "claude-*", Name: "glm-5"}}, 0},
		{"codex too", server(), glm, usualOf("codex"), []string{"gpt-5", "gpt-5-codex"}, []config.Rename{{Glob: "gpt-*", Name: "glm-5"}}, 0},
		{"open models of another family", server(), Answer{Listed: true, Models: []Model{{Name: "gpt-oss:20b"}}}, usualOf("codex"),
			[]string{"gpt-5", "gpt-5-codex"}, []config.Rename{{Glob: "gpt-*", Name: "gpt-oss:20b"}}, 0},
		{"renamed already", server(config.Rename{Glob: "claude-*", Name: "glm-5"}), glm, usualOf("claude-code"), nil, nil, 0},
		{"renamed to what is not there", server(config.Rename{Glob: "claude-*", Name: "glm-4"}), glm, usualOf("claude-code"), nil, nil, 1},
		{"one name seen", server(config.Rename{Glob: "claude-*opus*", Name: "glm-5"}), glm,
			[]Asked{{Agent: "claude-code", Model: "claude-opus-4-8", Seen: true}, {Agent: "claude-code", Model: "claude-haiku-4-5", Seen: true}},
			[]string{"claude-haiku-4-5"}, []config.Rename{{Glob: "claude-*haiku*", Name: "glm-air"}, {Glob: "claude-*", Name: "glm-5"}}, 0},
		{"the family is served", server(), Answer{Listed: true, Models: []Model{{Name: "claude-opus-7"}}}, usualOf("claude-code"), nil, nil, 0},
		{"a seen name is missing in its family", server(), Answer{Listed: true, Models: []Model{{Name: "claude-opus-7"}}},
			[]Asked{{Agent: "claude-code", Model: "claude-opus-4-8", Seen: true}}, []string{"claude-opus-4-8"}, []config.Rename{{Glob: "claude-opus-4-8", Name: "claude-opus-7"}}, 0},
		{"vendors in front", server(), Answer{Listed: true, Models: []Model{{Name: "anthropic/claude-opus-5.5"}, {Name: "anthropic/claude-haiku-5.5"}, {Name: "z-ai/glm-5"}}},
			usualOf("claude-code"), []string{"claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-5-5"},
			[]config.Rename{{Glob: "claude-*haiku*", Name: "anthropic/claude-haiku-5.5"}, {Glob: "claude-*", Name: "anthropic/claude-opus-5.5"}}, 0},
		{"a dated name", server(), Answer{Listed: true, Models: []Model{{Name: "claude-opus-5-5-20260901"}}},
			[]Asked{{Agent: "claude-code", Model: "claude-opus-5-5", Seen: true}}, nil, nil, 0},
		{"any name will do", server(), Answer{Listed: true, AnyName: true, Models: []Model{{Name: "local.gguf"}}}, usualOf("claude-code"), nil, nil, 0},
		{"no list", server(), Answer{}, usualOf("claude-code"), nil, nil, 0},
		{"a wildcard in the list", server(), Answer{Listed: true, Models: []Model{{Name: "claude-*"}}}, usualOf("claude-code"), nil, nil, 0},
		{"the agent's format is not spoken", server(), Answer{FormatsTold: true, Formats: []outline.Format{outline.ChatCompletions}}, usualOf("claude-code", "codex"), nil, nil, 2},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			got := Check(c.server, &c.answer, c.asked)
			if !slices.Equal(got.Missing, c.missing) {
				t.Errorf("missing %q, want %q", got.Missing, c.missing)
			}
			if !slices.Equal(got.Rename, c.rename) {
				t.Errorf("rename %v, want %v", got.Rename, c.rename)
			}
			if len(got.Trouble) != c.trouble {
				t.Errorf("trouble %q, want %d lines", got.Trouble, c.trouble)
			}
			if len(got.All) != len(c.asked) {
				t.Errorf("%d names told, want all %d", len(got.All), len(c.asked))
			}
		})
	}
}

// A server that wants no key takes none: what could not be had is not said to
// be accepted.
func TestAKeyThatIsNotThereIsNotAccepted(t *testing.T) {
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"data":[{"id":"glm-5"}]}`)
	}))
	defer open.Close()
	server := &config.Server{Name: "glm", URL: open.URL, Key: config.KeySource{Kind: config.KeyEnv, Env: "NOT_SET"}}
	for _, missing := range []error{nil, errors.New("the variable is not set")} {
		a := Asker{Server: server, KeyErr: missing, Transport: func(*url.URL) (http.RoundTripper, error) { return http.DefaultTransport, nil }}
		if got := a.Ask(t.Context()).Key; (got == KeyAccepted) != (missing == nil) {
			t.Errorf("key missing: %v: it is told to be %v", missing, got)
		}
	}
	none := Asker{Server: &config.Server{Name: "glm", URL: open.URL, Key: config.KeySource{Kind: config.KeyNone}},
		Transport: func(*url.URL) (http.RoundTripper, error) { return http.DefaultTransport, nil }}
	if got := none.Ask(t.Context()).Key; got == KeyAccepted {
		t.Error("a server without a key is told to accept it")
	}
}
