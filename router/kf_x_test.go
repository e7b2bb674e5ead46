package router

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentop/router/credential"
	"agentop/router/fakeserver"
	"agentop/router/reqlog"
)

// The tests of this file are named by the ids of known failures of other
// proxies: security. KF-X1 and KF-X2 are in guard_test.go and cmd/agentop/e2e,
// KF-X3, KF-X5 and KF-X8 with the built program in
// e2e.TestPromise5_KF_X3_X5_X8_NoSecretLeaves.

func TestKF_X4_RedirectsAreNotFollowed(t *testing.T) {
	to := ""
	status := 0
	b := newBench(t, func(server string, _ *fakeserver.Record) fakeserver.Behaviour {
		if server == "a" {
			return fakeserver.Redirect(status, to)
		}
		return fakeserver.Behaviour{}
	})
	for _, status = range []int{301, 302, 303, 307, 308} {
		for _, to = range []string{b.servers["b"].URL() + "/v1/messages", "//" + strings.TrimPrefix(b.servers["b"].URL(), "http:") + "/x"} {
			for _, method := range []string{"POST", "GET"} {
				res := b.do(method, "/claude-code/v1/messages", strings.NewReader(claudeBody(user("hello"))), claudeHeader(fmt.Sprint("s", status, method)))
				if read(t, res); res.StatusCode != status || res.Header.Get("Location") != to {
					t.Errorf("%s: the client got %d to %q, want %d to %q", method, res.StatusCode, res.Header.Get("Location"), status, to)
				}
			}
		}
	}
	if n := b.servers["b"].Arrivals() + b.servers["own"].Arrivals(); n != 0 {
		t.Errorf("%d requests went to where the redirects pointed", n)
	}
}

func TestKF_X6_NothingInARequestPicksTheAddress(t *testing.T) {
	b := newBench(t, nil)
	elsewhere := b.servers["b"].URL()
	host := strings.TrimPrefix(elsewhere, "http://")
	body := strings.Replace(claudeBody(user("hello")), `{"model"`, fmt.Sprintf(`{"api_base":%q,"base_url":%q,"upstream":%q,"model"`, elsewhere, elsewhere, elsewhere), 1)
	headers := http.Header{
		"X-Forwarded-Host": {host}, "X-Forwarded-Server": {host}, "X-Original-Url": {elsewhere + "/v1/messages"}, "X-Rewrite-Url": {"/v1/elsewhere"},
		"X-Upstream": {elsewhere}, "X-Host": {host}, "Forwarded": {"host=" + host}, "X-Agentop-Route": {"server=b"}, "X-Agentop-Server": {"b"},
	}
	for _, path := range []string{"/claude-code/v1/messages", "/claude-code/v1/messages?api_base=" + elsewhere, "/claude-code//" + host + "/v1/messages", "/claude-code/http:%2f%2f" + host + "/v1/messages", "/claude-code/@" + host + "/v1/messages", "/claude-code/../b/v1/messages"} {
		h := claudeHeader("s1")
		for name, v := range headers {
			h[name] = v
		}
		before := b.servers["a"].Arrivals()
		read(t, b.do("POST", path, strings.NewReader(body), h))
		if n := b.servers["b"].Arrivals() + b.servers["own"].Arrivals(); n != 0 {
			t.Fatalf("%s: a request went to %s", path, host)
		}
		if b.servers["a"].Arrivals() == before {
			continue // refused
		}
		rec := b.last("a")
		if string(rec.Body) != body {
			t.Errorf("%s: the body was changed:\n%s", path, rec.Body)
		}
		for name, want := range headers {
			if got := rec.Header[name]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s came as %q, want %q", path, name, got, want)
			}
		}
	}
}

// noted is a recorder that keeps the lines that it is given.
type noted struct {
	Recorder
	mu    sync.Mutex
	lines []reqlog.Line
}

func (n *noted) Append(l reqlog.Line) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, l)
	n.Recorder.Append(l)
}

// Ordinary requests, answered well and badly: neither the log at its most
// talkative nor the request log holds what pays for them.
func TestKF_X8_OrdinaryLinesHoldNoCredential(t *testing.T) {
	for _, status := range []int{0, 401, 404, 500} {
		b := newBench(t, scripted(fakeserver.Behaviour{Status: status, Body: []byte("{}")}))
		log, lines := b.watchLog(), &noted{Recorder: b.router.Recorder}
		b.router.Recorder = lines
		b.only(b.servers["a"].URL(), "key: stored")
		b.router.Credentials = keyed{key: credential.NewSecret("sk-fake-of-server")}
		for _, f := range formats {
			for name, value := range map[string]string{
				"Authorization": "Bearer sk-fake-of-client", "X-Api-Key": "sk-fake-of-client", "Cookie": "token=sk-fake-of-client", "Api-Key": "sk-fake-of-client",
				"X-Goog-Api-Key": "sk-fake-of-client", "Proxy-Authorization": "Basic sk-fake-of-client", "X-Some-Auth-Token": "sk-fake-of-client",
			} {
				read(t, b.do("POST", f.path+"?key=sk-fake-of-client&beta=true", strings.NewReader(f.body), http.Header{name: {value}}))
			}
		}
		lines.mu.Lock()
		all := log.String() + fmt.Sprintf("%+v", lines.lines)
		if n := len(lines.lines); n < len(formats) { // the last ones may be still to come
			t.Errorf("%d: %d lines", status, n)
		}
		lines.mu.Unlock()
		if strings.Contains(all, "sk-fake") {
			t.Errorf("%d: a credential is in\n%s", status, all)
		}
	}
}
