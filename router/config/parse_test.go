package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const whole = `listen: 127.0.0.1:4780            # also bound on [::1]
servers:
  glm:
    url: https://glm.example.com/  # a path prefix is allowed
    key: stored
    rename: {"claude-*haiku*": glm-air, "claude-*": glm-5}
    v1: keep
    keep_billing_block: false
    session_header: X-Dynamo-Session-Id
  lab:
    key: none
    pool: [{url: http://gpu1:8000, capacity: 16}, {url: http://gpu2:8000, capacity: 16, cost: 2}]
    headroom: 3
  far:
    url: "  https://h.example/api/v4  "
    key: command:[pass, "show it", glm]
    v1: strip
    ca_file: ~/ca.pem
    insecure_skip_verify: on
    first_byte_timeout: 90s
agents:
  claude-code: {server: glm, upstream: https://api.anthropic.com}
  codex:       {server: ""}
  opencode:    {server: lab, upstream: none}
  aider:
max_body: 64 MB
titles: off
token: 0123456789abcdef
`

func TestParseReadsEveryField(t *testing.T) {
	got, err := Parse("config.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Listen: "127.0.0.1:4780", MaxBody: 64 << 20, Titles: false, Token: "0123456789abcdef",
		Servers: []Server{
			{Name: "glm", URL: "https://glm.example.com", Key: KeySource{Kind: KeyStored},
				Rename:        []Rename{{"claude-*haiku*", "glm-air"}, {"claude-*", "glm-5"}},
				SessionHeader: "x-dynamo-session-id"},
			{Name: "lab", Key: KeySource{Kind: KeyNone}, Headroom: 3, Pool: []Member{
				{Name: "gpu1", URL: "http://gpu1:8000", Capacity: 16, Cost: 1},
				{Name: "gpu2", URL: "http://gpu2:8000", Capacity: 16, Cost: 2}}},
			{Name: "far", URL: "https://h.example/api/v4", StripV1: true, CAFile: "~/ca.pem",
				Key:                KeySource{Kind: KeyCommand, Command: []string{"pass", "show it", "glm"}},
				InsecureSkipVerify: true, FirstByteTimeout: 90 * time.Second},
		},
		Agents: map[string]Choice{
			"claude-code": {Server: "glm", Upstream: map[string]string{"": "https://api.anthropic.com"}},
			"codex":       {}, "aider": {},
			"opencode": {Server: "lab", UpstreamNone: true},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseTakesNothingAsTheDefault(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "spaces": " \n\n", "comment": "# nothing yet\n", "mark": "---\n", "null": "~\n", "bom": "\ufeff",
		"empty sections": "servers:\nagents:\n", "empty braces": "{servers: {}, agents: {}}",
	} {
		got, err := Parse("config.yaml", []byte(data))
		if err != nil || !Equal(got, Default()) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, Default())
		}
	}
}

