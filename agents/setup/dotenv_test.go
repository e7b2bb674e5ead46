package setup

import (
	"strings"
	"testing"
)

// TestCodexProxyLineIsWrittenAndUndone has a proxy variable that would catch
// requests to agentop: the line that keeps them off it comes into Codex's file
// of variables, and goes again.
func TestCodexProxyLineIsWrittenAndUndone(t *testing.T) {
	const list = "127.0.0.1,localhost,::1"
	for _, c := range []struct {
		name, user string
		env        map[string]string
		want       string // the file when enabled
	}{
		{"no file", absent, map[string]string{"HTTP_PROXY": "http://squid.example:3128"}, "NO_PROXY=" + list + "\n"},
		{"an empty file", "", map[string]string{"ALL_PROXY": "socks5://squid.example:1080"}, "NO_PROXY=" + list + "\n"},
		{"comments and no last line end", "# mine\r\nexport HTTP_PROXY='http://u:p@squid.example:3128' # corp\r\n\r\nA=\"b c\"", nil,
			"# mine\r\nexport HTTP_PROXY='http://u:p@squid.example:3128' # corp\r\n\r\nA=\"b c\"\r\nNO_PROXY=" + list},
		{"a list of his own", "HTTP_PROXY=http://squid.example:3128\nNO_PROXY = \"corp.example,localhost\" # keep\nZ=1\n", nil,
			"HTTP_PROXY=http://squid.example:3128\nNO_PROXY = corp.example,localhost,127.0.0.1,::1 # keep\nZ=1\n"},
		{"a list in the shell", "X=1\n", map[string]string{"http_proxy": "http://squid.example:3128", "no_proxy": "corp.example"},
			"X=1\nno_proxy=corp.example," + list + "\n"},
		{"both spellings", absent, map[string]string{"http_proxy": "http://squid.example:3128", "no_proxy": "a.example", "NO_PROXY": "b.example"},
			"no_proxy=a.example," + list + "\nNO_PROXY=b.example," + list + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			for name, value := range c.env {
				s.env[name] = value
			}
			if c.user != absent {
				s.write(".codex/.env", c.user)
			}
			before := tree(t, s.home)
			p := s.enable(codex, Choices{})
			if got := s.read(".codex/.env"); got != c.want {
				t.Errorf("enabled: got %q, want %q", got, c.want)
			}
			if !strings.Contains(p.Diff(), "+++ "+s.codexEnv()) || len(p.Warnings) > 0 {
				t.Errorf("the diff is\n%s\nwarnings %q", p.Diff(), p.Warnings)
			}
			if st := s.Status(codex); st.State != StateOn || len(st.Trouble) > 0 {
				t.Errorf("the state is %s, trouble %v", st.State, st.Trouble)
			}
			enabled := tree(t, s.home)
			s.enable(codex, Choices{}) // changes nothing
			sameTree(t, tree(t, s.home), enabled)
			s.disable(codex)
			sameTree(t, tree(t, s.home), before)

			// And when somebody has written to it meanwhile.
			s.enable(codex, Choices{})
			s.write(".codex/.env", s.read(".codex/.env")+"\nNEW=1\n")
			s.disable(codex)
			left := s.read(".codex/.env")
			if strings.Contains(left, "::1") || !strings.Contains(left, "NEW=1") {
				t.Errorf("undone by key it is %q", left)
			}
		})
	}
}

// TestCodexProxyLineThatCannotBeWritten leaves a file alone that it does not
// understand, and says what to write.
func TestCodexProxyLineThatCannotBeWritten(t *testing.T) {
	for name, user := range map[string]string{
		"more than one line": "HTTP_PROXY=http://squid.example:3128\nKEY=\"a\nb\"\n",
		"no assignment":      "HTTP_PROXY=http://squid.example:3128\nsource other\n",
		"a list with spaces": "HTTP_PROXY=http://squid.example:3128\nNO_PROXY=\"a.example, b.example\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.write(".codex/.env", user)
			p := s.enable(codex, Choices{})
			if got := s.read(".codex/.env"); got != user {
				t.Errorf("it is %q now", got)
			}
			if warned := strings.Join(p.Warnings, "\n"); !strings.Contains(warned, "would catch requests to agentop") || !strings.Contains(warned, "127.0.0.1") {
				t.Errorf("the warnings are %q", warned)
			}
		})
	}
}
