package simulation

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"

	"agentop/router/fakeserver"
)

// wire is the network between the proxy and the servers, in memory.
type wire struct {
	w    *world
	life *life
}

// RoundTrip has the server answer whole, and hands the answer out in pieces.
func (n wire) RoundTrip(req *http.Request) (*http.Response, error) {
	n.life.must()
	server := n.w.servers[req.URL.Hostname()]
	answered := &buffer{header: http.Header{}, status: http.StatusOK}
	cut := serve(server, answered, req)
	n.life.must()
	res := &http.Response{
		StatusCode: answered.status, Status: http.StatusText(answered.status), Header: answered.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: req,
		Body: &pieces{rest: answered.body.Bytes(), cut: cut, life: n.life},
	}
	return res, nil
}

// serve has the handler answer, and says whether it broke off.
func serve(h http.Handler, w http.ResponseWriter, req *http.Request) (cut bool) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler, killed{}:
			cut = true
		default:
			panic(p)
		}
	}()
	h.ServeHTTP(w, req)
	return false
}

// pieces is an answer's body on the wire.
type pieces struct {
	rest []byte
	cut  bool
	life *life
}

const pieceBytes = 700

func (p *pieces) Read(b []byte) (int, error) {
	p.life.must()
	if len(p.rest) == 0 {
		if p.cut {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(len(p.rest), pieceBytes)])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// buffer is a client's or the wire's end of an answer.
type buffer struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	written func() // called after each write, if set
}

func (b *buffer) Header() http.Header { return b.header }
func (b *buffer) WriteHeader(status int) {
	if status >= 200 {
		b.status = status
	}
}
func (b *buffer) Flush() {}
func (b *buffer) Write(p []byte) (int, error) {
	n, err := b.body.Write(p)
	if b.written != nil {
		b.written()
	}
	return n, err
}

// result is what came back to a client.
type result struct {
	status int
	header http.Header
	body   []byte
	cut    bool // the connection broke
}

// localAddress is what the proxy is reached at.
var localAddress = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4780}

// request hands one to the proxy without a network; written is called whenever
// a part of the answer has come.
func (p *process) request(method, path, body string, h http.Header, written func(soFar []byte)) result {
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(localAddress))
	ctx = context.WithValue(ctx, http.ServerContextKey, &http.Server{}) // a broken answer is then a panic, as in a real server
	req, err := http.NewRequestWithContext(ctx, method, "http://"+localAddress.String()+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the simulation's own paths
	}
	req.Header, req.RequestURI, req.RemoteAddr = h, path, "127.0.0.1:50000"
	out := &buffer{header: http.Header{}, status: http.StatusOK}
	if written != nil {
		out.written = func() { written(out.body.Bytes()) }
	}
	cut := serve(p.router, out, req)
	return result{out.status, out.header, out.body.Bytes(), cut || p.dead()}
}

// newServer is a server that tells the judge of each request.
func newServer(name string, first int64, j *judge) *fakeserver.Server {
	return fakeserver.New(fakeserver.Options{
		Name: name, FirstReply: first, KeepRecords: -1, KeepBody: 1, Models: []string{"m-large"},
		OnRequest: func(rec *fakeserver.Record) { j.arrived(name, rec) },
		Script:    j.script,
	})
}
