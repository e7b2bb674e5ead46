// Package prefix derives prefix keys: running hashes of a conversation's
// content up to one message. Equal conversations have equal keys however a
// client orders fields, escapes characters or marks caches, so a conversation
// is found again under another name. Keys are stored in the request log;
// changing the derivation therefore needs a new version tag. Pure; the only
// package that knows xxh3.
package prefix

// Key is the running hash of a conversation up to and including one element.
type Key = uint64
