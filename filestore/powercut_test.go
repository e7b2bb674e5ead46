package filestore_test

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"agentop/filestore"
)

// history is what a test wrote to a store, and which of it was acknowledged.
type history struct {
	written map[string]int // the last value written, counting from 1
	acked   map[string]int // the last value acknowledged
}

func newHistory() *history {
	return &history{written: map[string]int{}, acked: map[string]int{}}
}

// judge says what is wrong with a store that was opened after a crash: what
// was acknowledged must be there, and what is there must have been written.
func (h *history) judge(s filestore.Store) error {
	for key, want := range h.acked {
		val, found, err := s.Get(key)
		if err != nil || !found {
			return fmt.Errorf("%q was acknowledged and is gone (error: %w)", key, err)
		}
		if got, err := strconv.Atoi(val); err != nil || got < want || got > h.written[key] {
			return fmt.Errorf("%q is %q; %d was acknowledged, %d the last written", key, val, want, h.written[key])
		}
	}
	keys, err := s.Keys("")
	for _, key := range keys {
		if h.written[key] == 0 {
			return fmt.Errorf("%q is there and was never written", key)
		}
	}
	return err
}

const cutPath = "/home/pins.json"

func openOn(fs filestore.FS, opts ...filestore.Option) (filestore.Store, error) {
	opts = append([]filestore.Option{quiet, filestore.WithFS(fs), filestore.WithSaveDelay(time.Hour)}, opts...)
	return filestore.Open(context.Background(), filestore.FileURL(cutPath), opts...)
}

// scenario writes a few keys one after the other, plainly and durably, with a
// second store on the same file in between.
func scenario(fs filestore.FS) *history {
	h := newHistory()
	s, err := openOn(fs)
	if err != nil {
		return h
	}
	defer s.Close()
	write := func(s filestore.Store, key string, durably bool) {
		h.written[key]++
		val := strconv.Itoa(h.written[key])
		if !durably {
			s.Set(key, val, 0)
		} else if s.SetDurable(context.Background(), key, val, 0) == nil {
			h.acked[key] = h.written[key]
		}
	}
	write(s, "a", true)
	write(s, "b", false)
	write(s, "a", true)
	other, err := openOn(fs)
	if err != nil {
		return h
	}
	write(other, "c", true)
	write(s, "d", true)
	other.Close()
	write(s, "c", true)
	write(s, "a", true)
	return h
}

// adding writes keys that are all new, so that each save but the first adds to
// the version before the last, and has others in between.
func adding(fs filestore.FS) *history {
	h := newHistory()
	s, err := openOn(fs, filestore.WithSpare(1))
	if err != nil {
		return h
	}
	defer s.Close()
	for i, key := range []string{"a", "b", "c", "d", "e", "a", "f", "g", "h"} {
		h.written[key]++
		if s.SetDurable(context.Background(), key, strconv.Itoa(h.written[key]), 0) == nil {
			h.acked[key] = h.written[key]
		}
		if i != 6 {
			continue
		}
		if other, err := openOn(fs); err == nil {
			h.written["other"]++
			if other.SetDurable(context.Background(), "other", "1", 0) == nil {
				h.acked["other"] = 1
			}
			other.Close()
		}
	}
	return h
}

var scenarios = map[string]func(filestore.FS) *history{"whole files": scenario, "adding": adding}

// TestPowerCut cuts the power at every call of a few saves, and looks at all
// that may be left: names that were not synced there or not, in any
// selection, bytes that were not synced there or not.
func TestPowerCut(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			whole := newCrashFS()
			scenario(whole)
			calls, states := whole.calls, 0
			for cut := 1; cut <= calls && !t.Failed(); cut++ {
				fs := newCrashFS()
				fs.cutAt = cut
				h := scenario(fs)
				fs.afterCut(func(state string, left *crashFS) {
					states++
					if err := reopenAfterCut(left, h); err != nil {
						t.Errorf("power cut at call %d of %d (%s), %s: %v", cut, calls, whole.trace[min(cut, len(whole.trace))-1], state, err)
					}
				})
			}
			t.Logf("%d calls, %d states", calls, states)
		})
	}
}

