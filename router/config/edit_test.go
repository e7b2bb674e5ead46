package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const commented = `# my servers
listen: 127.0.0.1:4780   # here

servers:
  # the big one
  glm:
    url: https://glm.example.com  # rented
    key: stored                   # see keys.json
    rename:
      # small ones
      "claude-*haiku*": glm-air   # cheap
      "claude-*": glm-5
    # under glm
  # the lab
  lab:
    key: none
    pool: [{url: http://gpu1:8000, capacity: 16}, {url: http://gpu2:8000}] # two
# choices
agents:
  claude-code: {server: glm, upstream: https://api.anthropic.com} # work
  codex:       {server: ""}          # "" = not routed
  opencode:
    server: lab   # at home
# the end
`

func TestEditsChangeTheirLinesOnly(t *testing.T) {
	glm := Server{Name: "glm", URL: "https://glm.example.com", Key: KeySource{Kind: KeyStored},
		Rename: []Rename{{"claude-*haiku*", "glm-air"}, {"claude-*", "glm-5"}}}
	for _, c := range []struct {
		name     string
		edit     func(data []byte) ([]byte, error)
		old, new string // what one place of the text becomes
	}{
		{"use", func(d []byte) ([]byte, error) { return UseServer(d, "codex", "lab") },
			`codex:       {server: ""} `, `codex:       {server: lab} `},
		{"use in a block", func(d []byte) ([]byte, error) { return UseServer(d, "opencode", "glm") },
			"server: lab   # at home", "server: glm   # at home"},
		{"use for a new agent", func(d []byte) ([]byte, error) { return UseServer(d, "aider", "glm") },
			"at home\n", "at home\n  aider: {server: glm}\n"},
		{"reset", func(d []byte) ([]byte, error) { return ResetServer(d, "claude-code") },
			"{server: glm, upstream", `{server: "", upstream`},
		{"reset what is not routed", func(d []byte) ([]byte, error) { return ResetServer(d, "codex") }, "", ""},
		{"reset who is not there", func(d []byte) ([]byte, error) { return ResetServer(d, "aider") }, "", ""},
		{"add the same", func(d []byte) ([]byte, error) { return AddServer(d, glm) }, "", ""},
		{"rotate the key", func(d []byte) ([]byte, error) {
			s := glm
			s.Key = KeySource{Kind: KeyEnv, Env: "GLM_KEY"}
			return AddServer(d, s)
		}, "key: stored                   #", "key: env:GLM_KEY                   #"},
		{"key by command", func(d []byte) ([]byte, error) {
			s := glm
			s.Key = KeySource{Kind: KeyCommand, Command: []string{"pass", "show", "glm"}}
			return AddServer(d, s)
		}, "key: stored                   #", "key: command:[pass, show, glm]                   #"},
		{"key by odd command", func(d []byte) ([]byte, error) {
			s := glm
			s.Key = KeySource{Kind: KeyCommand, Command: []string{"pass", "it's: #1, \"x\"", ""}}
			return AddServer(d, s)
		}, "key: stored                   #", `key: {command: [pass, 'it''s: #1, "x"', ""]}                   #`},
		{"new fields", func(d []byte) ([]byte, error) {
			s := glm
			s.StripV1, s.FirstByteTimeout = true, 90*time.Second
			return AddServer(d, s)
		}, "    # under glm\n", "    v1: strip\n    first_byte_timeout: 1m30s\n    # under glm\n"},
		{"new server", func(d []byte) ([]byte, error) {
			return AddServer(d, Server{Name: "desk", URL: "http://127.0.0.1:8080/", Key: KeySource{Kind: KeyNone}, Rename: []Rename{{"*", "local"}}})
		}, "# two\n", "# two\n  desk:\n    url: http://127.0.0.1:8080\n    key: none\n    rename: {\"*\": local}\n"},
		{"new pool", func(d []byte) ([]byte, error) {
			return AddServer(d, Server{Name: "p", Pool: []Member{{URL: "http://a", Capacity: 2, Cost: 1.5}, {URL: "http://[::1]:8"}}, Headroom: 3})
		}, "# two\n", "# two\n  p:\n    key: none\n    pool: [{url: http://a, capacity: 2, cost: 1.5}, {url: \"http://[::1]:8\"}]\n    headroom: 3\n"},
		{"remove a server", func(d []byte) ([]byte, error) { return RemoveServer(d, "lab") }, "", ""},
		{"remove who is not there", func(d []byte) ([]byte, error) { return RemoveServer(d, "nobody") }, "", ""},
		{"rename a line", func(d []byte) ([]byte, error) {
			return setRename(d, "glm", []Rename{{"claude-*haiku*", "glm-flash"}, {"claude-*", "glm-5"}})
		}, "glm-air   # cheap", "glm-flash   # cheap"},
		{"rename between", func(d []byte) ([]byte, error) {
			return setRename(d, "glm", []Rename{{"claude-*haiku*", "glm-air"}, {"claude-opus*", "glm-5x"}, {"claude-*", "glm-5"}})
		}, `      "claude-*": glm-5`, "      \"claude-opus*\": glm-5x\n      \"claude-*\": glm-5"},
		{"rename fewer", func(d []byte) ([]byte, error) {
			return setRename(d, "glm", []Rename{{"claude-*haiku*", "glm-air"}})
		}, "      \"claude-*\": glm-5\n    # under glm\n", "    # under glm\n"},
		{"rename others", func(d []byte) ([]byte, error) {
			return setRename(d, "lab", []Rename{{"gpt-*", "qwen"}})
		}, "# two\n", "# two\n    rename: {\"gpt-*\": qwen}\n"},
		{"upstream", func(d []byte) ([]byte, error) { return SetUpstream(d, "codex", "", "none") },
			`{server: ""} `, `{server: "", upstream: none} `},
		{"upstream of a provider", func(d []byte) ([]byte, error) {
			return SetUpstream(d, "opencode", "anthropic", "https://gw.example.com/")
		}, "# at home\n", "# at home\n    upstream: {anthropic: https://gw.example.com}\n"},
		{"usual upstream", func(d []byte) ([]byte, error) { return SetUpstream(d, "claude-code", "", "") },
			"{server: glm, upstream: https://api.anthropic.com}", "{server: glm}"},
	} {
		want := commented
		switch {
		case c.name == "remove a server":
			from, to := strings.Index(want, "  lab:"), strings.Index(want, "# choices")
			want = strings.Replace(want[:from]+want[to:], "server: lab   #", `server: ""   #`, 1)
		case c.old != "":
			want = strings.Replace(want, c.old, c.new, 1)
		}
		got, err := c.edit([]byte(commented))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", c.name, err, firstDifference(string(got), want))
			continue
		}
		again, err := c.edit(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: not the same when done again: %v\n%s", c.name, err, firstDifference(string(again), string(got)))
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("from line %d:\ngot  %q\nwant %q", i+1, g[min(i, len(g)):min(i+4, len(g))], w[min(i, len(w)):min(i+4, len(w))])
		}
	}
	return "equal"
}

