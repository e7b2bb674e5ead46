package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentop/agents/outline"
)

// fixture is one request of a client, as testdata/fixtures/README.md says.
type fixture struct {
	Agent    string   `json:"agent"`
	N        int      `json:"n"`
	Label    string   `json:"label"`
	Accept   []string `json:"accept"`
	Kind     string   `json:"kind"`
	Session  string   `json:"session"`
	Thread   string   `json:"thread"`
	Parent   string   `json:"parent"`
	ForkOf   string   `json:"fork_of"`
	Encoding string   `json:"body_encoding"`
	Request  struct {
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"request"`
}

// fixtureFiles reads every scenario; the map's key is the file's name.
func fixtureFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/fixtures/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	files := make(map[string][]byte, len(names))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}
	return files
}

func decodeFixtures(t testing.TB, name string, data []byte) []fixture {
	t.Helper()
	var rows []fixture
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return rows
}

// request is the fixture as a server receives it: written as HTTP, with its
// headers in the order and the letter case that rng says (nil: sorted, as
// they are), and read again by net/http.
func (f fixture) request(t testing.TB, agent Agent, rng *rand.Rand) Request {
	t.Helper()
	names := make([]string, 0, len(f.Request.Headers))
	for name := range f.Request.Headers {
		if !strings.EqualFold(name, "Host") && !strings.EqualFold(name, "Content-Length") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if rng != nil {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	var wire bytes.Buffer
	fmt.Fprintf(&wire, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", f.Request.Method, f.Request.Path)
	for _, name := range names {
		fmt.Fprintf(&wire, "%s: %s\r\n", randomCase(name, rng), f.Request.Headers[name])
	}
	wire.WriteString("\r\n")
	received, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatalf("row %d: %v", f.N, err)
	}
	r := Request{
		Agent: agent, Method: received.Method, Path: received.URL.EscapedPath(),
		Header: received.Header, Outline: new(outline.Outline),
	}
	if format := BodyFormatOf(r.Method, r.Path); format != outline.NoFormat {
		r.Outline.Scan(format, f.Request.Body, nil)
		if r.Outline.Err != nil {
			t.Fatalf("row %d: scan: %v", f.N, r.Outline.Err)
		}
	}
	return r
}

func randomCase(name string, rng *rand.Rand) string {
	if rng == nil {
		return name
	}
	letters := []byte(name)
	for i := range letters {
		if rng.IntN(2) == 0 {
			letters[i] = bytes.ToUpper(letters[i : i+1])[0]
		} else {
			letters[i] = bytes.ToLower(letters[i : i+1])[0]
		}
	}
	return string(letters)
}

// pathAgent is the agent whose base URL the client of a fixture is given.
func (f fixture) pathAgent() Agent {
	if f.Agent == "claude" {
		return ClaudeCode
	}
	return Agent(f.Agent)
}

// agent is the agent that a fixture is recognised as. On a bare base URL old
// OpenCode cannot be told where it sends no header but its library's, and Qwen
// Code calls itself Claude Code where it speaks Messages.
func (f fixture) agent(bare bool) Agent {
	switch name := f.Request.Headers["User-Agent"]; {
	case bare && strings.HasPrefix(name, "ai-sdk/"):
		return Other
	case bare && strings.HasPrefix(name, "claude-cli/"):
		return ClaudeCode
	}
	return f.pathAgent()
}

// accepts tells whether a turn is what the fixture says. Its label "side"
// covers what is not inference too.
func (f fixture) accepts(turn Turn) bool {
	word := turn.String()
	if turn == NotInference {
		word = "side"
	}
	return word == f.Label || slices.Contains(f.Accept, word)
}

// ids are the session and parent that agentop should see.
func (f fixture) ids() (session, parent string) {
	if f.Thread != "" {
		return f.Thread, f.Session
	}
	if f.ForkOf != "" {
		return f.Session, f.ForkOf
	}
	return f.Session, f.Parent
}

// filler are the words that texts of the fixtures are made of; "do" and
// shorter ones are left out, since marks hold them too.
var filler = strings.Fields("lorem ipsum dolor amet consectetur adipiscing elit eiusmod tempor incididunt labore dolore magna aliqua enim minim veniam quis nostrud")

// rewritten is a fixture file with other ids and other filler text. Equal ids
// and equal words stay equal, so that histories compare as before.
func rewritten(data []byte, rng *rand.Rand) []byte {
	other := map[string]string{}
	for _, word := range filler {
		other[word] = randomWord(rng)
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		end := i
		for end < len(data) && isWordByte(data[end]) {
			end++
		}
		switch {
		case end > i:
			out = append(out, renamed(string(data[i:end]), other, rng)...)
		case data[i] == '\\' && i+1 < len(data): // "\n" before a word is no letter of it
			end = i + 2
			out = append(out, data[i:end]...)
		default:
			end = i + 1
			out = append(out, data[i])
		}
		i = end
	}
	return out
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

// renamed is what a word or the id at its end becomes; other remembers it.
func renamed(word string, other map[string]string, rng *rand.Rand) string {
	const uuidLength = 36
	before, id := "", word
	if len(word) > uuidLength {
		before, id = word[:len(word)-uuidLength], word[len(word)-uuidLength:]
	}
	isUUID := len(id) == uuidLength && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
	switch {
	case isUUID:
	case strings.HasPrefix(word, "ses_"):
		before, id = "ses_", word[len("ses_"):]
	case other[word] != "":
		return other[word]
	default:
		return word
	}
	if other[id] == "" {
		letters := []byte(id)
		for i, c := range letters {
			if c != '-' {
				letters[i] = "0123456789abcdef"[rng.IntN(16)]
			}
		}
		other[id] = string(letters)
	}
	return before + other[id]
}

func randomWord(rng *rand.Rand) string {
	letters := []rune("abcdefghijklmnopqrstuvwxyzäß語")
	word := make([]rune, 2+rng.IntN(9))
	for i := range word {
		word[i] = letters[rng.IntN(len(letters))]
	}
	return string(word)
}
