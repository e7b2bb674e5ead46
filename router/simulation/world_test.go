package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentop/router/config"
	"agentop/router/fakeserver"
)

// proxy is the agentop under test: its parts in this process, or the program.
type proxy interface {
	// request sends one; written, if set, sees the answer as it grows.
	request(method, path, body string, h http.Header, written func(soFar []byte)) result
	arm(steps int) // it is killed after so many steps from now
	dead() bool
	die()        // kill -9, or the burial of one that is dead
	stop() error // a tidy end
	// pinned says whether its store has a pin, where that can be told.
	pinned(agent, session string) (has, known bool)
}

// world is one run: servers, a proxy, and the conversations that live there.
// Everything is decided by the seed but the order of what runs at once.
type world struct {
	seed    uint64
	dir     string
	opts    options
	judge   *judge
	servers map[string]*fakeserver.Server // by host
	proxy   proxy
	start   func() (proxy, error)
	apply   func(yaml string) error // takes a configuration into force
	rand    *rand.Rand              // of the operation that is under way
	began   time.Time
	skew    atomic.Int64          // of the wall clock, ns
	config  func() *config.Config // in force, of a proxy in this process
	calm    bool                  // real time: no clock to play with, no waiting
	history bool                  // tables are too small for what has no history

	convs    []*conversation
	sessions int
	limit    int // most conversations

	mu      sync.Mutex
	chosen  map[string]string // agent -> server, "" for not routed
	removed string            // a server that is out of the configuration
}

// places are the configured servers. The last is a pool.
var places = []string{"s1", "s2", "s3", "s4", "lab"}

// newWorld makes the servers; start must be set and called before it can run.
func newWorld(seed uint64, dir string, opts options) *world {
	w := &world{
		seed: seed, dir: dir, opts: opts, servers: map[string]*fakeserver.Server{}, limit: 1000,
		chosen: map[string]string{}, began: time.Now(), rand: rand.New(rand.NewPCG(seed, 0)),
	}
	w.judge = newJudge(w.choice)
	for i, host := range append([]string{"gpu1", "gpu2"}, places[:4]...) {
		name := host
		if i < 2 {
			name = "lab"
		}
		w.servers[host] = newServer(name, int64(i)*1_000_000+1, w.judge)
	}
	for _, agent := range agentNames {
		w.servers[ownPrefix+agent] = newServer(ownPrefix+agent, 1, w.judge)
		w.chosen[agent] = pick(w.rand, places)
	}
	return w
}

func (w *world) now() time.Time          { return time.Now().Add(time.Duration(w.skew.Load())) }
func (w *world) steady() time.Duration   { return time.Since(w.began) }
func (w *world) pinFile() string         { return filepath.Join(w.dir, "pins.json") }
func (w *world) url(host string) string  { return w.servers[host].URL() }
func (w *world) choice(a string) string  { w.mu.Lock(); defer w.mu.Unlock(); return w.chosen[a] }
func (w *world) broken() []string        { return w.judge.violations() }
func (w *world) choose(agent, to string) { w.mu.Lock(); defer w.mu.Unlock(); w.chosen[agent] = to }

// yaml is the configuration as it should be now.
func (w *world) yaml() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := func(host string) string {
		if url := w.url(host); url != "" {
			return url
		}
		return "http://" + host
	}
	var b strings.Builder
	b.WriteString("servers:\n")
	for _, name := range places {
		switch {
		case name == w.removed:
		case name == "lab":
			fmt.Fprintf(&b, "  lab: {key: none, pool: [{url: %q}, {url: %q}]}\n", at("gpu1"), at("gpu2"))
		case name == "s2":
			fmt.Fprintf(&b, "  s2: {url: %q, key: none, rename: {\"m-*\": m-small}}\n", at(name))
		default:
			fmt.Fprintf(&b, "  %s: {url: %q, key: none}\n", name, at(name))
		}
	}
	b.WriteString("agents:\n")
	for _, agent := range agentNames {
		fmt.Fprintf(&b, "  %s: {server: %q, upstream: %q}\n", agent, w.chosen[agent], at(ownPrefix+agent))
	}
	return b.String()
}

// alive sees to it that a proxy runs.
func (w *world) alive() error {
	if w.proxy != nil && !w.proxy.dead() {
		return nil
	}
	if w.proxy != nil {
		w.proxy.die()
	}
	p, err := w.start()
	w.proxy = p
	return err
}

// rest lets time pass, where time is a simulated one.
func (w *world) rest(most time.Duration) {
	if !w.calm {
		time.Sleep(time.Duration(w.rand.Int64N(int64(most))))
	}
}

// inMemory makes a world whose proxy is of parts in this process.
func inMemory(seed uint64, dir string, opts options) *world {
	w := newWorld(seed, dir, opts)
	var current atomic.Pointer[config.Config]
	inForce := ""
	w.apply = func(yaml string) error {
		if yaml == inForce {
			return nil
		}
		c, err := config.Parse("config.yaml", []byte(yaml))
		if err == nil {
			current.Store(c)
			inForce = yaml
		}
		return err
	}
	w.config = current.Load
	w.start = func() (proxy, error) {
		p, err := startProcess(w)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return w
}

func (p *process) arm(steps int) { p.left.Store(int64(steps)) }

func (p *process) pinned(agent, session string) (has, known bool) {
	// The router's key of a pin; where it is another, the evictions that the
	// report wants would not be there.
	_, has, _ = p.store.Get("pin:" + agent + ":" + session)
	return has, true
}

// places of a conversation in pins.json, for damage that aims at one.
func (w *world) loseFile(kind event) error {
	file := w.pinFile()
	content, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch kind {
	case pinsLost:
		return os.Remove(file)
	case pinsEmptied:
		content = nil
	default:
		if len(content) == 0 {
			return nil
		}
		switch at := w.rand.IntN(len(content)); w.rand.IntN(4) {
		case 0:
			content = content[:at]
		case 1:
			content[at] ^= byte(1 + w.rand.IntN(255))
		case 2:
			content = append(content[:at], content[min(len(content), at+w.rand.IntN(400)):]...)
		default:
			content = []byte(strings.Repeat("\x00", len(content)))
		}
	}
	return os.WriteFile(file, content, 0o600)
}
