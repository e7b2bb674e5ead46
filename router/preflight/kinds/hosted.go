package kinds

import (
	"fmt"
	"net/http"

	"agentop/router/fakeserver"
)

// All gives the kinds of docs/servers.md, in its order.
func All() []*Kind {
	return []*Kind{anthropic(), openAI(), vllm(), sglang(), llamaCPP(), ollama(), lmStudio(), liteLLM(), openRouter()}
}

// Named gives one kind.
func Named(name string) *Kind {
	for _, k := range All() {
		if k.Name == name {
			return k
		}
	}
	panic("no kind " + name)
}

func anthropic() *Kind {
	const model = `{"type":"model","id":%q,"display_name":%q,"created_at":"2026-02-04T00:00:00Z","max_input_tokens":%d,"max_tokens":64000}`
	list := `{"data":[` + fmt.Sprintf(model, "claude-opus-5-5", "Claude Opus 5.5", 1_000_000) + "," +
		fmt.Sprintf(model, "claude-sonnet-5-5", "Claude Sonnet 5.5", 200_000) + "," +
		fmt.Sprintf(model, "claude-haiku-5-5-20260901", "Claude Haiku 5.5", 200_000) +
		`],"has_more":false,"first_id":"claude-opus-5-5","last_id":"claude-haiku-5-5-20260901"}`
	return &Kind{
		Name: "anthropic",
		Sources: []string{
			"https://platform.claude.com/docs/en/api/models-list (the list, limit up to 1000)",
			"https://platform.claude.com/docs/en/api/errors (shape, types and statuses)",
			"https://github.com/anthropics/anthropic-sdk-typescript/issues/690 (a model that is not there)",
			"https://github.com/Jeffser/Alpaca/issues/727 (an API key in Authorization is refused: Invalid bearer token)",
			"https://platform.claude.com/docs/en/api/openai-sdk (chat completions, where it is not)",
		},
		Models:    []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5-20260901"},
		Formats:   []fakeserver.Format{fakeserver.Messages, fakeserver.ChatCompletions},
		Context:   1_000_000,
		OnlyPlain: true,
		list:      list,
		unauthorized: always(anthropicError(http.StatusUnauthorized, "authentication_error",
			"invalid x-api-key")),
		badBody: always(anthropicError(http.StatusBadRequest, "invalid_request_error", "messages: Input should be a valid list")),
		noModel: func(_ fakeserver.Format, model string) answer {
			return anthropicError(http.StatusNotFound, "not_found_error", "model: "+model)
		},
		noPath: func(string, string) answer {
			return anthropicError(http.StatusNotFound, "not_found_error", "Not found")
		},
	}
}

func openAI() *Kind {
	return &Kind{
		Name: "openai",
		Sources: []string{
			"https://platform.openai.com/docs/api-reference/models/list",
			"https://platform.openai.com/docs/guides/error-codes (invalid_api_key, model_not_found)",
		},
		Models:     []string{"gpt-5", "gpt-5-codex", "gpt-5-mini", "text-embedding-3-small"},
		Formats:    []fakeserver.Format{fakeserver.Responses, fakeserver.ChatCompletions},
		OnlyBearer: true,
		list: `{"object":"list","data":[{"id":"gpt-5","object":"model","created":1754425777,"owned_by":"system"},` +
			`{"id":"gpt-5-codex","object":"model","created":1757527818,"owned_by":"system"},` +
			`{"id":"gpt-5-mini","object":"model","created":1754425928,"owned_by":"system"},` +
			`{"id":"text-embedding-3-small","object":"model","created":1705948997,"owned_by":"system"}]}`,
		unauthorized: always(openAIError(http.StatusUnauthorized, "invalid_request_error", `"invalid_api_key"`,
			"Incorrect API key provided: sk-fake*****. You can find your API key at https://platform.openai.com/account/api-keys.")),
		badBody: func(f fakeserver.Format) answer {
			param := "messages"
			if f == fakeserver.Responses {
				param = "input"
			}
			return openAIError(http.StatusBadRequest, "invalid_request_error", `"invalid_type"`, "Invalid type for '"+param+"': expected an array, but got an integer instead.")
		},
		noModel: func(_ fakeserver.Format, model string) answer {
			return openAIError(http.StatusNotFound, "invalid_request_error", `"model_not_found"`, "The model `"+model+"` does not exist or you do not have access to it.")
		},
		noPath: func(method, path string) answer {
			return openAIError(http.StatusNotFound, "invalid_request_error", "null", "Invalid URL ("+method+" "+path+")")
		},
	}
}

