package simulation

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"agentop/agents"
	"agentop/cmd/agentop/worker"
	"agentop/filestore"
	"agentop/router"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/credential"
	"agentop/router/placement"
	"agentop/router/reqlog"
)

// killed is the panic that ends what a process was doing when it died.
type killed struct{}

// life counts the steps of a process until its death.
type life struct {
	left atomic.Int64 // steps until it is killed; it lives on while this is not positive
	gone atomic.Bool

	mu  sync.Mutex
	end []func()
}

func (l *life) dead() bool { return l.gone.Load() }

// step is an instant at which the process may be killed; true if it is dead.
func (l *life) step() bool {
	if l.left.Load() > 0 && l.left.Add(-1) == 0 {
		l.kill()
	}
	return l.dead()
}

// must is step for what runs on a request's goroutine, which ends there.
func (l *life) must() {
	if l.step() {
		panic(killed{})
	}
}

func (l *life) kill() {
	if l.gone.Swap(true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fn := range l.end {
		fn()
	}
}

func (l *life) atDeath(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, fn)
}

// process is one running proxy, of the real parts: store and request log on
// disk, router, joined as the worker joins them.
type process struct {
	*life
	disk   *disk
	store  filestore.Store
	log    *reqlog.Log
	router *router.Router
	cancel context.CancelFunc
	loaded chan struct{} // closed when its start is over
}

// options are what a world asks of its processes.
type options struct {
	pins   int           // most pins that the store keeps; 0 for the default
	limits reqlog.Limits // of the index
	log    int64         // most bytes of the request log; 0 for the default
}

func startProcess(w *world) (*process, error) {
	p := &process{life: &life{}, loaded: make(chan struct{})}
	p.disk = newDisk(p.life)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	var err error
	p.store, err = filestore.Open(ctx, filestore.FileURL(w.pinFile()), filestore.WithLogger(quiet), filestore.WithMemoryFallback(), filestore.WithSpare(1),
		filestore.WithClock(w.now, w.steady), filestore.WithFS(p.disk), filestore.WithLimits(filestore.Limits{Keys: w.opts.pins}))
	if err != nil {
		return nil, err
	}
	if p.log, err = reqlog.Open(filepath.Join(w.dir, "log"), reqlog.Options{Now: w.now, Limits: w.opts.limits, MaxBytes: w.opts.log}); err != nil {
		return nil, err
	}
	pins, record := worker.Join(p.store, p.log, new(atomic.Bool))
	p.router = router.New(router.Parts{
		Config: w.config, Pins: mortalPins{pins, p.life}, Recorder: mortalRecord{record, p.life},
		Credentials: noKeys{}, Meter: noMeter{}, Logger: quiet, Now: w.now, Publish: func(control.Event) {},
		Metrics: http.NotFoundHandler(), Transport: wire{w, p.life},
	})
	go func() {
		defer close(p.loaded)
		_ = p.log.Load(ctx) // what cannot be read is not known
	}()
	return p, nil
}

// stop is a tidy end: everything is saved.
func (p *process) stop() error {
	<-p.loaded
	err := p.store.Close()
	if logErr := p.log.Close(); err == nil {
		err = logErr
	}
	p.cancel()
	return err
}

// die is kill -9: nothing more is written, and what runs in the test's own
// process is taken away. Every line of the log was in its file already.
func (p *process) die() {
	p.kill()
	p.cancel()
	<-p.loaded
	_ = p.store.Close() // fails: its disk is gone
	_ = p.log.Close()
}

// mortalPins is the pin store of a process that may die.
type mortalPins struct {
	router.PinStore
	life *life
}

func (m mortalPins) Get(key string) (string, bool) {
	if m.life.dead() {
		panic(killed{})
	}
	return m.PinStore.Get(key)
}

func (m mortalPins) Put(ctx context.Context, key, value string, ttl time.Duration, durable bool) error {
	m.life.must()
	err := m.PinStore.Put(ctx, key, value, ttl, durable)
	m.life.must()
	return err
}

// mortalRecord is the request log of a process that may die. Append does not
// end its goroutine: it is called while that unwinds.
type mortalRecord struct {
	router.Recorder
	life *life
}

func (m mortalRecord) Append(l reqlog.Line) {
	if m.life.step() {
		return
	}
	m.Recorder.Append(l)
	m.life.step()
}

func (m mortalRecord) Answered(c placement.Conversation, server string, mark uint64, response string, arrived time.Time) {
	m.life.must()
	m.Recorder.Answered(c, server, mark, response, arrived)
}

func (m mortalRecord) Register(c placement.Conversation, server string, key uint64, arrived time.Time) {
	m.life.must()
	m.Recorder.Register(c, server, key, arrived)
}

type noKeys struct{}

func (noKeys) Key(context.Context, *config.Server) (credential.Secret, error) {
	return credential.Secret{}, nil
}
func (noKeys) Rejected(string) {}

type noMeter struct{}

func (noMeter) Request(string, string, agents.Turn, int) {}
func (noMeter) FirstByte(string, time.Duration)          {}
func (noMeter) PinWrite(string)                          {}
func (noMeter) Refused(string)                           {}
