package preflight

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentop/agents/outline"
)

// speedLimit is how long the one request of FirstToken may take: a server may
// have to load the model first.
const speedLimit = 30 * time.Second

// Speed is what one tiny request told.
type Speed struct {
	Model  string
	Format outline.Format
	First  time.Duration // to the first byte of the answer's body
	Error  string        // why there is none; one line, no secret
}

// FirstToken sends one request that generates a single token and measures the
// time to its first byte. It is the only question that costs anything, so it
// is asked by `server test` alone. formats are tried in order until the server
// takes the request; a refused one generates nothing.
func (a Asker) FirstToken(ctx context.Context, model string, formats []outline.Format) Speed {
	ctx, cancel := context.WithTimeout(ctx, speedLimit)
	defer cancel()
	address := a.Server.URLs()[0]
	base, err := url.Parse(address)
	if err != nil {
		return Speed{Model: model, Error: "its URL cannot be read"}
	}
	carrier, err := a.Transport(base)
	if err != nil {
		return Speed{Model: model, Error: err.Error()}
	}
	at := &asking{Asker: a, base: base, address: address, client: &http.Client{
		Transport: carrier, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	s := Speed{Model: model, Error: "it speaks none of the formats that could be tried"}
	for _, f := range formats {
		if s = at.time(ctx, model, f); s.Error == "" {
			return s
		}
	}
	return s
}

// tiny is the smallest request of each format. OpenAI takes no fewer than 16
// output tokens in its Responses API.
func tiny(f outline.Format, model string) question {
	name := quote(model)
	switch f {
	case outline.Messages:
		return question{http.MethodPost, "/v1/messages", "", `{"model":` + name + `,"max_tokens":1,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, plainKey}
	case outline.Responses:
		return question{http.MethodPost, "/v1/responses", "", `{"model":` + name + `,"max_output_tokens":16,"stream":true,"store":false,"input":"hi"}`, bearer}
	}
	return question{http.MethodPost, "/v1/chat/completions", "", `{"model":` + name + `,"max_tokens":1,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, bearer}
}

func (a *asking) time(ctx context.Context, model string, f outline.Format) Speed {
	s := Speed{Model: model, Format: f}
	q := tiny(f, model)
	req, err := http.NewRequestWithContext(ctx, q.method, a.target(q), strings.NewReader(q.body))
	if err != nil {
		s.Error = "the request cannot be made"
		return s
	}
	a.headers(req, q.style)
	start := time.Now()
	res, err := a.client.Do(req)
	if err != nil {
		s.Error = a.unreached(err)
		return s
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		s.Error = fmt.Sprintf("it answered %d to a tiny %s request for %s", res.StatusCode, Word(f), model)
		return s
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
		s.Error = "it broke the answer to a tiny request off"
		return s
	}
	s.First = time.Since(start)
	return s
}
