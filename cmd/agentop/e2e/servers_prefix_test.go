package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"agentop/agents/outline"
	"agentop/router/fakeserver"
	"agentop/router/prefix"
)

// TestPrefixShareWithAndWithoutTheBillingBlock measures what the removal of
// Claude Code's billing block is worth: the share of each request's prompt
// that begins as the request before it did, which is what a server's prefix
// cache can use. The requests are the real client's, as it sent them. The
// table is the one in docs/prefix-cache.md.
func TestPrefixShareWithAndWithoutTheBillingBlock(t *testing.T) {
	fmt.Println("case | order | prompt bytes | equal prefix before | after")
	for _, c := range []struct {
		name string
		env  []string
		play func(p player)
		from int  // the first request that is judged
		long bool // takes over a minute: the client tries what the fake does not have
	}{
		{"turns of one conversation", nil, func(p player) {
			id := p.open("say one")
			p.resume(id, "say two")
			p.resume(id, "say three")
		}, 1, false},
		{"a new conversation after another", nil, func(p player) {
			p.open("say one")
			p.open("tell me about this directory")
		}, 1, false},
		{"turns, client as towards its own upstream", []string{"_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL=1"}, func(p player) {
			id := p.open("say one")
			p.resume(id, "say two")
			p.resume(id, "say three")
		}, 1, true},
	} {
		if c.long && os.Getenv("AGENTOP_TEST_FULL") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.configure(`""`) // not routed: the bodies arrive as the client sent them
			s.restart()
			s.mark()
			c.play(claudePlayer(t, s, c.env...))
			requests := s.since("own")
			if len(requests) <= c.from {
				t.Fatalf("%d requests, want more than %d", len(requests), c.from)
			}
			for _, order := range []string{"system first", "tools first"} {
				before, after, size := shares(t, requests, order, c.from)
				fmt.Printf("%s | %s | %d | %.1f %% | %.1f %%\n", c.name, order, size, 100*before, 100*after)
				if after < before-0.001 || after < 0.5 {
					t.Errorf("%s: the equal prefix is %.3f with the block and %.3f without", order, before, after)
				}
			}
		})
	}
}

// shares is the mean share of the equal prefix over the requests from the
// given one on, with the billing block and without.
func shares(t *testing.T, requests []*fakeserver.Record, order string, from int) (before, after float64, size int) {
	t.Helper()
	var with, without []string
	for _, rec := range requests {
		var o outline.Outline
		o.Scan(outline.Messages, rec.Plain, prefix.Sum)
		if o.Billing == (outline.Span{}) {
			t.Fatalf("request %d has no billing block: %.200s", rec.N, rec.Plain)
		}
		cut := string(rec.Plain[:o.Billing.From]) + string(rec.Plain[o.Billing.To:])
		with = append(with, prompt(t, string(rec.Plain), order))
		without = append(without, prompt(t, cut, order))
	}
	mean := func(list []string) float64 {
		sum := 0.0
		for i := from; i < len(list); i++ {
			sum += float64(equalPrefix(list[i-1], list[i])) / float64(len(list[i]))
		}
		return sum / float64(len(list)-from)
	}
	return mean(with), mean(without), len(with[len(with)-1])
}

func equalPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// prompt is what a server's template makes of a request: system prompt and
// tools in the template's order, then the messages. Cache marks are no text.
func prompt(t *testing.T, body, order string) string {
	t.Helper()
	var q struct {
		System   json.RawMessage   `json:"system"`
		Tools    json.RawMessage   `json:"tools"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatal(err)
	}
	head := texts(t, q.System) + string(q.Tools)
	if order == "tools first" {
		head = string(q.Tools) + texts(t, q.System)
	}
	for _, m := range q.Messages {
		head += texts(t, m)
	}
	return head
}

// texts are the strings of a value in their order, but for cache marks.
func texts(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if len(raw) == 0 {
		return ""
	}
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(string(raw)))
	for {
		token, err := d.Token()
		if err != nil {
			return b.String()
		}
		if s, ok := token.(string); ok && s != "cache_control" && s != "ephemeral" && s != "ttl" && s != "1h" {
			b.WriteString(s + "\n")
		}
	}
}
