package worker

import "golang.org/x/sys/unix"

// The request log's limit, and the part of its file system that it may have:
// on a small disk the log must not be what leaves no room for pins.
const (
	logBytes   = 200 << 20
	leastLog   = 1 << 20
	partOfDisk = 8
	// proxyLogPart is the part of that limit that one file of the proxy's own
	// log may have beside it.
	proxyLogPart = 20
)

// logLimit is how many bytes the request log in dir may have.
func logLimit(dir string) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return logBytes
	}
	return limitFor(int64(fs.Blocks) * int64(fs.Bsize)) //nolint:unconvert // of another type on macOS
}

// limitFor is logLimit on a file system of a size in bytes; 0 is not known.
func limitFor(size int64) int64 {
	if size <= 0 {
		return logBytes
	}
	return min(logBytes, max(leastLog, size/partOfDisk))
}
