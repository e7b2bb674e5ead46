package reqlog

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a log. The zero value is what agentop uses.
type Options struct {
	Now      func() time.Time // time.Now
	MaxAge   time.Duration    // files of days longer ago go; 30 days
	MaxBytes int64            // of all files together; 200 MB
	MaxQueue int              // bytes of lines kept while the disk refuses; 4 MB
	Limits   Limits           // of the index
	Warn     func(string)     // told what a person should know, at most once a minute a subject

	// Live says which conversations' last lines survive rotation, in addition
	// to those the index holds as used within Lifetime. Nil adds none.
	Live func(agent, session string) bool

	fs fileSystem
}

func (o Options) orDefault() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxAge <= 0 {
		o.MaxAge = 30 * 24 * time.Hour
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 200 << 20
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 4 << 20
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.fs == nil {
		o.fs = osFiles{}
	}
	return o
}

// Log is the request log of one process. Other processes may append to the
// same files at the same time. All methods may run at once.
type Log struct {
	dir    string
	o      Options
	index  *Index
	w      *writer
	loaded chan struct{}
	once   sync.Once // closes loaded
	start  []logFile // the files as they were when the log was opened
	damage atomic.Uint64

	subscribers atomic.Pointer[[]*func(Line)]
	subscribing sync.Mutex

	upkeep    atomic.Bool // the timer of maintain is set
	closed    atomic.Bool
	keeping   sync.Mutex // one rotation at a time
	following follower
	warnings  warnings
}

// Open prepares the log in dir, which is made if need be, and starts nothing:
// call Load for what earlier processes wrote. With an error the log can be used
// all the same: lines are kept in memory, up to Options.MaxQueue, and written
// when the disk allows.
func Open(dir string, o Options) (*Log, error) {
	o = o.orDefault()
	l := &Log{dir: dir, o: o, index: NewIndex(o.Limits, o.Now), loaded: make(chan struct{})}
	l.w = &writer{
		dir: dir, fs: o.fs, now: o.Now, maxQueue: o.MaxQueue,
		partLimit: max(o.MaxBytes/8, 1),
	}
	l.w.idle.L = &l.w.mu
	narrowed, err := o.fs.MakeDir(dir)
	if narrowed {
		l.warn("rights", fmt.Sprintf("others could read the request log %s: took those rights away", dir))
	}
	files, listErr := o.fs.List(dir)
	l.start = files
	l.following.begin(files)
	if err = errors.Join(err, listErr); err != nil {
		return l, fmt.Errorf("open request log %q: %w", dir, err)
	}
	return l, nil
}

// Index is what the log remembers.
func (l *Log) Index() *Index { return l.index }

// Append enters the line into the index and writes it. It returns when the line
// is in the page cache: from then on it survives the end of this process. A
// line that cannot be written is kept and tried again each second; the error
// and State tell. A zero Time becomes the present.
//
// A turn whose conversation the user had forgotten since it arrived is logged
// without what would let the conversation be recognised again.
func (l *Log) Append(line Line) error {
	l.index.stamp(&line)
	if !l.index.applyLine(&line, fileID(l.w.at.Load())) {
		line.Key, line.Mark, line.Responses = "", "", nil
	}
	l.tell(line)
	l.wake()
	err := l.w.append(&line)
	if err != nil {
		l.warn("append", fmt.Sprintf("the request log cannot be written: %v; new lines are kept in memory", err))
	}
	return err
}

// Register notes in the index where a turn was placed or how it was answered,
// while it is on its way.
func (l *Log) Register(p Placed) {
	l.index.Register(p)
	l.wake()
}

// Subscribe has fn called with each line that is appended here or, while
// following, by another process, in the order they are seen by whoever appends.
// fn must return at once. The returned function ends it.
func (l *Log) Subscribe(fn func(Line)) (stop func()) {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	p := &fn
	l.setSubscribers(func(old []*func(Line)) []*func(Line) { return append(old, p) })
	return func() {
		l.subscribing.Lock()
		defer l.subscribing.Unlock()
		l.setSubscribers(func(old []*func(Line)) []*func(Line) {
			var rest []*func(Line)
			for _, q := range old {
				if q != p {
					rest = append(rest, q)
				}
			}
			return rest
		})
	}
}

// setSubscribers replaces the list by a changed copy, so that tell reads it
// without a lock.
func (l *Log) setSubscribers(change func([]*func(Line)) []*func(Line)) {
	var old []*func(Line)
	if p := l.subscribers.Load(); p != nil {
		old = append(old, *p...)
	}
	list := change(old)
	l.subscribers.Store(&list)
}

func (l *Log) tell(line Line) {
	if p := l.subscribers.Load(); p != nil {
		for _, fn := range *p {
			(*fn)(line)
		}
	}
}

// State is how the log is doing.
type State struct {
	WriteState
	Loaded bool
	Stats
	Damaged uint64 // lines that could not be read and were skipped
}

// State of the log now.
func (l *Log) State() State {
	s := State{WriteState: l.w.current(), Stats: l.index.Stats(), Damaged: l.damage.Load()}
	select {
	case <-l.loaded:
		s.Loaded = true
	default:
	}
	return s
}

// Loaded is closed when everything that earlier processes wrote is in the
// index, or could not be read.
func (l *Log) Loaded() <-chan struct{} { return l.loaded }

// Sync makes everything that was appended durable now.
func (l *Log) Sync() error { return l.w.syncAll() }

// Close writes what still waits, syncs and closes. Append returns ErrClosed
// afterwards; the index goes on answering.
func (l *Log) Close() error {
	l.closed.Store(true)
	return l.w.close()
}

func (l *Log) path(id fileID) string { return filepath.Join(l.dir, id.name()) }

// upkeepEvery is how often an active log is swept and rotated.
const upkeepEvery = time.Minute

// wake sees to it that the log is maintained within a minute. Without
// activity no timer runs.
func (l *Log) wake() {
	if !l.closed.Load() && l.upkeep.CompareAndSwap(false, true) {
		time.AfterFunc(upkeepEvery, func() {
			l.upkeep.Store(false)
			if !l.closed.Load() {
				l.Maintain()
			}
		})
	}
}

// Maintain sweeps the index and removes files beyond the log's limits. An
// active log does it by itself each minute.
func (l *Log) Maintain() {
	select {
	case <-l.loaded:
	default:
		return // what is live is not known yet
	}
	clock := l.index.clock()
	l.index.sweepAt(clock)
	l.warnFull()
	if err := l.rotate(clock); err != nil {
		l.warn("rotate", fmt.Sprintf("old request logs cannot be removed: %v", err))
	}
}

// warnings limits each subject to one a minute.
type warnings struct {
	mu     sync.Mutex
	last   map[string]time.Time
	counts map[string]uint64
}

// grew reports whether a count is higher than when it was last asked.
func (w *warnings) grew(subject string, n uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n <= w.counts[subject] {
		return false
	}
	if w.counts == nil {
		w.counts = map[string]uint64{}
	}
	w.counts[subject] = n
	return true
}

func (l *Log) warn(subject, text string) {
	l.warnings.mu.Lock()
	now := time.Now()
	last, ok := l.warnings.last[subject]
	if ok && now.Sub(last) < time.Minute {
		l.warnings.mu.Unlock()
		return
	}
	if l.warnings.last == nil {
		l.warnings.last = map[string]time.Time{}
	}
	l.warnings.last[subject] = now
	l.warnings.mu.Unlock()
	l.o.Warn(text)
}
