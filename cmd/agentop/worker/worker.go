// Package worker puts the parts of the proxy together and runs them: store,
// request log, configuration, router, control API. One worker serves; while
// an old one drains, two share the home. It holds no rule of its own. Start
// reading at Run.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"agentop/cmd/agentop/home"
	"agentop/cmd/agentop/memory"
	"agentop/filestore"
	"agentop/router"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/front"
	"agentop/router/metrics"
	"agentop/router/reqlog"
)

// Options is what a worker needs to know.
type Options struct {
	Home    home.Home
	Version string
	Stderr  io.Writer // gets what is to be warned of at each start
	// Drain is how long streams may go on after ctx is done; 0 means DefaultDrain.
	Drain time.Duration
	// Ready is called once the proxy serves, with the addresses it listens on.
	Ready func(addresses []string)
	// Supervisor started this worker; nil when it runs alone.
	Supervisor Supervisor
	// Listeners are the supervisor's sockets; without them the worker binds
	// the configured address itself.
	Listeners []net.Listener
	// Ended is how the run before this one ended, if badly.
	Ended string
}

// DefaultDrain is the grace that running streams have when the proxy is told
// to stop.
const DefaultDrain = 30 * time.Minute

// Worker is one running proxy.
type Worker struct {
	opts    Options
	log     *slog.Logger
	config  *config.Watcher
	store   *late
	reqlog  *reqlog.Log
	keys    *credential.Resolver
	router  *router.Router
	hub     *control.Hub
	answers answers // what servers said of themselves
	others  others  // that share the home for a while
	conns   connections
	rest    memory.Rest
	started time.Time
	listen  []string
	// restored is closed when what the store and the log know is in the lists.
	restored chan struct{}

	wide []string // which files others could reach at the start
}

// Run serves until ctx is done and the streams that ran then have ended. The
// error says why it could not start, or what was lost at the end.
func Run(ctx context.Context, o Options) error {
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	if err := o.Home.Create(); err != nil {
		return err
	}
	memory.Hurry()
	w := &Worker{opts: o, started: time.Now(), restored: make(chan struct{})}
	logFile := openProxyLog(o.Home)
	defer logFile.Close()
	w.log = slog.New(slog.NewTextHandler(logFile, &slog.HandlerOptions{Level: slog.LevelInfo}))
	if err := w.open(ctx); err != nil {
		w.log.Error("not started", "error", err)
		return err
	}
	err := w.serve(ctx)
	if closeErr := w.close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	return err
}

// open builds the parts, the last first that others lean on.
func (w *Worker) open(ctx context.Context) (err error) {
	go router.TellsOwners() // to find out takes a moment, beside the rest
	w.config = config.Watch(ctx, w.opts.Home.Config(), config.Options{})
	if err := w.config.Err(); err != nil {
		return err
	}
	w.keys = credential.NewResolver(w.opts.Home.Keys())
	w.wide = wideFiles(w.opts.Home)
	w.reqlog, err = reqlog.Open(w.opts.Home.LogDir(), reqlog.Options{
		Warn:     func(text string) { w.log.Warn(text) },
		MaxBytes: logLimit(w.opts.Home.String()),
	})
	if err != nil {
		return fmt.Errorf("open request log: %w", err)
	}
	// The log's folder is there now, so what the store tells is not lost.
	// It may be open before anything here is built.
	built := make(chan struct{})
	defer close(built)
	w.store = openLate(ctx, w.opts.Home, func() { <-built; w.beginWarning(w.storeWarnings()) }, filestore.WithLogger(w.log))
	w.answers.load(w.opts.Home.Servers())
	w.hub = control.NewHub(w.snapshot)
	meter := metrics.New(w.opts.Version, w.gauges())
	pins, record := pins{w.store.get, &w.others.shared}, newRecorder(w.reqlog)
	w.router = router.New(router.Parts{
		Config: w.config.Current, Pins: pins, Recorder: record, Credentials: keys{w.keys},
		Meter: meter, Metrics: meter, Logger: w.log, Now: time.Now, Publish: w.publish, Watched: w.hub.Listening, Formats: spoken{w, ctx},
	})
	w.config.OnChange(func(old, now *config.Config) {
		w.warn(w.warnings(now))
		w.tellChanges(old, now)
		w.publishStatus()
		if old.Titles != now.Titles && w.hub.Listening() {
			w.hub.Publish(w.snapshot()) // what was told of every conversation is void
		}
	})
	w.config.OnError(w.configError)
	w.beginWarning(w.configWarnings(w.config.Current()))
	if w.opts.Ended != "" {
		w.log.Warn("started after a bad end", "ended", w.opts.Ended)
	}
	w.watchOthers(ctx)
	return nil
}

