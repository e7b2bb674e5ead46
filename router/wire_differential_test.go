package router

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The differential test sends the same odd requests to the same server through
// agentop and directly, and compares what the server and the client see. What
// may differ is written down in docs/wire.md and nowhere else: sawRequest and
// sawAnswer are that list as code.

// message is an HTTP message as its receiver sees it.
type message struct {
	start   string   // request line, or status
	interim []string // statuses of 1xx answers before it
	header  []string // "Name: value", sorted by name alone: values keep their order
	trailer []string
	body    string
	whole   bool // the body ended as its framing says
}

// odd makes requests and answers from a seed.
type odd struct{ *rand.Rand }

func (o odd) of(list ...string) string { return list[o.IntN(len(list))] }
func (o odd) chance(percent int) bool  { return o.IntN(100) < percent }

func (o odd) bytes(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(o.Uint32())
	}
	return string(b)
}

// value is a header's value: any byte that may stand in one.
func (o odd) value() string {
	switch o.IntN(6) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("l", 1+o.IntN(8000)) + "end"
	case 2:
		return "\xe4\xff \t tab \"quoted\\\" ; , =@{}"
	}
	return fmt.Sprintf("v%d, w;q=0.%d", o.IntN(100), o.IntN(10))
}

// headers are lines of end-to-end headers, with some for one hop among them.
func (o odd) headers(names []string) (lines []string) {
	for range o.IntN(8) {
		name := o.of(names...)
		for range 1 + o.IntN(2) {
			lines = append(lines, name+": "+o.value())
		}
	}
	return lines
}

var (
	requestNames = []string{"X-Odd", "x-lower", "Accept", "Accept-Encoding", "accept-LANGUAGE", "anthropic-beta", "anthropic-version", "User-Agent", "Cookie",
		"X-Forwarded-For", "Forwarded", "Via", "Referrer-Policy", "If-None-Match", "Range", "Cache-Control", "Pragma", "Content-Type", "Content-Language",
		"X-Request-Id", "Idempotency-Key", "Date", "From", "Max-Forwards", "Authorization", "x-api-key", "Priority", "traceparent", "X_Under_Score", "X.Dotted!#$%&'*+^`|~"}
	answerNames = []string{"X-Odd", "Set-Cookie", "Cache-Control", "Content-Language", "request-id", "anthropic-ratelimit-x", "Retry-After", "Vary", "ETag",
		"Server", "X-Accel-Buffering", "Warning", "Link", "WWW-Authenticate", "Location", "X-Should-Retry", "Alt-Svc", "Access-Control-Allow-Origin", "Via", "Age", "openai-processing-ms"}
)

// dialogue is one request and its answer, as bytes.
type dialogue struct {
	method, target string
	lines          []string // headers of the request
	body           string
	chunked        bool
	answer         string // whole answer, from status line to the last byte
	abrupt         bool   // the server resets after it
}

func (o odd) dialogue() dialogue {
	x := dialogue{method: o.of("POST", "POST", "POST", "GET", "GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND", "REPORT", "M-SEARCH")}
	x.target = o.of("/v1/messages", "/v1/messages/count_tokens", "/v1/models", "/v1/files", "/v1/models/a%2Fb%20c", "/v1/models//x/../y", "/v1/files/a|b^{c}\"`\\", "/v1/files/\xc3\xa4\xff", "/v1/%6dodels", "/v1/a;b=c:d@e!$&'()*+,=~")
	x.target += o.of("", "", "?beta=true", "?", "??", "?a=1&a=2&b", "?q=%zz;&x=%20+&\xc3\xa4", "?#frag", "?a=b#c", "?|^`{}\"<>")
	x.lines = o.headers(requestNames)
	if o.chance(20) {
		x.lines = append(x.lines, "Connection: X-Hop, x-lower", "X-Hop: 1", "Keep-Alive: timeout=9", "TE: trailers", "Proxy-Connection: keep-alive")
	}
	if x.method != "GET" && x.method != "HEAD" || o.chance(10) {
		x.body = o.of("", "{}", "not json", o.bytes(o.IntN(3000)), `{"model":"m","messages":[{"role":"user","content":"`+o.bytes(o.IntN(200))+`"}],"stream":true}`, strings.Repeat("x", o.IntN(200_000)))
		x.chunked = o.chance(30)
	}
	o.answerTo(&x)
	return x
}

