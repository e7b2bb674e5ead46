package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentop/cmd/testkit"
	"agentop/router/fakeserver"
)

// The tests of this file are named by the ids of known failures of other
// proxies: streaming.

// formats are one streaming request of each API format.
var formats = []struct {
	name, path string
	body       string
}{
	{"messages", "/claude-code/v1/messages", claudeBody(user("hello"))},
	{"responses", "/codex/v1/responses", `{"model":"gpt-6","stream":true,"instructions":"x","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]}]}`},
	{"chat", "/opencode/lab/v1/chat/completions", `{"model":"glm-5","stream":true,"messages":[{"role":"user","content":"hello"}]}`},
}

func scripted(behave fakeserver.Behaviour) func(string, *fakeserver.Record) fakeserver.Behaviour {
	return func(string, *fakeserver.Record) fakeserver.Behaviour { return behave }
}

func TestKF_S1_EachEventAtOnceForEverySpellingOfTheMediaType(t *testing.T) {
	for _, media := range []string{
		"text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream", "text/event-stream ;charset=UTF-8",
		" text/event-stream;charset=\"utf-8\"", "text/event-stream;", "TEXT/EVENT-STREAM;x=y;x=y", "application/octet-stream", "application/json",
	} {
		for _, f := range formats {
			t.Run(f.name+" "+media, func(t *testing.T) {
				step := newLockstep(t, "")
				b := newBench(t, scripted(fakeserver.Behaviour{Media: media, Gate: step.gate}))
				events := step.read(t, b.do("POST", f.path, strings.NewReader(f.body), nil))
				if got, want := strings.Join(events, ""), string(b.last("a").Answer); got != want {
					t.Errorf("the client got\n%s\nthe server sent\n%s", got, want)
				}
			})
		}
	}
}

func TestKF_S2_NoChunkWaitsForTheNext(t *testing.T) {
	step := newLockstep(t, "")
	// 40 bytes of text an event and far more events than any buffer holds.
	b := newBench(t, scripted(fakeserver.Behaviour{TextBytes: 40 * 300, Events: 300, Gate: step.gate}))
	if got := len(step.read(t, b.claude("s1", user("hello")))); got < 300 {
		t.Errorf("%d events, want at least 300", got)
	}
}

func TestKF_S3_ToolArgumentsAreNeitherHeldNorMerged(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			step := newLockstep(t, "")
			b := newBench(t, scripted(fakeserver.Behaviour{
				NoText: true, Gate: step.gate, Events: 40,
				Tools: []fakeserver.ToolCall{{Name: "Edit", Input: `{"text":"` + strings.Repeat("half a block ", 200) + `"}`}},
			}))
			events := step.read(t, b.do("POST", f.path, strings.NewReader(f.body), nil))
			if got, want := strings.Join(events, ""), string(b.last("a").Answer); got != want {
				t.Errorf("the client got other events than the server sent")
			}
		})
	}
}

// The other tests of KF_S4, and those of S5, run in invented time; they are in
// wire_time_test.go.

// noAnswer carries no request.
type noAnswer struct{ err error }

func (n noAnswer) RoundTrip(*http.Request) (*http.Response, error) { return nil, n.err }

func TestKF_S4_TheLogTellsWhichHopFailed(t *testing.T) {
	ends := func(with string) string {
		return upstream(t, func(c net.Conn) {
			if req, _ := request(bufio.NewReader(c)); req != nil {
				_, _ = io.WriteString(c, with)
			}
		})
	}
	hold := make(chan struct{})
	defer close(hold)
	silent := upstream(t, func(c net.Conn) {
		_, _ = request(bufio.NewReader(c))
		<-hold
	})
	stranger, _ := byHand(t, true, serveAll)
	for _, c := range []struct {
		class, url, more string
		err              error // of a connection that cannot be had in a test
	}{
		{"refused", "http://127.0.0.1:1", "", nil},
		{"dns", "http://server.invalid", "", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "server.invalid", IsNotFound: true}}},
		{"tls", stranger, "", nil},
		{"first-byte", silent, ", first_byte_timeout: 50ms", nil},
		{"malformed", ends("SSH-2.0-x\r\n"), "", nil},
		{"broken", ends(""), "", nil},
	} {
		t.Run(c.class, func(t *testing.T) {
			b := newBench(t, nil)
			log := b.watchLog()
			b.only(c.url, "key: none"+c.more)
			if c.err != nil {
				b.router.Transport = noAnswer{c.err}
			}
			res := b.claude("s1", user("hello"))
			if body := read(t, res); !strings.Contains(body, `server \"a\"`) || !strings.Contains(log.String(), "class="+c.class+" ") {
				t.Errorf("the client got %s; the log has not the class %s:\n%s", body, c.class, log)
			}
		})
	}
}

