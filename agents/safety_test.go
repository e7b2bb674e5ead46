package agents

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"agentop/agents/outline"
)

// helperMarks are first words of helpers' texts, and some that nobody knows.
var helperMarks = slices.Concat(claudeReplayMarks, claudeAgentMarks, claudeTitleMarks, qwenCodeReviewers, []string{
	"<session>", "Warmup", "Hi", "quota", "Web page content:", "You are a title generator", summarizerMark,
	"You are a context summarization agent", "You are performing a CONTEXT CHECKPOINT COMPACTION", "nothing known", "",
})

// doubts are headers that no main turn of a version in the fixtures has.
var doubts = []string{
	"x-claude-code-request-class: auxiliary", "x-claude-code-request-class: workflow", "x-claude-code-request-class: Main",
	"x-claude-code-request-class: something-new", "x-claude-code-agent-id: a1", "x-openai-subagent: something-new",
	"x-parent-session-id: ses_0",
	`x-codex-turn-metadata: {"request_kind":"something-new"}`, `x-codex-turn-metadata: {"request_kind":""}`,
	`x-codex-turn-metadata: {"thread_source":"something-new"}`, `x-codex-turn-metadata: {"request_kind":7}`,
	`x-codex-turn-metadata: [`,
}

// openings are all opening requests of the fixtures.
func openings(t testing.TB) []Request {
	var found []Request
	files := fixtureFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, row := range decodeFixtures(t, name, files[name]) {
			if row.Label == "opening" && !row.accepts(Side) {
				found = append(found, row.request(t, row.pathAgent(), nil))
			}
		}
	}
	return found
}

func unknownTurn(t testing.TB, r Request) Turn {
	t.Helper()
	got, err := Recognise(r)
	if err != nil {
		t.Fatal(err)
	}
	return got.Unknown
}

// dialectHeader tells whether a doubt is one in the dialect of agent.
func dialectHeader(agent Agent, header string) bool {
	switch {
	case agent == Codex:
		return header[:len("x-claude-code-r")] != "x-claude-code-r"
	case agent == OpenCode, agent == QwenCode:
		return header[:len("x-c")] != "x-c" || header[:len("x-claude-code-a")] == "x-claude-code-a"
	}
	return header[:len("x-codex")] != "x-codex"
}

// TestDoubtIsNeverAnOpening takes each opening of the fixtures and adds one
// thing that no opening has: what remains is never an opening.
func TestDoubtIsNeverAnOpening(t *testing.T) {
	for _, r := range openings(t) {
		if got := unknownTurn(t, r); got != Opening {
			t.Errorf("%s %s: %v before anything is added", r.Agent, r.Path, got)
		}
		for _, doubt := range doubts {
			if !dialectHeader(r.Agent, doubt) {
				continue
			}
			changed := r
			changed.Header = r.Header.Clone()
			added := post(t, r.Agent, r.Path, "{}", doubt).Header
			maps.Copy(changed.Header, added)
			if got := unknownTurn(t, changed); got != Side {
				t.Errorf("%s with %q: %v, want side", r.Agent, doubt, got)
			}
		}
		for name, change := range map[string]func(*outline.Outline){
			"history":           func(o *outline.Outline) { o.History = true },
			"a known answer":    func(o *outline.Outline) { o.PreviousResponseID = "resp_1" },
			"no tools, no flow": func(o *outline.Outline) { o.Tools, o.ServerTools, o.Stream = 0, 0, false },
			"a broken body":     func(o *outline.Outline) { *o = outline.Outline{Err: errors.New("broken")} },
			"an unread body":    func(o *outline.Outline) { *o = outline.Outline{} },
		} {
			changed, body := r, *r.Outline
			changed.Outline = &body
			change(&body)
			classed := name == "no tools, no flow" && r.Header.Get("X-Claude-Code-Request-Class") == "main" // it is believed
			if got := unknownTurn(t, changed); got == Opening && !classed {
				t.Errorf("%s with %s: still an opening", r.Agent, name)
			}
		}
	}
}

// TestTextsOnlyMakeSide holds that shape and text turn a request into side and
// into nothing else: what is judged without Claude Code's class header is what
// is judged with "main" in it, or side.
func TestTextsOnlyMakeSide(t *testing.T) {
	rng := seeded(t)
	all := openings(t)
	sides := 0
	for range 20000 {
		r := all[rng.IntN(len(all))]
		body := mutated(*r.Outline, rng)
		r.Outline = &body
		r.Header = r.Header.Clone()
		r.Header.Del("X-Claude-Code-Request-Class")
		got := unknownTurn(t, r)
		if r.Agent == ClaudeCode {
			r.Header.Set("X-Claude-Code-Request-Class", "main")
		} else {
			body.Tools, body.Stream, body.System, body.Leading, body.LastType, body.LastUser = 1, true, nil, nil, "", nil
		}
		if plain := unknownTurn(t, r); got != plain && got != Side {
			t.Fatalf("%s: %v by shape and text, %v without\n%+v", r.Agent, got, plain, body)
		}
		if got == Side {
			sides++
		}
	}
	t.Logf("%d of 20000 became side requests", sides)
}

