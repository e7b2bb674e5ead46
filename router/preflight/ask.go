package preflight

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/credential"
)

// maxReply bounds what is read of one answer; long model lists have about a
// thousand entries of a kilobyte or two.
const maxReply = 8 << 20

// style is the way in which a question carries the key, as the clients of the
// APIs do.
type style uint8

const (
	bearer   style = iota // authorization: Bearer, as OpenAI's clients
	plainKey              // x-api-key, as Anthropic's clients
)

// question is one request that asks.
type question struct {
	method string
	path   string // as an agent would send it, or "root:" and a path at the server's root
	query  string
	body   string
	style  style
}

// reply is what came back. err is set where nothing did.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (r reply) ok() bool { return r.err == nil && r.status/100 == 2 }

// rootPath marks a path that is no part of the three APIs: it stands at the
// server's root, whatever the API's paths begin with.
const rootPath = "root:"

// The bodies that no server can take for a request.
const (
	noModel       = "agentop-preflight"
	badMessages   = `{"model":"` + noModel + `","max_tokens":0,"messages":0}`
	badResponses  = `{"model":"` + noModel + `","input":0}`
	badChat       = `{"model":"` + noModel + `","messages":0}`
	nobodysPath   = "/v1/agentop-preflight"
	anthropicDate = "2023-06-01" // the only version of the Messages API
)

// The first questions, asked all at once.
const (
	askModels = iota
	askModelsPlain
	askMessages
	askResponses
	askChat
	askNobody
	questions
)

var first = [questions]question{
	askModels:      {http.MethodGet, "/v1/models", "", "", bearer},
	askModelsPlain: {http.MethodGet, "/v1/models", "limit=1000", "", plainKey},
	askMessages:    {http.MethodPost, "/v1/messages", "", badMessages, plainKey},
	askResponses:   {http.MethodPost, "/v1/responses", "", badResponses, bearer},
	askChat:        {http.MethodPost, "/v1/chat/completions", "", badChat, bearer},
	askNobody:      {http.MethodPost, nobodysPath, "", badChat, bearer},
}

// askOne asks one address of the server.
func (a Asker) askOne(ctx context.Context, address string) Answer {
	base, err := url.Parse(address)
	if err != nil {
		return Answer{Trouble: []string{a.name() + ": its URL cannot be read; " + a.addAgain("URL")}}
	}
	carrier, err := a.Transport(base)
	if err != nil {
		return Answer{Trouble: []string{a.name() + ": " + err.Error() + "; mend ca_file under " + a.Server.Name + " in config.yaml"}}
	}
	at := asking{Asker: a, base: base, address: address, client: &http.Client{
		Transport: carrier,
		// A redirect is told, never followed: the key is this server's alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return at.run(ctx)
}

// asking is the asking of one address.
type asking struct {
	Asker
	base    *url.URL
	address string
	client  *http.Client
	replies [questions]reply
	// asBearer says that the answer of the Messages API's path is to a
	// question with the key in Authorization, onlyBearer that it takes the key
	// there only.
	asBearer, onlyBearer bool
	// onlyPlain says that the key is taken in x-api-key only.
	onlyPlain bool
	answer    Answer
}

func (a *asking) run(ctx context.Context) Answer {
	var wait sync.WaitGroup
	for i, q := range first {
		wait.Go(func() { a.replies[i] = a.send(ctx, q) })
	}
	wait.Wait()
	if !a.reached() {
		return a.answer
	}
	a.retryAsBearer(ctx)
	a.retryAsPlain(ctx)
	a.readModels()
	a.askByModel(ctx)
	a.readFormats()
	a.readKey()
	a.askMore(ctx)
	a.troubles(ctx)
	return a.answer
}

// reached says whether any question was answered; if none was, the answer
// says why.
func (a *asking) reached() bool {
	for _, r := range a.replies {
		if r.err == nil {
			a.answer.Up = true
			return true
		}
	}
	a.answer.Trouble = append(a.answer.Trouble, a.unreached(a.replies[askModels].err))
	return false
}

// retryAsBearer asks for the Messages API once more where x-api-key was
// refused: some servers know Authorization only.
func (a *asking) retryAsBearer(ctx context.Context) {
	if a.Key.IsZero() || !refusesKey(a.replies[askMessages]) || refusesKey(a.replies[askNobody]) {
		return
	}
	q := first[askMessages]
	q.style = bearer
	if r := a.send(ctx, q); r.err == nil && !refusesKey(r) {
		a.replies[askMessages] = r
		a.asBearer, a.onlyBearer = true, hasPath(r)
	}
}

// retryAsPlain asks for nobody's path with x-api-key where Authorization was
// refused and x-api-key was not: Anthropic takes an API key in that alone.
func (a *asking) retryAsPlain(ctx context.Context) {
	if a.Key.IsZero() || !refusesKey(a.replies[askNobody]) || refusesKey(a.replies[askMessages]) {
		return
	}
	a.onlyPlain = a.replies[askModelsPlain].ok() && refusesKey(a.replies[askModels])
	q := first[askNobody]
	q.style = plainKey
	if r := a.send(ctx, q); r.err == nil {
		a.replies[askNobody] = r
	}
}

// askByModel asks once more for the formats whose path seems to be missing, by
// a name that is served: a gateway that finds its way by the model has no way
// for a name that nobody serves, and answers as if it had no such path.
func (a *asking) askByModel(ctx context.Context) {
	if len(a.answer.Models) == 0 {
		return
	}
	var wait sync.WaitGroup
	for _, f := range formatQuestions {
		if r := a.replies[f.ask]; r.status != http.StatusNotFound || hasPath(r) {
			continue
		}
		q := first[f.ask]
		q.body = strings.Replace(q.body, quote(noModel), quote(a.answer.Models[0].Name), 1)
		if a.asBearer {
			q.style = bearer
		}
		wait.Go(func() { a.replies[f.ask] = a.send(ctx, q) })
	}
	wait.Wait()
}

// send sends one question and reads the reply.
func (a *asking) send(ctx context.Context, q question) reply {
	target := a.target(q)
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return reply{err: err}
	}
	a.headers(req, q.style)
	res, err := a.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return reply{err: err}
	}
	return reply{status: res.StatusCode, header: res.Header, body: content}
}

func (a *asking) target(q question) string {
	if path, found := strings.CutPrefix(q.path, rootPath); found {
		return strings.TrimSuffix(strings.TrimRight(a.address, "/"), "/v1") + path
	}
	return config.JoinURL(a.address, q.path, q.query, a.Server.StripV1)
}

// headers sets what clients of the API set, the key as credential.Apply has
// it in a turn.
func (a *asking) headers(req *http.Request, s style) {
	like, f := http.Header{"Authorization": {"Bearer -"}}, outline.ChatCompletions
	if s == plainKey {
		like, f = http.Header{"X-Api-Key": {"-"}}, outline.Messages
		req.Header.Set("Anthropic-Version", anthropicDate)
	}
	kind := a.Server.Key.Kind
	if kind == config.KeyClient {
		kind = config.KeyNone // an agent's credential is not ours to ask with
	}
	credential.Apply(like, req.Header, kind, a.Key, f)
	if req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	if a.Agent != "" {
		req.Header.Set("User-Agent", a.Agent)
	}
}

// refusesKey reports whether a reply says that the key, or its absence, is
// the matter.
func refusesKey(r reply) bool {
	return r.err == nil && (r.status == http.StatusUnauthorized || r.status == http.StatusForbidden)
}