func openRouter() *Kind {
	const model = `{"id":%q,"canonical_slug":%q,"name":%q,"created":1754425777,"context_length":%d,` +
		`"architecture":{"modality":"text->text","input_modalities":["text"],"output_modalities":["text"]},` +
		`"top_provider":{"context_length":%d,"max_completion_tokens":64000,"is_moderated":false},"pricing":{"prompt":"0.000001","completion":"0.000003"}}`
	entry := func(id string, context int) string { return fmt.Sprintf(model, id, id, id, context, context) }
	failed := func(status int, message string) answer {
		return answer{status, fmt.Sprintf(`{"error":{"message":%q,"code":%d}}`, message, status)}
	}
	return &Kind{
		Name: "openrouter",
		Sources: []string{
			"https://openrouter.ai/docs/api-reference/list-available-models (public; context_length, top_provider)",
			"https://openrouter.ai/docs/api-reference/errors (code and message)",
			"https://openrouter.ai/docs/guides/guides/claude-code-integration (base URL https://openrouter.ai/api)",
		},
		Base:       "/api",
		OnlyBearer: true,
		Models:     []string{"anthropic/claude-opus-5.5", "anthropic/claude-haiku-5.5", "z-ai/glm-5", "openai/gpt-5-codex"},
		Formats:    []fakeserver.Format{fakeserver.Messages, fakeserver.Responses, fakeserver.ChatCompletions},
		Context:    1_000_000,
		list: `{"data":[` + entry("anthropic/claude-opus-5.5", 1_000_000) + "," + entry("anthropic/claude-haiku-5.5", 200_000) + "," +
			entry("z-ai/glm-5", 202_752) + "," + entry("openai/gpt-5-codex", 400_000) + `]}`,
		public:       []string{"/v1/models"},
		unauthorized: always(failed(http.StatusUnauthorized, "No auth credentials found")),
		badBody:      always(failed(http.StatusBadRequest, "messages: expected array, received number")),
		noModel: func(_ fakeserver.Format, model string) answer {
			return failed(http.StatusBadRequest, model+" is not a valid model ID")
		},
		noPath: func(string, string) answer {
			return answer{http.StatusNotFound, "<!DOCTYPE html><title>Not Found</title>"}
		},
	}
}

func liteLLM() *Kind {
	failed := func(status int, kind, message string) answer {
		return answer{status, fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":"None","code":"%d"}}`, message, kind, status)}
	}
	return &Kind{
		Name: "litellm",
		Sources: []string{
			"https://docs.litellm.ai/docs/proxy/model_management (GET /model/info)",
			"https://github.com/BerriAI/litellm litellm/proxy/route_llm_request.py (Invalid model name), auth/auth_exception_handler.py",
		},
		Models:  []string{"glm-5", "glm-air"},
		Formats: []fakeserver.Format{fakeserver.Messages, fakeserver.Responses, fakeserver.ChatCompletions},
		Context: 202_752,
		list: `{"data":[{"id":"glm-5","object":"model","created":1677610602,"owned_by":"openai"},` +
			`{"id":"glm-air","object":"model","created":1677610602,"owned_by":"openai"}],"object":"list"}`,
		extra: map[string]string{"/model/info": `{"data":[{"model_name":"glm-5","litellm_params":{"model":"hosted_vllm/glm-5"},` +
			`"model_info":{"id":"a1","db_model":false,"max_tokens":64000,"max_input_tokens":202752}},` +
			`{"model_name":"glm-air","litellm_params":{"model":"hosted_vllm/glm-air"},"model_info":{"id":"a2","db_model":false,"max_input_tokens":null}}]}`},
		unauthorized: always(failed(http.StatusUnauthorized, "auth_error",
			"Authentication Error, LiteLLM Virtual Key expected. Received=sk-f****, expected to start with 'sk-'.")),
		badBody: always(failed(http.StatusBadRequest, "invalid_request_error", "Invalid messages")),
		noModel: func(f fakeserver.Format, model string) answer {
			return failed(http.StatusBadRequest, "invalid_request_error", "/"+string(f)+": Invalid model name passed in model="+model+". Call `/v1/models` to view available models for your key.")
		},
		noPath: fastAPINoPath,
	}
}
