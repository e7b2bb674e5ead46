package worker

import (
	"path/filepath"
	"testing"

	"agentop/cmd/agentop/home"
	"agentop/filestore"
)

// slowDisk opens no file until it is let.
type slowDisk struct {
	filestore.FS
	asked, let chan struct{}
}

func (d slowDisk) Open(name string) (filestore.File, error) {
	d.asked <- struct{}{}
	<-d.let
	return d.FS.Open(name)
}

// TestPinsAreWaitedFor has the worker go on while a slow disk gives the pins,
// and whoever asks for one wait until all are there.
func TestPinsAreWaitedFor(t *testing.T) {
	dir := home.Home(t.TempDir())
	before, err := filestore.Open(t.Context(), filestore.FileURL(dir.Pins()))
	if err != nil {
		t.Fatal(err)
	}
	if err := before.SetDurable(t.Context(), "pin:codex:s", "1", 0); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	disk := slowDisk{filestore.OS(), make(chan struct{}, 1), make(chan struct{})}
	told := make(chan struct{})
	l := openLate(t.Context(), dir, func() { close(told) }, filestore.WithFS(disk))
	<-disk.asked
	select {
	case <-l.opened:
		t.Fatal("open before the disk gave the file")
	default:
	}
	close(disk.let)
	if value, found, err := l.get().Get("pin:codex:s"); value != "1" || !found || err != nil {
		t.Errorf("the pin is %q, %t, %v", value, found, err)
	}
	<-told
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// TestNoStoreIsTold has a home that is no absolute path.
func TestNoStoreIsTold(t *testing.T) {
	l := openLate(t.Context(), home.Home(filepath.Join("not", "absolute")), func() { t.Error("opened") })
	<-l.broken
	if l.err == nil || l.close() != nil {
		t.Errorf("error %v, close %v", l.err, l.close())
	}
}
