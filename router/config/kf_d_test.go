package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A config.yaml that a newer agentop wrote is left as it is, by every edit, and
// the error says where it stands. The proxy keeps what it has in force.
func TestKF_D10_AFileOfANewerVersionIsLeftAlone(t *testing.T) {
	newer := "# mine\nlisten: 127.0.0.1:4780\nbrand_new: {deep: [1, 2]}\nservers:\n  glm: {url: http://127.0.0.1:1, key: none}\n"
	path := filepath.Join(t.TempDir(), "config.yaml")
	for name, edit := range map[string]func([]byte) ([]byte, error){
		"use":    func(d []byte) ([]byte, error) { return UseServer(d, "codex", "glm") },
		"add":    func(d []byte) ([]byte, error) { return AddServer(d, Server{Name: "lab", URL: "http://127.0.0.1:2"}) },
		"remove": func(d []byte) ([]byte, error) { return RemoveServer(d, "glm") },
	} {
		write(t, path, newer)
		err := Edit(path, edit)
		var e *Error
		if !errors.As(err, &e) || e.Line != 3 || !strings.Contains(err.Error(), `unknown field "brand_new"`) {
			t.Errorf("%s: %v, want line 3 and the field", name, err)
		}
		if got, _ := os.ReadFile(path); string(got) != newer {
			t.Errorf("%s changed the file to\n%s", name, got)
		}
		if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
			for _, file := range left {
				if !strings.HasSuffix(file, ".lock") {
					t.Errorf("%s left %s", name, file)
				}
			}
		}
	}
	write(t, path, sizeN(1))
	w := watch(t, path, Options{})
	write(t, path, newer)
	w.expectError("newer", "config.yaml:3:1: unknown field \"brand_new\"")
	if w.Current().MaxBody != 1<<20 {
		t.Errorf("in force is %+v", w.Current())
	}
}