// mutated is a copy of o with some things changed that steps 4 and 5 look at.
func mutated(o outline.Outline, rng *rand.Rand) outline.Outline {
	text := func() []outline.Text {
		return []outline.Text{{Head: []byte(helperMarks[rng.IntN(len(helperMarks))])}}
	}
	for range rng.IntN(4) {
		switch rng.IntN(12) {
		case 0:
			o.MaxTokens = int64(rng.IntN(3))
		case 1:
			o.ToolChoice = []string{"", "tool", "auto", "any"}[rng.IntN(4)]
		case 2:
			o.Tools = rng.IntN(3)
			o.ServerTools = rng.IntN(o.Tools + 1)
		case 3:
			o.Stream = !o.Stream
		case 4:
			o.ContextManagement = !o.ContextManagement
		case 5:
			o.OutputFormat = !o.OutputFormat
		case 6:
			o.LastRole = []string{"user", "assistant", "system", ""}[rng.IntN(4)]
		case 7:
			o.System = slices.Concat(o.System, text())
		case 8:
			o.System = slices.Concat(text(), o.System)
		case 9:
			o.LastUser = slices.Concat(o.LastUser, text())
		case 10:
			o.AfterUser = text()
		case 11:
			o.History = !o.History
		}
	}
	return o
}

// TestAnyRequestIsJudgedSafely makes requests of arbitrary parts, also such as
// no client sends, and checks what must hold of each.
func TestAnyRequestIsJudgedSafely(t *testing.T) {
	rng := seeded(t)
	seen := map[Turn]int{}
	for range 50000 {
		r := randomRequest(t, rng)
		got, err := Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		seen[got.Unknown]++
		if broken := brokenRule(r, got); broken != "" {
			t.Fatalf("%s\n%s %s %v\n%+v\n%+v", broken, r.Agent, r.Path, r.Header, *r.Outline, got)
		}
	}
	t.Logf("judged: %v", seen)
	if seen[Opening] == 0 || seen[Continuation] == 0 || seen[Side] == 0 || seen[NotInference] == 0 {
		t.Errorf("a turn never came up: %v", seen)
	}
}

func randomRequest(t testing.TB, rng *rand.Rand) Request {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	r := Request{
		Agent:  Agent(pick("claude-code", "codex", "opencode", "qwen-code", "other", "aider", "")),
		Method: pick("POST", "POST", "POST", "GET"),
		Path:   pick("/v1/messages", "/v1/responses", "/chat/completions", "/v1/models"),
		Header: http.Header{},
	}
	body := mutated(outline.Outline{
		Format: FormatOf(r.Method, r.Path), Tools: rng.IntN(2) * 5, Stream: rng.IntN(2) == 0, Count: rng.IntN(8), LastRole: "user", MaxTokens: -1,
	}, rng)
	r.Outline = &body
	if rng.IntN(16) == 0 {
		body.Err = errors.New("broken")
	}
	for range rng.IntN(4) {
		header := pick(slices.Concat(doubts, []string{
			"x-claude-code-request-class: main", "x-claude-code-session-id: s1", "x-session-id: ses_1", "thread-id: t1", "session-id: s1",
			"x-dynamo-session-id: d1", `x-codex-turn-metadata: {"request_kind":"turn","thread_source":"user","window_number":1}`,
			"user-agent: claude-cli/9.9", "user-agent: codex_exec/9.9", "user-agent: opencode/9.9", "user-agent: QwenCode/9.9 (linux; x64)",
		})...)
		maps.Copy(r.Header, post(t, r.Agent, r.Path, "{}", header).Header)
	}
	return r
}

// brokenRule names a rule that a judgement breaks, "" if it keeps them all.
func brokenRule(r Request, got Recognition) string {
	o := r.Outline
	class := r.Header.Get("X-Claude-Code-Request-Class")
	inference := FormatOf(r.Method, r.Path) != outline.NoFormat
	switch {
	case !inference && got.Unknown != NotInference, inference && got.Unknown == NotInference:
		return "what is inference is decided by method and path"
	case got.Turn(true) == Opening:
		return "a known session has no opening"
	case got.Unknown != Opening && got.Turn(true) != got.Turn(false):
		return "only an opening depends on what is known"
	case got.Unknown != Opening:
		return ""
	case hasHistory(o):
		return "an opening has no history"
	case o.Count == 0, o.Err != nil:
		return "an opening says something"
	case isSubagent(r):
		return "a subagent opens nothing"
	case got.Agent == ClaudeCode && class != "" && class != "main":
		return "the client said that it is no main turn"
	case o.Tools == 0 && !o.Stream && class != "main" && got.Session != "":
		return "no tools and no stream: no opening"
	case got.Kind != KindMain:
		return "an opening is of the main kind"
	}
	return ""
}
