package preflight

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/credential"
	"agentop/router/fakeserver"
	"agentop/router/preflight/kinds"
)

// plainTransport is what most tests ask with.
func plainTransport(*url.URL) (http.RoundTripper, error) { return &http.Transport{}, nil }

func asker(address string, kind config.KeyKind, key string) Asker {
	return Asker{
		Server: &config.Server{Name: "glm", URL: address, Key: config.KeySource{Kind: kind, Env: "GLM_KEY"}},
		Key:    credential.NewSecret(key), Transport: plainTransport, Limit: time.Minute, Agent: "agentop/test",
	}
}

var outlineFormat = map[fakeserver.Format]outline.Format{
	fakeserver.Messages: outline.Messages, fakeserver.Responses: outline.Responses, fakeserver.ChatCompletions: outline.ChatCompletions,
}

func TestAskEveryKind(t *testing.T) {
	for _, k := range kinds.All() {
		t.Run(k.Name, func(t *testing.T) {
			s := k.Start()
			defer s.Close()
			a := asker(k.URL(s.Server), config.KeyStored, kinds.Key).Ask(context.Background())
			if !a.Up || a.Key != KeyAccepted {
				t.Errorf("up %v, key %q, want up and accepted", a.Up, a.Key)
			}
			var models []string
			for _, m := range a.Models {
				models = append(models, m.Name)
			}
			if !slices.Equal(models, k.Models) {
				t.Errorf("models %q, want %q", models, k.Models)
			}
			if got := a.Context(); got != k.Context {
				t.Errorf("context %d, want %d", got, k.Context)
			}
			var want []outline.Format
			for _, f := range k.Formats {
				want = append(want, outlineFormat[f])
			}
			if !slices.Equal(a.Formats, want) || !a.FormatsTold {
				t.Errorf("formats %v (told %v), want %v", a.Formats, a.FormatsTold, want)
			}
			if a.AnyName != k.AnyName {
				t.Errorf("any name %v, want %v", a.AnyName, k.AnyName)
			}
			if n := s.Fake.Arrivals(); n != 0 {
				t.Errorf("%d requests reached the models, want none: %q", n, s.Asked())
			}
			wantTrouble := 0
			if k.OnlyBearer && slices.Contains(k.Formats, fakeserver.Messages) {
				wantTrouble = 1 // that x-api-key is not looked at
			}
			if k.OnlyPlain {
				wantTrouble = 1 // that it is looked at alone
			}
			if len(a.Trouble) != wantTrouble {
				t.Errorf("trouble %q, want %d lines", a.Trouble, wantTrouble)
			}
		})
	}
}

func TestAskWithAWrongKey(t *testing.T) {
	for _, k := range kinds.All() {
		t.Run(k.Name, func(t *testing.T) {
			s := k.Start()
			defer s.Close()
			a := asker(k.URL(s.Server), config.KeyStored, "sk-fake-wrong").Ask(context.Background())
			want := KeyRefused
			if k.IgnoresKey {
				want = KeyAccepted
			}
			if a.Key != want {
				t.Errorf("key %q, want %q", a.Key, want)
			}
			if k.IgnoresKey {
				return
			}
			line := "glm: it refuses the key; give it the right one: `agentop server add glm " + k.URL(s.Server) + "`"
			if len(a.Trouble) != 1 || a.Trouble[0] != line {
				t.Errorf("trouble %q, want %q", a.Trouble, line)
			}
			for _, text := range a.Trouble {
				if strings.Contains(text, "sk-fake") {
					t.Errorf("a key is in %q", text)
				}
			}
		})
	}
}

func TestEveryKindCitesItsSource(t *testing.T) {
	for _, k := range kinds.All() {
		if len(k.Sources) == 0 {
			t.Errorf("%s cites no source", k.Name)
		}
	}
}

// TestFirstTokenOfEveryKind holds that the one question that costs something
// generates once.
func TestFirstTokenOfEveryKind(t *testing.T) {
	for _, k := range kinds.All() {
		t.Run(k.Name, func(t *testing.T) {
			s := k.Start()
			defer s.Close()
			ask := asker(k.URL(s.Server), config.KeyStored, kinds.Key)
			a := ask.Ask(context.Background())
			speed := ask.FirstToken(context.Background(), k.Models[0], a.Formats)
			if k.OnlyBearer && speed.Error != "" {
				t.Errorf("error %q", speed.Error)
			}
			if speed.Error != "" || speed.First <= 0 {
				t.Errorf("first token %v, error %q", speed.First, speed.Error)
			}
			if n := s.Fake.Arrivals(); n != 1 {
				t.Errorf("%d requests reached the models, want 1", n)
			}
			if rec := s.Fake.Records()[0]; !strings.Contains(string(rec.Body), `tokens":1`) {
				t.Errorf("the request was %s, want one of a single token", rec.Body)
			}
		})
	}
}
