package preflight

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

// askMore asks what only some software tells: the context length where the
// model list has none, and the models where there is no list.
func (a *asking) askMore(ctx context.Context) {
	if a.answer.Key == KeyRefused || a.answer.Context() > 0 {
		a.anyName()
		return
	}
	switch a.answer.Kind {
	case "anthropic", "openai", "openrouter", "vllm", "sglang":
		return // these tell it in the list, or nowhere
	case "llama.cpp":
		a.ask(ctx, rootPath+"/props", a.readProps)
	case "lm-studio":
		a.ask(ctx, rootPath+"/api/v0/models", a.readContexts)
	case "ollama":
		a.ask(ctx, rootPath+"/api/ps", a.readContexts)
	case "litellm":
		a.ask(ctx, rootPath+"/model/info", a.readContexts)
	default:
		a.askAll(ctx)
	}
	a.anyName()
}

// ask asks one more question and gives the body of a good reply to read.
func (a *asking) ask(ctx context.Context, path string, read func([]byte) bool) {
	if r := a.send(ctx, question{method: http.MethodGet, path: path, style: bearer}); r.ok() {
		read(r.body)
	}
}

// askAll is for a server whose software is not known.
func (a *asking) askAll(ctx context.Context) {
	paths := []string{"/model/info", "/api/v0/models", "/api/tags", "/props"}
	replies := make([]reply, len(paths))
	var wait sync.WaitGroup
	for i, path := range paths {
		wait.Go(func() {
			replies[i] = a.send(ctx, question{method: http.MethodGet, path: rootPath + path, style: bearer})
		})
	}
	wait.Wait()
	reads := []struct {
		kind string
		read func([]byte) bool
	}{{"litellm", a.readContexts}, {"lm-studio", a.readContexts}, {"ollama", a.readTags}, {"llama.cpp", a.readProps}}
	for i, r := range replies {
		if r.ok() && reads[i].read(r.body) {
			a.answer.Kind = reads[i].kind
			return
		}
	}
}

// readContexts takes context lengths out of another list of the same models.
// Names that the first list lacks are not added: that list is what the API
// serves.
func (a *asking) readContexts(body []byte) bool {
	list, ok := entries(body)
	if !ok || len(list) == 0 {
		return false
	}
	known := map[string]int64{}
	for i := range list {
		known[list[i].name()] = list[i].context()
	}
	for i := range a.answer.Models {
		m := &a.answer.Models[i]
		for name, n := range known {
			if sameModel(m.Name, name) && n > 0 {
				m.Context = n
			}
		}
	}
	return true
}

// readTags reads Ollama's own list, for one that has no /v1/models.
func (a *asking) readTags(body []byte) bool {
	list, ok := entries(body)
	if !ok || len(list) == 0 {
		return false
	}
	if !a.answer.Listed {
		a.answer.Listed, a.answer.Models = true, modelsOf(list)
	}
	return true
}

// readProps reads llama.cpp's properties, among them the context that a
// request can have.
func (a *asking) readProps(body []byte) bool {
	var props struct {
		Settings *struct {
			Context int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if json.Unmarshal(body, &props) != nil || props.Settings == nil {
		return false
	}
	for i := range a.answer.Models {
		if a.answer.Models[i].Context == 0 {
			a.answer.Models[i].Context = props.Settings.Context
		}
	}
	return true
}

// anyName tells of llama.cpp and SGLang that they answer with their one model
// whatever name a request bears.
func (a *asking) anyName() {
	a.answer.AnyName = (a.answer.Kind == "llama.cpp" || a.answer.Kind == "sglang") && len(a.answer.Models) == 1
}

// quote writes a model name as JSON.
func quote(name string) string {
	b, err := json.Marshal(name)
	if err != nil {
		return `""` // cannot be: any string is JSON
	}
	return string(b)
}
