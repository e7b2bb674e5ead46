package worker

import (
	"io"
	"os"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"

	"agentop/cmd/agentop/home"
)

// proxyLogFile is the proxy's own log on disk. For a while two workers write
// it, the old one and the new, so each line must go to the file's end. A file
// that lumberjack makes itself is written at its own offset, over what the
// other worker wrote meanwhile; one that it finds is appended to. So the file
// is made here, and lumberjack finds it.
type proxyLogFile struct {
	mu   sync.Mutex
	name string
	max  int64 // bytes; beyond it the file is set aside
	log  lumberjack.Logger
}

// openProxyLog is the proxy's own log, rotated so that it never fills a disk.
func openProxyLog(h home.Home) io.WriteCloser {
	size := max(1, logLimit(h.String())/proxyLogPart>>20) // MB; files are 0600
	return newProxyLogFile(h.ProxyLog(), size<<20)
}

func newProxyLogFile(name string, size int64) *proxyLogFile {
	// Twice the size: so that it never rotates by itself.
	return &proxyLogFile{name: name, max: size, log: lumberjack.Logger{Filename: name, MaxSize: int(max(1, size>>20)) * 2, MaxBackups: 3}}
}

// Write implements io.Writer: p is one line.
func (f *proxyLogFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	switch {
	case err != nil:
		err = f.begin()
	case info.Size() > 0 && info.Size()+int64(len(p)) > f.max:
		if err = f.log.Rotate(); err == nil {
			err = f.log.Close() // to find the new file, which it has made
		}
	}
	if err != nil {
		return 0, err
	}
	return f.log.Write(p)
}

// begin makes the file, for lumberjack to find.
func (f *proxyLogFile) begin() error {
	if err := f.log.Close(); err != nil {
		return err
	}
	file, err := os.OpenFile(f.name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, home.FileMode)
	if err != nil {
		return err
	}
	return file.Close()
}

// Close implements io.Closer.
func (f *proxyLogFile) Close() error { return f.log.Close() }
