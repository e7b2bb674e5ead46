package router

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentop/agents"
	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/placement"
	"agentop/router/prefix"
)

// turn is one request on its way through the router. It belongs to the
// goroutine that serves it.
type turn struct {
	r        *Router
	w        http.ResponseWriter
	in       *http.Request // as the client sent it; never changed
	cfg      *config.Config
	id       string // request id: in agentop's own errors and in the log
	started  time.Time
	answered bool // agentop answered by itself, without an error
	stranger bool // it is refused, and leaves no line in the request log

	split   agents.Split
	body    []byte  // as it came
	upload  *upload // its memory
	plain   []byte  // without content codings; body itself when it has none
	coded   bool
	scratch *scratch // outline and keys; nil once the request is being sent
	asked   string   // model name in the body
	key     string   // the body's last prefix key as the log has it; "" if there is none
	rec     agents.Recognition

	decision placement.Decision
	conv     placement.Conversation // whose turn it is; zero when nobody's
	pin      *pinRecord             // nil without a pin
	pins     []seenPin              // that were looked up for it
	server   *config.Server         // nil towards the own upstream
	member   string
	sent     string // model name that was sent; "" when there was none to read

	leave   func() // takes the request off its server's load
	running bool   // it is counted as a stream of its conversation
	answer  *answer
	status  int
	failure *failure
	cut     string // who ended the exchange early: "", client or server
	broken  string // how the server broke its answer: a word for the log
}

func (r *Router) begin(w http.ResponseWriter, req *http.Request) *turn {
	return &turn{
		r: r, w: w, in: req, cfg: r.Config(), id: requestID(),
		started: r.Now(), scratch: takeScratch(),
		rec: agents.Recognition{Agent: agents.Other},
	}
}

// requestID makes an id of letters alone: OpenCode reads an error's whole body
// for 429, 500, 503 and the like, and asks again for a minute where it finds
// them, whatever the status.
func requestID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	for i := range id {
		id[i] = 'a' + id[i]%16
	}
	return "req_" + string(id[:])
}

// guard refuses what does not come from a program of this user.
func (t *turn) guard() *failure {
	if reason := guard(t.in); reason != "" {
		t.stranger = true
		t.r.Meter.Refused("guard")
		return fail(http.StatusForbidden, "guard", "refused: %s. agentop serves only programs of this user on this machine, through a loopback address", reason)
	}
	return nil
}

// address takes the agent off the path and answers what is agentop's own.
func (t *turn) address() *failure {
	path := rawPath(t.in)
	if t.cfg.Token != "" {
		rest, ok := agents.CutToken(path, t.cfg.Token)
		if !ok && path != pathHealthy && path != pathReady {
			t.stranger = true
			t.r.Meter.Refused("token")
			return refuse("token", "the base URL lacks the secret path segment that config.yaml asks for (`token`)",
				"run `agentop agent enable` again")
		}
		path = rest
	}
	if t.own(path) {
		t.answered = true
		return nil
	}
	split, err := agents.SplitPath(path, func(name string) bool { _, ok := t.cfg.Agents[name]; return ok })
	if err != nil {
		return t.unknownAgent(err)
	}
	t.split = split
	if t.in.Method == http.MethodHead && (split.Path == "/" || split.Path == "/api/hello") {
		// Claude Code's probe at start: a quick 200 says that somebody is there.
		t.greet()
		t.answered = true
		return nil
	}
	if isWebSocket(t.in) {
		// Codex falls back to HTTP at once on 426, within the same turn and
		// without a word on its screen. A WebSocket bridge would begin here.
		t.recogniseHeaders()
		return fail(http.StatusUpgradeRequired, "websocket", "WebSocket is not carried here; the same request over HTTP is")
	}
	return nil
}

