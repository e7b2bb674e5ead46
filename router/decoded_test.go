package router

import (
	"fmt"
	"testing"

	"agentop/router/placement"
)

func TestDecodedPinsFollowTheStore(t *testing.T) {
	d := newDecodedPins()
	c := placement.Conversation{Agent: "claude-code", Session: "s1"}
	value := func(server string) string {
		return (&pinRecord{Agent: c.Agent, Session: c.Session, Server: server, Names: map[string]string{"a": "b"}}).encode()
	}
	first, err := d.decode(c, value("glm"))
	if err != nil || first.Server != "glm" {
		t.Fatalf("%+v, %v", first, err)
	}
	first.Server, first.Member, first.Names = "changed by its turn", "m", nil
	if again, err := d.decode(c, value("glm")); err != nil || again.Server != "glm" || again.Member != "" || again.Names["a"] != "b" {
		t.Errorf("the same pin decodes to %+v, %v", again, err)
	}
	if moved, err := d.decode(c, value("lab")); err != nil || moved.Server != "lab" {
		t.Errorf("a pin that was moved decodes to %+v, %v", moved, err)
	}
	if p, err := d.decode(c, `{"agent":"claude-code","session":"other","server":"glm"}`); err == nil {
		t.Errorf("another conversation's pin decodes to %+v", p)
	}
	for i := range 2 * maxDecoded {
		other := placement.Conversation{Agent: c.Agent, Session: fmt.Sprint(i)}
		if _, err := d.decode(other, (&pinRecord{Agent: other.Agent, Session: other.Session, Server: "glm"}).encode()); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.pins) > maxDecoded {
		t.Errorf("%d pins are kept decoded, want at most %d", len(d.pins), maxDecoded)
	}
}
