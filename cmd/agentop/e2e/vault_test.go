package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/router/control"
	"agentop/router/fakeserver"
)

// planted makes a key that is found again wherever any eight characters of it
// turn up.
func planted(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "sk-fake-" + base32.StdEncoding.EncodeToString(sum[:15])
}

// findPlanted names the plants of which eight characters in a row are in text,
// plain or in base64, as Basic credentials are.
func findPlanted(text []byte, names []string) (found []string) {
	for _, name := range names {
		secret := strings.TrimPrefix(planted(name), "sk-fake-")
		hit := false
		for i := 0; i+8 <= len(secret) && !hit; i++ {
			hit = bytes.Contains(text, []byte(secret[i:i+8]))
		}
		for shift := range 3 { // of the three ways to begin within a base64 group
			coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + planted(name)))
			hit = hit || bytes.Contains(text, []byte(coded[4:len(coded)-4]))
		}
		if hit || bytes.Contains(text, []byte(hex.EncodeToString([]byte(secret)))) {
			found = append(found, name)
		}
	}
	return found
}

// vault is a stage whose every key is planted.
type vault struct {
	*stage
	names []string // of all plants
	user  string   // the HOME of commands
	raw   map[string]string

	holders []string // files of other programs that hold keys

	mu   sync.Mutex
	seen map[string][]byte // what each server was sent, whole
}

// clientPlants are what clients send besides the keys of servers.
var clientPlants = []string{"client-x-api-key", "client-bearer", "client-cookie", "client-proxy", "client-goog", "client-gateway", "client-query", "client-body", "client-tool", "client-basic"}

// rawServers answer with what they were sent, where no server should.
var rawServers = map[string]func(request string) string{
	"echo":   func(r string) string { return r },
	"mime":   func(r string) string { return "HTTP/1.1 200 OK\r\n" + strings.ReplaceAll(r, ":", " ") },
	"reason": func(r string) string { return "HTTP/1.1 503 " + credentialIn(r) + "\r\nContent-Length: 0\r\n\r\n" },
	"status": func(r string) string { return "HTTP/1.1 " + credentialIn(r) + "\r\n\r\n" },
	"length": func(r string) string { return "HTTP/1.1 200 OK\r\nContent-Length: " + credentialIn(r) + "\r\n\r\n" },
	"media":  func(r string) string { return whole("404 Not Found", "text/"+credentialIn(r), "<p>"+credentialIn(r)) },
	"trailer": func(r string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n: \n\r\n0\r\n" + credentialIn(r) + "\r\n\r\n"
	},
	"chunk": func(r string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + credentialIn(r) + "\r\n"
	},
	"moved": func(r string) string {
		return "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/?key=" + credentialIn(r) + "\r\nContent-Length: 0\r\n\r\n"
	},
	"denied": func(r string) string {
		return whole("401 Unauthorized", "application/json", `{"error":{"type":"authentication_error","code":"bad key `+credentialIn(r)+`","message":"Incorrect API key provided: `+credentialIn(r)+`"}}`)
	},
	"event": func(r string) string {
		return whole("200 OK", "text/event-stream", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"bad "+credentialIn(r)+"\",\"message\":\""+credentialIn(r)+"\"}}\n\n")
	},
	"model": func(r string) string {
		return whole("404 Not Found", "application/json", `{"error":{"code":"model_not_found","message":"no model for `+credentialIn(r)+`"}}`)
	},
}

func whole(status, media, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, media, len(body), body)
}

// credentialIn is the key that a request bears.
func credentialIn(request string) string {
	for line := range strings.SplitSeq(request, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if name = strings.ToLower(name); name == "x-api-key" || name == "authorization" {
			return strings.TrimPrefix(strings.TrimSpace(value), "Bearer ")
		}
	}
	return "none"
}

// rawServer starts one and returns its URL.
func (v *vault) rawServer(name string, answer func(string) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var text bytes.Buffer
				req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &text)))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				v.note(name, text.Bytes())
				_, _ = io.WriteString(c, answer(text.String()))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func (v *vault) note(server string, request []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[server] = append(append(v.seen[server], request...), '\n')
}