func (t *turn) unknownAgent(err error) *failure {
	names := agents.Known()
	for name := range t.cfg.Agents {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	f := fail(http.StatusNotFound, "unknown-agent", "%v; agents here: %s", err, strings.Join(names, ", "))
	f.hint = "a base URL is http://" + t.in.Host + "/AGENT, see `agentop agent list`"
	return f
}

// rawPath is the path as the client sent it, byte for byte.
func rawPath(req *http.Request) string {
	path, _, _ := strings.Cut(req.RequestURI, "?")
	if strings.HasPrefix(path, "/") {
		return path
	}
	return req.URL.EscapedPath() // the target was a whole URL
}

func isWebSocket(req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	for protocol := range strings.SplitSeq(joined(req.Header["Upgrade"]), ",") {
		if strings.EqualFold(strings.TrimSpace(protocol), "websocket") {
			return true
		}
	}
	return false
}

// read takes in the whole body, within the limit.
func (t *turn) read() *failure {
	var err error
	if t.body, t.upload, err = readBody(t.in, t.cfg.MaxBody); err != nil {
		t.recogniseHeaders()
		if errors.Is(err, errTooLarge) {
			return t.tooLarge("as sent")
		}
		t.cut = "client"
		return refuse("body", "the request body ended before it was whole", "send the request again")
	}
	t.plain = t.body
	if len(t.body) == 0 || len(codingsOf(t.in.Header)) == 0 || agents.BodyFormatOf(t.in.Method, t.split.Path) == outline.NoFormat {
		return nil // nothing to decode, or nobody who would read it
	}
	plain, err := decode(t.body, t.in.Header, t.cfg.MaxBody)
	if err != nil {
		t.recogniseHeaders()
	}
	switch {
	case errors.Is(err, errTooLarge):
		return t.tooLarge("when decoded")
	case err != nil && agents.FormatOf(t.in.Method, t.split.Path) != outline.NoFormat:
		return refuse("coding", "the request body cannot be read: "+err.Error(), "send it without Content-Encoding")
	case err != nil:
		return nil // a token count: it goes as it came
	}
	t.plain, t.coded = plain, true
	return nil
}

// tooLarge is 413: the status that Claude Code answers by shortening the
// conversation.
func (t *turn) tooLarge(how string) *failure {
	f := fail(http.StatusRequestEntityTooLarge, "too-large", "the request body is larger %s than max_body in config.yaml allows (%d bytes)", how, t.cfg.MaxBody)
	f.hint = "raise max_body, or compact the conversation"
	return f
}

// recogniseHeaders recognises a request whose body will not be read.
func (t *turn) recogniseHeaders() {
	if rec, err := agents.Recognise(t.recognition()); err == nil {
		t.rec = rec
	}
}

func (t *turn) recognition() agents.Request {
	return agents.Request{
		Agent: t.split.Agent, Method: t.in.Method, Path: t.split.Path,
		Header: t.in.Header, Outline: &t.scratch.outline,
	}
}

// recognise makes the one pass over the body and asks what the request is.
func (t *turn) recognise() *failure {
	if f := agents.BodyFormatOf(t.in.Method, t.split.Path); f != outline.NoFormat && len(t.plain) > 0 {
		t.scratch.outline.Known, t.scratch.outline.Conversed = t.r.known, agents.Likely(t.in.Header)
		t.scratch.outline.Scan(f, t.plain, prefix.Sum)
		t.asked = t.scratch.outline.Model
	}
	rec, err := agents.Recognise(t.recognition())
	if err != nil {
		t.rec.Agent = rec.Agent
		return refuse("session-id", err.Error(), "start a new conversation in the agent")
	}
	t.rec = rec
	t.scratch.keys = prefix.Chain(t.scratch.keys[:0], string(rec.Agent), t.scratch.outline.Elements)
	if n := len(t.scratch.keys); n > 0 {
		t.key = prefix.Format(t.scratch.keys[n-1])
	}
	t.r.seen.note(rec.Agent, agents.Version(rec.Agent, t.in.UserAgent()), t.started)
	return nil
}

// refuse answers with agentop's own error.
func (t *turn) refuse(f *failure) {
	t.failure, t.status = f, f.status
	// The path may be anybody's words, and begin with the secret segment.
	if n, now := t.r.strangers.tell(t.stranger, t.started); now {
		t.r.Logger.Info("request refused", "id", t.id, "agent", t.rec.Agent, "status", f.status, "class", f.class, "headers", headerNames(t.in.Header), "untold", n)
	}
	t.decision.Server = ""
	t.route().set(t.w.Header())
	if t.in.Context().Err() != nil {
		t.cut = "client" // it may have closed its half only: it is told all the same
	}
	path := t.split.Path
	if path == "" {
		path = rawPath(t.in) // refused before it was taken apart; a format is told by the end
	}
	f.write(t.w, agents.BodyFormatOf(t.in.Method, path), t.id)
	if f.status == http.StatusRequestEntityTooLarge {
		t.drain()
	}
}

// What is still read of a body that was refused for its size.
const (
	drainSize = 1 << 30
	drainTime = 10 * time.Second
)

// drain reads on after the answer: a client that sends its whole body before
// it reads would find the connection reset, and never the reason.
func (t *turn) drain() {
	if t.in.Header["Expect"] != nil {
		return // it waits for a word before it sends any
	}
	rc := http.NewResponseController(t.w)
	if rc.Flush() != nil || rc.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, t.in.Body, drainSize) // however it ends: the answer is given
}

// route is what the route header says of the turn as it stands.
func (t *turn) route() route {
	r := route{
		agent: t.rec.Agent, session: placement.Plain(t.session()), turn: t.rec.Unknown,
		pin: string(placement.PinNone), server: "-",
	}
	if t.decision.Turn != agents.NotInference { // it has been placed
		r.turn = t.decision.Turn
	}
	if t.decision.Server != "" {
		r.pin, r.server = string(t.decision.Pin), placeName(t.decision.Server, t.member)
	}
	return r
}

// session is the conversation's id as far as it is known by now.
func (t *turn) session() string {
	if t.decision.Session != "" {
		return t.decision.Session
	}
	return t.rec.Session
}
