package outline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// toolsOf is a list of tools of at least size bytes, with all that could be
// taken for its end.
func toolsOf(size int) []byte {
	b := []byte("[")
	for i := 0; len(b) < size; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, ` {"name":"tool \"%d\"","description":"ends \\"  ,"type":"%s","schema":{"a":[1,{"]":"}"}],"\u0022":null}}`, i, []string{"custom", "web_search"}[i%2])
	}
	return append(b, ']')
}

// checkKnown holds that a body with a list of tools in it, at all places
// relative to the blocks that are looked at in one go, has the same outline
// with a Known that knows the list as without.
func checkKnown(t *testing.T, f Format, body []byte) {
	t.Helper()
	rest := bytes.TrimLeft(body, " \t\r\n")
	if len(rest) == 0 || rest[0] != '{' {
		return
	}
	r := rand.New(rand.NewPCG(uint64(len(body)), 7))
	list := toolsOf(smallestKnown + r.IntN(3*words*64))
	known, read := &Known{Hash: seededHash}, false
	for range 3 {
		whole := fmt.Appendf(nil, `{"x":"%s","tools":%s`, strings.Repeat("-", r.IntN(2*words*64)), list)
		if after := bytes.TrimLeft(rest[1:], " \t\r\n"); len(after) > 0 && after[0] != '}' {
			whole = append(whole, ',')
		}
		whole = append(whole, rest[1:]...)
		var with, without Outline
		with.Known = known
		with.Scan(f, whole, jsonSum)
		without.Scan(f, whole, jsonSum)
		with.Known, read = nil, read || without.Err == nil
		if d := difference(plainOutline(&with), plainOutline(&without)); d != "" {
			t.Fatalf("format %d, body\n%s\nwith what was known %s", f, whole, d)
		}
	}
	if _, ok := known.find(list); read && !ok && !bytes.Contains(body, []byte("tools")) {
		t.Fatal("the list is not known after it was read")
	}
}

func TestKnownToolsChangeNothing(t *testing.T) {
	everyKernel(func(string) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 60 {
			checkKnown(t, formats[r.IntN(len(formats))], randomBody(r))
		}
	})
}

func TestOnlyWholeAndEqualListsAreKnown(t *testing.T) {
	k := &Known{Hash: seededHash}
	list := toolsOf(8 << 10)
	var o Outline
	o.Known = k
	o.Scan(Messages, fmt.Appendf(nil, `{"tools":%s}`, list), nil)
	tools, server := o.Tools, o.ServerTools
	if _, ok := k.find(list); !ok || tools == 0 || server == 0 {
		t.Fatalf("%d tools, %d of the server's, known %v", tools, server, ok)
	}
	for name, other := range map[string][]byte{
		"a byte is another":     append(append(bytes.Clone(list[:len(list)/2]), '!'), list[len(list)/2+1:]...),
		"its end is cut":        list[:len(list)-1],
		"shorter than its head": list[:knownHead/2],
		"nothing":               nil,
	} {
		if _, ok := k.find(other); ok {
			t.Errorf("%s: found", name)
		}
	}
	// What follows the list is read as ever.
	for _, after := range []string{``, `]`, `,`, `"`, `,"model":"m"`, `,"a":"` + "\x01" + `"`} {
		body := fmt.Appendf(nil, `{"tools":%s%s}`, list, after)
		var plain Outline
		plain.Scan(Messages, body, nil)
		o.Scan(Messages, body, nil)
		if (o.Err == nil) != (plain.Err == nil) || o.Model != plain.Model || o.Tools != plain.Tools {
			t.Errorf("%q: %v, model %q, %d tools; want %v, %q, %d", after, o.Err, o.Model, o.Tools, plain.Err, plain.Model, plain.Tools)
		}
	}
	// A broken list is not remembered.
	broken := append(bytes.Clone(list[:len(list)-1]), `,"`...)
	o.Scan(Messages, fmt.Appendf(nil, `{"tools":%s`, broken), nil)
	if k.next != 1 {
		t.Errorf("%d lists are known, want 1", k.next)
	}
	// Old ones make room.
	for i := range knownLists {
		o.Scan(Messages, fmt.Appendf(nil, `{"tools":%s}`, toolsOf((20+i)<<10)), nil)
	}
	if _, ok := k.find(list); ok {
		t.Error("the oldest list is still known")
	}
}