func TestKF_S6_AServerThatDiesIsACutForTheClient(t *testing.T) {
	cuts := []struct {
		name   string
		behave fakeserver.Behaviour
		word   string // in the request log
	}{
		{"closed inside the body", fakeserver.Behaviour{Cut: fakeserver.CutClose, CutAfter: 4}, "closed"},
		{"reset", fakeserver.Behaviour{Cut: fakeserver.CutReset, CutAfter: 4}, "reset"},
		{"tidy end without the terminator", fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 4}, "unfinished"},
		{"no length, closed", fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 4, Bare: true}, "unfinished"},
		{"before the first event", fakeserver.Behaviour{Cut: fakeserver.CutTidy}, "unfinished"},
		{"gzip, tidy", fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 4, Coding: "gzip"}, "unfinished"},
		{"zstd, tidy", fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 4, Coding: "zstd"}, "unfinished"},
		{"br, tidy", fakeserver.Behaviour{Cut: fakeserver.CutTidy, CutAfter: 4, Coding: "br"}, "unfinished"},
	}
	for _, cut := range cuts {
		for _, f := range formats {
			t.Run(cut.name+" "+f.name, func(t *testing.T) {
				b := newBench(t, scripted(cut.behave))
				log := b.watchLog()
				res := b.do("POST", f.path, strings.NewReader(f.body), nil)
				if _, err := io.ReadAll(res.Body); err == nil {
					t.Error("the client took a cut answer for a whole one")
				}
				waitFor(t, "the cut in the log", func() bool { return strings.Contains(log.String(), "class="+cut.word) })
			})
		}
	}
}

func TestKF_S6_WholeAnswersAreNotCut(t *testing.T) {
	whole := []struct {
		name   string
		stream bool
		behave fakeserver.Behaviour
	}{
		{"stream", true, fakeserver.Behaviour{}},
		{"no length", true, fakeserver.Behaviour{Bare: true}},
		{"CRLF, no spaces", true, fakeserver.Behaviour{CRLF: true, NoSpace: true}},
		{"gzip", true, fakeserver.Behaviour{Coding: "gzip"}},
		{"deflate", true, fakeserver.Behaviour{Coding: "deflate"}},
		{"br", true, fakeserver.Behaviour{Coding: "br"}},
		{"zstd", true, fakeserver.Behaviour{Coding: "zstd"}},
		{"ends in an error event", true, fakeserver.Behaviour{Cut: fakeserver.CutError, CutAfter: 3}},
		{"JSON", false, fakeserver.Behaviour{}},
		{"JSON without length", false, fakeserver.Behaviour{Bare: true}},
		{"JSON, zstd without length", false, fakeserver.Behaviour{Bare: true, Coding: "zstd"}},
		{"JSON with a stream's media type", false, fakeserver.Behaviour{Media: "text/event-stream"}},
		{"a coding that nobody knows", true, fakeserver.Behaviour{Header: http.Header{"Content-Encoding": {"rot13"}}}},
		{"a coding that the body does not have", true, fakeserver.Behaviour{Header: http.Header{"Content-Encoding": {"gzip"}}}},
	}
	for _, w := range whole {
		for _, f := range formats {
			t.Run(w.name+" "+f.name, func(t *testing.T) {
				b := newBench(t, scripted(w.behave))
				body := f.body
				if !w.stream {
					body = strings.Replace(body, `"stream":true`, `"stream":false`, 1)
				}
				read(t, b.do("POST", f.path, strings.NewReader(body), nil))
			})
		}
	}
}

func TestKF_S6_JSONWithoutLengthThatStopsInTheMiddleIsCut(t *testing.T) {
	b := newBench(t, nil)
	b.only(upstream(t, func(c net.Conn) {
		if req, _ := request(bufio.NewReader(c)); req != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"type\":\"message\",\"content\":[{\"ty")
		}
	}), "key: none")
	res := b.claude("s1", user("hello"))
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("half of an answer was passed on as a whole one: %s", body)
	}
}

func TestKF_S7_AClientThatLeavesEndsTheWorkAtTheServer(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	cases := []struct {
		name   string
		stream bool
		behave fakeserver.Behaviour
		events int // that the client reads first
	}{
		{"before the first byte", true, fakeserver.Behaviour{Hold: hold}, 0},
		{"in mid-stream", true, fakeserver.Behaviour{Cut: fakeserver.CutHang, CutAfter: 3}, 3},
		{"whole answer", false, fakeserver.Behaviour{Hold: hold}, 0},
	}
	for _, c := range cases {
		for _, f := range formats {
			t.Run(c.name+" "+f.name, func(t *testing.T) {
				var arrived sync.Map
				came := make(chan *fakeserver.Record, 1)
				b := newBench(t, func(_ string, rec *fakeserver.Record) fakeserver.Behaviour {
					arrived.Store(rec.N, true)
					came <- rec
					return c.behave
				})
				body := f.body
				if !c.stream {
					body = strings.Replace(body, `"stream":true`, `"stream":false`, 1)
				}
				ctx, leave := context.WithCancel(context.Background())
				defer leave()
				req, _ := http.NewRequestWithContext(ctx, "POST", b.url+f.path, strings.NewReader(body))
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					res, err := http.DefaultTransport.RoundTrip(req)
					if err != nil {
						return
					}
					defer res.Body.Close()
					r := bufio.NewReader(res.Body)
					for range c.events {
						event(t, r)
					}
					leave()
				}()
				rec := <-came
				if c.events == 0 {
					waitFor(t, "the request in flight", func() bool { return b.router.Streams() == 1 })
					leave()
				}
				within(t, rec.Done, "the server to be told") // its answer has no end of its own
				if !rec.Left {
					t.Error("the answer went on to its end")
				}
				within(t, answered, "the client")
				waitFor(t, "the stream to be taken off the count", func() bool { return b.router.Streams() == 0 })
			})
		}
	}
}

