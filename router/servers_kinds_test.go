package router

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentop/router/fakeserver"
	"agentop/router/preflight/kinds"
)

// kindConfig routes all agents to one server, with a rename line for each
// name that they ask for.
const kindConfig = `
servers:
  it: {url: %s, key: stored, rename: {"claude-*": %q, "gpt-*": %q, "some-*": %q}}
agents:
  claude-code: {server: it, upstream: none}
  codex: {server: it, upstream: none}
  opencode: {server: it, upstream: none}
`

var formatOfTalk = map[string]fakeserver.Format{
	"messages": fakeserver.Messages, "responses": fakeserver.Responses, "chat": fakeserver.ChatCompletions,
}

// TestConversationWithEveryKind holds a conversation of two turns in each
// format that each kind of server speaks.
func TestConversationWithEveryKind(t *testing.T) {
	for _, k := range kinds.All() {
		for _, c := range talks {
			if !slices.Contains(k.Formats, formatOfTalk[c.format]) {
				continue
			}
			t.Run(k.Name+"/"+c.format, func(t *testing.T) {
				s := k.Start()
				defer s.Close()
				r := newRig(t, kindConfig, k.URL(s.Server), k.Models[0], k.Models[0], k.Models[0])
				r.store("it", kinds.Key)
				header := c.header("s1")
				if k.OnlyBearer { // then a login or ANTHROPIC_AUTH_TOKEN is wanted
					header.Del("X-Api-Key")
					header.Set("Authorization", "Bearer sk-fake-client")
				}
				turns := []string{"hello there"}
				for n, want := range []string{"turn=opening; pin=new; server=it", "turn=continuation; pin=kept; server=it"} {
					res, text := r.send(c.path, c.body(c.model, turns...), header)
					if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get(RouteHeader), want) {
						t.Fatalf("turn %d: status %d, route %q, body %.200s", n+1, res.StatusCode, res.Header.Get(RouteHeader), text)
					}
					turns = append(turns, "an answer that is long enough to be a mark of its own", "go on")
				}
				for _, rec := range s.Fake.Records() {
					if rec.Model != k.Models[0] {
						t.Errorf("the server was asked for %q, want %q", rec.Model, k.Models[0])
					}
					if strings.Contains(fmt.Sprint(rec.Header), "sk-fake-client") {
						t.Errorf("the agent's own credential reached the server: %v", rec.Header)
					}
				}
				if n := s.Fake.Arrivals(); n != 2 {
					t.Errorf("the server got %d requests, want 2", n)
				}
			})
		}
	}
}

// TestKindsErrorsPassUntouched sends each kind what it refuses: the client
// gets the server's own words, and a model that was refused is noted.
func TestKindsErrorsPassUntouched(t *testing.T) {
	for _, k := range kinds.All() {
		if k.AnyName {
			continue
		}
		for _, c := range talks {
			if !slices.Contains(k.Formats, formatOfTalk[c.format]) {
				continue
			}
			t.Run(k.Name+"/"+c.format, func(t *testing.T) {
				s := k.Start()
				defer s.Close()
				r := newRig(t, kindConfig, k.URL(s.Server), "no-such-model", "no-such-model", "no-such-model")
				r.store("it", kinds.Key)
				header := c.header("s1")
				if k.OnlyBearer {
					header.Del("X-Api-Key")
					header.Set("Authorization", "Bearer sk-fake-client")
				}
				body := c.body(c.model, "hello")
				res, text := r.send(c.path, body, header)
				want := k.Refusal(s, strings.Replace(body, c.model, "no-such-model", 1), formatOfTalk[c.format])
				if res.StatusCode != want.Status || text != want.Body {
					t.Errorf("answer %d %s, want the server's own %d %s", res.StatusCode, text, want.Status, want.Body)
				}
				refused := r.router.Refused("it")
				if len(refused) != 1 || refused[0].Asked != c.model || refused[0].Sent != "no-such-model" {
					t.Fatalf("refused models %+v, want %s", refused, c.model)
				}

				// The line is corrected: the same conversation goes on.
				r.configure(kindConfig, k.URL(s.Server), k.Models[0], k.Models[0], k.Models[0])
				res, text = r.send(c.path, body, header)
				if res.StatusCode != http.StatusOK {
					t.Errorf("after the correction: %d %s", res.StatusCode, text)
				}
				if refused := r.router.Refused("it"); len(refused) != 0 {
					t.Errorf("refused models after the correction: %+v", refused)
				}
			})
		}
	}
}