// beginWarning tells what there is to be warned of at the start.
func (w *Worker) beginWarning(list []string) {
	w.warn(list)
	for _, line := range list { // a terminal shows no log
		_, _ = fmt.Fprintln(w.opts.Stderr, "agentop: warning: "+line)
	}
}

// configError tells that the file on disk is not in force, or is again.
func (w *Worker) configError(err error) {
	if err != nil {
		w.log.Error("configuration is not in force", "error", err)
	}
	w.publishStatus()
}

// waiting is how long those who waited for the start are served before
// anything else takes the processor from them.
const waiting = 20 * time.Millisecond

// settle does what would hold up a start.
func (w *Worker) settle(ctx context.Context, loaded bool) {
	select {
	case <-time.After(waiting):
	case <-ctx.Done():
	}
	memory.Settle()
	if !loaded {
		w.load(ctx)
	}
}

// load reads the request log back, behind the requests that are served.
func (w *Worker) load(ctx context.Context) {
	defer close(w.restored)
	if err := w.reqlog.Load(ctx); err != nil && ctx.Err() == nil {
		w.log.Error("read the request log back", "error", err)
	}
	w.router.Restore(storedPins(w.store.get()), w.rows())
	w.publishStatus()
	memory.GiveBack() // reading back leaves more behind than it keeps
}

// serve serves until ctx is done or another worker has taken over, and then
// lets the streams finish.
func (w *Worker) serve(ctx context.Context) error {
	listeners, err := w.listeners()
	if err != nil {
		return err
	}
	for _, l := range listeners {
		w.listen = append(w.listen, l.Addr().String())
	}
	takesOver := w.others.live()
	if takesOver { // the one before it serves meanwhile, so it may know everything first
		go w.load(ctx)
		w.awaitLoad()
	}
	controlListener, err := w.listenControl()
	if err != nil {
		closeAll(listeners)
		return err
	}
	api := &front.Server{HTTP: control.NewServer(w)} // a request that is just being read at its end is served
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = api.Serve(controlListener) // its end is ours
	}()
	defer func() {
		_ = api.Close()
		<-closed // who comes next must find the socket free
	}()
	defer w.hub.Close()

	w.rest.Before = router.LetGo
	proxy := router.NewServer(w.conns.handler(w.router, w.rest.Happened), slog.NewLogLogger(w.log.Handler(), slog.LevelDebug))
	proxy.HTTP.ConnState = w.conns.state
	failed := make(chan error, len(listeners))
	room := router.NewRoom(w.log)
	for _, l := range listeners {
		go func(l net.Listener) { failed <- proxy.Serve(w.conns.listen(room.Listen(l))) }(l)
	}
	another := w.tellReady()
	go w.settle(ctx, takesOver)
	var began time.Time
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-w.store.broken:
		return w.store.err
	case <-ctx.Done():
		began = time.Now()
	case <-another:
		began = time.Now()
		answered := make(chan struct{})
		go func() {
			endControl(w.hub, api)
			close(answered)
		}()
		// Whoever asked for the hand-over waits for the word that it is done.
		defer func() { <-answered }()
		w.leave(ctx, listeners)
	}
	return w.drain(proxy, began)
}

// tellReady says that requests are served, and gives what is closed once
// another worker serves in this one's place.
func (w *Worker) tellReady() (another <-chan struct{}) {
	w.log.Info("serving", "listen", w.listen, "version", w.opts.Version)
	if w.opts.Supervisor != nil {
		another = w.opts.Supervisor.Drain()
		w.opts.Supervisor.Ready(w.opts.Version, w.listen)
	}
	if w.opts.Ready != nil {
		w.opts.Ready(w.listen)
	}
	return another
}

// listeners are the supervisor's, or the worker's own.
func (w *Worker) listeners() ([]net.Listener, error) {
	if w.opts.Listeners != nil {
		return w.opts.Listeners, nil
	}
	return listen(w.config.Current().Listen, w.log)
}

// awaitLoad waits until the request log has been read back, but not for long.
func (w *Worker) awaitLoad() {
	select {
	case <-w.restored:
	case <-time.After(loadWait):
	}
}

// awaitLists lets a question about conversations that comes just after the
// start wait until they are known: "there is none" would be wrong.
func (w *Worker) awaitLists(ctx context.Context) {
	select {
	case <-w.restored:
	case <-ctx.Done():
	case <-time.After(loadWait):
	}
}

// loadWait is how long a hand-over waits for the request log to be read back.
const loadWait = 5 * time.Second

func (w *Worker) close() error {
	w.rest.Stop()
	w.others.stop()
	return errors.Join(w.reqlog.Close(), w.store.close())
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close() // never served
	}
}