func TestParseRefusesAndSaysWhatToWrite(t *testing.T) {
	server := func(lines string) string { return "servers:\n  glm:\n    url: http://a\n    " + lines + "\n" }
	url := func(u string) string { return "servers:\n  glm:\n    url: " + u + "\n" }
	for _, c := range []struct{ name, data, want string }{
		{"unknown field", "servers:\n  glm:\n    ur: http://a\n", `c.yaml:3:5: unknown field "ur"; did you mean "url"?`},
		{"unknown top field", "server:\n", `c.yaml:1:1: unknown field "server"; did you mean "servers"?`},
		{"newer field", "frobnicate: 1\n", `c.yaml:1:1: unknown field "frobnicate"; possible here: listen, servers,`},
		{"list of servers", "servers:\n  - glm\n", "c.yaml:2:3: servers must be names with values; write each as `name: value`"},
		{"no url", "servers:\n  glm:\n    key: none\n", `c.yaml:2:3: server "glm" has no url; write`},
		{"nothing in it", "servers:\n  glm:\n", `c.yaml:2:3: server "glm" has no url; write`},
		{"two servers", "servers:\n  glm: {url: http://a}\n  glm: {url: http://b}\n", `c.yaml:3:3: "glm" is here twice (first on line 2); remove or rename one`},
		{"two sections", "servers:\nservers:\n", `c.yaml:2:1: "servers" is here twice`},
		{"pool and url", server("pool: [{url: http://b}]"), `c.yaml:4:5: server "glm" has both url and pool; keep one`},
		{"headroom alone", server("headroom: 2"), `c.yaml:4:5: server "glm" has headroom but no pool`},
		{"empty pool", "servers:\n  lab: {pool: []}\n", `c.yaml:2:15: a pool must be a list of members`},
		{"equal members", "servers:\n  lab: {pool: [{url: http://a}, {url: http://a/}]}\n", `c.yaml:2:33: http://a is in this pool twice`},
		{"member field", "servers:\n  lab: {pool: [{url: http://a, capcity: 3}]}\n", `unknown field "capcity"; did you mean "capacity"?`},
		{"capacity", "servers:\n  lab: {pool: [{url: http://a, capacity: many}]}\n", `the capacity is "many"; write how many`},
		{"reserved name", "servers:\n  own: {url: http://a}\n", `c.yaml:2:3: server name "own" is reserved; choose another name`},
		{"dash name", "servers:\n  \"-\": {url: http://a}\n", `server name "-" is reserved`},
		{"slash name", "servers:\n  a/b: {url: http://a}\n", `c.yaml:2:3: server name "a/b" is not allowed; use letters, digits, ".", "_" and "-", a letter or digit first, at most 64, such as "a-b"`},
		{"space name", "servers:\n  my box: {url: http://a}\n", `such as "my-box"`},
		{"agent name", "agents:\n  v1: {server: \"\"}\n", `agent name "v1" is reserved`},
		{"agent's server", "servers:\n  glm: {url: http://a}\nagents:\n  codex: {server: gml}\n", `c.yaml:4:19: agent "codex" names the server "gml", which is not configured; did you mean "glm"?`},
		{"agent's server, others", "servers:\n  glm: {url: http://a}\nagents:\n  codex: {server: completely}\n", `choose one of glm, or "" for none`},
		{"agent is text", "agents:\n  codex: glm\n", `c.yaml:2:10: agent "codex" must be names with values`},
		{"listen on all", "listen: 0.0.0.0:4780\n", `c.yaml:1:9: listen is "0.0.0.0:4780", which others on the network could reach; write 127.0.0.1:4780`},
		{"listen on all, short", "listen: \":80\"\n", "write 127.0.0.1:80"},
		{"listen by name", "listen: myhost:4780\n", "write 127.0.0.1:4780"},
		{"listen without port", "listen: 127.0.0.1\n", "which is not host:port; write 127.0.0.1:4780"},
		{"size", "max_body: big\n", `"big" is not a size; write a number with KB, MB or GB, such as 256 MB`},
		{"no size", "max_body: 0\n", `"0" is out of range`},
		{"huge size", "max_body: 99999999 GB\n", `is out of range`},
		{"titles", "titles: maybe\n", `"maybe" is neither on nor off`},
		{"short token", "token: hunter2\n", "the token is not usable as a secret path segment; use 16 or more"},
		{"duration without unit", server("first_byte_timeout: 30"), `"30" has no unit; write 30s`},
		{"negative duration", server("first_byte_timeout: -3s"), `"-3s" is negative`},
		{"v1", server("v1: drop"), `v1 is "drop"; write keep or strip`},
		{"session header", server("session_header: Authorization"), `session_header "authorization" has another meaning`},
		{"ca file", server("ca_file: ca.pem"), `"ca.pem" is not the full path of a file; begin it with / or ~/`},
		{"empty glob", server(`rename: {"": x}`), "the pattern is empty"},
		{"glob class with range", server(`rename: {"gpt-[4-5]": x}`), "only * and ? are special; write one line for each"},
		{"glob braces", server(`rename: {"{gpt,o3}-*": x}`), "has alternatives in braces; write one line for each"},
		{"glob unquoted", server(`rename: {*haiku*: x}`), "put quotes around text that begins with *"},
		{"target is a glob", server(`rename: {"claude-*": glm-*}`), `the model name "glm-*" is a pattern; write the one name`},
		{"target empty", server(`rename: {"claude-*": }`), `the model name is empty`},
		{"glob twice", server(`rename: {"a*": x, "a*": y}`), `"a*" is here twice`},
		{"bad key", server("key: sk-fake-1234"), "c.yaml:4:10: this is not a key source; write stored, env:NAME,"},
		{"bad env", server("key: env:sk-fake-1234"), "env: must be followed by the name of an environment variable; write it as env:GLM_KEY"},
		{"command text", server("key: command:pass show glm"), "command: must be followed by a list, the program first; write it as command:[pass, show, glm]"},
		{"command empty", server("key: command:[]"), "command: must be followed by a list"},
		{"upstream map", "agents:\n  claude-code: {upstream: {anthropic: http://a}}\n", `agent "claude-code" has one upstream`},
		{"upstream url", "agents:\n  codex: {upstream: nope}\n", "the URL has no scheme; write http://nope"},
		{"upstream provider", "agents:\n  codex: {upstream: {azure: http://a}}\n", `agent "codex" has no upstream "azure"; possible here: openai, chatgpt`},
		{"alias", "servers:\n  a: &x {url: http://a}\n  b: *x\n", "c.yaml:3:6: aliases are not supported here; write the value out"},
		{"documents", "servers: {}\n---\nagents: {}\n", "a second document begins here"},
		{"tab", "servers:\n\tglm:\n", "c.yaml:2:1: this is not valid YAML: found character that cannot start any token; indent with spaces, not tabs"},
		{"open quote", "servers:\n  glm:\n    url: \"http://a\n", "c.yaml:3:10: this is not valid YAML: found unexpected end of stream; close the quote"},
		{"open brace", "servers:\n  glm: {url: http://a\nagents:\n  codex: {}\n", "close the brace { that is open before this line"},
		{"indentation", "servers:\n  glm:\n    url: http://a\n   key: none\n", "c.yaml:4:4: this is not valid YAML: did not find expected key; give this line the indentation"},
		{"url list", url("[a, b]"), "c.yaml:3:10: this must be a single value"},
		{"url without scheme", url("glm.example.com/v1"), "c.yaml:3:10: the URL has no scheme; write https://glm.example.com/v1"},
		{"url local without scheme", url("127.0.0.1:8000"), "write http://127.0.0.1:8000"},
		{"url with a name", url("https://me:hunter2@h/v1"), "the URL holds a user name or password; write https://h/v1 and give the key with"},
		{"url with a query", url("https://h/?key=hunter2"), "the URL has a query; write https://h"},
		{"url with a fragment", url("\"https://h/#x\""), "the URL has a fragment; write https://h"},
		{"endpoint", url("http://a/v1/messages"), "the URL is a whole endpoint (/v1/messages), not a server's address; write http://a"},
		{"endpoint behind a path", url("http://a/x/v1/chat/completions"), "write http://a/x"},
		{"endpoint without v1", url("http://a/openai/responses"), "write http://a/openai, with `v1: strip` since its paths have no /v1"},
		{"url scheme", url("ftp://a"), `the URL's scheme is "ftp"; write http:// or https://`},
		{"url port", url("http://a:99999"), `the URL's port is "99999"`},
		{"url no host", url("http:///v1"), "the URL has no host"},
		{"url space", url("http://a b"), "has a space or control character inside"},
		{"url dots", url("http://a/../b"), `the URL's path has a ".." in it`},
	} {
		_, err := Parse("c.yaml", []byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "sk-fake")) {
			t.Errorf("%s: the error repeats a secret: %v", c.name, err)
		}
	}
}

func TestParseFindsEveryErrorInOrder(t *testing.T) {
	_, err := Parse("c.yaml", []byte("listen: 1.2.3.4:5\nservers:\n  own: {ur: x}\nagents:\n  codex: {server: x}\ntitles: 3\n"))
	var list Errors
	if !errors.As(err, &list) {
		t.Fatalf("got %T %v, want Errors", err, err)
	}
	var lines []int
	for _, e := range list {
		lines = append(lines, e.Line)
	}
	if want := []int{1, 3, 3, 5, 6}; !reflect.DeepEqual(lines, want) {
		t.Errorf("got lines %v, want %v:\n%v", lines, want, err)
	}
	var one *Error
	if !errors.As(err, &one) || one.Line != 1 || one.Column != 9 {
		t.Errorf("the first error is %+v, want the one at 1:9", one)
	}
}