func (o odd) answerTo(x *dialogue) {
	status := []int{200, 200, 200, 201, 202, 203, 204, 206, 226, 301, 304, 307, 400, 401, 403, 404, 405, 409, 413, 418, 422, 429, 451, 500, 501, 502, 503, 504, 529, 599}[o.IntN(30)]
	var b strings.Builder
	if o.chance(10) {
		b.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
	}
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, o.of(http.StatusText(status), "Odd Words", ""))
	for _, line := range o.headers(answerNames) {
		b.WriteString(line + "\r\n")
	}
	if o.chance(60) {
		b.WriteString("Content-Type: " + o.of("application/json", "text/event-stream", "text/html; charset=utf-8", "application/x-ndjson", "Odd/Thing;x=\"y\"", "") + "\r\n")
	}
	if o.chance(30) {
		b.WriteString("Date: " + o.of("Mon, 01 Jan 2029 00:00:00 GMT", "yesterday") + "\r\n")
	}
	if o.chance(10) {
		b.WriteString("Content-Encoding: " + o.of("gzip", "br", "zstd", "rot13", "identity") + "\r\n")
	}
	if o.chance(20) {
		b.WriteString("Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n")
	}
	body := o.of("", "{}", "data: {\"type\":\"message_stop\"}\n\n", ": c\n\ndata: {\"type\":\"ping\"}\r\n\r\ndata: [DONE]\n\n", o.bytes(o.IntN(5000)), o.bytes(o.IntN(100_000)))
	if x.method == "HEAD" || status == 204 || status == 304 {
		if o.chance(50) && status != 204 {
			b.WriteString("Content-Length: 1234\r\n")
		}
		x.answer = b.String() + "\r\n"
		return
	}
	switch o.IntN(6) {
	case 0: // ends with the connection
		x.answer = b.String() + "\r\n" + body
	case 1, 2:
		b.WriteString("Transfer-Encoding: chunked\r\n")
		trailer := o.chance(30)
		if trailer {
			b.WriteString("Trailer: X-Sum, X-More\r\n")
		}
		b.WriteString("\r\n")
		for rest := body; rest != ""; {
			n := min(1+o.IntN(5000), len(rest))
			fmt.Fprintf(&b, "%x%s\r\n%s\r\n", n, o.of("", ";ext=1"), rest[:n])
			rest = rest[n:]
		}
		if o.chance(15) {
			x.answer = b.String() // cut: no last chunk
			return
		}
		b.WriteString("0\r\n")
		if trailer {
			b.WriteString("X-Sum: 1\r\nX-More: 2\r\n")
		}
		x.answer = b.String() + "\r\n"
	case 3: // fewer bytes than promised
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body)+1+o.IntN(50), body)
		x.answer, x.abrupt = b.String(), o.chance(30)
	default: // as promised, or more
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s%s", len(body), body, o.of("", "", "HTTP/1.1 200 surplus\r\n\r\n"))
		x.answer = b.String()
	}
}

// unfinished reports whether the answer is to an inference request and lacks
// its format's end.
func (x dialogue) unfinished() bool {
	path, _, _ := strings.Cut(x.target, "?")
	return x.method == "POST" && path == "/v1/messages" && !strings.Contains(x.answer, "message_stop")
}

// send writes the request to address and returns the answer as a client sees it.
func (x dialogue) send(t *testing.T, address, prefix string, number int) message {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: %s\r\nX-Number: %d\r\n", x.method, prefix, x.target, address, number)
	for _, line := range x.lines {
		b.WriteString(line + "\r\n")
	}
	switch {
	case x.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		if x.body != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(x.body), x.body)
		}
		b.WriteString("0\r\n\r\n")
	case x.body != "" || x.method == "POST":
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(x.body), x.body)
	default:
		b.WriteString("\r\n")
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		t.Fatalf("request %d: %v", number, err)
	}
	return readAnswer(t, bufio.NewReader(c), x.method, number)
}

func readAnswer(t *testing.T, r *bufio.Reader, method string, number int) (m message) {
	t.Helper()
	for {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			m.start = "no answer"
			return m
		}
		if res.StatusCode/100 == 1 {
			m.interim = append(m.interim, fmt.Sprint(res.StatusCode, res.Header["Link"]))
			continue
		}
		body, err := io.ReadAll(res.Body)
		m.start, m.body, m.whole = fmt.Sprint(res.StatusCode), string(body), err == nil
		m.header = sawAnswer(res.StatusCode, res.Header)
		m.trailer = lines(res.Trailer)
		return m
	}
}

