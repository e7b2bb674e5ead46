package kinds

import (
	"fmt"
	"net/http"

	"agentop/router/fakeserver"
)

var allFormats = []fakeserver.Format{fakeserver.Messages, fakeserver.Responses, fakeserver.ChatCompletions}

func vllm() *Kind {
	return &Kind{
		Name: "vllm",
		Sources: []string{
			"https://github.com/vllm-project/vllm vllm/entrypoints/openai/models/serving.py (list with max_model_len, NotFoundError)",
			"https://github.com/vllm-project/vllm vllm/entrypoints/anthropic/api_router.py (/v1/messages and its error shape)",
			"https://docs.vllm.ai/en/latest/serving/openai_compatible_server/ (--api-key, Authorization: Bearer)",
		},
		Models:     []string{"zai-org/GLM-5"},
		Formats:    allFormats,
		Context:    131_072,
		OnlyBearer: true,
		list: `{"object":"list","data":[{"id":"zai-org/GLM-5","object":"model","created":1767225600,"owned_by":"vllm","root":"zai-org/GLM-5",` +
			`"parent":null,"max_model_len":131072,"permission":[{"id":"modelperm-1","object":"model_permission","created":1767225600}]}]}`,
		unauthorized: always(answer{http.StatusUnauthorized, `{"error":"Unauthorized"}`}),
		badBody: always(answer{http.StatusBadRequest,
			`{"error":{"message":"1 validation error:\n  {'type': 'list_type', 'loc': ('body', 'messages'), 'msg': 'Input should be a valid list', 'input': 0}","type":"Bad Request","param":null,"code":400}}`}),
		noModel: func(f fakeserver.Format, model string) answer {
			message := "The model `" + model + "` does not exist."
			if f == fakeserver.Messages {
				return answer{http.StatusNotFound, fmt.Sprintf(`{"type":"error","error":{"type":"NotFoundError","message":%q}}`, message)}
			}
			return answer{http.StatusNotFound, fmt.Sprintf(`{"error":{"message":%q,"type":"NotFoundError","param":"model","code":404}}`, message)}
		},
		noPath: fastAPINoPath,
	}
}

func sglang() *Kind {
	return &Kind{
		Name: "sglang",
		Sources: []string{
			"https://github.com/sgl-project/sglang python/sglang/srt/entrypoints/http_server.py (/v1/models with max_model_len, /v1/messages)",
			"https://github.com/sgl-project/sglang python/sglang/srt/utils (add_api_key_middleware: Authorization: Bearer alone)",
			"https://github.com/sgl-project/sglang/issues/31404 (any model name is answered)",
		},
		Models:     []string{"Qwen/Qwen3-Coder-30B-A3B-Instruct"},
		Formats:    allFormats,
		Context:    262_144,
		AnyName:    true,
		OnlyBearer: true,
		list: `{"object":"list","data":[{"id":"Qwen/Qwen3-Coder-30B-A3B-Instruct","object":"model","created":1767225600,"owned_by":"sglang",` +
			`"root":"Qwen/Qwen3-Coder-30B-A3B-Instruct","parent":null,"max_model_len":262144}]}`,
		unauthorized: always(answer{http.StatusUnauthorized, `{"error":"Unauthorized"}`}),
		badBody: always(answer{http.StatusBadRequest,
			`{"object":"error","message":"1 validation errors:\n  {'type': 'list_type', 'loc': ('body', 'messages')}","type":"Bad Request","param":null,"code":400}`}),
		noModel: func(fakeserver.Format, string) answer { return answer{http.StatusNotFound, `{}`} }, // never: AnyName
		noPath:  fastAPINoPath,
	}
}