// TestPowerCutAfterFolderFault fails one sync of the folder and cuts the power
// at each of the calls after it. Which version has the file's name on disk is
// not known then, so neither may be added to.
func TestPowerCutAfterFolderFault(t *testing.T) {
	whole := newCrashFS()
	adding(whole)
	for at, call := range whole.trace {
		for cut := at + 2; cut < at+25 && call == "sync folder" && !t.Failed(); cut++ {
			fs := newCrashFS()
			fs.cutAt, fs.fail = cut, errAt(at+1, false, syscall.EIO)
			h := adding(fs)
			fs.afterCut(func(state string, left *crashFS) {
				if err := reopenAfterCut(left, h); err != nil {
					t.Errorf("EIO at call %d, power cut at call %d (%s), %s: %v", at+1, cut, fs.trace[len(fs.trace)-1], state, err)
				}
			})
		}
	}
}

// reopenAfterCut opens what is left, judges it, and sees that writing goes on.
func reopenAfterCut(left *crashFS, h *history) error {
	s, err := openOn(left)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := h.judge(s); err != nil {
		return err
	}
	if st := s.State(); len(st.SetAside) > 0 {
		return fmt.Errorf("set aside: %q", st.SetAside)
	}
	if err := s.SetDurable(context.Background(), "after", "1", 0); err != nil {
		return err
	}
	return s.Check()
}

// TestDiskFault fails every call of a few saves, for one time and for good,
// and cuts the power after that. Nothing acknowledged may be lost, memory
// serves all the time, and once the fault has gone all is saved without
// anybody asking.
func TestDiskFault(t *testing.T) {
	for name, scenario := range scenarios {
		for _, lasting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lasting %t", name, lasting), func(t *testing.T) {
				whole := newCrashFS()
				scenario(whole)
				for at := 1; at <= whole.calls && !t.Failed(); at++ {
					fs := newCrashFS()
					fs.fail = errAt(at, lasting, syscall.EIO)
					h := scenario(fs)
					fs.afterCut(func(state string, left *crashFS) {
						if err := reopenAfterCut(left, h); err != nil {
							t.Errorf("EIO at call %d, then a power cut, %s: %v", at, state, err)
						}
					})
				}
			})
		}
	}
}

// TestRecoversByItself lets each kind of call fail for a while: State says so
// and memory serves; when the fault goes, the save comes by itself.
func TestRecoversByItself(t *testing.T) {
	for _, call := range []string{"create pins.json.tmp-*", "write", "sync file", "rename to pins.json", "sync folder", "lock", "stat pins.json"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			fs := newCrashFS()
			s, err := openOn(fs)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			setDurable(t, s, "before", "1")
			setFault(fs, call)
			if err := s.SetDurable(t.Context(), "k", "2", 0); !isNotSaved(err) {
				t.Errorf("SetDurable = %v, want ErrNotSaved", err)
			}
			wantGet(t, s, "k", "2", true)
			if st := s.State(); st.Err == nil || st.ErrSince.IsZero() || st.Unsaved == 0 {
				t.Errorf("State = %+v, want the error, since when, and unsaved writes", st)
			}
			setFault(fs, "")
			eventually(t, "saved again", func() bool { return s.State().Err == nil })
			if st := s.State(); st.Unsaved != 0 {
				t.Errorf("State = %+v, want nothing unsaved", st)
			}
			fs.afterCut(func(state string, left *crashFS) {
				again, err := openOn(left)
				if err != nil {
					t.Fatal(state, err)
				}
				defer again.Close()
				wantGet(t, again, "k", "2", true)
			})
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func setFault(fs *crashFS, failing string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.fail = func(_ int, call string) error {
		if call == failing {
			return syscall.EIO
		}
		return nil
	}
}
