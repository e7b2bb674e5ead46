package router

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestUploadIsNeverReadAfterItsRelease(t *testing.T) {
	body, keep := takeMemory(100_000)
	copy(body, bytes.Repeat([]byte("secret of one server "), 5000))
	up := &upload{memory: keep}
	half, whole := up.reader(body), up.reader(body[:10])
	p := make([]byte, 1000)
	if n, err := half.Read(p); n != len(p) || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	if n, err := whole.Read(p); n != 10 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	if !up.sent() {
		t.Error("the latest reader has read all, and sent says no")
	}
	up.release()
	up.release() // a second time changes nothing
	if n, err := half.Read(p); n != 0 || !errors.Is(err, errGone) {
		t.Errorf("a late reader read %d bytes, %v; want none, %v", n, err, errGone)
	}
	if n, err := whole.Read(p); n != 0 || err != io.EOF {
		t.Errorf("a reader at its end read %d, %v; want 0, EOF", n, err)
	}
}

func TestMemoryIsUsedAgainBySize(t *testing.T) {
	for _, n := range []int{0, 1, 16 << 10, 64 << 10, 64<<10 + 1, 1 << 20, 8 << 20, 8<<20 + 1} {
		p, keep := takeMemory(n)
		if len(p) != n {
			t.Errorf("took %d bytes, got %d", n, len(p))
		}
		if keep != nil && (len(keep) < n || len(keep) > max(2*n, 64<<10)) {
			t.Errorf("%d bytes stand in memory of %d", n, len(keep))
		}
		putMemory(keep)
	}
}

func TestMemoryThatLiesReadyIsBounded(t *testing.T) {
	defer LetGo()
	LetGo()
	p, keep := takeMemory(100_000)
	putMemory(keep)
	if again, _ := takeMemory(90_000); &again[0] != &p[0] {
		t.Error("memory that lies ready is not used again")
	}
	putMemory(make([]byte, 1<<20))
	if ready.bytes != 0 {
		t.Errorf("%d bytes of a large body lie ready", ready.bytes)
	}
	for range 100 {
		putMemory(make([]byte, 1<<17))
	}
	if ready.bytes != maxReady {
		t.Errorf("%d bytes lie ready, want %d", ready.bytes, maxReady)
	}
	if LetGo(); ready.bytes != 0 || ready.lists[17] != nil {
		t.Errorf("%d bytes lie ready after LetGo", ready.bytes)
	}
}
