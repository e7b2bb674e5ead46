package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"

	"agentop/router/config"
	"agentop/router/control"
)

// TestABrokenConfigurationHidesNoProxy holds that the defaults, which stand in
// for what cannot be read, are not told as facts.
func TestABrokenConfigurationHidesNoProxy(t *testing.T) {
	d := patient(t)
	listen := d.Config.Listen
	d.Config, d.ConfigErr = config.Default(), errors.New("config.yaml:3:1: bad")
	d.Config.Listen = freeAddress(t)
	d.Status = func(context.Context) (control.Status, error) {
		return control.Status{Version: d.Version, Listen: []string{listen}}, nil
	}
	answers := false
	for _, f := range d.Run(t.Context()) {
		switch {
		case f.Check == "port" && f.Level == Wrong, f.Check == "servers":
			t.Errorf("%s: %s", f.Check, f.Text)
		case f.Text == "agentop answers on "+listen:
			answers = true
		}
	}
	if !answers {
		t.Errorf("it is not said that the proxy answers on %s", listen)
	}
}

// TestAProxyThatWaitsForItsConfigurationIsToldOnce plants a configuration with
// which no worker could start, and wants one fault and one consequence.
func TestAProxyThatWaitsForItsConfigurationIsToldOnce(t *testing.T) {
	d := patient(t)
	gone(d)
	d.Config, d.ConfigErr = config.Default(), errors.New("config.yaml:3:1: bad")
	d.Holder = func() Holder { return Holder{PID: 4711, Trouble: "config.yaml:3:1: bad", Cure: "correct it"} }
	var got []string
	for _, f := range d.Run(t.Context()) {
		if f.Level == Wrong || f.Check == "socket" {
			got = append(got, f.Check+": "+f.Text)
		}
	}
	want := []string{"config: config.yaml:3:1: bad", "proxy: process 4711 cannot serve before config.yaml is right"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
