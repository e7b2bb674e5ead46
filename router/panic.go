package router

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
)

// caught keeps a mistake of ours from going unseen: net/http would only cut
// the connection. It is deferred, and runs before the turn is recorded.
func (t *turn) caught() {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // the value itself is the sign
		panic(p)
	}
	t.r.Meter.Refused("panic")
	t.r.Logger.Error("a mistake in agentop", "id", t.id, "agent", t.rec.Agent, "panic", panicWords(p), "stack", string(debug.Stack()))
	if t.status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun: a cut tells the client that it is not whole
	}
	t.refuse(refuse("internal", "a mistake in agentop, which is told in log/proxy.log; nothing more was sent to a server",
		"go on without agentop, `agentop agent disable`, if it comes again"))
}

// panicWords says what happened without what it happened to: a panic's text
// may quote a request. The traces of goroutines hold addresses alone.
func panicWords(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", p)
}
