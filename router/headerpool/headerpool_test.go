package headerpool

import (
	"fmt"
	"net/http"
	"testing"
)

func TestWhatIsTakenIsEmptyAndMayBeWritten(t *testing.T) {
	values := []string{"a"}
	large := http.Header{}
	for i := range kept + 1 {
		large[fmt.Sprint("X-", i)] = values
	}
	for range 100 {
		for _, put := range []http.Header{nil, {}, {"X-A": values}, large} {
			Put(put)
			h := Take()
			if len(h) != 0 {
				t.Fatalf("took %v", h)
			}
			h["X-B"] = values
			Put(h)
		}
	}
	if len(large) != kept+1 {
		t.Error("a large header was taken, though it makes each use of it long")
	}
	if values[0] != "a" {
		t.Error("a value was cleared")
	}
}
