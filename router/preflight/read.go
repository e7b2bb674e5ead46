package preflight

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"agentop/agents/outline"
	"agentop/router/config"
)

// readFormats tells from the refusals which formats are spoken.
func (a *asking) readFormats() {
	control := a.replies[askNobody]
	if control.err != nil || hasPath(control) || refusesKey(control) {
		// A path that cannot be there is answered as if it were: a guard or a
		// catch-all stands before the paths. Only an answer of another kind
		// tells something.
		a.readFormatsBehindGuard(control)
		return
	}
	a.answer.FormatsTold = true
	for _, f := range formatQuestions {
		r := a.replies[f.ask]
		switch {
		case hasPath(r), refusesKey(r) && !a.onlyPlain:
			a.answer.Formats = append(a.answer.Formats, f.format)
		case !lacksPath(r, control):
			a.answer.FormatsTold = false
		}
	}
}

// lacksPath says whether a reply means that there is no such path, and not
// that something is the matter for the moment.
func lacksPath(r, control reply) bool {
	if r.err != nil {
		return false
	}
	switch r.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusOK: // LM Studio says so what it does not have; others take any body
		return control.status == http.StatusOK && bytes.Contains(head(r.body), []byte(`"error"`))
	}
	return refusesKey(r)
}

func (a *asking) readFormatsBehindGuard(control reply) {
	for _, f := range formatQuestions {
		if r := a.replies[f.ask]; hasPath(r) && r.status != control.status {
			a.answer.Formats = append(a.answer.Formats, f.format)
		}
	}
}

var formatQuestions = []struct {
	ask    int
	format outline.Format
}{
	{askMessages, outline.Messages}, {askResponses, outline.Responses}, {askChat, outline.ChatCompletions},
}

// hasPath reports whether a reply to a body that is no request shows that the
// server has the path.
func hasPath(r reply) bool {
	if r.err != nil {
		return false
	}
	switch r.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType,
		http.StatusTooManyRequests, http.StatusPaymentRequired, http.StatusInternalServerError:
		return true
	case http.StatusNotFound:
		// Not the path, but the model is missing. A path's 404 repeats the
		// path at most.
		text := strings.ReplaceAll(string(head(r.body)), nobodysPath, "")
		return strings.Contains(text, noModel) || strings.Contains(strings.ToLower(text), "model")
	}
	// 200 too: LM Studio answers so, with an error, for what it does not have,
	// and nobody can answer these bodies well.
	return false
}

// head is as much of a body as an error has.
func head(body []byte) []byte { return body[:min(len(body), 4<<10)] }

// readKey tells whether the key was accepted. A model list tells nothing by
// itself, since many are public; a refused body does, since the key is looked
// at before the body.
func (a *asking) readKey() {
	if a.Server.Key.Kind == config.KeyClient {
		return
	}
	refused := false
	for _, f := range formatQuestions {
		r := a.replies[f.ask]
		switch {
		case refusesKey(r):
			refused = true
		case hasPath(r) && r.status != http.StatusInternalServerError:
			a.accepted()
			return
		}
	}
	// Either way of sending a key may be unknown to the server; only both
	// refused is a refusal.
	lists := refusesKey(a.replies[askModels]) && refusesKey(a.replies[askModelsPlain])
	switch {
	case refused, lists:
		a.answer.Key = KeyRefused
	case a.answer.Listed:
		a.accepted()
	}
}

// accepted notes that the key was taken, if there is one and it was sent.
func (a *asking) accepted() {
	if a.KeyErr == nil && a.Server.Key.Kind != config.KeyNone {
		a.answer.Key = KeyAccepted
	}
}

