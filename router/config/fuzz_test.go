package config

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse: no panic, either a configuration or errors with positions, and
// what is accepted survives every edit with nothing else changed.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{whole, commented, "", "a: *x", "servers: {a: {url: http://a}}", "servers:\n  ? a\n  : {url: http://a}\n",
		"agents:\r\n  codex:\r\n    server: |-\r\n      \r\n", "\ufeff---\nservers: {}\n...\n", "servers: !!map {a: &b {url: 'http://a'}}\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		c, err := Parse("c.yaml", []byte(data))
		if err != nil {
			var list Errors
			if c != nil || !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("got %v with %v", c, err)
			}
			return
		}
		tryEdits(t, data, c)
	})
}

func tryEdits(t *testing.T, data string, before *Config) {
	fresh := Server{Name: "fresh-1", URL: "http://fresh", Key: KeySource{Kind: KeyStored}, Rename: []Rename{{"x*", "y"}}}
	if _, taken := before.Server(fresh.Name); taken {
		return
	}
	added, err := AddServer([]byte(data), fresh)
	if err != nil {
		if !errors.Is(err, ErrLayout) {
			t.Errorf("add: %v\n%q", err, data)
		}
		return
	}
	used, err := UseServer(added, "codex", fresh.Name)
	if err != nil {
		if !errors.Is(err, ErrLayout) {
			t.Errorf("use: %v\n%q", err, added)
		}
		used = added
	}
	removed, err := RemoveServer(used, fresh.Name)
	if err != nil {
		if !errors.Is(err, ErrLayout) {
			t.Errorf("remove: %v\n%q", err, used)
		}
		return
	}
	after, err := Parse("c.yaml", removed)
	want := before.clone()
	if codex := want.Agents["codex"]; codex.Server != "" || len(used) != len(added) {
		codex.Server = ""
		want.Agents["codex"] = codex
	}
	if err != nil || !sameMeaning(after, want) {
		t.Errorf("added, used and removed: %v\n%q\n%q\n%q", err, data, used, removed)
	}
	if strings.Count(data, "#") > strings.Count(string(removed), "#") {
		t.Errorf("a comment was lost:\n%q\n%q", data, removed)
	}
}
