package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentop/router/config"
)

func TestABadConfigurationIsToldWithItsCure(t *testing.T) {
	_, err := config.Parse("config.yaml", []byte("bogus: 1\n"))
	for _, err := range []error{err, fmt.Errorf("read: %w", err)} {
		if got := badConfigHint(err); !strings.Contains(got, "`agentop config check`") {
			t.Errorf("%v: %q, want the command that checks it", err, got)
		}
	}
	if got := badConfigHint(errors.New("no space left")); got != "" {
		t.Errorf("another error: %q, want no hint", got)
	}
}