func TestEditsOfBareAndOddFiles(t *testing.T) {
	add := func(d []byte) ([]byte, error) {
		return AddServer(d, Server{Name: "a", URL: "http://a", Key: KeySource{Kind: KeyNone}})
	}
	use := func(d []byte) ([]byte, error) { return UseServer(d, "codex", "a") }
	drop := func(d []byte) ([]byte, error) { return RemoveServer(d, "a") }
	block := "servers:\n  a:\n    url: http://a\n    key: none\n"
	for _, c := range []struct {
		name, before, after string
		edit                func([]byte) ([]byte, error)
	}{
		{"empty", "", block, add},
		{"comment, no line end", "# mine", "# mine\n" + block, add},
		{"bom", "\ufeff", "\ufeff" + block, add},
		{"windows", "listen: 127.0.0.1:1\r\n", "listen: 127.0.0.1:1\r\n" + strings.ReplaceAll(block, "\n", "\r\n"), add},
		{"no line end", "titles: off", "titles: off\n" + block, add},
		{"no value", "servers:  # none yet\ntitles: off\n", "servers:  # none yet\n  a:\n    url: http://a\n    key: none\ntitles: off\n", add},
		{"null", "servers: ~\n", block, add},
		{"braces", "servers: {}  # none yet\n", "servers:  # none yet\n  a:\n    url: http://a\n    key: none\n", add},
		{"braces at the end", "servers: {}", "servers:\n  a:\n    url: http://a\n    key: none\n", add},
		{"flow", "{servers: {b: {url: http://b}}}\n", "{servers: {b: {url: http://b}, a: {url: http://a, key: none}}}\n", add},
		{"flow over lines", "servers: {\n  b: {url: http://b}, # b\n}\n", "servers: {\n  b: {url: http://b}, a: {url: http://a, key: none}, # b\n}\n", add},
		{"four spaces", "servers:\n    b:\n        url: http://b\n", "servers:\n    b:\n        url: http://b\n    a:\n        url: http://a\n        key: none\n", add},
		{"first agent", block, block + "agents:\n  codex: {server: a}\n", use},
		{"agent without a value", block + "agents:\n  codex: # soon\n", block + "agents:\n  codex: {server: a} # soon\n", use},
		{"server without a value", block + "agents:\n  codex:\n    server: # soon\n", block + "agents:\n  codex:\n    server: a # soon\n", use},
		{"server on its own line", block + "agents:\n  codex:\n    server:\n      \"\"\n", block + "agents:\n  codex:\n    server: a\n", use},
		{"quoted keys", "'servers':\n  \"a\" :\n    url: http://a\n\"agents\" : {'codex' : {\"server\" : ''}}\n",
			"'servers':\n  \"a\" :\n    url: http://a\n\"agents\" : {'codex' : {\"server\" : a}}\n", use},
		{"remove the only one", block + "# after\n", "servers:\n# after\n", drop},
		{"remove from braces", "servers: {a: {url: http://a}, b: {url: http://b}}\n", "servers: {b: {url: http://b}}\n", drop},
		{"remove the last from braces", "servers: {b: {url: http://b}, a: {url: http://a}}\n", "servers: {b: {url: http://b}}\n", drop},
		{"remove all from braces", "servers: { a: {url: http://a}, }\n", "servers: { }\n", drop},
		{"remove beside a comment", "servers: {b: {url: http://b}, # of b\n  a: {url: http://a}}\n", "servers: {b: {url: http://b}, # of b\n  }\n", drop},
		{"comment under a section", "servers:\n  # mine\ntitles: off\n", "servers:\n  # mine\n  a:\n    url: http://a\n    key: none\ntitles: off\n", add},
		{"single quotes", "servers: {'a': {url: http://a}}\nagents: {codex: {upstream: 'http://it''s'}}\n", "servers: {'a': {url: http://a}}\nagents: {codex: {upstream: 'http://it''s', server: a}}\n", use},
		{"long text", "servers:\n  a:\n    url: >-\n      http://a\n\n  b: {url: http://b}\n", "servers:\n\n  b: {url: http://b}\n", drop},
	} {
		got, err := c.edit([]byte(c.before))
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\ngot  %q\nwant %q", c.name, err, got, c.after)
		}
	}
}

