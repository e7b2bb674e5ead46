package reqlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Load reads what earlier processes wrote into the index, newest first, and
// then closes Loaded, also when files could not be read or ctx ended it.
// Requests are served meanwhile. Call it once, in the background.
func (l *Log) Load(ctx context.Context) error {
	defer l.once.Do(func() { close(l.loaded) })
	d := loader{index: l.index, names: map[string]string{}}
	errs := []error{l.loadForgotten(ctx)}
	for _, f := range slices.Backward(l.start) {
		d.file = f.id
		if err := l.loadFile(ctx, f, &d); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	l.damage.Add(d.damaged)
	if d.newest > 0 {
		l.index.sweeper.begin(fromMicros(d.newest), l.o.Now())
	}
	if d.damaged > 0 {
		l.warn("damaged", fmt.Sprintf("%d damaged lines of the request log were skipped", d.damaged))
	}
	err := errors.Join(errs...)
	if err != nil {
		l.warn("load", fmt.Sprintf("the request log could not be read in full: %v", err))
	}
	return err
}

// loadForgotten takes in what was forgotten before anything else. A turn that
// was in flight then was logged later, and is read sooner.
func (l *Log) loadForgotten(ctx context.Context) error {
	buf := make([]byte, blockSize)
	for _, f := range l.start {
		err := withFile(l.o.fs, l.path(f.id), func(r readFile) error {
			_, err := forward(r, 0, f.size, buf, func(_ int64, b []byte) bool {
				if isKind(b, KindForget) {
					if line, ok := DecodeLine(b); ok {
						l.index.convs.forget(&fact{at: micros(line.Time), agent: line.Agent, session: line.Session})
					}
				}
				return ctx.Err() == nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (l *Log) loadFile(ctx context.Context, f logFile, d *loader) error {
	return withFile(l.o.fs, l.path(f.id), func(r readFile) error {
		return backward(ctx, r, f.size, d.line)
	})
}

// loader takes lines into an index without making a string twice: agents,
// servers, models and reasons repeat, and sessions repeat close by.
type loader struct {
	index   *Index
	file    fileID
	raw     raw
	names   map[string]string
	newest  int64
	damaged uint64
}

// maxCached bounds the strings that are remembered for the lines to come.
const maxCached = 8192

func (d *loader) str(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	if len(d.names) >= maxCached {
		clear(d.names)
	}
	s := string(b)
	d.names[s] = s
	return s
}

// line takes one line in. nil stands for one that was too long.
func (d *loader) line(b []byte) bool {
	if len(b) == 0 && b != nil {
		return true // a writer begins anew after a line that was cut
	}
	if d.take(b) {
		return true
	}
	d.damaged++
	// A line that was cut short has the next one glued to it, and a power cut
	// may leave zero bytes in front of one.
	if i := bytes.LastIndex(b, lineStart); i > 0 {
		d.take(b[i:])
	}
	return true
}

var lineStart = []byte(`{"t":"`)

func (d *loader) take(b []byte) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	var f fact
	if d.raw.parse(b) {
		f = d.fact()
	} else if l, ok := decodeSlow(b); ok {
		f = factOf(&l)
	}
	if f.at == 0 || f.kind == "" {
		return false
	}
	f.file = d.file
	d.newest = max(d.newest, f.at)
	d.index.apply(&f)
	return true
}

func (d *loader) fact() fact {
	r := &d.raw
	s, n := &r.str, &r.num
	f := fact{
		at: r.at, kind: Kind(d.str(s[sKind])), agent: d.str(s[sAgent]), session: d.str(s[sSession]),
		server: d.str(s[sServer]), pin: d.str(s[sPin]), why: d.str(s[sWhy]), err: d.str(s[sError]),
		asked: d.str(s[sAsked]), sent: d.str(s[sSent]), status: n[nStatus],
		in: n[nIn], cached: n[nCached], out: n[nOut], firstMS: n[nFirstMS], totalMS: n[nTotalMS],
		turns: n[nTurns], opened: r.opened,
	}
	l := Line{Kind: f.kind, Turn: d.str(s[sTurn])}
	f.main, f.side = l.Main(), l.Kind == KindTurn && l.Turn == TurnSide
	f.key, _ = parseHex(s[sKey])
	f.mark, _ = parseHex(s[sMark])
	for _, id := range r.resp {
		f.resp = append(f.resp, string(id))
	}
	return f
}

// blockSize is how much is read at a time.
const blockSize = 256 << 10

// backward calls fn with each line of the first size bytes, the last one first,
// without its newline, until fn returns false; with nil for a line of over
// maxLine bytes. fn must not keep the line. An end without newline counts as a
// line.
func backward(ctx context.Context, r io.ReaderAt, size int64, fn func([]byte) bool) error {
	buf := make([]byte, min(size, blockSize)+min(size, maxLine))
	rev := reverser{fn: fn, last: true}
	for end := size; end > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(end, blockSize)
		copy(buf[n:], rev.rest) // both are in buf; copy allows for it
		if m, err := r.ReadAt(buf[:n], end-n); err != nil && (err != io.EOF || int64(m) < n) {
			return err
		}
		end -= n
		if !rev.block(buf[:int(n)+len(rev.rest)]) {
			return nil
		}
	}
	if rev.long {
		fn(nil)
	} else if len(rev.rest) > 0 || !rev.last {
		fn(rev.rest)
	}
	return nil
}

// reverser cuts blocks that come last one first into lines.
type reverser struct {
	fn   func([]byte) bool
	rest []byte // the end of a line whose begin is in the block before
	long bool   // rest was dropped: its line is too long
	last bool   // no newline was seen yet
}

func (v *reverser) block(b []byte) bool {
	for {
		i := bytes.LastIndexByte(b, '\n')
		if i < 0 {
			break
		}
		line := b[i+1:]
		b = b[:i]
		end := v.last && len(line) == 0 && !v.long // nothing follows the last newline
		if v.long || len(line) > maxLine {
			line = nil
		}
		v.last, v.long = false, false
		if !end && !v.fn(line) {
			return false
		}
	}
	if v.rest = b; len(b) > maxLine {
		v.rest, v.long = nil, true
	}
	return true
}
