package command

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAnswersToAQuestion(t *testing.T) {
	for input, want := range map[string]error{
		"y\n": nil, "YES\n": nil, " y \r\n": nil, "y": nil, "n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yep\n": errDeclined,
	} {
		a, _, errs, _ := testApp(t, input)
		if err := a.confirm(t.Context(), false, []string{"at stake\x1b"}, "Do it?"); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: got %v, want %v", input, err, want)
		}
		if got := errs.String(); got != "at stake␛\nDo it? [y/N] " {
			t.Errorf("%q: asked %q", input, got)
		}
	}
	t.Run("interrupted", func(t *testing.T) {
		a, _, _, _ := testApp(t, "")
		never, _ := io.Pipe()
		a.In = never
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.confirm(ctx, false, nil, "Do it?"); !errors.Is(err, errDeclined) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCleanKey(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		ok       bool
	}{
		{"sk-fake-1\n", "sk-fake-1", true}, {"  sk-fake-1\r\n", "sk-fake-1", true}, {"", "", false}, {"\n", "", false},
		{"sk fake", "", false}, {"sk\x00fake", "", false}, {"schlüssel", "", false}, {strings.Repeat("x", maxKey+1), "", false},
	} {
		got, err := cleanKey(tt.in)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%.20q: got %.20q, %v", tt.in, got, err)
		}
		if err != nil && len(tt.in) > 2 && strings.Contains(err.Error(), strings.TrimSpace(tt.in)) {
			t.Errorf("%.20q: the error repeats it: %v", tt.in, err)
		}
	}
}
