package reqlog

import (
	"errors"
	"time"
)

// keptFiles is how many of the newest files are never removed, whatever their
// size: another process may be writing to one that is not the newest.
const keptFiles = 2

// rotate removes the files beyond the log's limits, oldest first. Before that
// the last line of each live conversation that is in them alone is written
// anew and synced; a crash in between leaves both.
func (l *Log) rotate(clock time.Time) error {
	l.keeping.Lock()
	defer l.keeping.Unlock()
	files, err := l.o.fs.List(l.dir)
	if err != nil {
		return err
	}
	victims := l.victims(files, clock)
	if len(victims) == 0 || l.w.current().Queued > 0 {
		return nil // what waits may be all that tells of a conversation
	}
	if err := l.keep(victims[len(victims)-1].id, clock); err != nil {
		return err
	}
	var errs []error
	for _, f := range victims {
		errs = append(errs, l.o.fs.Remove(l.path(f.id)))
	}
	errs = append(errs, l.o.fs.SyncDir(l.dir))
	return errors.Join(errs...)
}

// victims are the files that must go.
func (l *Log) victims(files []logFile, clock time.Time) []logFile {
	var total int64
	for _, f := range files {
		total += f.size
	}
	oldest := dayOf(clock.Add(-l.o.MaxAge))
	n := 0
	for n < len(files)-keptFiles && files[n].id < fileID(l.w.at.Load()) {
		f := files[n]
		if f.id.day() >= oldest && total <= l.o.MaxBytes {
			break
		}
		total -= f.size
		n++
	}
	return files[:n]
}

// keep carries over the last lines of live conversations that are in no file
// after upTo.
func (l *Log) keep(upTo fileID, clock time.Time) error {
	lines := l.index.keepLines(upTo, clock.Add(-Lifetime), l.o.Live)
	var buf []byte
	for i := range lines {
		buf = appendLine(buf, &lines[i])
		if len(buf) < maxLine/2 && i < len(lines)-1 {
			continue // requests that append meanwhile wait for no more than this
		}
		if err := l.w.appendLines(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	if len(lines) == 0 {
		return nil
	}
	if err := l.w.syncAll(); err != nil {
		return err
	}
	l.index.kept(lines, fileID(l.w.at.Load()), upTo)
	return nil
}

// keepLines returns a line for each conversation that is live and of which no
// file after upTo tells.
func (x *Index) keepLines(upTo fileID, since time.Time, live func(agent, session string) bool) []Line {
	var lines []Line
	var idle []bool
	x.convs.each(func(c *conv) {
		old := c.last < micros(since)
		if c.server == 0 || c.file > upTo || old && live == nil {
			return
		}
		lines = append(lines, x.convs.keepLine(c))
		idle = append(idle, old)
	})
	out := lines[:0]
	for i, l := range lines {
		if !idle[i] || live(l.Agent, l.Session) {
			out = append(out, l)
		}
	}
	return out
}

func (t *conversations) keepLine(c *conv) Line {
	l := Line{
		Time: fromMicros(max(c.decided, c.turnAt)), Kind: KindKeep,
		Agent: t.agents[c.id.agent], Session: c.id.session,
		Pin: t.words.list[c.pin], Why: c.why, Server: t.servers.list[c.server],
		ModelAsked: t.words.list[c.asked], ModelSent: t.words.list[c.sent], Status: int(c.status), Error: t.words.list[c.err],
		Input: c.in, CacheRead: c.read, Output: c.out,
		FirstMS: int64(c.firstMS), TotalMS: c.totalMS,
		Key: Hex(c.key), Mark: Hex(c.mark),
		Turns: int(c.turns), Opened: fromMicros(c.opened),
	}
	if c.resp != "" {
		l.Responses = []string{c.resp}
	}
	return l
}

// kept notes that the lines are in the file.
func (x *Index) kept(lines []Line, file, upTo fileID) {
	t := x.convs
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range lines {
		if c := t.lookup(lines[i].Agent, lines[i].Session); c != nil && c.file <= upTo {
			c.file = file
		}
	}
}