// newVault makes the servers, the keys and the configuration, and starts the
// proxy with more of them in its environment.
func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{
		stage: &stage{t: t, home: agentDir(t), servers: map[string]*fakeserver.Server{}, seen: map[string]int{}},
		names: slices.Clone(clientPlants), user: t.TempDir(), raw: map[string]string{}, seen: map[string][]byte{},
	}
	v.names = append(v.names, "stored", "env", "command", "token", "unused-env", "http-proxy")
	for _, name := range []string{"stored", "env", "command", "client", "own"} {
		s := fakeserver.New(fakeserver.Options{Name: name, OnRequest: func(rec *fakeserver.Record) {
			head := fmt.Sprintf("%s %s?%s %v\n", rec.Method, rec.Path, rec.Query, rec.Header)
			v.note(name, append([]byte(head), rec.Body...))
		}})
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		v.servers[name] = s
		v.raw[name] = s.URL()
	}
	keys := map[string]string{"stored": planted("stored"), "down": planted("down"), "proxied": planted("proxied"), "tls": planted("tls")}
	v.names = append(v.names, "down", "proxied", "tls")
	for name, answer := range rawServers {
		v.names = append(v.names, name)
		v.raw[name] = v.rawServer(name, answer)
		keys[name] = planted(name)
	}
	v.raw["down"], v.raw["proxied"], v.raw["tls"] = "http://127.0.0.1:1", "https://behind-the-proxy.example", strings.Replace(v.raw["own"], "http:", "https:", 1)
	data, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	v.write("keys.json", string(data))
	v.write("key.sh", "#!/bin/sh\necho "+planted("command")+"\n")
	if err := os.Chmod(filepath.Join(v.home, "key.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	v.address = freeAddress(t)
	if v.log, err = os.Create(filepath.Join(t.TempDir(), "proxy.out")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.kill(); _ = v.log.Close() })
	v.write("config.yaml", v.yaml("stored"))
	v.launch()
	return v
}

