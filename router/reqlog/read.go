package reqlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// Filter says which lines are wanted. Zero fields ask for nothing.
type Filter struct {
	Since   time.Time
	Until   time.Time // exclusive
	Kind    Kind
	Agent   string
	Session string
	Server  string // a server's name, or a pool's for all its members
	Main    bool   // main turns, pins and moves alone
}

// Match reports whether the line is wanted.
func (f *Filter) Match(l *Line) bool {
	switch {
	case !f.Since.IsZero() && l.Time.Before(f.Since),
		!f.Until.IsZero() && !l.Time.Before(f.Until),
		f.Kind != "" && l.Kind != f.Kind,
		f.Agent != "" && l.Agent != f.Agent,
		f.Session != "" && l.Session != f.Session,
		f.Server != "" && l.Server != f.Server && placeOf(l.Server) != f.Server,
		f.Main && !l.Main():
		return false
	}
	return true
}

// Read calls fn with the lines of the log in dir that match, in the order they
// were appended, until fn returns false. It needs no Log and no running proxy,
// and changes nothing. Damaged lines are skipped.
func Read(ctx context.Context, dir string, filter Filter, fn func(Line) bool) error {
	return readFiles(ctx, osFiles{}, dir, filter, fn)
}

func readFiles(ctx context.Context, sys fileSystem, dir string, filter Filter, fn func(Line) bool) error {
	files, err := sys.List(dir)
	if err != nil {
		return fmt.Errorf("list request log %q: %w", dir, err)
	}
	buf := make([]byte, maxLine*4)
	for _, f := range files {
		// A line of the day before may be in it (a turn is logged when it
		// ends), one of the day after only if a clock was set back.
		if !filter.Since.IsZero() && f.id.day() < dayOf(filter.Since)-1 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		more := true
		err := withFile(sys, filepath.Join(dir, f.id.name()), func(r readFile) error {
			_, err := forward(r, 0, f.size, buf, func(_ int64, b []byte) bool {
				line, ok := recoverLine(b)
				if ok && filter.Match(&line) {
					more = fn(line)
				}
				return more && ctx.Err() == nil
			})
			return err
		})
		if err != nil || !more {
			return err
		}
	}
	return ctx.Err()
}

// Tail returns the last n lines of the log in dir that match, oldest first.
func Tail(ctx context.Context, dir string, n int, filter Filter) ([]Line, error) {
	return tailFiles(ctx, osFiles{}, dir, n, filter)
}

// Tail returns the last n lines that match, oldest first. It reads the files:
// lines that could not be written yet are not among them.
func (l *Log) Tail(ctx context.Context, n int, filter Filter) ([]Line, error) {
	return tailFiles(ctx, l.o.fs, l.dir, n, filter)
}

func tailFiles(ctx context.Context, sys fileSystem, dir string, n int, filter Filter) ([]Line, error) {
	files, err := sys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list request log %q: %w", dir, err)
	}
	var lines []Line
	for _, f := range slices.Backward(files) {
		if len(lines) >= n {
			break
		}
		err := withFile(sys, filepath.Join(dir, f.id.name()), func(r readFile) error {
			return backward(ctx, r, f.size, func(b []byte) bool {
				if line, ok := recoverLine(b); ok && filter.Match(&line) {
					lines = append(lines, line)
				}
				return len(lines) < n
			})
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Reverse(lines)
	return lines, nil
}

// withFile calls fn with the file, and not at all if it is gone: rotation may
// have removed it since it was listed.
func withFile(sys fileSystem, name string, fn func(readFile) error) error {
	r, err := sys.OpenRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := fn(r); err != nil {
		return fmt.Errorf("read %q: %w", name, err)
	}
	return nil
}

// Follow calls fn with each line that is appended to the log in dir and
// matches, until ctx ends. It needs no running proxy, and changes nothing.
func Follow(ctx context.Context, dir string, filter Filter, fn func(Line)) error {
	files, err := osFiles{}.List(dir)
	if err != nil {
		return fmt.Errorf("list request log %q: %w", dir, err)
	}
	var f follower
	f.begin(files)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := f.poll(osFiles{}, dir, func(_ fileID, _ int64, b []byte) {
			if line, ok := recoverLine(b); ok && filter.Match(&line) {
				fn(line)
			}
		})
		if err != nil {
			return err
		}
	}
}
