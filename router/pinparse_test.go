package router

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"agentop/agents"
)

// FuzzPinParse holds parse against encoding/json: what it takes it reads alike.
func FuzzPinParse(f *testing.F) {
	p := pinRecord{
		Agent: agents.Codex, Session: "s", Server: "lab", Member: "gpu1", Opened: time.Unix(1e9, 5).UTC(), Renewed: time.Unix(2e9, 0).UTC(),
		Pin: "new", Why: "opened", Names: map[string]string{"a": "b", "c": "d"}, Title: "Grüße", Dir: "/home/dev",
	}
	f.Add(p.encode())
	p.Title = "a \"quoted\" one"
	f.Add(p.encode())
	for _, text := range []string{
		"", "{}", "null", `{"agent":"codex"}`, `{"agent":null}`, `{"Agent":"codex"}`, `{"agent":"codex",}`, `{"agent":"codex"}x`, `{"names":{}}`,
		`{"names":{"a":"b"},"names":{"c":"d"}}`, `{"title":"a","title":"b"}`, `{"title":"` + "\xff" + `"}`, `{"title":"` + "\x01" + `"}`,
		`{"opened":"2026-01-02T03:04:05,5Z"}`, `{"opened":"2026-01-02T03:04:05.5+02:00"}`, `{"opened":"2026-01-02T24:04:05Z"}`, `{"other":"x"}`, `{ "agent":"codex"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want pinRecord
		if !got.parse(text) {
			return
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %+v, encoding/json reads %+v, %v", text, got, want, err)
		}
	})
}

// TestPinsAreParsedWithoutCopies wants the form that pins are written in to be
// read the short way.
func TestPinsAreParsedWithoutCopies(t *testing.T) {
	p := pinRecord{Agent: agents.ClaudeCode, Session: "s", Server: "glm", Opened: time.Now().UTC(), Renewed: time.Now().UTC(), Pin: "new", Why: "opened", Names: map[string]string{"a": "b"}, Title: "Rename it", Dir: "/home"}
	var read pinRecord
	if value := p.encode(); !read.parse(value) || read.encode() != value {
		t.Errorf("%s is read as %s", value, read.encode())
	}
}
