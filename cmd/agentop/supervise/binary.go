package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// identity tells one binary from another that takes its place.
type identity struct {
	Dev, Ino uint64
	Size     int64
	Mtime    int64 // Unix nanoseconds
}

// identify looks at the file that path leads to; the zero identity if there
// is none.
func identify(path string) identity {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return identity{}
	}
	id := identity{Size: info.Size(), Mtime: info.ModTime().UnixNano()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Dev, id.Ino = uint64(s.Dev), s.Ino //nolint:unconvert // of another type on macOS
	}
	return id
}

// StablePath is the path by which this program was called, links left in it:
// a package manager moves the link at an upgrade and deletes what it led to.
// Where that path is not this program, it is the program's own path.
func StablePath() string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	called := os.Args[0]
	if filepath.Base(called) == called {
		if found, err := exec.LookPath(called); err == nil {
			called = found
		}
	}
	abs, err := filepath.Abs(called)
	if err != nil || identify(abs) == (identity{}) || identify(abs) != identify(self) {
		return self
	}
	return abs
}

// ownImage leads to the image that a process runs, also when its file was
// replaced or deleted since. macOS, and a root without /proc, have no such path.
const ownImage = "/proc/self/exe"

// binary watches the file at the stable path.
type binary struct {
	path  string
	image string   // leads to this process's image; path where nothing better does
	self  identity // of that image
	seen  identity // at the last look
	// tried did not become ready, for whatever reason: it is not handed over to
	// again by itself. bad did not even say why: it is not executed any more.
	tried, bad identity
}

func newBinary(path, image string) *binary {
	b := &binary{path: path, image: image, self: identify(image)}
	if b.self == (identity{}) {
		b.image, b.self = path, identify(path)
	}
	b.seen = b.self
	return b
}

// look reports whether another binary has been put there and is whole: it has
// not changed since the last look, and is some time old.
func (b *binary) look(now time.Time, settle time.Duration) bool {
	id := identify(b.path)
	same := id == b.seen
	b.seen = id
	return same && b.fits(id) && id != b.tried && now.Sub(time.Unix(0, id.Mtime)) >= min(settle, time.Second)
}

// settling reports whether the last look found another binary, which is handed
// over to as soon as it is whole.
func (b *binary) settling() bool { return b.fits(b.seen) && b.seen != b.tried }

// replaced reports whether the file is there, is not this process's own image
// and is fit to be executed.
func (b *binary) replaced() bool { return b.fits(identify(b.path)) }

func (b *binary) fits(id identity) bool { return id != identity{} && id != b.self && id != b.bad }

// start is what to execute for a new worker: the stable path, or the running
// image where that is missing or has failed.
func (b *binary) start() string {
	if id := identify(b.path); id == (identity{}) || id == b.bad {
		return b.image
	}
	return b.path
}

// failed notes that the file's worker did not become ready, and whether it
// said why. The running image is never given up.
func (b *binary) failed(spoke bool) {
	id := identify(b.path)
	if id == b.self {
		return
	}
	b.tried = id
	if !spoke {
		b.bad = id
	}
}

// forgive lets what has failed be tried again.
func (b *binary) forgive() { b.tried, b.bad = identity{}, identity{} }
