package fakeserver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	s.inFlight.Add(1)
	rec := newRecord(s.arrivals.Add(1), r)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	out := &sender{ctx: ctx, w: w, rec: rec, keep: s.opts.KeepBody}
	defer func() { // also when the answer is aborted by a panic
		rec.Left = r.Context().Err() != nil && s.stopped.Err() == nil && !out.cut && !out.done
		rec.Answer = out.answer.Bytes()
		rec.Status = out.status
		s.inFlight.Add(-1)
		if s.opts.OnDone != nil {
			s.opts.OnDone(rec)
		}
		rec.trim(s.opts.KeepBody)
		close(rec.Done)
	}()
	if s.opts.Early != nil {
		if b := s.opts.Early(rec); b != nil {
			s.keep(rec)
			// Without this, Go's server reads the body before it sends a header.
			_ = http.NewResponseController(w).EnableFullDuplex() // h2 needs no such thing
			s.answer(out, *b)
			return
		}
	}
	rec.readBody(r)
	s.keep(rec)
	if s.opts.OnRequest != nil {
		s.opts.OnRequest(rec)
	}
	var b Behaviour
	if s.opts.Script != nil {
		b = s.opts.Script(rec)
	}
	s.answer(out, b)
}

// answer does what b says, or what the path says where b leaves it open.
func (s *Server) answer(out *sender, b Behaviour) {
	rec := out.rec
	if !out.wait(b) {
		out.abort()
	}
	if b.Raw != nil {
		out.takeOver(func(c net.Conn) { b.Raw(c, rec) })
		return
	}
	if b.Status == 0 {
		if refusal, refused := s.refuse(rec); refused {
			refusal.Header = b.Header
			b = refusal
		}
	}
	switch {
	case b.Status != 0:
		out.whole(b, b.Body)
	case rec.Format != NoFormat:
		r := s.compose(rec, b)
		a := r.build(rec.Format, rec.request.StreamOptions.IncludeUsage)
		if rec.Stream {
			out.stream(b, a.events)
		} else {
			out.whole(b, a.body)
		}
	default:
		s.other(out, b)
	}
}

// refuse is the error that a real server would answer with.
func (s *Server) refuse(rec *Record) (Behaviour, bool) {
	if s.opts.Key != "" && rec.Method != http.MethodHead {
		bearer, _ := strings.CutPrefix(rec.Header.Get("Authorization"), "Bearer ")
		if rec.Header.Get("x-api-key") != s.opts.Key && bearer != s.opts.Key {
			return Failure(rec, http.StatusUnauthorized, "authentication_error", "invalid api key"), true
		}
	}
	if strings.EqualFold(rec.Header.Get("Upgrade"), "websocket") {
		return Failure(rec, http.StatusUpgradeRequired, "invalid_request_error", "this server speaks HTTP only"), true
	}
	if rec.Format == NoFormat {
		return Behaviour{}, false
	}
	switch q := rec.request; {
	case rec.BodyErr != nil, rec.Plain == nil, q.invalid:
		return Failure(rec, http.StatusBadRequest, "invalid_request_error", "the body is not valid JSON"), true
	case s.opts.Strict && !s.serves(q.Model):
		kind := "not_found_error"
		if rec.Format != Messages {
			kind = "model_not_found"
		}
		return Failure(rec, http.StatusNotFound, kind, "model: "+q.Model), true
	}
	return Behaviour{}, false
}

func (s *Server) serves(model string) bool {
	for _, m := range s.opts.Models {
		if m == model {
			return true
		}
	}
	return false
}

// other answers what is not inference.
func (s *Server) other(out *sender, b Behaviour) {
	rec := out.rec
	get := rec.Method == http.MethodGet || rec.Method == http.MethodHead
	b.Status = http.StatusOK
	switch {
	case get && strings.HasSuffix(rec.Path, "/models"):
		out.whole(b, s.modelList(rec))
	case rec.Method == http.MethodPost && strings.HasSuffix(rec.Path, "/messages/count_tokens"):
		out.whole(b, object("input_tokens", max(1, len(rec.Plain)/4)))
	case get && (rec.Path == "/" || rec.Path == "/health" || strings.HasSuffix(rec.Path, "/api/hello")):
		out.whole(b, object("status", "ok", "name", s.opts.Name))
	default:
		b.Status = http.StatusNotFound
		out.whole(b, errorBody(rec, "not_found_error", "no such path: "+rec.Method+" "+rec.Path))
	}
}

// modelList is the list in Anthropic's shape for those who speak its API, and
// else in OpenAI's, with the context length as vLLM names it.
func (s *Server) modelList(rec *Record) []byte {
	const day = "2026-01-01T00:00:00Z"
	anthropic := speaksMessages(rec)
	var models [][]byte
	for _, m := range s.opts.Models {
		if anthropic {
			models = append(models, object("type", "model", "id", m, "display_name", m, "created_at", day,
				"max_input_tokens", s.opts.Window))
		} else {
			models = append(models, object("id", m, "object", "model", "created", 1767225600,
				"owned_by", s.opts.Name, "max_model_len", s.opts.Window))
		}
	}
	data := append(append([]byte{'['}, bytes.Join(models, []byte{','})...), ']')
	if !anthropic {
		return object("object", "list", "data", rawJSON(data))
	}
	var first, last any
	if n := len(s.opts.Models); n > 0 {
		first, last = s.opts.Models[0], s.opts.Models[n-1]
	}
	return object("data", rawJSON(data), "has_more", false, "first_id", first, "last_id", last)
}

// sleep waits for d, or less if the request ends.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
