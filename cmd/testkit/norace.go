//go:build !race

package testkit

// Race says that the race detector watches, under which pools forget at random
// and everything is many times slower.
const Race = false
