package filestore

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
)

// Opener opens the store that a URL of its scheme names.
type Opener func(ctx context.Context, u *url.URL, opts ...Option) (Store, error)

var (
	openersMu sync.RWMutex
	openers   = map[string]Opener{"file": openFile, "mem": openMem}
)

// Register makes Open use open for URLs of the scheme. It panics if the
// scheme is taken; call it from an init function.
func Register(scheme string, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	if openers[scheme] != nil {
		panic("filestore: scheme " + scheme + " registered twice")
	}
	openers[scheme] = open
}

// Open opens the store that rawURL names: file:///absolute/path for one in a
// JSON file, which is created by the first save, with its folder if need be;
// mem: for an empty one in memory alone, each call another.
//
// A file that is damaged is set aside and the store opened with what was
// whole in it; one of a newer format makes the store read-only. Neither is an
// error, and State tells both. Errors are a URL that is not understood, a
// folder that cannot be made, a file that cannot be read or is none
// (ErrNotRegular); with WithMemoryFallback, only the first. The context
// bounds opening alone.
func Open(ctx context.Context, rawURL string, opts ...Option) (Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	openersMu.RLock()
	open := openers[u.Scheme]
	openersMu.RUnlock()
	if open == nil {
		return nil, fmt.Errorf("open store %q: no such scheme", rawURL)
	}
	return open(ctx, u, opts...)
}

// FileURL returns the URL of the store in the file at an absolute path.
func FileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

func collect(opts []Option) *options {
	o := defaults()
	for _, opt := range opts {
		opt(o)
	}
	if o.log == nil {
		o.log = slog.Default()
	}
	return o
}

func openFile(ctx context.Context, u *url.URL, opts ...Option) (Store, error) {
	if u.Host != "" && u.Host != "localhost" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !filepath.IsAbs(u.Path) {
		return nil, fmt.Errorf("open store %q: want file:///absolute/path", u.Redacted())
	}
	return startFileStore(ctx, filepath.Clean(u.Path), collect(opts))
}
