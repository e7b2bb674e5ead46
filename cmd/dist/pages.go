package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"agentop/cmd/agentop/command"
)

// pages makes the man page of each command and the shells' completions, from
// the command tree itself.
func pages(build command.Build, date time.Time) ([]file, error) {
	root := command.Tree(build)
	root.DisableAutoGenTag = true // it would hold today's date
	var files []file
	for shell, generate := range map[string]func(io.Writer) error{
		"completions/agentop.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"completions/_agentop":     root.GenZshCompletion,
		"completions/agentop.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", shell, err)
		}
		files = append(files, file{name: shell, mode: 0o644, data: b.Bytes()})
	}
	header := doc.GenManHeader{Title: "AGENTOP", Section: "1", Source: "agentop " + build.Version, Manual: "agentop", Date: &date}
	var failed error
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c != root {
			return
		}
		var b bytes.Buffer
		h, name := header, strings.ReplaceAll(c.CommandPath(), " ", "-")
		h.Title = strings.ToUpper(name)
		if err := doc.GenMan(c, &h, &b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("man page of %s: %w", name, err))
		}
		files = append(files, file{name: "man/man1/" + name + ".1", mode: 0o644, data: b.Bytes()})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, failed
}
