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
		return "rename", func(d []byte) ([]byte, error) { return setRename(d, server.Name, lines) },
			func(d []byte) ([]byte, error) { return setRename(d, server.Name, server.Rename) }
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
