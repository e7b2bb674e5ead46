package router

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"agentop/router/config"
	"agentop/router/credential"
)

// panicking are credentials that panic with the words of a request.
type panicking struct{ value any }

func (p panicking) Key(context.Context, *config.Server) (credential.Secret, error) {
	if p.value == nil {
		var none []int
		_ = none[len(none)]
	}
	panic(p.value)
}
func (panicking) Rejected(string) {}

func TestPanicIsToldAndAnswered(t *testing.T) {
	const secret = "sk-fake-9f8e7d6c5b4a"
	for _, value := range []any{nil, "header " + secret, errors.New(secret), struct{ s string }{secret}} {
		b := newBench(t, nil)
		log := b.watchLog()
		b.configure("servers:\n  a: {url: " + b.servers["a"].URL() + ", key: stored}\nagents:\n  claude-code: {server: a, upstream: none}\n")
		b.router.Credentials = panicking{value}
		res := b.claude("s1", user("hello "+secret))
		body := read(t, res)
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "agentop: a mistake in agentop") {
			t.Errorf("%T: %d %s", value, res.StatusCode, body)
		}
		if !strings.Contains(log.String(), "a mistake in agentop") || !strings.Contains(log.String(), "panic_test.go") {
			t.Errorf("%T: the log does not tell where:\n%s", value, log)
		}
		if strings.Contains(log.String()+body, secret) {
			t.Errorf("%T: the words of the request came out:\n%s\n%s", value, body, log)
		}
		b.router.Credentials = noKeys{}
		res = b.claude("s1", user("hello"))
		if read(t, res); res.StatusCode != http.StatusOK {
			t.Errorf("%T: after the panic %d", value, res.StatusCode)
		}
	}
}
