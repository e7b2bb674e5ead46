package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"agentop/cmd/agentop/command/plain"
	"agentop/router/config"
)

// newConfig is `agentop config`.
func newConfig(a *App) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check config.yaml, or print where it is",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return hint(usagef("%s needs check or path", c.CommandPath()), "`agentop config --help` says what they do")
		},
	}
	c.AddCommand(
		newConfigCheck(a, (*configCheckOptions).run),
		newConfigPath(a, (*configPathOptions).run),
	)
	return c
}

// configCheckOptions is `agentop config check`.
type configCheckOptions struct {
	*App
	File string // "" = the one in the home directory
	JSON bool
}

func newConfigCheck(a *App, run func(*configCheckOptions, context.Context) error) *cobra.Command {
	o := &configCheckOptions{App: a}
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say what is wrong in config.yaml, with line and what to write instead",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageHint(c, "%s takes one file, got also %q", c.CommandPath(), args[1])
			}
			return nil
		},
		RunE: runner(o, run, func(o *configCheckOptions, args []string) {
			if len(args) == 1 {
				o.File = args[0]
			}
		}),
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return c
}

// checked is what `config check --json` prints.
type checked struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Errors   []problem `json:"errors"`
	Warnings []string  `json:"warnings"`
	Servers  int       `json:"servers"`
	Agents   int       `json:"agents"` // agents that have a server
}

// problem is one error of a configuration file.
type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Reason  string `json:"reason"`
	Instead string `json:"instead,omitempty"`
}

func (o *configCheckOptions) run(context.Context) error {
	file, data, err := o.read()
	if err != nil {
		return err
	}
	c, err := config.Parse(file, data)
	if err != nil && !o.JSON {
		return err // it names file, line, reason and what to write
	}
	if err == nil && !o.JSON {
		for _, w := range c.Warnings() {
			o.warn(w)
		}
		return o.say("%s is valid: %s, %s routed", plain.Text(file), plural(len(c.Servers), "server"), plural(routed(c), "agent"))
	}
	result := checked{File: file, Valid: err == nil, Errors: []problem{}, Warnings: []string{}}
	var bad config.Errors
	switch {
	case err == nil:
		result.Warnings = list(c.Warnings())
		result.Servers, result.Agents = len(c.Servers), routed(c)
	case errors.As(err, &bad):
		for _, e := range bad {
			result.Errors = append(result.Errors, problem{e.Line, e.Column, e.Reason, e.Instead})
		}
	default:
		result.Errors = append(result.Errors, problem{Reason: err.Error()})
	}
	if err := o.json(result); err != nil {
		return err
	}
	if !result.Valid {
		return errSilent
	}
	return nil
}

// read gives the file to check. Only the one in the home directory may be
// missing: it then means the default configuration.
func (o *configCheckOptions) read() (string, []byte, error) {
	file, optional := o.File, false
	if file == "" {
		dir, err := o.home()
		if err != nil {
			return "", nil, err
		}
		file, optional = dir.Config(), true
	}
	data, err := os.ReadFile(file)
	if err != nil && !(optional && errors.Is(err, fs.ErrNotExist)) {
		return "", nil, fmt.Errorf("read the configuration: %w", err)
	}
	return file, data, nil
}

func routed(c *config.Config) int {
	n := 0
	for _, choice := range c.Agents {
		if choice.Server != "" {
			n++
		}
	}
	return n
}

// configPathOptions is `agentop config path`.
type configPathOptions struct{ *App }

func newConfigPath(a *App, run func(*configPathOptions, context.Context) error) *cobra.Command {
	o := &configPathOptions{App: a}
	return &cobra.Command{
		Use:   "path",
		Short: "Print the path of config.yaml, whether it exists or not",
		Args:  noArgs,
		RunE:  runner(o, run, nil),
	}
}

func (o *configPathOptions) run(context.Context) error {
	dir, err := o.home()
	if err != nil {
		return err
	}
	return o.say("%s", dir.Config())
}
