package filestore

import (
	"errors"
	"fmt"
	"time"
)

// A save that only adds keys need not write all the others again. While saves
// follow each other closely, the version before the one in place is kept under
// a temporary name: the spare. For the next save what it lacks is written to
// its end; then it is synced and renamed into place like a fresh temporary
// file, and the version that it replaces is the next spare.
//
// So no byte changes of a version that the file's name may lead to, in memory
// or on disk: a version becomes the spare only when the folder was synced with
// another one in place. Nor of one that somebody has open, or has linked
// elsewhere. Whatever is odd about a spare, the whole file is written anew.

// spareLife is how long a spare waits for the next save.
const spareLife = 10 * time.Second

// keepForSpare gives the version in place a second name if next is it with
// lines added, so that it stays when next takes its name. It returns nil if it
// is not worth that, or not possible.
func (d *disk) keepForSpare(target string, next *version, h header) *version {
	d.mu.Lock()
	v := d.held
	d.mu.Unlock()
	if v == nil || v.lines == 0 || v.shape != next.shape || v.end < d.spareFrom || !v.file.Alone() {
		return nil
	}
	name := fmt.Sprintf("%s%swas%d", target, tempMark, h.save)
	if d.fs.Link(target, name) != nil {
		return nil
	}
	v.name = name // of another file, if that has taken target's just before: add looks
	return v
}

// linesInSpare is how many of the table's records the spare has; 0 if there is
// none, or none that could be added to.
func (d *disk) linesInSpare(shape uint64) int {
	if d.spare == nil || d.spare.shape != shape {
		return 0
	}
	return d.spare.lines
}

var errOddSpare = errors.New("the spare is not as it was left")

// addToSpare is replace by the spare and the lines that it lacks. After an
// error there is none any more.
func (d *disk) addToSpare(target string, h header, lines []string) error {
	v := d.spare
	d.spare = nil
	if err := d.add(v, h, lines); err != nil {
		d.discard(v)
		return err
	}
	return d.install(target, v, h)
}

// add writes lines after those that the version has, and syncs it. Before and
// after, its name must lead to it; a file with another name besides is
// somebody's copy.
func (d *disk) add(v *version, h header, lines []string) error {
	was, err := d.fs.Stat(v.name)
	if err != nil {
		return err
	}
	head := encodeHeader(h)
	if was.ID != v.id || was.Links != 1 || len(head) != headerLen || !v.file.Alone() {
		return errOddSpare
	}
	tail := make([]byte, 0, len(footer)+len(lines)*512)
	for _, line := range lines {
		tail = append(append(tail, ",\n"...), line...)
	}
	end := v.end + int64(len(tail))
	if _, err := v.file.WriteAt(append(tail, footer...), v.end); err != nil {
		return err
	}
	if _, err := v.file.WriteAt([]byte(head), 0); err != nil {
		return err
	}
	if err := v.file.Sync(); err != nil {
		return err
	}
	is, err := d.fs.Stat(v.name)
	if err == nil && (is.ID.Dev != was.ID.Dev || is.ID.Ino != was.ID.Ino) {
		err = errOddSpare
	}
	v.id, v.lines, v.end = is.ID, v.lines+len(lines), end
	return err
}

// dropSpare lets go of the spare, if there is one.
func (d *disk) dropSpare() {
	if d.spare != nil {
		d.discard(d.spare)
		d.spare = nil
	}
}
