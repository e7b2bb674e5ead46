package kinds

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Each kind is found by its name, cites where its answers come from, lists its
// models to its key, and refuses another key unless it looks at none.
func TestKindsListTheirModelsToTheirKey(t *testing.T) {
	for _, k := range All() {
		t.Run(k.Name, func(t *testing.T) {
			if got := Named(k.Name); got.Name != k.Name || len(k.Sources) == 0 {
				t.Errorf("Named gives %q, with sources %q", got.Name, k.Sources)
			}
			s := k.Start()
			defer s.Close()
			for key, want := range map[string]bool{Key: true, "sk-fake-of-another": k.IgnoresKey} {
				req, err := http.NewRequest(http.MethodGet, k.URL(s.Server)+"/v1/models", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header = http.Header{"X-Api-Key": {key}, "Authorization": {"Bearer " + key}}
				res, err := s.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				listed := res.StatusCode == http.StatusOK
				for _, model := range k.Models {
					listed = listed && strings.Contains(string(body), `"`+model+`"`)
				}
				if listed != (want || slices.Contains(k.public, "/v1/models")) {
					t.Errorf("key %s: status %d, %s", key, res.StatusCode, body)
				}
			}
			if asked := s.Asked(); len(asked) != 2 {
				t.Errorf("asked were %q, want two requests", asked)
			}
		})
	}
}
