// Package filestore is a small durable key-value store in one JSON file, for
// small state that must survive: string and hash values with times to live,
// answering as Redis does.
//
// All keys are in memory; reading is a look into a map. Writing changes memory
// at once and the file soon: SetDurable and its like return when the write is
// synced to disk, and all that wait at a time share one save. A save
// renames a new version into place, so the file is always a whole one, old or
// new. Several processes may have the same file open: each save
// first takes in what the others wrote, and per key the newest write stays.
//
// A disk that fails never fails a caller that can do with memory. What could
// not be saved is served from memory, State says so, and it is saved when that
// becomes possible.
//
// It is not a database: most saves cost as much as the whole file, there are no
// transactions over several keys, and everything must fit in memory. Without
// working locks, as on some network file systems, two processes may lose each
// other's saves.
//
// Store in store.go is the interface and Open in open.go the way in. memory.go
// has what reads and writes, on the table of table.go; saver.go the save; spare.go how it is cheap;
// encode.go and decode.go the format, which docs/filestore.md describes with each operation's
// commit point and what a crash can leave.
package filestore
