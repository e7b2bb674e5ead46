// Package preflight asks a server what it can do: whether it is up and takes
// the key, which models and API formats it serves, and how long a context may
// be where it says so. The questions run at once and take about a second; none
// of them can make a server generate anything. It knows nothing of
// conversations or placement. Start reading at Asker.Ask.
//
// How the formats are told without generating: to each format's path goes a
// body that is JSON but no request (its messages are a number, its model is
// one that nobody serves). A server that has the path refuses the body (400 or
// 422), one that has not says 404 or 405. A path that nobody has is asked too:
// a server that answers it in the same way tells nothing.
package preflight

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/credential"
)

// DefaultLimit is how long all questions together may take.
const DefaultLimit = time.Second

// Asker asks one server. The zero Limit is DefaultLimit.
type Asker struct {
	Server *config.Server
	// Key is the server's key, KeyErr why it cannot be had.
	Key    credential.Secret
	KeyErr error
	// Transport carries requests to one of the server's addresses, as turns
	// are carried there.
	Transport func(base *url.URL) (http.RoundTripper, error)
	Limit     time.Duration
	Agent     string // User-Agent of the questions
}

// KeyState is what is known of a key.
type KeyState string

// The states of a key.
const (
	KeyUnknown  KeyState = ""         // nothing told
	KeyAccepted KeyState = "accepted" // or not looked at
	KeyRefused  KeyState = "refused"
)

// Model is one name that a server serves.
type Model struct {
	Name    string
	Context int64 // tokens; 0 where the server does not say
}

// Answer is what a server, or one address of it, said.
type Answer struct {
	Up     bool
	Key    KeyState
	Kind   string // the server's software, where its answers tell: vllm, ollama, ...
	Models []Model
	Listed bool // it gave a list of models, be it an empty one
	// AnyName says that the server has one model and answers with it whatever
	// name is asked for.
	AnyName bool
	Formats []outline.Format
	// FormatsTold says that a format that is not in Formats is not spoken.
	FormatsTold bool
	// Trouble is what is wrong, one line each with what to type. The first is
	// the one to mend first.
	Trouble []string
}

// Context is the longest context that any of the models has; 0 if none says.
func (a *Answer) Context() int64 {
	var most int64
	for _, m := range a.Models {
		most = max(most, m.Context)
	}
	return most
}

// ContextOf is the context of the model of that name; 0 where it is not told.
func (a *Answer) ContextOf(name string) int64 {
	for _, m := range a.Models {
		if sameModel(m.Name, name) {
			return m.Context
		}
	}
	if a.AnyName && len(a.Models) > 0 {
		return a.Models[0].Context
	}
	return 0
}

// Speaks says whether the server is known to speak f.
func (a *Answer) Speaks(f outline.Format) bool { return slices.Contains(a.Formats, f) }

// Ask asks all questions, of each address of a pool, and returns when all are
// answered or the limit is over. What was not answered by then is told as
// trouble.
func (a Asker) Ask(ctx context.Context) Answer {
	if a.Limit == 0 {
		a.Limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, a.Limit)
	defer cancel()
	addresses := a.Server.URLs()
	answers := make([]Answer, len(addresses))
	var wait sync.WaitGroup
	for i, address := range addresses {
		wait.Go(func() { answers[i] = a.askOne(ctx, address) })
	}
	wait.Wait()
	if len(answers) == 1 {
		return answers[0]
	}
	return merge(answers, addresses)
}

// merge makes one answer of a pool's. The pool is up if a member is; what it
// serves is what all members that answered serve.
func merge(answers []Answer, addresses []string) Answer {
	var all Answer
	for i := range answers {
		one := &answers[i]
		all.Trouble = append(all.Trouble, one.Trouble...)
		if !one.Up {
			continue
		}
		if !all.Up {
			trouble := all.Trouble
			all = *one
			all.Trouble = trouble
			continue
		}
		if one.Key == KeyRefused {
			all.Key = KeyRefused
		}
		if one.Listed && all.Listed && !sameNames(one.Models, all.Models) {
			all.Trouble = append(all.Trouble, "the pool's members serve different models: "+hostOf(addresses[i])+
				" has "+names(one.Models)+"; a pool is for equal machines")
		}
		all.Formats = common(all.Formats, one.Formats)
		all.FormatsTold = all.FormatsTold && one.FormatsTold
	}
	return all
}

func sameNames(a, b []Model) bool {
	return len(a) == len(b) && names(a) == names(b)
}

func names(models []Model) string {
	list := make([]string, len(models))
	for i, m := range models {
		list[i] = m.Name
	}
	return strings.Join(list, ", ")
}

func common(a, b []outline.Format) []outline.Format {
	var both []outline.Format
	for _, f := range a {
		for _, g := range b {
			if f == g {
				both = append(both, f)
			}
		}
	}
	return both
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return "?"
}

// FormatOf is the format of that name (Word); false for any other name.
func FormatOf(word string) (outline.Format, bool) {
	for _, f := range []outline.Format{outline.Messages, outline.Responses, outline.ChatCompletions} {
		if Word(f) == word {
			return f, true
		}
	}
	return outline.NoFormat, false
}

// Word is a format's name in lists and messages.
func Word(f outline.Format) string {
	switch f {
	case outline.Messages:
		return "messages"
	case outline.Responses:
		return "responses"
	case outline.ChatCompletions:
		return "chat"
	}
	return ""
}
