package fakeserver

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"sync"
)

// maxCached is how many prefixes one generation of the cache remembers.
const maxCached = 1 << 16

// prefixCache remembers which conversations the server has read, as a real
// one's prefix cache would: by hashes of their prefixes. When a generation is
// full the older one is forgotten.
type prefixCache struct {
	mu       sync.Mutex
	new, old map[uint64]struct{}
}

func (c *prefixCache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.new, c.old = nil, nil
}

// read returns the index of the deepest key that is known, -1 if none is, and
// remembers them all.
func (c *prefixCache) read(keys []uint64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	deepest := -1
	for i, k := range keys {
		_, inNew := c.new[k]
		_, inOld := c.old[k]
		if inNew || inOld {
			deepest = i
		}
	}
	if c.new == nil || len(c.new) > maxCached {
		c.old, c.new = c.new, map[uint64]struct{}{}
	}
	for _, k := range keys {
		c.new[k] = struct{}{}
	}
	return deepest
}

// usage is what a request costs: four bytes are a token, and what the server
// has read before as the beginning of a conversation comes from its cache.
func (s *Server) usage(rec *Record, output int) Usage {
	system, messages := rec.request.elements()
	sizes := make([]int, len(messages))
	keys := make([]uint64, len(messages))
	total := len(system)
	for _, t := range rec.request.Tools {
		total += len(t)
	}
	running := elementHash(system)
	for i, m := range messages {
		total += len(m)
		sizes[i] = total
		h := fnv.New64a()
		_ = binary.Write(h, binary.LittleEndian, [2]uint64{running, elementHash(m)}) // a hash does not fail
		running = h.Sum64()
		keys[i] = running
	}
	u := Usage{Input: max(1, total/4), Output: max(1, output/4)}
	if i := s.cache.read(keys); i >= 0 {
		u.CacheRead = min(sizes[i]/4, u.Input)
	}
	if rec.Format == Messages {
		u.CacheWrite = max(0, u.Input-u.CacheRead-3)
	}
	return u
}

// elementHash is a hash of a message's texts that does not change when a
// client moves its cache marks or reorders fields.
func elementHash(raw json.RawMessage) uint64 {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return 0
	}
	return valueHash(v)
}

func valueHash(v any) uint64 {
	var sum uint64
	switch v := v.(type) {
	case string:
		h := fnv.New64a()
		_, _ = h.Write([]byte(v)) // a hash does not fail
		return h.Sum64()
	case []any:
		for _, e := range v {
			sum += valueHash(e)
		}
	case map[string]any:
		for name, e := range v {
			if name != "type" && name != "cache_control" && name != "id" {
				sum += valueHash(e)
			}
		}
	}
	return sum
}
