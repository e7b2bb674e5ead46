package router

import "testing"

func TestStatusesAreToldInWords(t *testing.T) {
	for status, want := range map[int]string{500: "500 Internal Server Error", 529: "529 Overloaded", 599: "599"} {
		if got := statusWords(status); got != want {
			t.Errorf("%d is told as %q, want %q", status, got, want)
		}
	}
}
