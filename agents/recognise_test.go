package agents

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var seedFlag = flag.Int64("seed", 0, "seed of the randomised tests; 0 takes one from the clock")

// seeded is a random source whose seed is printed, so that a failure can be
// repeated with -seed.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	t.Logf("-seed %d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 1))
}

// replay classifies a file's requests from top to bottom, as a proxy does that
// remembers the sessions of main turns, and calls check on each.
func replay(t *testing.T, rows []fixture, rng *rand.Rand, bare bool, check func(fixture, Recognition, Turn)) {
	t.Helper()
	known := map[string]bool{}
	for _, row := range rows {
		agent := row.pathAgent()
		if bare {
			agent = ""
		}
		got, err := Recognise(row.request(t, agent, rng))
		if err != nil {
			t.Fatalf("row %d: %v", row.N, err)
		}
		turn := got.Turn(got.Session != "" && known[got.Session])
		if turn == Opening || turn == Continuation {
			known[got.Session] = true
		}
		check(row, got, turn)
	}
}

// missed prints what was expected of a row and what came; it tells whether
// anything was missed.
func missed(t *testing.T, row fixture, bare bool, got Recognition, turn Turn) bool {
	t.Helper()
	ok := true
	if !row.accepts(turn) {
		t.Errorf("row %d (%s): turn %v, want %s %v", row.N, row.Kind, turn, row.Label, row.Accept)
		ok = false
	}
	if session, parent := row.ids(); got.Session != session || got.Parent != parent {
		t.Errorf("row %d (%s): session %q parent %q, want %q %q", row.N, row.Kind, got.Session, got.Parent, session, parent)
		ok = false
	}
	if want := row.agent(bare); got.Agent != want {
		t.Errorf("row %d (%s): agent %q, want %q", row.N, row.Kind, got.Agent, want)
		ok = false
	}
	return !ok
}

// TestFixturesAreRecognised replays what real clients sent, from an empty
// table, in every way that must make no difference.
func TestFixturesAreRecognised(t *testing.T) {
	rng := seeded(t)
	files := fixtureFiles(t)
	ways := []struct {
		name    string
		bare    bool
		shuffle bool
		rewrite bool
	}{
		{name: "as sent"},
		{name: "bare base URL", bare: true},
		{name: "headers in another order and case", shuffle: true},
		{name: "other ids and texts", rewrite: true},
		{name: "all of these", bare: true, shuffle: true, rewrite: true},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			count, misses := 0, 0
			for _, name := range slices.Sorted(maps.Keys(files)) {
				data, order := files[name], (*rand.Rand)(nil)
				if way.rewrite {
					data = rewritten(data, rng)
				}
				if way.shuffle {
					order = rng
				}
				t.Run(name, func(t *testing.T) {
					replay(t, decodeFixtures(t, name, data), order, way.bare, func(row fixture, got Recognition, turn Turn) {
						count++
						if missed(t, row, way.bare, got, turn) {
							misses++
						}
					})
				})
			}
			t.Logf("%d requests, %d missed", count, misses)
		})
	}
}

// TestKindOfFixtures holds the words that people see, and the one that a rule
// looks at: a title comes before its opening and waits for it.
func TestKindOfFixtures(t *testing.T) {
	want := map[string]Kind{
		"main": KindMain, "count_tokens": KindCount, "probe": KindOther,
		"generate_session_title": KindTitle, "terminal_update_title": KindTitle, "title": KindTitle, "thread_title": KindTitle,
		"compact": KindCompaction, "compaction": KindCompaction,
		"subagent": KindSubagent, "skill_fork": KindSubagent, "collab_spawn": KindSubagent, "thread_spawn": KindSubagent, "review": KindSubagent,
		"away_summary": KindHelper, "bash_extract_command_paths": KindHelper, "bash_extract_prefix": KindHelper,
		"memory_extractor": KindHelper, "hook_agent": KindHelper, "hook_prompt": KindHelper, "prompt_suggestion": KindHelper, "quota_check": KindHelper,
		"rename_generate_name": KindHelper, "side_query": KindHelper, "side_question": KindHelper,
		"web_fetch_apply": KindHelper, "web_search_tool": KindHelper, "websocket_attempt": KindOther,
	}
	for name, data := range fixtureFiles(t) {
		t.Run(name, func(t *testing.T) {
			replay(t, decodeFixtures(t, name, data), nil, false, func(row fixture, got Recognition, _ Turn) {
				if row.accepts(Opening) && row.accepts(Side) {
					return // a main turn that is worded like a helper's
				}
				if strings.HasPrefix(row.Kind, "hook_") && got.Kind == KindSubagent {
					return // a subagent's hook, or a hook that is an agent
				}
				if kind, stated := want[row.Kind]; stated && got.Kind != kind {
					t.Errorf("row %d (%s): kind %q, want %q", row.N, row.Kind, got.Kind, kind)
				}
			})
		})
	}
}