// waitFor polls for what another goroutine does at its own time.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestKF_S8_PingsAndCommentsPassAtOnceAndNoneIsAdded(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			step := newLockstep(t, "ping")
			b := newBench(t, scripted(fakeserver.Behaviour{PingEvery: 1, Gate: step.gate}))
			res := b.do("POST", f.path, strings.NewReader(f.body), nil)
			got := strings.Join(step.read(t, res), "")
			if want := string(b.last("a").Answer); got != want {
				t.Errorf("the client got\n%s\nthe server sent\n%s", got, want)
			}
			if !strings.Contains(got, "ping") {
				t.Error("no ping came")
			}
		})
	}
}

func TestKF_S9_BodyAndContentEncodingPassTogether(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		for _, offered := range []string{"", "gzip, deflate, br, zstd", "identity;q=1, *;q=0"} {
			t.Run(coding+" offered "+offered, func(t *testing.T) {
				b := newBench(t, scripted(fakeserver.Behaviour{Coding: coding}))
				header := claudeHeader("s1")
				if offered != "" {
					header.Set("Accept-Encoding", offered)
				}
				res := b.do("POST", "/claude-code/v1/messages", strings.NewReader(claudeBody(user("hello"))), header)
				body := read(t, res)
				rec := b.last("a")
				if got := rec.Header.Get("Accept-Encoding"); got != offered {
					t.Errorf("the server was offered %q, the client offers %q", got, offered)
				}
				if got := res.Header.Get("Content-Encoding"); got != coding {
					t.Errorf("Content-Encoding = %q, want %q", got, coding)
				}
				plain, err := decode([]byte(body), res.Header, 1<<20)
				if err != nil || string(plain) != string(rec.Answer) {
					t.Errorf("the body decodes to %q (%v), want %q", plain, err, rec.Answer)
				}
			})
		}
	}
}

func TestKF_S10_LinesOfAnyLength(t *testing.T) {
	longest := 20 << 20
	if testkit.Race { // a minute would not do
		longest = 4 << 20
	}
	for _, size := range []int{70 << 10, 1_500_000, longest} {
		for _, f := range formats {
			t.Run(fmt.Sprint(size, " ", f.name), func(t *testing.T) {
				b := newBench(t, scripted(fakeserver.Behaviour{LongLine: size}))
				got := read(t, b.do("POST", f.path, strings.NewReader(f.body), nil))
				// The record holds no more than 64 MB.
				if want := string(b.last("a").Answer); !strings.HasPrefix(got, want) || len(got) < size {
					t.Errorf("%d bytes came, at least %d were sent", len(got), len(want))
				}
			})
		}
	}
}

func TestKF_S11_StreamIsWhatTheClientSaid(t *testing.T) {
	b := newBench(t, nil)
	history := user("hello")
	for turn := range 3 {
		for _, stream := range []string{`"stream":true`, `"stream":false`} {
			body := strings.Replace(claudeBody(history), `"stream":true`, stream, 1)
			read(t, b.post("/claude-code/v1/messages", body, claudeHeader("s1")))
			rec := b.last("a")
			if string(rec.Body) != body || rec.Stream != (stream == `"stream":true`) {
				t.Errorf("turn %d: the server got stream=%v, the client said %s", turn, rec.Stream, stream)
			}
		}
		history += "," + assistant("an answer") + "," + user("go on")
	}
}

func TestKF_S12_AllEndToEndHeadersOfAnAnswerArrive(t *testing.T) {
	sent := http.Header{
		"X-Accel-Buffering": {"no"}, "Cache-Control": {"no-transform", "no-store"}, "Request-Id": {"req_9"},
		"Anthropic-Ratelimit-Requests-Remaining": {"7"}, "X-Codex-Primary-Used-Percent": {"12.5"}, "X-Made-Up": {"b", "a", ""},
		"Set-Cookie": {"a=1; Path=/", "b=2"}, "Date": {"Tue, 01 Jan 2030 00:00:00 GMT"}, "Server": {"fake"}, "Via": {"1.1 x"},
		"X-Forwarded-For": {"10.0.0.1"}, "Retry-After": {"7"}, "Vary": {"Origin"}, "Alt-Svc": {`h3=":443"`}, "Etag": {`W/"x"`},
		"Access-Control-Allow-Origin": {"https://example.com"},
	}
	b := newBench(t, scripted(fakeserver.Behaviour{Header: sent}))
	body := strings.Replace(claudeBody(user("hello")), `"stream":true`, `"stream":false`, 1)
	res := b.do("POST", "/claude-code/v1/messages", strings.NewReader(body), claudeHeader("s1"))
	read(t, res)
	for name, want := range sent {
		if got := res.Header[name]; !slices.Equal(got, want) {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}