func llamaCPP() *Kind {
	failed := func(status int, kind, message string) answer {
		return answer{status, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"type":%q}}`, status, message, kind)}
	}
	const id = "glm-4.5-air-q4_k_m.gguf"
	return &Kind{
		Name: "llama.cpp",
		Sources: []string{
			"https://github.com/ggml-org/llama.cpp tools/server/README.md (GET /props, GET /v1/models, POST /v1/messages and /v1/responses)",
			"https://github.com/ggml-org/llama.cpp tools/server/server.cpp (public: /health, /models, /v1/models, /api/tags; Invalid API Key)",
		},
		Models:     []string{id},
		Formats:    allFormats,
		Context:    65_536,
		AnyName:    true,
		OnlyBearer: true,
		list: `{"models":[{"name":"` + id + `","model":"` + id + `","type":"model","capabilities":["completion"]}],"object":"list",` +
			`"data":[{"id":"` + id + `","object":"model","created":1767225600,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":151552,"n_ctx_train":131072,"n_embd":4096,"n_params":110468824832,"size":72856780800}}]}`,
		extra: map[string]string{"/props": `{"default_generation_settings":{"id":0,"id_task":-1,"n_ctx":65536,"speculative":false,"is_processing":false},` +
			`"total_slots":4,"model_path":"/models/` + id + `","modalities":{"vision":false},"build_info":"b7000-0000000"}`},
		public:       []string{"/health", "/models", "/v1/models", "/api/tags", "/"},
		unauthorized: always(failed(http.StatusUnauthorized, "authentication_error", "Invalid API Key")),
		badBody:      always(failed(http.StatusBadRequest, "invalid_request_error", "Expected 'messages' to be an array")),
		noModel:      func(fakeserver.Format, string) answer { return answer{http.StatusNotFound, `{}`} }, // never: AnyName
		noPath:       func(string, string) answer { return failed(http.StatusNotFound, "not_found_error", "File Not Found") },
	}
}

func ollama() *Kind {
	return &Kind{
		Name: "ollama",
		Sources: []string{
			"https://github.com/ollama/ollama docs/api/openai-compatibility.mdx (/v1/models, /v1/responses; the key is ignored)",
			"https://github.com/ollama/ollama docs/api/anthropic-compatibility.mdx (/v1/messages; the key is ignored)",
			"https://github.com/ollama/ollama docs/api.md (GET /api/ps with context_length, GET /api/tags)",
		},
		Models:     []string{"qwen3-coder:latest", "gpt-oss:20b"},
		Formats:    allFormats,
		Context:    32_768,
		IgnoresKey: true,
		list: `{"object":"list","data":[{"id":"qwen3-coder:latest","object":"model","created":1767225600,"owned_by":"library"},` +
			`{"id":"gpt-oss:20b","object":"model","created":1767225600,"owned_by":"library"}]}`,
		extra: map[string]string{
			"/api/tags": `{"models":[{"name":"qwen3-coder:latest","model":"qwen3-coder:latest","modified_at":"2026-01-01T00:00:00Z","size":18556700761,"digest":"06c1097efce0",` +
				`"details":{"format":"gguf","family":"qwen3moe","parameter_size":"30.5B","quantization_level":"Q4_K_M"}}]}`,
			"/api/ps": `{"models":[{"name":"qwen3-coder:latest","model":"qwen3-coder:latest","size":20000000000,"digest":"06c1097efce0","expires_at":"2026-01-01T00:05:00Z","size_vram":20000000000,"context_length":32768}]}`,
		},
		badBody: func(f fakeserver.Format) answer {
			if f == fakeserver.Messages {
				return anthropicError(http.StatusBadRequest, "invalid_request_error", "json: cannot unmarshal number into Go struct field MessagesRequest.messages")
			}
			return openAIError(http.StatusBadRequest, "invalid_request_error", "null", "json: cannot unmarshal number into Go struct field ChatCompletionRequest.messages")
		},
		noModel: func(f fakeserver.Format, model string) answer {
			if f == fakeserver.Messages {
				return anthropicError(http.StatusNotFound, "not_found_error", "model '"+model+"' not found")
			}
			return openAIError(http.StatusNotFound, "not_found_error", "null", "model '"+model+"' not found")
		},
		noPath: func(string, string) answer { return answer{http.StatusNotFound, "404 page not found"} },
	}
}

func lmStudio() *Kind {
	return &Kind{
		Name: "lm-studio",
		Sources: []string{
			"https://lmstudio.ai/docs/developer/openai-compat and /anthropic-compat (paths; both key headers)",
			"https://lmstudio.ai/docs/developer/rest/endpoints (GET /api/v0/models)",
			"https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1323 (200 for paths that it does not have)",
			"https://github.com/assafelovic/gpt-researcher/issues/1556 (400 model_not_found)",
		},
		Models:  []string{"zai-org/glm-4.7-flash", "text-embedding-nomic-embed-text-v1.5"},
		Formats: allFormats,
		Context: 32_768,
		list: `{"data":[{"id":"zai-org/glm-4.7-flash","object":"model","owned_by":"organization_owner"},` +
			`{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","owned_by":"organization_owner"}],"object":"list"}`,
		extra: map[string]string{"/api/v0/models": `{"object":"list","data":[{"id":"zai-org/glm-4.7-flash","object":"model","type":"llm","publisher":"zai-org","arch":"glm4_moe_lite",` +
			`"compatibility_type":"gguf","quantization":"Q4_K_M","state":"loaded","max_context_length":202752,"loaded_context_length":32768},` +
			`{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","type":"embeddings","publisher":"nomic-ai","arch":"nomic-bert","compatibility_type":"gguf","quantization":"Q4_0","state":"not-loaded","max_context_length":2048}]}`},
		unauthorized: always(openAIError(http.StatusUnauthorized, "invalid_request_error", `"invalid_api_key"`, "An LM Studio API token is required to make requests to this server")),
		badBody:      always(openAIError(http.StatusBadRequest, "invalid_request_error", "null", "'messages' field must be an array")),
		noModel: func(_ fakeserver.Format, model string) answer {
			return answer{http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
				`Invalid model identifier "`+model+`". Please specify a valid downloaded model (e.g., zai-org/glm-4.7-flash).`)}
		},
		noPath: func(method, path string) answer {
			return answer{http.StatusOK, `{"error":"Unexpected endpoint or method. (` + method + " " + path + `)"}`}
		},
	}
}
