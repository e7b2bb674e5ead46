package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
			return SetRename(d, "glm", []Rename{{"claude-*haiku*", "glm-flash"}, {"claude-*", "glm-5"}})
		}, "glm-air   # cheap", "glm-flash   # cheap"},
		{"rename between", func(d []byte) ([]byte, error) {
			return SetRename(d, "glm", []Rename{{"claude-*haiku*", "glm-air"}, {"claude-opus*", "glm-5x"}, {"claude-*", "glm-5"}})
		}, `      "claude-*": glm-5`, "      \"claude-opus*\": glm-5x\n      \"claude-*\": glm-5"},
		{"rename fewer", func(d []byte) ([]byte, error) {
			return SetRename(d, "glm", []Rename{{"claude-*haiku*", "glm-air"}})
		}, "      \"claude-*\": glm-5\n    # under glm\n", "    # under glm\n"},
		{"rename others", func(d []byte) ([]byte, error) {
			return SetRename(d, "lab", []Rename{{"gpt-*", "qwen"}})
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
			_, err := SetRename([]byte(commented), "glm", []Rename{{"claude-*", "glm-5"}, {"claude-*haiku*", "glm-air"}})
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

// TestEditsKeepWhatTheyDoNotMean makes files of many layouts and edits them
// at random. Each edit must mean what it says, keep every comment, and leave
// every line that it does not own; and undoing it must restore the meaning.
func TestEditsKeepWhatTheyDoNotMean(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	refused := 0
	const rounds = 400
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		data := []byte(randomFile(r))
		before, err := Parse("config.yaml", data)
		if err != nil {
			t.Fatalf("seed %d/%d: the generator wrote a bad file: %v\n%s", seed, round, err, data)
		}
		name, do, undo := randomEdit(r, before)
		after, err := do(data)
		if errors.Is(err, ErrLayout) {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d/%d: %s: %v\n%s", seed, round, name, err, data)
		}
		checkComments(t, name, data, after)
		most := 5
		if name == "remove" {
			most = 25 // a whole server with its comments, and its agents' lines
		}
		if lost := linesLost(data, after); lost > most {
			t.Errorf("seed %d/%d: %s changed %d lines\n%s\n%s", seed, round, name, lost, data, after)
		}
		if again, err := do(after); err != nil || !bytes.Equal(again, after) {
			t.Errorf("seed %d/%d: %s is not the same again: %v\n%s\n%s", seed, round, name, err, after, again)
		}
		back, err := undo(after)
		if err != nil {
			t.Fatalf("seed %d/%d: undo %s: %v\n%s", seed, round, name, err, after)
		}
		if got, err := Parse("config.yaml", back); err != nil || !sameMeaning(got, before) {
			t.Errorf("seed %d/%d: %s and its undo: %v\ngot  %+v\nwant %+v", seed, round, name, err, got, before)
		}
	}
	if refused > rounds/10 {
		t.Errorf("%d of %d edits were refused", refused, rounds)
	}
}

// sameMeaning takes an agent without a choice for one that is not there, and
// servers in any order.
func sameMeaning(a, b *Config) bool {
	norm := func(c *Config) *Config {
		c = c.clone()
		slices.SortFunc(c.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
		maps.DeleteFunc(c.Agents, func(_ string, c Choice) bool {
			return c.Server == "" && !c.UpstreamNone && c.Upstream == nil
		})
		return c
	}
	return Equal(norm(a), norm(b))
}

func checkComments(t *testing.T, name string, before, after []byte) {
	t.Helper()
	if strings.HasPrefix(name, "remove") { // a removed server's own comments go with it
		return
	}
	for _, word := range strings.Fields(string(before)) {
		if strings.HasPrefix(word, "#c") && !bytes.Contains(after, []byte(word)) {
			t.Errorf("%s lost the comment %s\n%s\n%s", name, word, before, after)
		}
	}
}

// linesLost counts the lines of before that after does not have in order.
func linesLost(before, after []byte) int {
	b, a := bytes.Split(before, []byte("\n")), bytes.Split(after, []byte("\n"))
	row := make([]int, len(a)+1)
	for i := range b {
		prev := 0
		for j := range a {
			keep := row[j+1]
			if bytes.Equal(b[i], a[j]) {
				row[j+1] = prev + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			prev = keep
		}
	}
	return len(b) - row[len(a)]
}

func randomEdit(r *rand.Rand, c *Config) (name string, do, undo func([]byte) ([]byte, error)) {
	server := c.Servers[r.IntN(len(c.Servers))]
	agent := []string{"claude-code", "codex", "opencode", "aider"}[r.IntN(4)]
	switch r.IntN(5) {
	case 0:
		fresh := Server{Name: "fresh", URL: "http://fresh", Key: KeySource{Kind: KeyStored}, Rename: []Rename{{"a*", "b"}}}
		return "add", func(d []byte) ([]byte, error) { return AddServer(d, fresh) },
			func(d []byte) ([]byte, error) { return RemoveServer(d, "fresh") }
	case 1:
		was := c.Agents[agent].Server
		return "use", func(d []byte) ([]byte, error) { return UseServer(d, agent, server.Name) },
			func(d []byte) ([]byte, error) {
				if was == "" {
					return ResetServer(d, agent)
				}
				return UseServer(d, agent, was)
			}
	case 2:
		changed := server
		changed.Key = KeySource{Kind: KeyCommand, Command: []string{"x", "y z", "#"}}
		changed.StripV1, changed.KeepBillingBlock = !server.StripV1, !server.KeepBillingBlock
		return "change", func(d []byte) ([]byte, error) { return AddServer(d, changed) },
			func(d []byte) ([]byte, error) { return AddServer(d, server) }
	case 3:
		lines := append([]Rename{{"new-?", "n"}}, server.Rename...)
		return "rename", func(d []byte) ([]byte, error) { return SetRename(d, server.Name, lines) },
			func(d []byte) ([]byte, error) { return SetRename(d, server.Name, server.Rename) }
	default:
		users := c.AgentsOf(server.Name)
		return "remove", func(d []byte) ([]byte, error) { return RemoveServer(d, server.Name) },
			func(d []byte) ([]byte, error) {
				d, err := AddServer(d, server)
				for _, a := range users {
					if err == nil {
						d, err = UseServer(d, a, server.Name)
					}
				}
				return d, err
			}
	}
}

// randomFile writes a valid configuration in a random layout; every comment
// is one word that begins with #c.
func randomFile(r *rand.Rand) string {
	w := &fileWriter{r: r, nl: []string{"\n", "\n", "\n", "\r\n"}[r.IntN(4)], step: 2 + r.IntN(3)}
	names := []string{"glm", "lab", "b-3", "x.y", "1e3"}[:1+r.IntN(5)]
	sections := []func(){
		func() { w.servers(names) },
		func() { w.agents(names) },
		func() { w.line(0, "titles: "+[]string{"on", "off", `"yes"`}[r.IntN(3)]) },
		func() { w.line(0, "max_body: 3 MB") },
	}
	r.Shuffle(len(sections), func(i, j int) { sections[i], sections[j] = sections[j], sections[i] })
	for _, write := range sections {
		write()
	}
	if r.IntN(4) == 0 {
		return strings.TrimSuffix(w.b.String(), w.nl)
	}
	return w.b.String()
}

type fileWriter struct {
	r        *rand.Rand
	b        strings.Builder
	nl       string
	step     int
	comments int
}

func (w *fileWriter) comment() string {
	w.comments++
	return fmt.Sprintf("#c%d\u00e9,{\"'", w.comments)
}

// line writes a line, perhaps with comments around it and an empty line.
func (w *fileWriter) line(depth int, s string) {
	pad := strings.Repeat(" ", depth*w.step)
	if w.r.IntN(5) == 0 {
		w.b.WriteString(pad + w.comment() + w.nl)
	}
	if w.r.IntN(8) == 0 {
		w.b.WriteString(w.nl)
	}
	w.b.WriteString(pad + s)
	if w.r.IntN(4) == 0 {
		w.b.WriteString("  " + w.comment())
	}
	w.b.WriteString(w.nl)
}

func (w *fileWriter) word(s string) string {
	switch w.r.IntN(3) {
	case 0:
		return `"` + s + `"`
	case 1:
		return "'" + s + "'"
	}
	if strings.HasPrefix(s, "*") || s == "" {
		return `"` + s + `"`
	}
	return s
}

func (w *fileWriter) servers(names []string) {
	if w.r.IntN(5) == 0 { // all in braces, over lines
		w.b.WriteString("servers: {" + w.nl)
		for _, n := range names {
			w.line(1, fmt.Sprintf("%s: {url: %s, rename: {%s: m}},", w.word(n), w.word("http://"+n), w.word("a-*")))
		}
		w.b.WriteString("}" + w.nl)
		return
	}
	w.line(0, "servers:")
	for _, n := range names {
		if w.r.IntN(3) == 0 {
			w.line(1, fmt.Sprintf("%s: {v1: %s, url: %s}", w.word(n), w.word("strip"), w.word("http://"+n+"/p")))
			continue
		}
		w.line(1, w.word(n)+":")
		w.fields(n)
	}
}

func (w *fileWriter) fields(name string) {
	fields := []func(){
		func() { w.line(2, "key: "+w.word("stored")) },
		func() { w.line(2, "keep_billing_block: true") },
		func() { w.line(2, "v1:") },
		func() { w.line(2, fmt.Sprintf("rename: {%s: m-1, %s: m-2}", w.word("*x*"), w.word("c-?"))) },
		func() {
			w.line(2, "rename:")
			w.line(3, w.word("*x*")+": "+w.word("m-1"))
			w.line(3, w.word("*y*")+": "+w.word("m-2"))
		},
	}
	if w.r.IntN(2) == 0 {
		fields = append(fields[:3], fields[4])
	} else {
		fields = fields[:4]
	}
	fields = fields[w.r.IntN(2):]
	if w.r.IntN(4) == 0 {
		fields = append(fields, func() { w.line(2, "pool: [{url: http://m1, capacity: 4}, {url: http://m2}]") })
	} else {
		fields = append(fields, func() { w.line(2, "url: "+w.word("https://"+name+".example.com")) })
	}
	w.r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	for _, write := range fields {
		write()
	}
}

func (w *fileWriter) agents(names []string) {
	w.line(0, "agents:")
	for _, a := range []string{"claude-code", "codex", "opencode"} {
		server := append(names, "")[w.r.IntN(len(names)+1)]
		switch w.r.IntN(4) {
		case 0:
			w.line(1, fmt.Sprintf("%s: {server: %s, upstream: none}", a, w.word(server)))
		case 1:
			w.line(1, a+":")
			w.line(2, "server: "+w.word(server))
		case 2:
			w.line(1, a+":   { upstream: http://up }")
		}
	}
}
