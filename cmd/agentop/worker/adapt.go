package worker

import (
	"context"
	"sync/atomic"
	"time"

	"agentop/filestore"
	"agentop/router"
	"agentop/router/config"
	"agentop/router/credential"
)

// pins is the store as the router wants it. While another worker lives, which
// may move a conversation that this one has pinned, each look-up looks whether
// the file has changed.
type pins struct {
	store  func() filestore.Store // waits until it is open
	shared *atomic.Bool           // another worker lives
}

func (p pins) Get(key string) (string, bool) {
	if p.shared.Load() {
		p.store().Refresh()
	}
	value, ok, err := p.store().Get(key)
	return value, ok && err == nil
}

func (p pins) Put(ctx context.Context, key, value string, ttl time.Duration, durable bool) error {
	if durable {
		return p.store().SetDurable(ctx, key, value, ttl)
	}
	return p.store().Set(key, value, ttl)
}

func (p pins) Delete(ctx context.Context, key string) error {
	_, err := p.store().DeleteDurable(ctx, key)
	return err
}

// storedPins are the records of all pins.
func storedPins(store filestore.Store) []string {
	names, err := store.Keys(router.PinPrefix)
	if err != nil {
		return nil
	}
	values := make([]string, 0, len(names))
	for _, key := range names {
		if value, ok, err := store.Get(key); ok && err == nil {
			values = append(values, value)
		}
	}
	return values
}

// keys is the resolver as the router wants it.
type keys struct{ resolver *credential.Resolver }

func (k keys) Key(ctx context.Context, server *config.Server) (credential.Secret, error) {
	return k.resolver.Key(ctx, server)
}

func (k keys) Rejected(server string) { k.resolver.Invalidate(server) }
