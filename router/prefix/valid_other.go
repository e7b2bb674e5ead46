//go:build !amd64 || purego

package prefix

import "unicode/utf8"

func valid(b []byte) bool { return utf8.Valid(b) }
