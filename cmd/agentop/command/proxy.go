package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/service"
	"agentop/cmd/agentop/supervise"
	"agentop/cmd/agentop/supervise/ahead"
	"agentop/cmd/agentop/worker"
	"agentop/router/config"
	"agentop/router/control"
)

// proxyOptions is `agentop proxy`.
type proxyOptions struct {
	*App
	Worker bool
}

func newProxy(a *App) *cobra.Command {
	o := &proxyOptions{App: a}
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Run the proxy in the foreground",
		Long: `Run the proxy in the foreground. An interrupt lets running streams finish; a
second one ends it at once. ` + "`agentop service restart`" + `, or putting another binary in
this one's place, hands over to a fresh process without closing a connection.`,
		Args: noArgs,
		RunE: runner(o, (*proxyOptions).run, nil),
	}
	c.Flags().BoolVar(&o.Worker, ahead.WorkerFlag, false, "serve for the supervisor that started this process")
	_ = c.Flags().MarkHidden(ahead.WorkerFlag) // the flag is there
	return c
}

func (o *proxyOptions) run(ctx context.Context) error {
	defer ahead.Drop() // where the supervisor does not get to need it
	dir, err := o.home()
	if err != nil && o.Worker {
		return errSilent // the supervisor tells it
	}
	if err != nil {
		return err
	}
	return o.Proxy(ctx, ProxyOptions{Home: dir, Version: o.Build.Version, Stderr: o.Err, Worker: o.Worker})
}

// ownsSignals reports whether a command line minds signals by itself: the
// supervisor and its workers know more than two of them.
func ownsSignals(args []string) bool { return len(args) > 0 && args[0] == "proxy" }

// runProxy supervises, or is the worker of who does.
func runProxy(ctx context.Context, o ProxyOptions) error {
	noCore()
	if o.Worker {
		return runWorker(ctx, o)
	}
	manager := os.Getenv(service.EnvName)
	if manager == "" && !supervise.Renewed() {
		// Somebody looks on and can mend it. A service rather stays on its
		// port and tells the agents what is wrong.
		if _, err := readConfig(o.Home); err != nil {
			return err
		}
		if err := control.CheckPath(o.Home.Socket()); err != nil {
			return err
		}
	}
	err := supervise.Run(ctx, supervise.Options{
		Home: o.Home, Version: o.Version, Stderr: o.Stderr,
		Listen:   func() (string, error) { return listenAddress(o.Home) },
		Down:     unserved,
		Command:  ahead.Worker,
		Terminal: term.IsTerminal(int(os.Stdin.Fd())),
		Grace:    func() time.Duration { return grace(manager) },
	})
	if holder, held := supervise.IsHeld(err); held {
		if manager == service.Launchd { // which starts again what does not end well
			_, _ = fmt.Fprintf(o.Stderr, "agentop: %v\n", err)
			return nil
		}
		return hint(declined{err}, heldHint(holder))
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return hint(err, "`agentop doctor` says which program it is; another `listen` in config.yaml goes around it")
	}
	return err
}

// shutdownGrace is what streams have when the whole session ends: the network
// goes with it, and a longer wait would only hold up the shutdown.
const shutdownGrace = 5 * time.Second

// grace is how long streams may go on after a stop; 0 leaves it as it is.
func grace(manager string) time.Duration {
	if manager != service.Systemd {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// The exit code says no more than the word.
	state, _ := exec.CommandContext(ctx, "systemctl", "--user", "is-system-running").Output()
	if strings.TrimSpace(string(state)) == "stopping" {
		return shutdownGrace
	}
	return 0
}

func heldHint(h supervise.Holder) string {
	if h.Trouble != "" {
		return "it is in trouble: " + h.Trouble
	}
	return "`agentop status` shows it, `agentop service restart` hands over to a fresh worker"
}

// unserved answers in the place of a worker.
func unserved(t supervise.Trouble) http.Handler { return worker.Unserved(t.Text, t.Cure, t.Passing) }

// runWorker serves until the supervisor says otherwise.
func runWorker(ctx context.Context, o ProxyOptions) error {
	child, err := supervise.Inherit()
	if errors.Is(err, supervise.ErrUnneeded) {
		return errSilent // the supervisor has told why
	}
	if err != nil {
		return hint(err, "run `agentop proxy` without --"+ahead.WorkerFlag)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A terminal sends its signals to all of its processes; what they mean is
	// the supervisor's to say. One that is meant for this process alone asks
	// for another in its place.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		for {
			select {
			case got := <-signals:
				if got == syscall.SIGTERM {
					go func() { _ = child.Restart(ctx) }() // a refusal is logged by the supervisor
				}
			case <-child.Stop():
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	err = worker.Run(ctx, worker.Options{
		Home: o.Home, Version: o.Version, Stderr: o.Stderr,
		Supervisor: child, Listeners: child.Listeners(), Ended: child.Ended,
	})
	if err != nil {
		child.Failed(err.Error(), cmp.Or(hintFor(err), badConfigHint(err)))
		return errSilent // the supervisor tells it
	}
	return nil
}

// badConfigHint is for those whose agents show them the error: they see no
// command beside it.
func badConfigHint(err error) string {
	var bad config.Errors
	if !errors.As(err, &bad) {
		return ""
	}
	return "correct it: it is taken at once; `agentop config check` says whether it is right"
}

// listenAddress is where the configuration says to listen. With an error, it
// is what a configuration that is not valid seems to say, so that somebody is
// there to tell what is wrong with it.
func listenAddress(dir home.Home) (string, error) {
	c, err := readConfig(dir)
	if err == nil {
		return c.Listen, nil
	}
	data, readErr := os.ReadFile(dir.Config())
	if readErr != nil {
		return config.DefaultListen, err
	}
	line := regexp.MustCompile(`(?m)^listen:[ \t]*["']?([^\s"'#]+)`)
	if m := line.FindSubmatch(data); m != nil && loopback(string(m[1])) {
		return string(m[1]), err
	}
	return config.DefaultListen, err
}

// loopback reports whether address is a loopback address and a port.
func loopback(address string) bool {
	_, err := config.Parse("listen", []byte("listen: \""+address+"\"\n"))
	return err == nil
}
