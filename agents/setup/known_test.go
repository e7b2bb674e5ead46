package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKF_D3_LinksStay: settings that are symbolic links into a folder of
// dotfiles stay links, and what they lead to holds the edit.
func TestKF_D3_LinksStay(t *testing.T) {
	tests := []struct {
		name string
		link func(t *testing.T, s *stage, name string) (target string)
	}{
		{"absolute link", func(t *testing.T, s *stage, name string) string {
			target := s.write("dotfiles/"+filepath.Base(name), "{\n  \"model\": \"x\"\n}\n")
			symlink(t, target, filepath.Join(s.home, name))
			return target
		}},
		{"relative link in a linked folder", func(t *testing.T, s *stage, name string) string {
			target := s.write("dotfiles/deep/real.json", "{\n  \"model\": \"x\"\n}\n")
			if err := os.MkdirAll(filepath.Join(s.home, "dotfiles", "claude"), 0o755); err != nil {
				t.Fatal(err)
			}
			symlink(t, filepath.Join(s.home, "dotfiles", "claude"), filepath.Dir(filepath.Join(s.home, name)))
			symlink(t, "../deep/real.json", filepath.Join(s.home, "dotfiles", "claude", filepath.Base(name)))
			return target
		}},
		{"link to a link", func(t *testing.T, s *stage, name string) string {
			target := s.write("dotfiles/real.json", "{}\n")
			symlink(t, "real.json", filepath.Join(s.home, "dotfiles", "second.json"))
			symlink(t, "../dotfiles/second.json", filepath.Join(s.home, name))
			return target
		}},
		{"link to nothing", func(t *testing.T, s *stage, name string) string {
			symlink(t, "../dotfiles/new/real.json", filepath.Join(s.home, name))
			return filepath.Join(s.home, "dotfiles", "new", "real.json")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			target := tt.link(t, s, settingsFiles[claudeCode])
			before := tree(t, s.home)
			p := s.enable(claudeCode, Choices{})
			real, err := filepath.EvalSymlinks(target)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := filepath.EvalSymlinks(p.Target); err != nil || got != real {
				t.Errorf("the target is %q (%v), want %q", got, err, real)
			}
			data, err := os.ReadFile(target)
			if err != nil || !strings.Contains(string(data), "127.0.0.1:4780/claude-code") {
				t.Errorf("the target holds %q (%v)", data, err)
			}
			for name, text := range before {
				if strings.HasPrefix(text, "L") && tree(t, s.home)[name] != text {
					t.Errorf("the link %s is now %q", name, tree(t, s.home)[name])
				}
			}
			s.disable(claudeCode)
			sameTree(t, tree(t, s.home), before)
		})
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestKF_D5_NothingIsReadableByOthers: whatever the umask, new files and
// everything below agentop's home are private at every step, and an existing
// file keeps its mode.
func TestKF_D5_NothingIsReadableByOthers(t *testing.T) {
	for _, mask := range []int{0o000, 0o077} {
		for _, mode := range []fs.FileMode{0, 0o644, 0o600, 0o664} {
			t.Run(fmt.Sprintf("umask %03o, mode %04o", mask, mode), func(t *testing.T) {
				old := syscall.Umask(mask)
				defer syscall.Umask(old)
				s := newStage(t)
				path := filepath.Join(s.home, settingsFiles[claudeCode])
				if mode != 0 {
					s.write(settingsFiles[claudeCode], "{}\n")
					if err := os.Chmod(path, mode); err != nil {
						t.Fatal(err)
					}
				}
				want := mode
				if mode == 0 {
					want = 0o600
				}
				defer func(old func(string)) { reached = old }(reached)
				reached = func(step string) {
					private(t, step, s.Dir, path, want)
				}
				s.enable(claudeCode, Choices{})
				if got := stat(t, path).Mode().Perm(); got != want {
					t.Errorf("the settings have mode %04o, want %04o", got, want)
				}
				s.disable(claudeCode)
				if mode != 0 && stat(t, path).Mode().Perm() != want {
					t.Errorf("after disable the settings have mode %04o, want %04o", stat(t, path).Mode().Perm(), want)
				}
			})
		}
	}
}

// private checks the modes of all that is there at one step.
func private(t *testing.T, step, records, settings string, want fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(filepath.Dir(records), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %s has mode %s", step, path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	beside, err := os.ReadDir(filepath.Dir(settings))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder that was made goes again
		t.Error(err)
	}
	for _, e := range beside {
		if info, err := e.Info(); err == nil && info.Mode().Perm()&^want != 0 {
			t.Errorf("%s: %s has mode %s, want at most %04o", step, e.Name(), info.Mode(), want)
		}
	}
}

// TestKF_L1_UndoneWithoutAProxy: disable takes the address out whatever has
// become of the record, and says what it cannot know.
func TestKF_L1_UndoneWithoutAProxy(t *testing.T) {
	const user = "{\n  \"model\": \"opus\"\n}\n"
	tests := []struct {
		name    string
		damage  func(t *testing.T, s *stage)
		unknown string
	}{
		{"nothing happened", func(*testing.T, *stage) {}, "[]"},
		{"the home is lost", func(t *testing.T, s *stage) { removeAll(t, filepath.Dir(s.Dir)) }, "[env.ANTHROPIC_BASE_URL env.CLAUDE_CODE_GATEWAY_HINT_HEADERS]"},
		{"the record is lost", func(t *testing.T, s *stage) { removeAll(t, s.recordName(claudeCode)) }, "[env.ANTHROPIC_BASE_URL env.CLAUDE_CODE_GATEWAY_HINT_HEADERS]"},
		{"the record is cut short", func(t *testing.T, s *stage) {
			if err := os.Truncate(s.recordName(claudeCode), 40); err != nil {
				t.Fatal(err)
			}
		}, "[env.ANTHROPIC_BASE_URL env.CLAUDE_CODE_GATEWAY_HINT_HEADERS]"},
		{"the backup is lost", func(t *testing.T, s *stage) {
			names, _ := filepath.Glob(filepath.Join(s.Dir, "*.orig"))
			removeAll(t, names[0])
		}, "[]"},
		{"the record is of a newer agentop", func(t *testing.T, s *stage) {
			text := s.read(".agentop/agents/claude-code.json")
			s.write(".agentop/agents/claude-code.json", strings.Replace(text, `"version": 1`, `"version": 7, "more": {"x": 1}`, 1))
		}, "[]"},
		{"the port is another", func(_ *testing.T, s *stage) { s.Proxy.Listen = "127.0.0.1:9999" }, "[]"},
		{"the home is lost and the port is another", func(t *testing.T, s *stage) {
			s.Proxy.Listen = "127.0.0.1:9999"
			removeAll(t, filepath.Dir(s.Dir))
		}, "[env.ANTHROPIC_BASE_URL env.CLAUDE_CODE_GATEWAY_HINT_HEADERS]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			s.write(settingsFiles[claudeCode], user)
			no := false
			s.enable(claudeCode, Choices{ToolSearch: &no})
			tt.damage(t, s)
			u := s.disable(claudeCode)
			if got := s.read(settingsFiles[claudeCode]); got != user && tt.unknown == "[]" {
				t.Errorf("the settings are %q, want %q", got, user)
			} else if strings.Contains(got, "127.0.0.1") || !strings.Contains(got, `"model": "opus"`) {
				t.Errorf("the settings are %q", got)
			}
			if got := fmt.Sprint(u.Files[0].Unknown); got != tt.unknown {
				t.Errorf("of unknown old value: %s, want %s", got, tt.unknown)
			}
			if again := s.disable(claudeCode); again.Changed() {
				t.Errorf("a second disable changed something: %+v", again)
			}
		})
	}
}

func removeAll(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

// TestKF_L2_OtherValuesStay: after enabling only agentop's keys differ, and
// what the user changes later is his.
func TestKF_L2_OtherValuesStay(t *testing.T) {
	const user = `{
  "env": {
    "ANTHROPIC_MODEL": "opus",
    "ANTHROPIC_BASE_URL": "https://gw.corp.example"
  }
}
`
	tests := []struct {
		name, from, to string
		want           string
		kept           string
	}{
		{"an own key comes", `"opus",`, `"opus", "MINE": "1",`, strings.Replace(user, `"opus",`, `"opus", "MINE": "1",`, 1), "[]"},
		{"the address is changed", "http://127.0.0.1:4780/claude-code", "https://other.example", strings.Replace(user, "gw.corp", "other", 1), "[env.ANTHROPIC_BASE_URL]"},
		{"the hint is changed", `HEADERS": "1"`, `HEADERS": "0"`, strings.Replace(user, "gw.corp.example\"", "gw.corp.example\",\n    \"CLAUDE_CODE_GATEWAY_HINT_HEADERS\": \"0\"", 1), "[env.CLAUDE_CODE_GATEWAY_HINT_HEADERS]"},
		{"a model is changed", `"opus"`, `"sonnet"`, strings.Replace(user, "opus", "sonnet", 1), "[]"},
		{"the old address is put back by hand", "http://127.0.0.1:4780/claude-code", "https://gw.corp.example", user, "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			s.write(settingsFiles[claudeCode], user)
			s.enable(claudeCode, Choices{})
			text := s.read(settingsFiles[claudeCode])
			if !strings.Contains(text, tt.from) {
				t.Fatalf("no %q in %s", tt.from, text)
			}
			s.write(settingsFiles[claudeCode], strings.Replace(text, tt.from, tt.to, 1))
			u := s.disable(claudeCode)
			if got := s.read(settingsFiles[claudeCode]); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if got := fmt.Sprint(u.Files[0].Kept); got != tt.kept {
				t.Errorf("kept %s, want %s", got, tt.kept)
			}
		})
	}
}

// TestEnablingAgainKeepsTheFirstOriginal: a new port replaces the address, and the first original is
// what comes back, also when the user has edited in between.
func TestEnablingAgainKeepsTheFirstOriginal(t *testing.T) {
	const user = "{\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"https://gw.corp.example\"\n  }\n}\n"
	for _, edited := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("edited %t, record lost %t", edited, lost), func(t *testing.T) {
				s := newStage(t)
				s.write(settingsFiles[claudeCode], user)
				s.enable(claudeCode, Choices{})
				want := user
				if edited {
					s.write(settingsFiles[claudeCode], strings.Replace(s.read(settingsFiles[claudeCode]), "{\n", "{\n  \"theme\": \"x\",\n", 1))
					want = strings.Replace(user, "{\n", "{\n  \"theme\": \"x\",\n", 1)
				}
				if lost {
					removeAll(t, s.Dir)
				}
				s.Proxy = Proxy{Listen: "127.0.0.1:4799", Token: "fake-token"}
				p := s.enable(claudeCode, Choices{})
				if !strings.Contains(s.read(settingsFiles[claudeCode]), `"http://127.0.0.1:4799/fake-token/claude-code"`) {
					t.Errorf("the settings are %s", s.read(settingsFiles[claudeCode]))
				}
				if len(p.Upstreams) > 0 {
					t.Errorf("our own address is taken over: %+v", p.Upstreams)
				}
				s.disable(claudeCode)
				got := s.read(settingsFiles[claudeCode])
				if lost {
					want = "" // not known; but nothing of ours is left
					got = strings.Join(strings.FieldsFunc(got, func(r rune) bool { return !strings.ContainsRune("4780499", r) }), "")
				}
				if got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// TestWhatCannotBeEditedSafelyIsNotEdited: what cannot be edited safely is not edited.
func TestWhatCannotBeEditedSafelyIsNotEdited(t *testing.T) {
	tests := []struct {
		name, agent, text, want string
	}{
		{"comment", claudeCode, "{\n  // mine\n  \"model\": \"x\"\n}\n", "settings.json:2:3: invalid character '/'"},
		{"trailing comma", claudeCode, "{\n  \"model\": \"x\",\n}\n", "settings.json:3:1: invalid character '}'"},
		{"cut short", claudeCode, "{\n  \"model\": ", "unexpected EOF"},
		{"two values", claudeCode, "{} {}", "text after the end"},
		{"a list", claudeCode, "[]", "not an object"},
		{"env is a list", claudeCode, `{"env": []}`, "env is not an object"},
		{"not UTF-8", claudeCode, "{\"a\": \"\xff\"}", "not UTF-8"},
		{"toml", codex, "a = 1\nb = \n", "config.toml:2"},
		{"toml, twice", codex, "a = 1\na = 2\n", "config.toml"},
		{"not a string", codex, "openai_base_url = 1\n", "openai_base_url is not a string"},
		{"built in", codex, "model_provider = \"ollama\"\n", "model_provider is \"ollama\""},
		{"no table", codex, "model_provider = \"x\"\n", "there is no [model_providers.x]"},
		{"jsonc", openCode, "{\n  \"a\": \n}", "opencode.json:3:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := withLife(t, tt.agent, tt.text)
			before := tree(t, s.home)
			_, err := s.Plan(tt.agent, Choices{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			sameTree(t, tree(t, s.home), before)
		})
	}
	s := newStage(t)
	s.write("root/etc/claude-code/managed-settings.d/corp.json", `{"env": {"ANTHROPIC_BASE_URL": "https://managed.example"}}`)
	if _, err := s.Plan(claudeCode, Choices{}); !errors.Is(err, ErrStronger) {
		t.Errorf("managed settings: got %v", err)
	}
	if _, err := s.Plan("gemini", Choices{}); !errors.Is(err, ErrUnknownAgent) {
		t.Errorf("unknown agent: got %v", err)
	}
}

// TestUnreadableRecordIsNotOverwritten: enabling anew would lose the original.
func TestUnreadableRecordIsNotOverwritten(t *testing.T) {
	s := newStage(t)
	s.write(".agentop/agents/claude-code.json", "{")
	if _, err := s.Plan(claudeCode, Choices{}); err == nil {
		t.Error("a damaged record is passed over")
	}
	s.write(".agentop/agents/claude-code.json", `{"version": 9}`)
	p, err := s.Plan(claudeCode, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enable(p); !errors.Is(err, ErrNewerRecord) {
		t.Errorf("got %v", err)
	}
	if exists(filepath.Join(s.home, settingsFiles[claudeCode])) {
		t.Error("the settings were written")
	}
}

// TestAChangeWhileEditingIsKept: the agent writes its file between the read
// and the rename.
func TestAChangeWhileEditingIsKept(t *testing.T) {
	s := newStage(t)
	s.write(settingsFiles[claudeCode], "{\n  \"model\": \"a\"\n}\n")
	defer func(old func(string)) { reached = old }(reached)
	times := 0
	reached = func(step string) {
		if step == "temporary file" && times < 3 {
			times++
			s.write(settingsFiles[claudeCode], fmt.Sprintf("{\n  \"model\": \"b%d\"\n}\n", times))
		}
	}
	s.enable(claudeCode, Choices{})
	if got := s.read(settingsFiles[claudeCode]); !strings.Contains(got, `"b3"`) || !strings.Contains(got, "4780") {
		t.Errorf("the settings are %s", got)
	}
	s.disable(claudeCode)
	if got := s.read(settingsFiles[claudeCode]); got != "{\n  \"model\": \"b3\"\n}\n" {
		t.Errorf("after disable the settings are %s", got)
	}
	times = 0
	reached = func(step string) {
		if step == "temporary file" {
			times++
			s.write(settingsFiles[claudeCode], fmt.Sprintf("{\"n\": %d}", times))
		}
	}
	p, err := s.Plan(claudeCode, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enable(p); !errors.Is(err, ErrChanging) {
		t.Errorf("a file that never rests: got %v", err)
	}
}
