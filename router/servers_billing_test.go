package router

import (
	"fmt"
	"strings"
	"testing"

	"agentop/router/config"
	"agentop/router/fakeserver"
)

const billing = "x-anthropic-billing-header: cc_version=2.1.332.bca; cc_entrypoint=cli;"

// TestBillingBlockIsCutOnOtherServers sends every form of system through the
// proxy: the block leaves, and no other byte does.
func TestBillingBlockIsCutOnOtherServers(t *testing.T) {
	block := `{"type":"text","text":"` + billing + `"}`
	rest := `{"type":"text","text":"You are a test.","cache_control":{"type":"ephemeral"}}`
	forms := []struct{ name, system, want string }{
		{"first block", `"system":[` + block + `,` + rest + `],`, `"system":[` + rest + `],`},
		{"first block, spaced", `"system" : [ ` + block + ` , ` + rest + ` ] ,`, `"system" : [  ` + rest + ` ] ,`},
		{"last block", `"system":[` + rest + `,` + block + `],`, `"system":[` + rest + `],`},
		{"only block", `"system":[` + block + `],`, `"system":[],`},
		{"block with text after the line", `"system":[{"type":"text","text":"` + billing + `\nYou are."}],`, `"system":[{"type":"text","text":"You are."}],`},
		{"a string", `"system":"` + billing + `",`, ``},
		{"a string with text after the line", `"system":"` + billing + `\nYou are.",`, `"system":"You are.",`},
		{"escaped", `"system":[{"text":"\u0078-anthropic-billing-header: x","type":"text"},` + rest + `],`, `"system":[` + rest + `],`},
		{"none", `"system":[` + rest + `],`, `"system":[` + rest + `],`},
		{"the words elsewhere", `"system":[{"type":"text","text":"about ` + billing + `"}],`, `"system":[{"type":"text","text":"about ` + billing + `"}],`},
	}
	for _, keep := range []bool{false, true} {
		for _, c := range forms {
			t.Run(fmt.Sprintf("%s/keep %v", c.name, keep), func(t *testing.T) {
				s := fakeserver.New(fakeserver.Options{Name: "it"})
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				r := newRig(t, oneServer, s.URL(), fmt.Sprintf(", keep_billing_block: %v", keep))
				body := func(system string) string {
					return `{"model":"claude-opus-5-5","max_tokens":9,` + system + `"messages":[` + user("hi") + `],"stream":true}`
				}
				r.send("/claude-code/v1/messages", body(c.system), claudeHeader("s1"))
				want := c.want
				if keep {
					want = c.system
				}
				if got := string(s.Records()[0].Body); got != body(want) {
					t.Errorf("the server got\n%s, want\n%s", got, body(want))
				}
			})
		}
	}
}

// TestBillingBlockStaysForAnthropic holds whose servers keep the block.
func TestBillingBlockStaysForAnthropic(t *testing.T) {
	it := &config.Server{Name: "it"}
	for host, want := range map[string]bool{
		"api.anthropic.com": true, "anthropic.com": true, "eu.api.anthropic.com": true,
		"glm.example.com": false, "notanthropic.com": false, "anthropic.com.example.com": false, "127.0.0.1": false,
	} {
		if got := speaksAnthropic(it, host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	// Towards an own upstream nothing is edited, wherever it is.
	own := fakeserver.New(fakeserver.Options{Name: "own"})
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	r := newRig(t, "agents: {claude-code: {server: \"\", upstream: %s}}\n", own.URL())
	body := strings.Replace(claudeBody(user("hi")), `"system":[`, `"system":[{"type":"text","text":"`+billing+`"},`, 1)
	r.send("/claude-code/v1/messages", body, claudeHeader("s1"))
	if got := string(own.Records()[0].Body); got != body {
		t.Errorf("the own upstream got\n%s, want\n%s", got, body)
	}
}

// TestSessionHeader holds what a router behind is told of a conversation.
func TestSessionHeader(t *testing.T) {
	s := fakeserver.New(fakeserver.Options{Name: "it"})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := newRig(t, `
servers:
  it: {url: %s, key: none, session_header: X-Dynamo-Session-Id}
agents:
  claude-code: {server: it, upstream: none}
  other: {server: it, upstream: none}
`, s.URL())
	first := user("a first turn of a client that names no session")
	bare := claudeHeader("")
	for _, name := range []string{"X-Claude-Code-Session-Id", "X-Claude-Code-Request-Class"} {
		bare.Del(name)
	}
	bare.Set("User-Agent", "some-client/1.0")
	named := claudeHeader("4e96")
	r.send("/claude-code/v1/messages", claudeBody(user("hi")), named)
	r.send("/claude-code/v1/messages", claudeBody(user("hi")+","+assistant("x")+","+user("on")), named)
	r.send("/other/v1/messages", claudeBody(first), bare)
	res, _ := r.send("/other/v1/messages", claudeBody(first+","+assistant("an answer")+","+user("on")), bare)
	if got := res.Header.Get(RouteHeader); !strings.Contains(got, "turn=continuation; pin=kept") {
		t.Errorf("route of the nameless conversation's second turn = %q", got)
	}
	records := s.Records()
	var got []string
	for _, rec := range records {
		got = append(got, rec.Header.Get("X-Dynamo-Session-Id"))
	}
	if len(got) != 4 || got[0] != "4e96" || got[1] != "4e96" {
		t.Fatalf("session headers %q, want 4e96 for both turns of the named conversation", got)
	}
	if !strings.HasPrefix(got[2], "px:") || got[3] != got[2] {
		t.Errorf("session headers of the nameless conversation %q, want one derived id", got[2:])
	}
	if strings.ContainsFunc(strings.Join(got, ""), func(c rune) bool { return c < ' ' }) {
		t.Errorf("a control character is in %q", got)
	}
}
