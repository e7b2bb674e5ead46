package main

import (
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentop/agents"
	"agentop/router/config"
	"agentop/router/metrics"
)

// TestReferenceOfConfigIsOfTheSchema holds the table of docs/configuration.md
// to the schema; -update writes it anew.
func TestReferenceOfConfigIsOfTheSchema(t *testing.T) {
	const path, begin, end = "../../docs/configuration.md", "<!-- the table: made by `make docs` from router/config -->\n", "<!-- end of the table -->\n"
	var table strings.Builder
	table.WriteString("| field | what it takes | left out | example | what it does |\n| --- | --- | --- | --- | --- |\n")
	cell := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
	}
	for _, f := range config.Fields() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", f.Path, f.Type, cell(f.Default), cell(f.Example), strings.ReplaceAll(f.Doc, "|", `\|`))
	}
	text := readFile(t, path)
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the marks around its table", path)
	}
	want := head + begin + table.String() + end + tail
	if *update && want != text {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != text {
		t.Errorf("%s is not what the schema says: run `make docs`", path)
	}
}

// TestReferenceOfControlNamesEveryRoute compares docs/control-api.md and the
// package's comment with what the handler registers.
func TestReferenceOfControlNamesEveryRoute(t *testing.T) {
	source := readFile(t, "../../router/control/handler.go")
	paths := map[string]string{}
	for _, c := range regexp.MustCompile(`(path\w+)\s*= "(/v1/[^"]+)"`).FindAllStringSubmatch(source, -1) {
		paths[c[1]] = c[2]
	}
	var want []string
	for _, r := range regexp.MustCompile(`HandleFunc\("GET "\+(path\w+)`).FindAllStringSubmatch(source, -1) {
		want = append(want, "GET "+paths[r[1]])
	}
	for _, r := range regexp.MustCompile(`post\(mux, (path\w+)`).FindAllStringSubmatch(source, -1) {
		want = append(want, "POST "+paths[r[1]])
	}
	if len(want) != len(paths) {
		t.Fatalf("%d paths, and %d routes were found: %q", len(paths), len(want), want)
	}
	slices.Sort(want)
	for name, line := range map[string]string{
		"docs/control-api.md":   "(?m)^\\| `(GET|POST) (/v1/[a-z/]+)",
		"router/control/doc.go": `(?m)^//\t(GET|POST) +(/v1/[a-z/]+)`,
	} {
		var got []string
		for _, r := range regexp.MustCompile(line).FindAllStringSubmatch(readFile(t, "../../"+name), -1) {
			got = append(got, r[1]+" "+r[2])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the routes\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestReferenceOfMetricsNamesEveryOne compares docs/metrics.md, names and
// types, with what is served once everything has happened.
func TestReferenceOfMetricsNamesEveryOne(t *testing.T) {
	one := func() float64 { return 1 }
	m := metrics.New("v1", metrics.Gauges{Pins: one, UnsavedPins: one, SaveFailing: one, Keys: one, DroppedKeys: one, BadLines: one, Streams: one})
	m.Request("codex", "glm", agents.Opening, 200)
	m.FirstByte("glm", time.Second)
	m.PinWrite("new")
	m.Refused("guard")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/-/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, l := range regexp.MustCompile(`(?m)^# TYPE (agentop_\w+) (\w+)`).FindAllStringSubmatch(string(body), -1) {
		want = append(want, l[1]+" "+l[2])
	}
	var got []string
	for _, l := range regexp.MustCompile("(?m)^\\| `(agentop_\\w+)(?:\\{[^`]*\\})?` \\| (\\w+) \\|").FindAllStringSubmatch(readFile(t, "../../docs/metrics.md"), -1) {
		got = append(got, l[1]+" "+l[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReferenceOfArchitectureIsWhatGoListShows holds the drawing in
// docs/architecture.md to the imports: it has each package once, and a package
// imports only what stands in a lower row.
func TestReferenceOfArchitectureIsWhatGoListShows(t *testing.T) {
	text := readFile(t, "../../docs/architecture.md")
	_, text, ok := strings.Cut(text, "```text\n")
	drawing, _, closed := strings.Cut(text, "```")
	if !ok || !closed {
		t.Fatal("docs/architecture.md has no drawing")
	}
	row := map[string]int{}
	for i, line := range strings.Split(drawing, "\n") {
		for _, name := range regexp.MustCompile(`[a-z]+(?:/[a-z]+)*`).FindAllString(line, -1) {
			if _, twice := row[name]; twice {
				t.Errorf("%s stands in the drawing twice", name)
			}
			row[name] = i
		}
	}
	all := listPackages(t)
	for name, p := range all {
		if len(p.Imports) == 0 && len(p.TestImports) > 0 {
			continue // a folder of tests
		}
		if _, ok := row[name]; !ok {
			t.Errorf("the drawing lacks %s", name)
			continue
		}
		for _, imported := range p.Imports {
			if own, ok := strings.CutPrefix(imported, "agentop/"); ok && row[own] <= row[name] {
				t.Errorf("%s imports %s, which does not stand below it in the drawing", name, own)
			}
		}
	}
	for name := range row {
		if _, ok := all[name]; !ok {
			t.Errorf("the drawing has %s, which is no package", name)
		}
	}
}

// TestReferenceOfTroublesQuotesTheCode looks for the sentences that the first
// table of docs/troubleshooting.md quotes in the code that says them.
func TestReferenceOfTroublesQuotesTheCode(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"../../agents", "../../router", "../../router/placement", "../../router/credential", "../../cmd/agentop/supervise"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				code.WriteString(readFile(t, f))
			}
		}
	}
	_, table, _ := strings.Cut(readFile(t, "../../docs/troubleshooting.md"), "## What the agent shows\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.SplitSeq(table, "\n") {
		first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if !ok || strings.HasPrefix(first, "the agent shows") {
			continue
		}
		for _, quoted := range inline.FindAllStringSubmatch(first, -1) {
			rows++
			if !strings.Contains(code.String(), quoted[1]) {
				t.Errorf("docs/troubleshooting.md quotes %q, which nothing says", quoted[1])
			}
		}
	}
	if rows < 20 {
		t.Errorf("the table quotes %d sentences, want 20 at least", rows)
	}
}

// TestReferenceHasNoPageThatNobodyFinds wants each page of docs in README.md.
func TestReferenceHasNoPageThatNobodyFinds(t *testing.T) {
	readme := readFile(t, "../../README.md")
	for page := range pages(t) {
		if strings.HasPrefix(page, "docs/") && !strings.Contains(readme, "]("+page+")") {
			t.Errorf("README.md does not link to %s", page)
		}
	}
}

// TestReferenceOfDependenciesNamesEachOne wants each module that go.mod asks
// for by itself in docs/dependencies.md, with its reason.
func TestReferenceOfDependenciesNamesEachOne(t *testing.T) {
	page := readFile(t, "../../docs/dependencies.md")
	for line := range strings.SplitSeq(readFile(t, "../../go.mod"), "\n") {
		module, version, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(version, "v") || strings.Contains(line, "// indirect") {
			continue
		}
		name := regexp.MustCompile(`/v[0-9]+$`).ReplaceAllString(module, "")
		short := "`" + name[strings.LastIndex(name, "/")+1:] + "`" // where one line is about several of an owner
		if !strings.Contains(page, name) && !strings.Contains(page, short) {
			t.Errorf("docs/dependencies.md does not say why %s is here", module)
		}
	}
}
