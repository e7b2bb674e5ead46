// Package credential holds servers' keys: where each comes from, and which
// header of a request it goes into. A key is a Secret, which no log, error or
// screen can print. It knows nothing of placement. Start reading at Resolver
// and Apply.
package credential

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what a Secret prints as.
const redacted = "[secret]"

// Secret is a key that cannot print itself: every formatting verb, JSON, text
// and structured logging show a stand-in. Reveal is the only way out. The zero
// Secret is no key.
type Secret struct{ value string }

// NewSecret makes a Secret of a key.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal is the key itself: for a header towards its own server, and nowhere else.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no key.
func (s Secret) IsZero() bool { return s.value == "" }

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