func TestEditsRefuseWhatTheyCannotDoSafely(t *testing.T) {
	use := func(d string) error { _, err := UseServer([]byte(d), "codex", "a"); return err }
	add := func(s Server) error { _, err := AddServer([]byte(commented), s); return err }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"broken file", use("servers: {a: {ur: x}}"), `config.yaml:1:15: unknown field "ur"; did you mean "url"?`},
		{"anchor", use("servers: {a: {url: http://a}}\nagents:\n  codex: &x\n    server: &y \"\"\n"), ErrLayout.Error()},
		{"unknown server", use(""), `server "a": no such server`},
		{"bad name", add(Server{Name: "own", URL: "http://a"}), `server name "own" is reserved; choose another name`},
		{"bad url", add(Server{Name: "x", URL: "http://a/v1/messages"}), "the URL is a whole endpoint (/v1/messages), not a server's address; write http://a"},
		{"no url", add(Server{Name: "x"}), `server "x" has no url`},
		{"both", add(Server{Name: "x", URL: "http://a", Pool: []Member{{URL: "http://b"}}}), `server "x" has both url and pool`},
		{"comment in the way", func() error {
			_, err := setRename([]byte(commented), "glm", []Rename{{"claude-*", "glm-5"}, {"claude-*haiku*", "glm-air"}})
			return err
		}(), "a comment would be lost"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, c.err, c.want)
		}
	}
	if err := use(""); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v, want ErrNoServer", err)
	}
}

// setRename gives a server other rename lines.
func setRename(data []byte, server string, lines []Rename) ([]byte, error) {
	c, err := Parse("", data)
	if err != nil {
		return nil, err
	}
	s, _ := c.Server(server)
	changed := *s
	changed.Rename = lines
	return AddServer(data, changed)
}

func TestOverKeepsWhatCannotBeSaid(t *testing.T) {
	s := Server{Name: "glm", URL: "http://new", Key: KeySource{Kind: KeyNone}, Rename: []Rename{{"a", "b"}, {"c", "d"}}}
	if got := s.Over(nil); !reflect.DeepEqual(got, s) {
		t.Errorf("over nothing: got %+v, want %+v", got, s)
	}
	old := Server{Name: "glm", Pool: []Member{{URL: "http://old"}}, Headroom: 3, Key: KeySource{Kind: KeyStored}, StripV1: true,
		CAFile: "/ca.pem", Rename: []Rename{{"c", "d"}, {"e", "f"}}}
	want := Server{Name: "glm", URL: "http://new", Key: KeySource{Kind: KeyNone}, StripV1: true,
		CAFile: "/ca.pem", Rename: []Rename{{"c", "d"}, {"e", "f"}, {"a", "b"}}}
	if got := s.Over(&old); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(old.Rename) != 2 || old.URL != "" {
		t.Errorf("the former server was changed: %+v", old)
	}
}
