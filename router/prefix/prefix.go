// Package prefix derives prefix keys: running hashes of a conversation's
// content up to one message. Equal conversations have equal keys however a
// client orders fields, escapes characters or marks caches, so a conversation
// is found again under another name. Keys are stored in the request log;
// changing the derivation therefore needs a new version tag. Pure; the only
// package that knows xxh3.
//
// What of a body is counted is package outline's business: it calls Sum for
// each string and adds up. Chain then makes the keys. Start reading there.
package prefix

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"strconv"

	"github.com/zeebo/xxh3"
)

// Key is the running hash of a conversation up to and including one element.
type Key = uint64

// version is hashed into every key. A change of what is counted, or how, must
// change it, so that keys in old logs match nothing.
const version = "agentop prefix 1\x00"

// Chain appends the keys of a conversation to dst: key i stands for elements
// 0 to i. It is seeded with the version and the agent, since another agent's
// equal conversation is another conversation.
func Chain(dst []Key, agent string, elements []uint64) []Key {
	var seed [128]byte
	key := xxh3.Hash(append(append(seed[:0], version...), agent...))
	var pair [16]byte
	for _, e := range elements {
		binary.LittleEndian.PutUint64(pair[:8], key)
		binary.LittleEndian.PutUint64(pair[8:], e)
		key = xxh3.Hash(pair[:])
		dst = append(dst, key)
	}
	return dst
}

var chance = maphash.Bytes(maphash.MakeSeed(), nil)

// Fingerprint hashes bytes as they stand, for comparisons within this process:
// it is seeded by chance, so that nobody can write two texts that it takes for
// one.
func Fingerprint(b []byte) uint64 { return xxh3.HashSeed(b, chance) }

// Format writes a key as the request log holds it: 16 hex digits.
func Format(k Key) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[k>>(60-4*i)&15]
	}
	return string(b[:])
}

var errKey = errors.New("not a key of 16 hex digits")

// Parse reads what Format wrote, and nothing else.
func Parse(s string) (Key, error) {
	if len(s) != 16 {
		return 0, errKey
	}
	k, err := strconv.ParseUint(s, 16, 64)
	if err != nil || Format(k) != s {
		return 0, errKey
	}
	return k, nil
}