// lines are a header's, sorted by name.
func lines(h http.Header) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			out = append(out, name+": "+v)
		}
	}
	return out
}

// perConnection are the headers that concern one connection alone.
var perConnection = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// sawAnswer is an answer's header without what may differ. Content-Length is
// compared through the body; a HEAD's is kept by neither side's reader.
func sawAnswer(status int, h http.Header) []string {
	h = h.Clone()
	endToEnd(h)
	if status == http.StatusNotModified {
		delete(h, "Content-Type")
	}
	delete(h, RouteHeader)
	delete(h, "Content-Length")
	return lines(h)
}

// sawRequest is a request's header without what may differ.
func sawRequest(h http.Header) []string {
	h = h.Clone()
	endToEnd(h)
	delete(h, "Content-Length")
	if agent := h.Get("User-Agent"); agent != "" {
		h.Set("User-Agent", agent)
	} else {
		delete(h, "User-Agent")
	}
	return lines(h)
}

func endToEnd(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range perConnection {
		delete(h, name)
	}
}

// diffServer answers by the exchange that a request's number names, and keeps
// what it saw.
type diffServer struct {
	mu        sync.Mutex
	exchanges []dialogue
	seen      map[int][]message
}

func (s *diffServer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	body, err := io.ReadAll(req.Body)
	var number int
	_, _ = fmt.Sscan(req.Header.Get("X-Number"), &number)
	m := message{
		start: req.Method + " " + req.RequestURI, header: sawRequest(req.Header), body: string(body),
		whole: err == nil, trailer: lines(req.Trailer),
	}
	s.mu.Lock()
	s.seen[number] = append(s.seen[number], m)
	x := s.exchanges[number]
	s.mu.Unlock()
	_, _ = io.WriteString(c, x.answer)
	if x.abrupt {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

func TestDifferentialToDirect(t *testing.T) {
	const count = 2000
	const seed = 4780
	t.Logf("seed %d", seed)
	o := odd{rand.New(rand.NewPCG(seed, 1))}
	s := &diffServer{seen: map[int][]message{}}
	for range count {
		s.exchanges = append(s.exchanges, o.dialogue())
	}
	base := upstream(t, s.serve)
	b := newBench(t, nil)
	b.configure("agents:\n  claude-code: {server: \"\", upstream: " + base + "}\n")
	agentop, direct := strings.TrimPrefix(b.url, "http://"), strings.TrimPrefix(base, "http://")
	bad := 0
	for i, x := range s.exchanges {
		want := x.send(t, direct, "", i)
		got := x.send(t, agentop, "/claude-code", i)
		seen := s.seen[i]
		if len(seen) != 2 {
			t.Errorf("%d: %s %q reached the server %d times, want 2; answer %s", i, x.method, x.target, len(seen), got.start)
			bad++
			continue
		}
		if d := differ(seen[0], seen[1]); d != "" {
			t.Errorf("%d: the server saw of %s %q %s", i, x.method, x.target, d)
			bad++
		}
		if x.unfinished() && want.whole && !got.whole {
			got.whole = true // a tidy end in the middle of a stream is passed on as a cut
		}
		if d := differ(want, got); d != "" {
			t.Errorf("%d: the client of %s %q saw %s\nanswer %.300q", i, x.method, x.target, d, x.answer)
			bad++
		}
		if bad > 20 {
			t.Fatal("and so on")
		}
	}
}

// differ says how what came through agentop differs from what came directly.
func differ(direct, through message) string {
	switch {
	case direct.start != through.start:
		return fmt.Sprintf("%q, directly %q", through.start, direct.start)
	case !slices.Equal(direct.interim, through.interim):
		return fmt.Sprintf("interim answers %q, directly %q", through.interim, direct.interim)
	case !slices.Equal(direct.header, through.header):
		return fmt.Sprintf("headers\n%q, directly\n%q", through.header, direct.header)
	case direct.whole != through.whole:
		return fmt.Sprintf("a body that is whole: %v, directly %v", through.whole, direct.whole)
	case direct.body != through.body && direct.whole:
		return fmt.Sprintf("a body of %d bytes, directly %d", len(through.body), len(direct.body))
	case !strings.HasPrefix(direct.body, through.body):
		return "other bytes before the cut"
	case !slices.Equal(direct.trailer, through.trailer):
		return fmt.Sprintf("trailers %q, directly %q", through.trailer, direct.trailer)
	}
	return ""
}
