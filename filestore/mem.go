package filestore

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// memStore is a store without a file: what is written is as durable as it
// will ever be.
type memStore struct{ *memory }

func openMem(_ context.Context, u *url.URL, opts ...Option) (Store, error) {
	if u.Opaque != "" || u.Host != "" || u.Path != "" {
		return nil, fmt.Errorf("open store %q: want mem:", u.Redacted())
	}
	m := memStore{newMemory(collect(opts))}
	m.changed = m.afterWrite
	return m, nil
}

// afterWrite counts every write as saved, and sweeps a little each time since
// there is nothing else to do it.
func (s memStore) afterWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.setSaved(s.t.gen)
	now := s.now()
	if s.sweepAt >= len(s.t.recs) {
		s.sweepAt = 0
	}
	s.sweepAt = s.t.sweep(s.sweepAt, 2, now, now.UnixMilli())
}

func (s memStore) SetDurable(ctx context.Context, key, val string, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Set(key, val, ttl)
}

func (s memStore) SetNXDurable(ctx context.Context, key, val string, ttl time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return s.SetNX(key, val, ttl)
}

func (s memStore) UpdateDurable(ctx context.Context, key string, change func(Item) (Item, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Update(key, change)
}

func (s memStore) DeleteDurable(ctx context.Context, keys ...string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.Delete(keys...)
}

func (s memStore) Refresh() {}

func (s memStore) Sync(ctx context.Context) error { return ctx.Err() }

func (s memStore) State() State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return State{Keys: s.lenLocked(), Evicted: s.t.evicted}
}

func (s memStore) Check() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.t.check()
}

func (s memStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
