package worker

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"agentop/agents"
	"agentop/filestore"
	"agentop/router"
	"agentop/router/config"
	"agentop/router/control"
	"agentop/router/metrics"
	"agentop/router/placement"
	"agentop/router/reqlog"
)

// Join gives the store and the request log the shapes in which the router
// wants its two witnesses. shared says whether another worker lives besides.
func Join(store filestore.Store, log *reqlog.Log, shared *atomic.Bool) (router.PinStore, router.Recorder) {
	return pins{func() filestore.Store { return store }, shared}, newRecorder(log)
}

func newRecorder(log *reqlog.Log) recorder { return recorder{log, new(atomic.Int64)} }

// recorder is the request log as the router wants it. What is not known may
// have been written by another worker a moment ago.
type recorder struct {
	log    *reqlog.Log
	caught *atomic.Int64 // when it last caught up, Unix nanoseconds
}

// catchUpEvery bounds how often look-ups that find nothing look at the disk;
// one request makes many.
const catchUpEvery = 2 * time.Millisecond

// catchUp takes in what another worker has written, if there is one.
func (r recorder) catchUp() {
	now := time.Now().UnixNano()
	last := r.caught.Load()
	if now-last >= int64(catchUpEvery) && r.caught.CompareAndSwap(last, now) {
		r.log.CatchUp()
	}
}

// Append keeps going when the disk refuses: the log keeps the line in memory,
// says so in its state and tries again.
func (r recorder) Append(l reqlog.Line) { _ = r.log.Append(l) }

func (r recorder) Register(c placement.Conversation, server string, key uint64, arrived time.Time) {
	r.log.Register(reqlog.Placed{Agent: string(c.Agent), Session: c.Session, Server: server, Key: key, At: arrived})
}

func (r recorder) Answered(c placement.Conversation, server string, mark uint64, response string, arrived time.Time) {
	r.log.Register(reqlog.Placed{Agent: string(c.Agent), Session: c.Session, Server: server, Mark: mark, Response: response, At: arrived})
}

func (r recorder) Last(c placement.Conversation) (string, bool) {
	last, ok := r.log.Index().Last(string(c.Agent), c.Session)
	if !ok {
		r.catchUp()
		last, ok = r.log.Index().Last(string(c.Agent), c.Session)
	}
	return serverOf(last.Server), ok
}

func (r recorder) Response(id string) []placement.Owner {
	return find(r, r.log.Index().ByResponse, id)
}

func (r recorder) Key(key uint64) []placement.Owner   { return find(r, r.log.Index().ByKey, key) }
func (r recorder) Mark(mark uint64) []placement.Owner { return find(r, r.log.Index().ByMark, mark) }
func (r recorder) Loaded() <-chan struct{}            { return r.log.Loaded() }

func find[K any](r recorder, look func(K) []reqlog.Owner, key K) []placement.Owner {
	found := look(key)
	if len(found) == 0 {
		r.catchUp()
		found = look(key)
	}
	return owners(found)
}

func owners(list []reqlog.Owner) []placement.Owner {
	if len(list) == 0 {
		return nil
	}
	out := make([]placement.Owner, len(list))
	for i, o := range list {
		out[i] = placement.Owner{
			Conversation: placement.Conversation{Agent: agents.Agent(o.Agent), Session: o.Session},
			Server:       serverOf(o.Server),
		}
	}
	return out
}

// serverOf is the server of a place as lines write it: a pool without its
// member, which is soft.
func serverOf(place string) string {
	for i := 0; i < len(place); i++ {
		if place[i] == '/' {
			return place[:i]
		}
	}
	return place
}

// requestOf is a log line as the control API tells it.
func requestOf(l *reqlog.Line) control.Request {
	return control.Request{
		Time: l.Time, ID: l.ID, Agent: l.Agent, Session: placement.Plain(l.Session), Turn: l.Turn, Side: l.Side,
		Pin: l.Pin, Server: l.Server, Method: l.Method, Path: l.Path, Model: l.ModelSent, Status: l.Status,
		Input: l.Input, Output: l.Output, FirstMS: l.FirstMS, TotalMS: l.TotalMS, Error: l.Error,
	}
}

// gauges are what the metrics ask when they are read.
func (w *Worker) gauges() metrics.Gauges {
	return metrics.Gauges{
		Pins:        func() float64 { return float64(w.store.State().Keys) },
		UnsavedPins: func() float64 { return float64(w.store.State().Unsaved) },
		SaveFailing: func() float64 {
			if w.store.State().Err != nil {
				return 1
			}
			return 0
		},
		Keys:        func() float64 { return float64(w.reqlog.State().Keys) },
		DroppedKeys: func() float64 { return float64(w.reqlog.State().DroppedKeys) },
		BadLines:    func() float64 { return float64(w.reqlog.State().Damaged) },
		Streams:     func() float64 { return float64(w.router.Streams()) },
	}
}

// warnings are the lines that a start and `status` show: of the configuration,
// and of the files that hold keys.
func (w *Worker) warnings(c *config.Config) []string {
	return append(w.configWarnings(c), w.storeWarnings()...)
}

func (w *Worker) configWarnings(c *config.Config) []string {
	list := append(c.Warnings(), w.keys.Warnings()...)
	if len(w.wide) > 0 { // at the start; somebody may have mended it since
		list = append(list, wideFiles(w.opts.Home)...)
	}
	if c.Token == "" && !router.TellsOwners() {
		list = append(list, "this system does not tell which account connects: set `token` in config.yaml and run `agentop agent enable` again, so that other accounts cannot use your servers")
	}
	return list
}

func (w *Worker) storeWarnings() (list []string) {
	for _, name := range w.store.State().SetAside {
		list = append(list, fmt.Sprintf("pins.json was damaged and is set aside as %s; pins that were not whole in it are taken from the request log", name))
	}
	return list
}

// movedListen says that config.yaml asks for another address than those that
// are bound; "" if it does not.
func movedListen(listen string, bound []string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" || len(bound) == 0 {
		return ""
	}
	for _, address := range bound {
		h, p, err := net.SplitHostPort(address)
		if err == nil && p == port && (h == host || host == "localhost") {
			return ""
		}
	}
	return fmt.Sprintf("config.yaml has `listen: %s`, but the proxy is on %s: run `agentop service restart`, then `agentop agent enable` for each agent", listen, bound[0])
}

// warn writes warnings to the log.
func (w *Worker) warn(list []string) {
	for _, line := range list {
		w.log.Warn(line)
	}
}
