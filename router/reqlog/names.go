package reqlog

import "strings"

// names numbers words that many conversations share, from 1; 0 is no word.
type names struct {
	list    []string
	numbers map[string]uint16
}

// maxNames bounds them: the configuration has a few servers and models, a
// damaged log may have any.
const maxNames = 1 << 15

func newNames() names { return names{[]string{""}, map[string]uint16{}} }

// number returns a word's number; zero if there are too many.
func (t *names) number(word string) uint16 {
	if word == "" {
		return 0
	}
	if n, ok := t.numbers[word]; ok {
		return n
	}
	if len(t.list) == maxNames {
		return 0
	}
	word = strings.Clone(word)
	n := uint16(len(t.list))
	t.list = append(t.list, word)
	t.numbers[word] = n
	return n
}
