package mutants

// fault is one change of one place in one file.
type fault struct {
	name     string
	file     string
	from, to string   // from must be in the file exactly once
	seen     []string // who should see it, the quickest first; see suites
}

const (
	placementGo = "router/placement/placement.go"
	historyGo   = "router/placement/history.go"
	placeGo     = "router/place.go"
	recordGo    = "router/record.go"
)

var (
	rules    = []string{"placement", "simulation"}
	turns    = []string{"router", "simulation"}
	memory   = []string{"reqlog", "simulation"}
	caps     = []string{"reqlog"}
	simulate = []string{"simulation"}
)

// faults are in the order of the rules that they break.
var faults = []fault{
	// Main turns.
	{"rule 1: pins do not count", placementGo, `if pin, ok := p.k.Pin(s); ok { // 1`, `if pin, ok := p.k.Pin(s); ok && false { // 1`, rules},
	{"rule 2a: the log does not count", placementGo, `if server, ok := p.k.Last(s); ok { // 2a`, `if server, ok := p.k.Last(s); ok && false { // 2a`, rules},
	{"rule 2: no history", placementGo, `if f, ok := p.history(); ok { // 2b to 2e`, `if f, ok := p.history(); ok && false { // 2b to 2e`, rules},
	{"rules 1, 2: only where the agent is routed", placementGo, "if p.q.Session != \"\" {\n\t\ts :=", "if p.q.Session != \"\" && p.c.Server != \"\" {\n\t\ts :=", rules},
	{"rule 2b: response ids do not count", historyGo, `if p.q.Response == "" {`, `if true {`, rules},
	{"rule 2c: the full input is a prefix too", historyGo, `i, n := len(p.q.Keys)-2, 0;`, `i, n := len(p.q.Keys)-1, 0;`, rules},
	{"rule 2c: one look-up", historyGo, `i >= 0 && n < MaxLookups; i, n`, `i >= 0 && n < 1; i, n`, rules},
	{"rule 2c: look-ups without bound", historyGo, `i >= 0 && n < MaxLookups; i, n`, `i >= 0; i, n`, []string{"placement"}},
	{"rule 2c: an equal beginning joins", historyGo, `if i < p.q.Began && len(p.q.Marks) > 0 {`, `if false && i < p.q.Began {`, rules},
	{"rule 2c: past an ambiguous key", historyGo, "return p.claimed(Rule2cKey, owners)", "if f, ok := p.claimed(Rule2cKey, owners); ok {\n\t\t\t\treturn f, true\n\t\t\t}", []string{"placement"}},
	{"rule 2d: the newest mark alone", historyGo, "if i == MaxLookups {", "if i == 1 {", rules},
	{"rule 2e: no parents", historyGo, "server, ok := p.home(p.q.Parent)\n\tif !ok {", "server, ok := p.home(p.q.Parent)\n\tif ok || !ok {", []string{"placement", "router"}},
	{"ambiguity: the first claim wins", historyGo, `if seen && here != at {`, `if seen && here != at && false {`, rules},
	{"ambiguity: own upstreams are one place", historyGo, `if here.server == Own {`, `if here.server == Own && false {`, []string{"placement"}},
	{"another agent's claim counts", historyGo, `a == p.q.Agent || a == ""`, `a == p.q.Agent || a != p.q.Agent`, []string{"placement"}},
	{"history: where it was, not where it is", historyGo, "if pin, ok := p.k.Pin(o.Conversation); ok {", "if pin, ok := p.k.Pin(o.Conversation); ok && false {", []string{"placement"}},
	{"rule 3: not routed goes nowhere", placementGo, `case p.c.Server == "": // 3`, `case p.c.Server == "" && p.q.Turn != p.q.Turn: // 3`, rules},
	{"rule 4: openings to the own upstream", placementGo, `case p.q.Turn == agents.Opening: // 4`, `case p.q.Turn == agents.Side: // 4`, rules},
	{"rule 5: unknown continuations to the chosen server", placementGo, "d.Rule = Rule5Unseen // 5\n\treturn p.own(d)", "d.Rule = Rule5Unseen // 5\n\treturn p.at(p.c.Server, d)", rules},
	{"a conversation without a name gets a new row each turn", placementGo, "if p.q.Session == \"\" {\n\t\tif row", "if p.q.Session == \"\" && p.q.Session != \"\" {\n\t\tif row", []string{"placement", "router"}},
	{"equal openings share a name", "router/placement/session.go", `if !p.taken(base) {`, `if base != "" {`, []string{"placement", "simulation"}},

	// Side requests, and what is not inference.
	{"rule 6: own replies do not count", placementGo, `if replied && replies.bySide() { // 6, own replies`, `if replied && replies.bySide() && false { // 6, own replies`, rules},
	{"rule 6: what is replayed counts as own", placementGo, `if replied && replies.bySide() { // 6, own replies`, `if replied { // 6, own replies`, rules},
	{"rule 6: the session does not count", placementGo, `if server, ok := p.home(p.q.Session); ok { // 6, session`, `if server, ok := p.home(p.q.Session); ok && false { // 6, session`, rules},
	{"rule 6: the parent does not count", placementGo, `if server, ok := p.home(p.q.Parent); ok { // 6, parent`, `if server, ok := p.home(p.q.Parent); ok && false { // 6, parent`, rules},
	{"a side request pins", placementGo, `return Decision{Rule: rule, Pin: PinNone, Session: p.q.Session, Turn: agents.Side}`, `return Decision{Rule: rule, Pin: PinNew, Session: p.q.Session, Turn: agents.Side}`, rules},
	{"a count goes to the chosen server", placementGo, `if counts || codexModels ||`, `if codexModels ||`, rules},
	{"what nobody reads goes to the chosen server", placementGo, `p.q.Unread || p.c.Server`, `p.c.Server`, []string{"placement"}},
	{"a removed server is replaced", placementGo, `return p.refuse(RefusedRemoved, server, d)`, `return p.at(p.c.Server, d)`, []string{"placement"}},
	{"a format that is not spoken is sent", placementGo, `if !info.speaks(p.q.Format) {`, `if false && !info.speaks(p.q.Format) {`, []string{"placement"}},

	// The waits.
	{"wait: placed without the index", placementGo, "if !p.k.Ready() {\n\t\treturn p.wait(WaitIndex)\n\t}\n\tif f, ok", "if f, ok", []string{"placement", "router"}},
	{"wait: side requests without the index", placementGo, `if !p.k.Ready() && (p.q.Response != "" ||`, `if false && (p.q.Response != "" ||`, []string{"placement"}},
	{"wait: the title does not wait for the opening", placementGo, `if p.beforeOpening() {`, `if p.beforeOpening() && false {`, rules},
	{"wait: nobody is woken by the pin", placeGo, "t.r.gates.pinned(t.conv)", "_ = t.conv", turns},
	{"gate: all decide at once", placeGo, `if !d.Pin.Makes() && !(isMain(d.Turn) && t.r.gates.busy(t.gateFor(d))) {`, `if d.Pin != "" {`, turns},
	{"gate: a pin in memory overtakes its write", placeGo, `if !d.Pin.Makes() && !(isMain(d.Turn) && t.r.gates.busy(t.gateFor(d))) {`, `if !d.Pin.Makes() {`, turns},
	{"gate: decided before it is entered", placeGo, "t.pins = nil\n\tif d, f = t.decide(&q); f != nil {", "if f != nil {", turns},
	{"durable: the pin is saved at leisure", placeGo, `pinTTL, fresh)`, `pinTTL, false)`, turns},
	{"durable: no line before the turn is sent", placeGo, "t.r.Recorder.Append(t.pinLine())", "_ = t.pinLine()", simulate},
	{"durable: the worker saves at leisure", "cmd/agentop/worker/adapt.go", "if durable {", "if durable && false {", simulate},
	{"durable: no sync of the file", "filestore/disk.go", "if err := v.file.Sync(); err != nil {", "if err := error(nil); err != nil {", []string{"filestore"}},
	{"durable: no sync of the folder", "filestore/disk.go", "err := d.fs.SyncDir(filepath.Dir(target))", "err := error(nil)", []string{"filestore"}},
	{"durable: added to what may be the file", "filestore/disk.go", "case kept != nil && err == nil:", "case kept != nil:", []string{"filestore"}},
	{"durable: a changed entry counts as added", "filestore/table.go", "t.recs[i] = r\n\tt.shape++", "t.recs[i] = r", []string{"filestore"}},
	{"durable: somebody's copy is added to", "filestore/spare.go", "was.Links != 1", "false", []string{"filestore"}},

	// What is remembered.
	{"keys: known when the turn ends, not at once", placeGo, "t.r.Recorder.Register(t.conv, d.Server, t.scratch.keys[len(t.scratch.keys)-1], t.started)", "_ = t.started", turns},
	{"marks: known when the turn has ended", recordGo, "t.answer.whole = t.learn", "_ = t.learn", simulate},
	{"marks: not logged", recordGo, "l.Mark = prefix.Format(sum.Mark)", "l.Mark = prefix.Format(0)[:0]", simulate},
	{"marks: any answer has one", placeGo, "const minMark = 48", "const minMark = 1", []string{"router"}},
	{"keys: not logged", recordGo, "if isMain(t.decision.Turn) {\n\t\tl.Key", "if false {\n\t\tl.Key", turns},
	{"response ids: not logged", recordGo, "l.Responses = []string{sum.ResponseID}", "l.Responses = nil", simulate},
	{"a turn is logged at its end", recordGo, "Time: t.started, Kind: reqlog.KindTurn", "Time: now, Kind: reqlog.KindTurn", []string{"router"}},
	{"a pool's member is a place of its own", "cmd/agentop/worker/recorder.go", "return place[:i]", "return place", simulate},
	{"another's record is a pin", "router/pin.go", `p.Agent != c.Agent || p.Session != c.Session || p.Server == ""`, `p.Server == ""`, []string{"router"}},
	{"a pin is never renewed", "router/pin.go", "pinRenew = 24 * time.Hour", "pinRenew = 24000 * time.Hour", []string{"router"}},

	// The log's index, and the caps.
	{"index: the last line read wins", "router/reqlog/fact.go", "if f.at >= c.decided {", "if f.at != 0 {", memory},
	{"index: what was forgotten comes back", "router/reqlog/fact.go", "if at, was := t.forgot[id]; was && f.at <= at {", "if at, was := t.forgot[id]; was && f.at <= at && false {", memory},
	{"index: side replies are not remembered", "router/reqlog/fact.go", "case f.side && (f.mark != 0 || len(f.resp) > 0):", "case f.side && f.mark != 0 && f.mark == 0:", memory},
	{"index: side replies are their session's", "router/reqlog/fact.go", "case f.main && f.session != \"\":", "case f.session != \"\":", memory},
	{"index: one owner for a value", "router/reqlog/table.go", "if l.n < maxOwners {", "if l.n < 2 {", memory},
	{"index: the second owner takes over", "router/reqlog/table.go", "if !t.convs.current(*has) {\n\t\t\t*has = who", "if *has != who {\n\t\t\t*has = who", memory},
	{"index: a move leaves lists as they are", "router/reqlog/table.go", "s.lists[j].dead = true", "s.lists[j].dead = false", caps},
	{"cap: keys without bound", "router/reqlog/table.go", "if t.count.Load() >= t.limit {", "if t.count.Load() < 0 {", caps},
	{"cap: dropped values are not counted", "router/reqlog/table.go", "t.lost.Add(1)", "_ = t.lost.Load()", caps},
	{"cap: conversations without bound", "router/reqlog/conversations.go", "case len(t.slots) < t.limit:", "case t.limit > 0:", caps},
	{"cap: an evicted slot keeps its values", "router/reqlog/conversations.go", "gen := c.gen + 1", "gen := c.gen | 1", []string{"reqlog", "simulation"}},
	{"rotation: last lines are not carried over", "router/reqlog/rotate.go", "if err := l.keep(victims[len(victims)-1].id, clock); err != nil {", "if err := l.keep(0, clock); err != nil {", caps},
	{"loading: what was forgotten is read with the rest", "router/reqlog/load.go", "errs := []error{l.loadForgotten(ctx)}", "errs := []error{ctx.Err()}", caps},
}

