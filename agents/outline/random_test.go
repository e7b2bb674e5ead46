package outline

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var (
	memberKeys = strings.Fields(`role type id content text tool_calls function_call function custom name arguments input
		call_id signature encrypted_content cache_control reasoning_content tools thinking summary output other`)
	topKeys = strings.Fields(`model stream max_tokens context_management output_config tool_choice tools metadata
		client_metadata prompt_cache_key previous_response_id system instructions messages input messages input system other`)
	sampleTexts = []string{"", "user", "assistant", "system", "developer", "tool", "text", "input_text", "output_text", "tool_use",
		"function_call", "function_call_output", "custom_tool_call", "thinking", "redacted_thinking", "reasoning", "compaction",
		"web_search_call", "custom", "message", "x-anthropic-billing-header: v=1;", "x-anthropic-billing-header: v=2;\nrest", "x-anthropic-billing-header: v\n",
		`{"a":"b","c":["d",1,{"e":""}]}`, `{"a":`, "é😀\n\t\"\\/", "\x00\x1f\u2028", "a", strings.Repeat("long \"text\" ", 40), strings.Repeat("é", 140)}
	scalars = []string{"true", "false", "null", "0", "-1", "12", "1e400", "1.5E-3", "99999999999999999999", "9223372036854775807"}
)

func randomBody(r *rand.Rand) []byte {
	var b []byte
	b = append(b, '{')
	for i := range r.IntN(6) {
		if i > 0 {
			b = append(b, ',')
		}
		k := pick(r, topKeys)
		b = randomString(b, r, k)
		b = append(space(b, r), ':')
		b = space(b, r)
		switch k {
		case "messages", "input", "system":
			b = randomArray(b, r, 4)
		case "output_config", "tool_choice", "metadata", "client_metadata":
			b = append(b, '{')
			b = randomString(b, r, pick(r, []string{"format", "type", "user_id", "x-codex-turn-metadata"}))
			b = append(b, ':')
			b = randomValue(b, r, 1)
			b = append(b, '}')
		default:
			b = randomValue(b, r, 3)
		}
		b = space(b, r)
	}
	b = append(b, '}')
	if r.IntN(20) == 0 { // spoil it
		b[r.IntN(len(b))] = " \"\\{}[],:0u\x01\xff"[r.IntN(13)]
	}
	return b
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func randomValue(b []byte, r *rand.Rand, depth int) []byte {
	switch n := r.IntN(10); {
	case n < 5 || depth == 0:
		return randomString(b, r, pick(r, sampleTexts))
	case n < 6:
		return append(b, pick(r, scalars)...)
	case n < 8:
		return randomArray(b, r, depth-1)
	}
	return randomObject(b, r, depth-1)
}

func randomArray(b []byte, r *rand.Rand, depth int) []byte {
	if r.IntN(5) == 0 {
		return randomString(b, r, pick(r, sampleTexts))
	}
	b = append(b, '[')
	for i := range r.IntN(5) {
		if i > 0 {
			b = append(space(b, r), ',')
		}
		b = space(b, r)
		if r.IntN(8) == 0 {
			b = randomValue(b, r, max(depth-1, 0))
		} else {
			b = randomObject(b, r, depth)
		}
	}
	return append(space(b, r), ']')
}

func randomObject(b []byte, r *rand.Rand, depth int) []byte {
	b = append(b, '{')
	for i := range r.IntN(6) {
		if i > 0 {
			b = append(space(b, r), ',')
		}
		b = space(b, r)
		k := pick(r, memberKeys)
		b = randomString(b, r, k)
		b = append(space(b, r), ':')
		b = space(b, r)
		switch {
		case depth > 0 && (k == "content" || k == "tool_calls" || k == "tools"):
			b = randomArray(b, r, depth-1)
		case depth > 0 && (k == "function" || k == "function_call" || k == "input"):
			b = randomObject(b, r, depth-1)
		default:
			b = randomValue(b, r, max(depth-1, 0))
		}
	}
	return append(space(b, r), '}')
}

func space(b []byte, r *rand.Rand) []byte {
	if r.IntN(6) == 0 {
		b = append(b, " \n\t\r"[r.IntN(4)])
	}
	return b
}

// randomString writes a string with escapes drawn at random, and now and then
// with what is not UTF-8 or no character.
func randomString(b []byte, r *rand.Rand, s string) []byte {
	b = append(b, '"')
	plainly := r.IntN(4) > 0
	for _, c := range s {
		switch n := r.IntN(20); {
		case c == '"' || c == '\\' || c == '/' && n < 10:
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c < ' ' || !plainly && n < 3 && c < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, string(c)...)
		}
	}
	switch r.IntN(60) {
	case 0:
		b = append(b, 0xff, 0xc3)
	case 1:
		b = append(b, `\ud83d`...)
	case 2:
		b = append(b, `\ud83d\ude00`...)
	case 3:
		b = append(b, `\ude00\ud83d\u0041`...)
	}
	return append(b, '"')
}
