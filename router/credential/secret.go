// Package credential holds servers' keys: where each comes from, and which
// header of a request it goes into. A key is a Secret, which no log, error or
// screen can print. It knows nothing of placement. Start reading at Resolver
// and Apply.
package credential

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// redacted is what a Secret prints as.
const redacted = "[secret]"

// Secret is a key that cannot print itself: every formatting verb, JSON, text
// and structured logging show a stand-in, also where it stands in an
// unexported field of another value. Reveal is the only way out. The zero
// Secret is no key. Secrets must not be compared with ==.
type Secret struct {
	// A pointer, since package fmt prints unexported fields without asking
	// them how: of a pointer inside a struct it shows the address alone.
	value *string
}

// NewSecret makes a Secret of a key; of "" the zero Secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Clean makes a Secret of what was typed, read from a file or printed by a
// command: white space around it is removed. It refuses what cannot be a key
// in a header, in words that follow "the key".
func Clean(value string) (Secret, error) {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return Secret{}, errors.New("is empty")
	case strings.Contains(value, "\n"):
		return Secret{}, errors.New("has more than one line")
	case strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return Secret{}, errors.New("has a space, a control character or a letter outside ASCII in it")
	}
	return NewSecret(value), nil
}

// Reveal is the key itself: for a header towards its own server, and nowhere else.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether there is no key.
func (s Secret) IsZero() bool { return s.value == nil }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Format implements fmt.Formatter, for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements json.Marshaler.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
