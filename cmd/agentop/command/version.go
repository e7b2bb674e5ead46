package command

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Build says which build of agentop this is.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"` // of the commit
	Go      string `json:"go"`
	System  string `json:"system"`
}

// NewBuild takes what the linker stamped and fills the gaps from what the Go
// tool recorded.
func NewBuild(version, commit, date string) Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		fill(&b, info)
	}
	b.Version = cmp.Or(b.Version, "dev")
	return b
}

// fill takes from the build information what was not stamped.
func fill(b *Build, info *debug.BuildInfo) {
	if v := info.Main.Version; v != "(devel)" {
		b.Version = cmp.Or(b.Version, v)
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			if b.Commit == "" {
				b.Commit = s.Value[:min(12, len(s.Value))]
			}
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Commit != "" && !strings.Contains(b.Version+b.Commit, "dirty") {
		b.Commit += "-dirty"
	}
}

// versionOptions is `agentop version`.
type versionOptions struct {
	*App
	JSON bool
}

func newVersion(a *App, run func(*versionOptions, context.Context) error) *cobra.Command {
	o := &versionOptions{App: a}
	c := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, date and Go release",
		Args:  noArgs,
		RunE:  runner(o, run, nil),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

func (o *versionOptions) run(context.Context) error {
	b := o.Build
	if o.JSON {
		return o.json(b)
	}
	text := "agentop " + b.Version
	if b.Commit != "" {
		text += " commit " + b.Commit
	}
	if b.Date != "" {
		text += " of " + b.Date
	}
	return o.say("%s", fmt.Sprintf("%s (%s %s)", text, b.Go, b.System))
}
