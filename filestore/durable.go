package filestore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

func (s *fileStore) SetDurable(ctx context.Context, key, val string, ttl time.Duration) error {
	if err := errors.Join(ctx.Err(), s.checkSet(key, val, ttl)); err != nil {
		return err
	}
	var gen uint64
	s.mu.Lock()
	err := s.writeLocked(func(e edit) error {
		e.setString(key, val, e.end(ttl))
		return nil
	})
	gen = s.t.gen
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.await(ctx, &waiter{gen: gen})
}

func (s *fileStore) SetNXDurable(ctx context.Context, key, val string, ttl time.Duration) (set bool, err error) {
	if err := s.checkSet(key, val, ttl); err != nil {
		return false, err
	}
	err = s.underLock(ctx, func(e edit) error {
		set = e.setNX(key, val, ttl)
		return nil
	})
	return set, err
}

func (s *fileStore) UpdateDurable(ctx context.Context, key string, change func(Item) (Item, error)) error {
	if err := s.checkKey(key); err != nil {
		return err
	}
	return s.underLock(ctx, func(e edit) error { return e.update(key, change) })
}

func (s *fileStore) DeleteDurable(ctx context.Context, keys ...string) (n int, err error) {
	err = s.underLock(ctx, func(e edit) error {
		n = e.deleteAll(keys)
		return nil
	})
	return n, err
}

// underLock has do done under the file lock and waits for the save. Either do
// is done, or the context ended before and its error is returned: never both.
func (s *fileStore) underLock(ctx context.Context, do func(edit) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return ErrClosed
	}
	var begun atomic.Bool // set by whoever comes first: the saver, or the caller who leaves
	finished := make(chan struct{})
	var doErr error
	err := s.await(ctx, &waiter{op: func(e edit) {
		if begun.CompareAndSwap(false, true) {
			doErr = do(e)
			close(finished)
		}
	}})
	if begun.CompareAndSwap(false, true) {
		if errors.Is(err, ErrClosed) {
			return err
		}
		return fmt.Errorf("nothing changed: %w", ctx.Err())
	}
	<-finished
	if doErr != nil {
		return doErr
	}
	return err
}

func (s *fileStore) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// Sync waits for the save of all that was written before.
func (s *fileStore) Sync(ctx context.Context) error {
	s.mu.RLock()
	gen, saved, closed := s.t.gen, s.t.saved, s.closed
	s.mu.RUnlock()
	switch {
	case closed:
		return ErrClosed
	case gen == saved:
		return ctx.Err()
	}
	return s.await(ctx, &waiter{gen: gen})
}

func (s *fileStore) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	close(s.quit)
	<-s.done
	s.disk.close()
	if s.last != nil {
		return fmt.Errorf("close: %w: %w", ErrNotSaved, s.last)
	}
	return nil
}