// entry is one model in any of the lists that servers give.
type entry struct {
	ID        string `json:"id"`
	Name      string `json:"name"`       // Ollama's own list
	ModelName string `json:"model_name"` // LiteLLM's /model/info
	Type      string `json:"type"`       // "model"; LM Studio: llm, vlm, embeddings
	OwnedBy   string `json:"owned_by"`
	State     string `json:"state"` // LM Studio: loaded, not-loaded

	MaxModelLen   int64 `json:"max_model_len"`         // vLLM, SGLang
	MaxInput      int64 `json:"max_input_tokens"`      // Anthropic, LiteLLM
	ContextLength int64 `json:"context_length"`        // OpenRouter, Ollama's /api/ps
	LoadedContext int64 `json:"loaded_context_length"` // LM Studio
	MaxContext    int64 `json:"max_context_length"`    // LM Studio

	TopProvider struct {
		ContextLength int64 `json:"context_length"`
	} `json:"top_provider"` // OpenRouter
	ModelInfo struct {
		MaxInput  int64 `json:"max_input_tokens"`
		MaxTokens int64 `json:"max_tokens"`
	} `json:"model_info"` // LiteLLM
	Meta *struct {
		Context int64 `json:"n_ctx"` // llama.cpp; n_ctx_train is what the model could, not what it is run with
	} `json:"meta"`
}

func (e *entry) name() string {
	for _, name := range []string{e.ID, e.ModelName, e.Name} {
		if name != "" {
			return name
		}
	}
	return ""
}

func (e *entry) context() int64 {
	if e.Meta != nil && e.Meta.Context > 0 {
		return e.Meta.Context
	}
	for _, n := range []int64{e.MaxModelLen, e.LoadedContext, e.TopProvider.ContextLength, e.ContextLength, e.MaxInput,
		e.ModelInfo.MaxInput, e.MaxContext} {
		if n > 0 {
			return n
		}
	}
	return 0
}

// entries reads a model list; ok is false for anything else. A field of
// another type than expected counts as left out.
func entries(body []byte) (list []entry, ok bool) {
	var whole struct {
		Data   *[]json.RawMessage `json:"data"`
		Models *[]json.RawMessage `json:"models"`
	}
	if json.Unmarshal(body, &whole) != nil {
		return nil, false
	}
	raw := whole.Data
	if raw == nil {
		raw = whole.Models
	}
	if raw == nil {
		return nil, false
	}
	for _, r := range *raw {
		var e entry
		_ = json.Unmarshal(r, &e) // fields that fit are kept
		if e.name() != "" {
			list = append(list, e)
		}
	}
	return list, true
}

// readModels takes the list that was given, the longer of the two.
func (a *asking) readModels() {
	for _, i := range []int{askModels, askModelsPlain} {
		r := a.replies[i]
		if !r.ok() {
			continue
		}
		list, ok := entries(r.body)
		if !ok || a.answer.Listed && len(list) <= len(a.answer.Models) {
			continue
		}
		a.answer.Listed = true
		a.answer.Models = modelsOf(list)
		a.answer.Kind = a.kindOf(list, r)
	}
}

func modelsOf(list []entry) []Model {
	models := make([]Model, 0, len(list))
	for i := range list {
		models = append(models, Model{list[i].name(), list[i].context()})
	}
	return models
}

// kindOf guesses the server's software from its list, for the questions that
// only that software answers.
func (a *asking) kindOf(list []entry, r reply) string {
	host := a.base.Hostname()
	switch {
	case strings.HasSuffix(host, "anthropic.com"):
		return "anthropic"
	case strings.HasSuffix(host, "openai.com"):
		return "openai"
	case strings.HasSuffix(host, "openrouter.ai"):
		return "openrouter"
	case bytes.Contains(head(r.body), []byte(`"top_provider"`)):
		return "openrouter"
	case r.header.Get("X-Litellm-Version") != "":
		return "litellm"
	}
	for i := range list {
		switch e := &list[i]; {
		case e.OwnedBy == "llamacpp":
			return "llama.cpp"
		case e.OwnedBy == "vllm", e.OwnedBy == "sglang":
			return e.OwnedBy
		case e.OwnedBy == "organization_owner":
			return "lm-studio"
		case e.OwnedBy == "library":
			return "ollama"
		}
	}
	if r.header.Get("Server") == "llama.cpp" {
		return "llama.cpp"
	}
	return ""
}
