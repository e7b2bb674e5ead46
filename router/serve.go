package router

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"agentop/router/front"
	"agentop/router/peer"
)

// owners is opened once for the process, and before descriptors can run out.
var owners = sync.OnceValue(func() Owners {
	f, err := peer.Open()
	if err != nil {
		return nil
	}
	return f
})

// TellsOwners says whether this system tells which account a connection comes
// from. Where it does not, `token` in the configuration keeps others out.
func TellsOwners() bool { return owners() != nil }

// maxHeaders is how many bytes of headers are read of a request.
const maxHeaders = 256 << 10

// NewServer makes the HTTP server that agents talk to. There is no limit on
// how long a request or an answer takes: a model may think for an hour.
func NewServer(h http.Handler, errors *log.Logger) *front.Server {
	who := owners()
	return &front.Server{Wrap: asAgentsRead, HTTP: &http.Server{
		Handler: h,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return withVisitor(ctx, c, who)
		},
		// Else net/http answers `OPTIONS *` by itself, whoever asks.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       10 * time.Minute,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          errors,
	}}
}
