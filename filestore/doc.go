// Package filestore is a small durable key-value store in one JSON file, for
// small state that must survive: string and hash values with times to live,
// answering as Redis does.
package filestore
