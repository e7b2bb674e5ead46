package filestore

import (
	"fmt"
	"io"
)

// write brings the file up to memory. Needs the file lock.
func (s *fileStore) write(target string) (uint64, error) {
	s.mu.RLock()
	if s.t.gen == s.t.saved {
		s.mu.RUnlock()
		return 0, nil
	}
	shape := s.t.shape
	from := s.disk.linesInSpare(shape)
	recs, lines, gen := s.t.snapshot(from)
	s.mu.RUnlock()
	fresh := encodeMissing(recs, lines)
	h := s.disk.nextHeader()
	var err error
	if from > 0 {
		err = s.disk.addToSpare(target, h, lines)
	} else {
		s.disk.dropSpare()
		err = s.disk.replace(target, h, shape, lines)
	}
	s.adoptLines(recs, lines, fresh)
	if err != nil && from > 0 {
		return s.write(target) // the spare is gone, so whole
	}
	if err != nil {
		return 0, fmt.Errorf("save %q: %w", target, err)
	}
	s.mu.Lock()
	s.t.setSaved(gen)
	s.mu.Unlock()
	return gen, nil
}

// encodeMissing makes the lines that are not there yet and returns their
// numbers.
func encodeMissing(recs []*record, lines []string) (fresh []int) {
	var buf []byte
	for i, line := range lines {
		if line == "" {
			buf = recs[i].appendLine(buf[:0])
			lines[i] = string(buf)
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// adoptBatch is how many records are given their line under one lock.
const adoptBatch = 512

// adoptLines keeps the new lines for the next save.
func (s *fileStore) adoptLines(recs []*record, lines []string, fresh []int) {
	for len(fresh) > 0 {
		n := min(len(fresh), adoptBatch)
		s.mu.Lock()
		for _, i := range fresh[:n] {
			recs[i].adopt(lines[i])
		}
		s.mu.Unlock()
		fresh = fresh[n:]
	}
}

// writeChunk is how much is handed to the file at a time.
const writeChunk = 256 << 10

// fileSize is how many bytes writeFile writes.
func fileSize(h header, lines []string) int {
	n := len(encodeHeader(h)) + len(footer) + len(",\n")*max(len(lines)-1, 0)
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// writeFile writes a whole file with no more than a chunk in memory.
func writeFile(w io.Writer, h header, lines []string) error {
	buf := make([]byte, 0, min(writeChunk, fileSize(h, lines)))
	put := func(text string) error {
		for len(buf)+len(text) > cap(buf) {
			n := cap(buf) - len(buf)
			if _, err := w.Write(append(buf, text[:n]...)); err != nil {
				return err
			}
			buf, text = buf[:0], text[n:]
		}
		buf = append(buf, text...)
		return nil
	}
	if err := put(encodeHeader(h)); err != nil {
		return err
	}
	for i, line := range lines {
		if i > 0 {
			if err := put(",\n"); err != nil {
				return err
			}
		}
		if err := put(line); err != nil {
			return err
		}
	}
	if err := put(footer); err != nil {
		return err
	}
	_, err := w.Write(buf)
	return err
}