// atEachChange are the faults of the short form: one of each kind, with the
// test that is asked alone.
var atEachChange = []struct{ fault, suite, test string }{
	{"rule 1: pins do not count", "placement", "TestPropertyAPinIsAlwaysKept"},
	{"rule 2: no history", "placement", "TestRule2HistoryNamesAConversation"},
	{"rule 2c: look-ups without bound", "placement", "TestPropertyLookupsAreBounded"},
	{"ambiguity: the first claim wins", "placement", "TestPropertyAnAmbiguousClaimMatchesNobody"},
	{"rule 5: unknown continuations to the chosen server", "placement", "TestPropertyAnUnknownContinuationStaysOffTheCurrentServer"},
	{"a side request pins", "placement", "TestPropertyNoSideRequestMakesAPin"},
	{"wait: placed without the index", "router", "TestWhatRulesCannotPlaceYetWaitsForTheIndex"},
	{"durable: the pin is saved at leisure", "router", "TestPromise2_DurableBeforeSent"},
	{"durable: no sync of the folder", "filestore", "TestPredecessor_03_FolderSynced"},
	{"index: the last line read wins", "reqlog", "TestConversationIsTheSameInAnyOrder"},
	{"cap: keys without bound", "reqlog", "TestFullTablesDropNewKeysAndSaySo"},
	{"rotation: last lines are not carried over", "reqlog", "TestOldFilesGoAndLiveConversationsStay"},
}
