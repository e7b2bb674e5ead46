package front

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const plainHead = "POST /claude-code/v1/messages?beta=true HTTP/1.1\r\nHost: localhost:4100\r\nUser-Agent: claude-cli/2.1.332 (external, cli)\r\n" +
	"X-Claude-Code-Session-Id: 5f0c\r\naccept: application/json\r\nX-Two: 1\r\nx-two:\t2 \r\nAuthorization: Bearer sk-fake-1\r\nX-Empty:\r\nConnection: keep-alive\r\nContent-Length: 12\r\n\r\n"

// odd are heads that only net/http may read.
var odd = []struct{ name, head string }{
	{"chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
	{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n"},
	{"a signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n"},
	{"an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"},
	{"Expect", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"},
	{"an upgrade", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	{"a header of the connection", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-A\r\n\r\n"},
	{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\n\r\n"},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\n"},
	{"no Host", "GET / HTTP/1.1\r\n\r\n"},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
	{"a Host of odd characters", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
	{"a whole URL", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"two slashes", "GET //a/b HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"a broken escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"OPTIONS of all", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"},
	{"small letters", "get / HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"a continued line", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n 2\r\n\r\n"},
	{"a space before the colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A : 1\r\n\r\n"},
	{"no name", "GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n"},
	{"no colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A\r\n\r\n"},
	{"a bare line feed", "GET / HTTP/1.1\nHost: a\r\nX-A: 1\nX-B: 2\r\n\r\n"},
	{"a line feed in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\nContent-Length: 5\r\n\r\n"},
	{"a bare carriage return", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n"},
	{"a control character", "GET / HTTP/1.1\r\nHost: a\r\nX-A: \x01\r\n\r\n"},
	{"a null in the target", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"Pragma", "GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n"},
	{"trailers", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-A\r\nContent-Length: 0\r\n\r\n"},
}

func TestOnlyPlainHeadsAreReadHere(t *testing.T) {
	if !parseHead([]byte(plainHead), &http.Request{Header: http.Header{}}) {
		t.Error("an agent's head is not plain")
	}
	for _, c := range odd {
		if req := (&http.Request{Header: http.Header{}}); parseHead([]byte(c.head), req) {
			t.Errorf("%s: taken as %+v", c.name, req)
		}
	}
}

// TestWhatCannotBecomePlainIsNotWaitedFor feeds beginnings without an end.
func TestWhatCannotBecomePlainIsNotWaitedFor(t *testing.T) {
	for part, want := range map[string]bool{
		"": true, "P": true, "POST /a": true, "POST /a HTTP/1.1\r\nHos": true, plainHead[:60]: true,
		"\x16\x03\x01": false, "garbage": false, "GET / HTTP/1.0\r\n": false, "GET /\n": false, "GET \x00": false, "\r\n": false,
	} {
		if got := mayBePlain([]byte(part)); got != want {
			t.Errorf("%q: %v, want %v", part, got, want)
		}
	}
}

// FuzzHead holds that a head that is read here means the same to net/http.
func FuzzHead(f *testing.F) {
	f.Add([]byte(plainHead))
	f.Add([]byte("GET /a?b=%20#c HTTP/1.1\r\nhost: [::1]:80\r\nconnection: Close\r\nX: \xff\r\n\r\n"))
	f.Add([]byte("HEAD /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nAccept: b\r\n\r\n"))
	for _, c := range odd {
		f.Add([]byte(c.head))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		end := bytes.Index(head, headEnd)
		if end < 0 {
			return
		}
		head = head[:end+len(headEnd)]
		got := &http.Request{Header: http.Header{}}
		if !parseHead(head, got) {
			return
		}
		if !mayBePlain(head) {
			t.Errorf("not waited for, though plain")
		}
		want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			t.Fatalf("net/http refuses it: %v", err)
		}
		want.Header.Del("Host")
		if got.Method != want.Method || got.RequestURI != want.RequestURI || got.Host != want.Host || got.Proto != want.Proto ||
			got.ProtoMajor != want.ProtoMajor || got.ProtoMinor != want.ProtoMinor || got.ContentLength != want.ContentLength || got.Close != want.Close ||
			!reflect.DeepEqual(got.URL, want.URL) || !reflect.DeepEqual(got.Header, want.Header) || len(want.TransferEncoding) > 0 || want.Trailer != nil {
			t.Errorf("read here as\n%+v\nand by net/http as\n%+v", got, want)
		}
		for name, values := range got.Header {
			if strings.ContainsAny(name, " \r\n:") || strings.ContainsAny(strings.Join(values, ""), "\r\n\x00") {
				t.Errorf("header %q: %q", name, values)
			}
		}
	})
}
