package agents

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// rewinds are the only fixtures that an empty table takes for openings though
// their conversation runs: the user went back to the first message, and
// nothing in the request is left of what came after it.
var rewinds = []string{
	"claude-2.1.197-i-rewind-first.json 5: continuation is opening",
	"claude-2.1.332-i-rewind-only-turn.json 2: continuation is opening",
}

// TestEmptyTableMistakesOnlyRewinds empties the table before every request, as
// if all pins had been lost at that moment.
func TestEmptyTableMistakesOnlyRewinds(t *testing.T) {
	var mistaken []string
	files := fixtureFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, row := range decodeFixtures(t, name, files[name]) {
			got, err := Recognise(row.request(t, row.pathAgent(), nil))
			if err != nil {
				t.Fatalf("%s row %d: %v", name, row.N, err)
			}
			if turn := got.Turn(false); !row.accepts(turn) {
				mistaken = append(mistaken, fmt.Sprintf("%s %d: %s is %v", name, row.N, row.Label, turn))
			}
		}
	}
	if !slices.Equal(mistaken, rewinds) {
		t.Errorf("mistaken with an empty table:\n got %q\nwant %q", mistaken, rewinds)
	}
}