func (v *vault) write(name, text string) {
	v.t.Helper()
	if err := os.WriteFile(filepath.Join(v.home, name), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// yaml is the configuration with all agents at one server.
func (v *vault) yaml(choice string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nservers:\n", v.address)
	for _, name := range slices.Sorted(mapKeys(v.raw)) {
		key := map[string]string{"env": "env:PLANTED_KEY", "client": "client", "command": "command:[" + filepath.Join(v.home, "key.sh") + "]"}[name]
		if key == "" {
			key = "stored"
		}
		if name != "own" {
			fmt.Fprintf(&b, "  %s: {url: %q, key: %q}\n", name, v.raw[name], key)
		}
	}
	fmt.Fprintf(&b, "agents:\n")
	for _, agent := range []string{"claude-code", "codex", "opencode"} {
		fmt.Fprintf(&b, "  %s: {server: %q, upstream: %q}\n", agent, choice, v.raw["own"])
	}
	return b.String()
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// environment is what the proxy and the commands run in.
func (v *vault) environment() []string {
	return append(cleanEnv(), "AGENTOP_HOME="+v.home, "HOME="+v.user, "XDG_CONFIG_HOME="+filepath.Join(v.user, ".config"), "GOTRACEBACK=all", "TERM=xterm-256color")
}

func (v *vault) launch() {
	v.t.Helper()
	cmd := exec.Command("/usr/bin/env", "HOME="+v.user, "GOTRACEBACK=all", "PLANTED_KEY="+planted("env"), "UNUSED_KEY="+planted("unused-env"),
		"HTTPS_PROXY=http://user:"+planted("http-proxy")+"@127.0.0.1:1", binary, "proxy")
	v.run(cmd)
}

// command runs one command, whatever it ends with, and returns all it said.
func (v *vault) command(stdin string, args ...string) []byte {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = v.environment()
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // a refusal is as good as a success
	return out
}

// ask sends one request with a credential in every place that clients have.
func (v *vault) ask(method, path, query, body, agent string) (head, answer []byte) {
	v.t.Helper()
	req, err := http.NewRequest(method, v.base(path)+"?key="+planted("client-query")+query, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Api-Key": planted("client-x-api-key"), "Authorization": "Bearer " + planted("client-bearer"), "Cookie": "session=" + planted("client-cookie"),
		"Proxy-Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+planted("client-proxy"))), "X-Goog-Api-Key": planted("client-goog"),
		"X-Gateway-Api-Key": planted("client-gateway"), "User-Agent": agent, "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, nil
	}
	defer res.Body.Close()
	answer, _ = io.ReadAll(res.Body) // it may be cut
	var text bytes.Buffer
	_ = res.Header.Write(&text)
	return text.Bytes(), answer
}

// drive sends all kinds of requests, to every server.
func (v *vault) drive() {
	// Past what becomes the conversation's title, which people are shown.
	long := strings.Repeat("a word ", 60)
	messages := fmt.Sprintf(`[{"role":"user","content":"%s my password is %s"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"curl -H %s"}}]},{"role":"user","content":"go on"}]`,
		long, planted("client-body"), planted("client-tool"))
	opening := fmt.Sprintf(`[{"role":"user","content":"%s my password is %s"}]`, long, planted("client-body"))
	for i, choice := range slices.Sorted(mapKeys(v.raw)) {
		if choice == "own" {
			choice = ""
		}
		v.write("config.yaml", v.yaml(choice))
		v.awaitChoice(choice)
		for j, m := range []string{opening, messages} {
			session := fmt.Sprintf("secret-%d-%d", i, j)
			v.ours(v.ask("POST", "/claude-code/v1/messages", "", `{"model":"m","max_tokens":9,"stream":true,"tools":[{"name":"Bash"}],"metadata":{"user_id":"`+session+`"},"messages":`+m+`}`, "claude-cli/2.1.332 (external, cli)"))
			v.ours(v.ask("POST", "/codex/v1/responses", "", `{"model":"m","stream":true,"prompt_cache_key":"`+session+`","input":`+m+`}`, "codex_cli_rs/0.171.0"))
			v.ours(v.ask("POST", "/opencode/openai/v1/chat/completions", "", `{"model":"m","messages":`+m+`}`, "opencode/1.18.33"))
		}
		v.ours(v.ask("GET", "/claude-code/v1/models", "", "", "claude-cli/2.1.332"))
		v.ours(v.ask("POST", "/claude-code/v1/messages/count_tokens", "", `{"model":"m","messages":`+opening+`}`, "claude-cli/2.1.332"))
	}
	for _, path := range []string{"/nobody/v1/messages", "/-/metrics", "/-/nothing", "/claude-code/v1/x", "/"} {
		v.ours(v.ask("POST", path, "", `{"model":`, "x"))
	}
	v.ours(v.ask("POST", "/codex/v1/responses", "", strings.Repeat(" ", 1<<20), "x"))
	for _, text := range []string{ // what net/http itself refuses, or the guard
		"GET http://user:" + planted("client-basic") + "@" + v.address + "/claude-code/v1/models HTTP/1.1\r\nHost: " + v.address + "\r\nConnection: close\r\n\r\n",
		"POST /claude-code/v1/messages?key=" + planted("client-query") + " HTTP/1.1\r\nHost: evil.example\r\nX-Api-Key: " + planted("client-x-api-key") + "\r\nConnection: close\r\n\r\n",
		"POST /claude-code/v1/messages?key=" + planted("client-query") + " HTTP/1.1\r\nHost: " + v.address + "\r\nX-Api-Key " + planted("client-x-api-key") + "\r\n\r\n",
		"POST /claude-code/v1/messages HTTP/1.1\r\nHost: " + v.address + "\r\nContent-Length: " + planted("client-body") + "\r\n\r\n",
		"GET /claude-code/v1/responses HTTP/1.1\r\nHost: " + v.address + "\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: openai-insecure-api-key." + planted("client-x-api-key") + "\r\n\r\n",
		"POST /claude-code/v1/messages?key=" + planted("client-query") + " HTTP/1.1\r\nHost: " + v.address + "\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
	} {
		v.ours(nil, v.wire(text))
	}
}

// wire sends bytes and returns what comes back.
func (v *vault) wire(text string) []byte {
	c, err := net.Dial("tcp", v.address)
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(c, text)
	_ = c.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(c)
	return answer
}

// ours checks an answer if agentop made it, and its route header if not.
func (v *vault) ours(head, answer []byte) {
	v.t.Helper()
	if bytes.Contains(answer, []byte("agentop:")) || head == nil {
		v.clean("an error", append(head, answer...))
	}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if strings.HasPrefix(line, "X-Agentop-Route") {
			v.clean("a route header", []byte(line))
		}
	}
}

// clean asserts that text holds no plant but those that are allowed.
func (v *vault) clean(what string, text []byte, allowed ...string) {
	v.t.Helper()
	for _, name := range findPlanted(text, v.names) {
		if !slices.Contains(allowed, name) {
			v.t.Errorf("the key of %s is in %s:\n%s", name, what, around(text, name))
		}
	}
}

// around is the line in which a plant was found.
func around(text []byte, name string) []byte {
	secret := strings.TrimPrefix(planted(name), "sk-fake-")
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		for i := 0; i+8 <= len(secret); i++ {
			if at := bytes.Index(line, []byte(secret[i:i+8])); at >= 0 {
				return line[max(0, at-300):min(len(line), at+100)]
			}
		}
	}
	return text[:min(len(text), 400)]
}

// awaitChoice returns when a configuration is in force.
func (v *vault) awaitChoice(choice string) {
	v.t.Helper()
	client := control.Dial(v.home)
	defer client.Close()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // between looks at another process
		st, err := client.Status(context.Background())
		if err == nil && len(st.Agents) > 0 && st.Agents[0].Server == choice {
			return
		}
		if time.Now().After(end) {
			v.t.Fatalf("%q is not in force: %+v, %v", choice, st, err)
		}
	}
}
