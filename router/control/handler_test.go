package control

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func request(method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	Handler(newFake()).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestHandlerRefuses(t *testing.T) {
	tests := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"unknown path", "GET", "/v1/nothing", "", 400, `the running proxy has no GET \"/v1/nothing\"`},
		{"wrong method", "GET", pathUse, "", 400, "the running proxy has no GET"},
		{"no body", "POST", pathUse, "", 400, "EOF"},
		{"not JSON", "POST", pathUse, "agent=x", 400, "invalid character"},
		{"a field of a newer version", "POST", pathUse, `{"agent":"a","server":"b","dry_run":true}`, 400, "dry_run"},
		{"two values", "POST", pathUse, `{"agent":"a"} {"agent":"b"}`, 400, "more than one JSON value"},
		{"wrong type", "POST", pathUse, `{"agent":7}`, 400, "cannot unmarshal number"},
		{"too large", "POST", pathUse, `{"agent":"` + strings.Repeat("x", maxRequest) + `"}`, 400, "too large"},
		{"no tail", "GET", pathRequests, "", 400, "tail is"},
		{"negative tail", "GET", pathRequests + "?tail=-1", "", 400, "tail is"},
		{"huge tail", "GET", pathRequests + "?tail=10001", "", 400, "tail is"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := request(tt.method, tt.path, tt.body)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, tt.status, tt.want)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("content type %q", got)
			}
		})
	}
}

func TestCodesHaveStatuses(t *testing.T) {
	for code, want := range map[Code]int{
		CodeFailed: 500, CodeInvalid: 400, CodeNotFound: 404, CodeConflict: 409, CodeBusy: 503, "later": 500,
	} {
		if got := status(code); got != want {
			t.Errorf("%q: got %d, want %d", code, got, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	paths := []string{
		pathSession, pathPrice, pathMove, pathForget, pathUse, pathReset,
		pathAdd, pathRemove, pathPreflight, pathRestart,
	}
	for i, body := range []string{
		`{"agent":"codex","id":"1"}`, `{"agent":"codex","id":"\u0001px:1","server":"glm"}`, `{}`, `null`, `[]`, `{"agent":`,
		`{"name":"glm","url":"https://glm.example.com","key":"stored","secret":"sk-fake-1","rename":[{"glob":"*","name":"x"}]}`,
		`{"name":"glm","agents":["a","b"]}`, `{"agent":1e400}`, "\xff\xfe", strings.Repeat("[", 20_000),
	} {
		f.Add(uint8(i), []byte(body))
	}
	h := Handler(newFake())
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		path := paths[int(which)%len(paths)]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body))))
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: answer is not JSON: %q", path, w.Body)
		}
		if w.Code == http.StatusOK && !acceptable(path, body) {
			t.Errorf("%s %q: got %d %s", path, body, w.Code, w.Body)
		}
	})
}

// acceptable says by other means than decode whether the body may be obeyed:
// as one object (or null) in which every field is known.
func acceptable(path string, body []byte) bool {
	if !json.Valid(body) {
		return false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return false
	}
	known := map[string][]string{
		pathUse: {"agent", "server"}, pathReset: {"agent", "server"}, pathRestart: {},
		pathRemove: {"name", "agents"}, pathPreflight: {"name", "agents"},
		pathAdd: {"name", "url", "key", "rename", "secret"},
	}
	allowed, ok := known[path]
	if !ok {
		allowed = []string{"agent", "id", "server"}
	}
	for name, value := range fields {
		match := false
		for _, a := range allowed {
			match = match || strings.EqualFold(a, name)
		}
		if !match {
			return false
		}
		var text *string
		var texts []*string
		var renames []*struct{ Glob, Name *string }
		switch strings.ToLower(name) {
		case "agents":
			if json.Unmarshal(value, &texts) != nil {
				return false
			}
		case "rename":
			d := json.NewDecoder(strings.NewReader(string(value)))
			d.DisallowUnknownFields()
			if d.Decode(&renames) != nil {
				return false
			}
		default:
			if json.Unmarshal(value, &text) != nil {
				return false
			}
		}
	}
	return true
}
