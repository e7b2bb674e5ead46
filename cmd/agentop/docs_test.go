package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"agentop/cmd/agentop/command"
	"agentop/router/config"
)

// Every command line of the pages stands in a block of the language sh, and is
// run here: the blocks of a page one after the other, in a home of their own,
// with the program as it is now and fakes of the servers that they name.
//
// A block whose first line is ```sh cannot-run: REASON is not run, but its
// agentop commands must be ones that there are. `make` and `go` are not run
// either: their targets and packages must be there.

// block is one fenced block of a page.
type block struct {
	page string
	line int // of its first fence
	info string
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

func (b block) language() string { lang, _, _ := strings.Cut(b.info, " "); return lang }

// pages are README.md, CLAUDE.md and docs/*.md, by the path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	all := map[string]string{}
	for _, path := range append(names, "../../README.md", "../../CLAUDE.md") {
		all[strings.TrimPrefix(path, "../../")] = readFile(t, path)
	}
	return all
}

// blocks takes the fenced blocks out of a page.
func blocks(t *testing.T, page, text string) []block {
	t.Helper()
	var all []block
	var open *block
	for i, line := range strings.Split(text, "\n") {
		fence, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case !ok && open != nil:
			open.text += line + "\n"
		case ok && open == nil:
			open = &block{page: page, line: i + 1, info: strings.TrimSpace(fence)}
		case ok:
			all = append(all, *open)
			open = nil
		}
	}
	if open != nil {
		t.Errorf("%s: this block has no end", open)
	}
	return all
}

// commandLines are the commands of a block, with continued lines joined and
// comments left out.
func commandLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		line, _, _ = strings.Cut(" "+line, " #")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestDocsBlocksAreOfALanguageThatIsChecked(t *testing.T) {
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			var err error
			switch b.language() {
			case "yaml":
				_, err = config.Parse("config.yaml", []byte(b.text))
			case "json":
				var v any
				err = json.Unmarshal([]byte(b.text), &v)
			case "toml":
				var v any
				err = toml.Unmarshal([]byte(b.text), &v)
			case "sh", "go", "text", "mermaid":
			default:
				err = fmt.Errorf("nothing here checks the language %q: use sh, yaml, json, toml, go, text or mermaid", b.language())
			}
			if err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
}

// inline are the words between backquotes outside of blocks.
var inline = regexp.MustCompile("`([^`\n]+)`")

func TestDocsNameCommandsThatThereAre(t *testing.T) {
	makefile := readFile(t, "../../Makefile")
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			if b.language() != "sh" {
				continue
			}
			for _, line := range commandLines(b.text) {
				checkCommand(t, b.String(), line, makefile)
			}
		}
		for _, quoted := range inline.FindAllStringSubmatch(text, -1) {
			checkCommand(t, page, quoted[1], makefile)
		}
	}
}

// checkCommand looks a command line of agentop, make or go up; it passes what
// is none of them.
func checkCommand(t *testing.T, where, line, makefile string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " && ")
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " < ")
	words := strings.Fields(strings.TrimSuffix(line, " &"))
	if len(words) < 2 {
		return
	}
	switch words[0] {
	case "agentop":
		tree := command.Tree(command.Build{})
		c, rest, err := tree.Find(words[1:])
		if err != nil || c == tree && !strings.HasPrefix(words[1], "-") && words[1] != "…" && words[1] != "..." {
			t.Errorf("%s: `%s`: there is no such command", where, line)
			return
		}
		known := func(name string) *pflag.Flag {
			c.InheritedFlags()
			return c.Flags().Lookup(name)
		}
		for _, word := range rest {
			name, isFlag := strings.CutPrefix(word, "--")
			name, _, _ = strings.Cut(name, "=")
			if isFlag && name != "help" && known(name) == nil {
				t.Errorf("%s: `%s`: %s has no flag --%s", where, line, c.CommandPath(), name)
			}
		}
	case "make":
		for _, target := range words[1:] {
			if !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).MatchString(makefile) {
				t.Errorf("%s: `%s`: the Makefile has no target %s", where, line, target)
			}
		}
	case "go":
		for _, word := range words[1:] {
			if path, ok := strings.CutPrefix(word, "./"); ok {
				if _, err := os.Stat(filepath.Join("../..", strings.TrimSuffix(strings.TrimSuffix(path, "..."), "/"))); err != nil {
					t.Errorf("%s: `%s`: %v", where, line, err)
				}
			}
		}
	}
}

func TestDocsNamePathsAndTestsThatThereAre(t *testing.T) {
	tests := allTests(t, "../..")
	isPath := regexp.MustCompile(`^(agents|cmd|docs|filestore|router|tui)/[\w./*-]+$`)
	isTest := regexp.MustCompile(`\bTest[A-Z]\w*`)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	testLink := regexp.MustCompile("\\[`(Test\\w+)`\\]\\(([^)]+)\\)")
	for page, text := range pages(t) {
		for _, quoted := range inline.FindAllStringSubmatch(text, -1) {
			name := strings.TrimSuffix(quoted[1], "/")
			if file, _, found := strings.Cut(name, ":"); found {
				name = file
			}
			if isPath.MatchString(name) {
				if found, err := filepath.Glob(filepath.Join("../..", name)); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there", page, name)
				}
			}
			for _, test := range isTest.FindAllString(quoted[1], -1) {
				if !strings.Contains(tests, "func "+test) { // or the beginning of several
					t.Errorf("%s names the test %s, which is not there", page, test)
				}
			}
		}
		for _, l := range testLink.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(readFile(t, filepath.Join("../..", filepath.Dir(page), l[2])), "func "+l[1]+"(") {
				t.Errorf("%s says that %s is in %s, where it is not", page, l[1], l[2])
			}
		}
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := filepath.Join("../..", filepath.Dir(page), target)
			if target == "" {
				path = filepath.Join("../..", page)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", page, l[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, path)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, l[1])
			}
		}
	}
}

// anchors are the names that a page's headings get.
func anchors(text string) []string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			title = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(title, "")
			all = append(all, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return all
}

// TestDocsCommandsRun runs what the pages tell the reader to type.
func TestDocsCommandsRun(t *testing.T) {
	for page, text := range pages(t) {
		var run []block
		for _, b := range blocks(t, page, text) {
			_, reason, cannot := strings.Cut(b.info, "cannot-run:")
			switch {
			case b.language() != "sh":
			case cannot && strings.TrimSpace(reason) == "":
				t.Errorf("%s: why can it not be run?", b)
			case cannot:
				t.Logf("%s is not run: %s", b, strings.TrimSpace(reason))
			default:
				run = append(run, b)
			}
		}
		if len(run) > 0 {
			t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) { runPage(t, run) })
		}
	}
}

// runPage runs a page's blocks in one world.
func runPage(t *testing.T, run []block) {
	t.Parallel()
	w := newDocsWorld(t)
	for _, b := range run {
		var script []string
		for _, line := range commandLines(b.text) {
			switch words := strings.Fields(line); {
			case words[0] == "make", words[0] == "go":
			case line == "agentop proxy":
				w.startProxy()
			default:
				script = append(script, w.translate(line))
			}
		}
		if len(script) == 0 {
			continue
		}
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", strings.Join(script, "\n"))
		cmd.Dir, cmd.Env = w.dir, w.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s\nsays\n%s", b, err, strings.Join(script, "\n"), out)
		}
		if strings.Contains(string(out), "agentop: warning") {
			t.Logf("%s:\n%s", b, out)
		}
	}
}
