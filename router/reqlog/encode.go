package reqlog

import (
	"encoding/binary"
	"strconv"
	"time"
	"unicode/utf8"
)

// Limits of what one line may hold. A path or a model is the client's to
// choose, so each string is cut; ids that decide anything are left out whole
// instead, as half an id would match what it should not.
const (
	maxString    = 512
	maxResponses = 4
	maxLine      = 96 << 10 // longer ones are damaged: no line of ours reaches it
)

const hexDigits = "0123456789abcdef"

// timeLayout is fixed in width, so the decoder can read it by position.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendLine appends the line as JSON with its newline.
func appendLine(b []byte, l *Line) []byte {
	b = append(b, `{"t":"`...)
	b = append(appendTime(b, l.Time), '"')
	b = appendString(b, `,"k":`, string(l.Kind))
	b = appendString(b, `,"id":`, l.ID)
	b = appendString(b, `,"agent":`, l.Agent)
	if len(l.Session) <= maxString {
		b = appendString(b, `,"session":`, l.Session)
	}
	b = appendString(b, `,"turn":`, l.Turn)
	b = appendString(b, `,"side":`, l.Side)
	b = appendString(b, `,"pin":`, l.Pin)
	b = appendString(b, `,"server":`, l.Server)
	b = appendString(b, `,"why":`, l.Why)
	b = appendString(b, `,"format":`, l.Format)
	b = appendString(b, `,"method":`, l.Method)
	b = appendString(b, `,"path":`, l.Path)
	b = appendString(b, `,"asked":`, l.ModelAsked)
	b = appendString(b, `,"sent":`, l.ModelSent)
	b = appendInt(b, `,"status":`, int64(l.Status))
	b = appendString(b, `,"cut":`, l.Cut)
	b = appendString(b, `,"error":`, l.Error)
	b = appendInt(b, `,"in":`, l.Input)
	b = appendInt(b, `,"cached":`, l.CacheRead)
	b = appendInt(b, `,"cache_write":`, l.CacheWrite)
	b = appendInt(b, `,"out":`, l.Output)
	b = appendInt(b, `,"bytes_in":`, l.BytesIn)
	b = appendInt(b, `,"bytes_out":`, l.BytesOut)
	b = appendInt(b, `,"first_ms":`, l.FirstMS)
	b = appendInt(b, `,"total_ms":`, l.TotalMS)
	b = appendString(b, `,"key":`, l.Key)
	b = appendString(b, `,"mark":`, l.Mark)
	b = appendResponses(b, l.Responses)
	b = appendInt(b, `,"turns":`, int64(l.Turns))
	if !l.Opened.IsZero() {
		b = append(b, `,"opened":"`...)
		b = append(appendTime(b, l.Opened), '"')
	}
	return append(b, '}', '\n')
}

// appendTime writes t in timeLayout. The package time is quicker with the
// layouts that it knows.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	b = t.AppendFormat(b, time.RFC3339)
	b[len(b)-1] = '.'
	micros := t.Nanosecond() / 1000
	for unit := 100_000; unit > 0; unit /= 10 {
		b = append(b, byte('0'+micros/unit%10))
	}
	return append(b, 'Z')
}

func appendInt(b []byte, name string, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), v, 10)
}

func appendString(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendQuoted(append(b, name...), cut(s))
}

// cut shortens s to maxString bytes without halving a character.
func cut(s string) string {
	if len(s) <= maxString {
		return s
	}
	n := maxString
	for n > maxString-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func appendResponses(b []byte, ids []string) []byte {
	n := 0
	for _, id := range ids {
		if id == "" || len(id) > maxString || n == maxResponses {
			continue
		}
		if n == 0 {
			b = append(b, `,"resp":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendQuoted(b, id)
		n++
	}
	if n > 0 {
		b = append(b, ']')
	}
	return b
}

// appendQuoted writes s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, as encoding/json has it.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := plainRun(s); i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= utf8.RuneSelf:
			b = append(b, "\ufffd"...)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i += size
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// plainRun is how many bytes at the beginning of s stand for themselves, eight
// at a time: of most strings all but the last few.
func plainRun(s string) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := binary.LittleEndian.Uint64([]byte(s[i : i+8]))
		quote, slash := x^ones*'"', x^ones*'\\'
		if (x|(x-ones*' ')|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	return i
}

func appendHex(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return b
}

// parseHex reads exactly 16 lower-case hex digits.
func parseHex[T string | []byte](s T) (uint64, bool) {
	if len(s) != 16 {
		return 0, false
	}
	var v uint64
	for i := range 16 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// micros is the time as the index holds it: microseconds since 1970, zero for
// no time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the reverse of micros.
func fromMicros(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}
