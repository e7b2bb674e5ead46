// Package kinds has fakes of the kinds of servers that docs/servers.md names:
// each gives the model list, the errors and the refusals that the server's own
// documentation or source shows, and answers turns as fakeserver does. Tests
// alone import it. Where an answer comes from stands in Kind.Sources. Start
// reading at All.
package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"agentop/router/fakeserver"
)

// Key is the key that every kind takes.
const Key = "sk-fake-of-the-server"

// answer is a status with a JSON body.
type answer struct {
	status int
	body   string
}

// Kind is one kind of server.
type Kind struct {
	Name    string
	Sources []string // where its answers are documented
	Models  []string // in the order of its list
	Formats []fakeserver.Format
	Context int64  // the longest that it tells; 0 if it tells none
	Base    string // path of its base URL
	AnyName bool   // it answers to any model name with its one model
	// OnlyBearer says that x-api-key is not looked at.
	OnlyBearer bool
	// OnlyPlain says that Authorization is looked at for chat completions alone.
	OnlyPlain bool
	// IgnoresKey says that any key, and none, will do.
	IgnoresKey bool

	list      string            // GET /v1/models
	plainList string            // the same for one who speaks the Messages API; "" for list
	extra     map[string]string // further paths that answer a GET
	public    []string          // paths that want no key

	unauthorized func(fakeserver.Format) answer
	badBody      func(fakeserver.Format) answer
	noModel      func(f fakeserver.Format, model string) answer
	noPath       func(method, path string) answer
}

// Server is a running fake of a kind.
type Server struct {
	*httptest.Server
	// Fake is told of the turns: its records are what reached the models.
	Fake *fakeserver.Server
	// Asked are method and path of all requests, in no order.
	Asked func() []string
}

// URL is the address that goes into config.yaml.
func (k *Kind) URL(s *httptest.Server) string { return s.URL + k.Base }

// Start serves on loopback until Close.
func (k *Kind) Start() *Server { return k.start((*httptest.Server).Start) }

// StartTLS is Start with https and a certificate of httptest's own authority.
func (k *Kind) StartTLS() *Server {
	return k.start(func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
	})
}

func (k *Kind) start(serve func(*httptest.Server)) *Server {
	fake := fakeserver.New(fakeserver.Options{Name: k.Name, Models: k.Models})
	h := &handler{kind: k, fake: fake}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that tests want to fail
	serve(s)
	return &Server{Server: s, Fake: fake, Asked: h.asked}
}

// handler is a kind at work.
type handler struct {
	kind *Kind
	fake *fakeserver.Server
	log  requestLog
}

func (h *handler) asked() []string { return h.log.all() }

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := h.kind
	h.log.add(r.Method + " " + r.URL.Path)
	path, found := strings.CutPrefix(r.URL.Path, k.Base)
	f := formatOf(r.Method, path)
	switch {
	case !k.IgnoresKey && !slices.Contains(k.public, path) && !k.authorised(r):
		send(w, k.unauthorized(f))
	case !found:
		send(w, k.noPath(r.Method, r.URL.Path))
	case r.Method == http.MethodGet && path == "/v1/models":
		send(w, answer{http.StatusOK, k.listFor(r)})
	case r.Method == http.MethodGet && k.extra[path] != "":
		send(w, answer{http.StatusOK, k.extra[path]})
	case f == fakeserver.NoFormat || !slices.Contains(k.Formats, f):
		send(w, k.noPath(r.Method, path))
	default:
		h.turn(w, r, f)
	}
}

// turn checks a request as the kind does and lets the fake answer it.
func (h *handler) turn(w http.ResponseWriter, r *http.Request, f fakeserver.Format) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q struct {
		Model    string          `json:"model"`
		Messages json.RawMessage `json:"messages"`
		Input    json.RawMessage `json:"input"`
	}
	content := &q.Messages
	if f == fakeserver.Responses {
		content = &q.Input
	}
	wrong := json.Unmarshal(body, &q) != nil || len(*content) == 0 || (*content)[0] != '[' && (*content)[0] != '"'
	switch {
	case wrong:
		send(w, h.kind.badBody(f))
	case !h.kind.AnyName && !slices.Contains(h.kind.Models, q.Model):
		send(w, h.kind.noModel(f, q.Model))
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.fake.ServeHTTP(w, r)
	}
}

func (k *Kind) authorised(r *http.Request) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if k.OnlyPlain && !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		bearer = ""
	}
	return bearer == Key || !k.OnlyBearer && r.Header.Get("X-Api-Key") == Key
}

func (k *Kind) listFor(r *http.Request) string {
	if k.plainList != "" && r.Header.Get("Anthropic-Version") != "" {
		return k.plainList
	}
	return k.list
}

func formatOf(method, path string) fakeserver.Format {
	if method == http.MethodPost {
		for _, f := range []fakeserver.Format{fakeserver.Messages, fakeserver.Responses, fakeserver.ChatCompletions} {
			if path == "/v1/"+string(f) {
				return f
			}
		}
	}
	return fakeserver.NoFormat
}

func send(w http.ResponseWriter, a answer) {
	kind := "application/json"
	if !strings.HasPrefix(a.body, "{") {
		kind = "text/plain"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// The error shapes that several kinds share.

func anthropicError(status int, kind, message string) answer {
	return answer{status, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_011CfakeRequest"}`, kind, message)}
}

func openAIError(status int, kind, code, message string) answer {
	return answer{status, fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, message, kind, code)}
}

// fastAPINoPath is what FastAPI says of a path that it does not have.
func fastAPINoPath(string, string) answer {
	return answer{http.StatusNotFound, `{"detail":"Not Found"}`}
}

func always(a answer) func(fakeserver.Format) answer {
	return func(fakeserver.Format) answer { return a }
}

// Refused is an answer as the server itself gives it.
type Refused struct {
	Status int
	Body   string
}

// Refusal is what the server answers to a request that is sent to it without a
// proxy between.
func (k *Kind) Refusal(s *Server, body string, f fakeserver.Format) Refused {
	req, err := http.NewRequest(http.MethodPost, k.URL(s.Server)+"/v1/"+string(f), strings.NewReader(body))
	if err != nil {
		return Refused{Body: err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+Key)
	req.Header.Set("X-Api-Key", Key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return Refused{Body: err.Error()}
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return Refused{res.StatusCode, string(text)}
}
