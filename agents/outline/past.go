package outline

import (
	"hash/maphash"
	"slices"
	"sync"
)

// pasts remembers of the last bodies of some conversations what was found in
// them up to one message and another. A conversation's next body mostly
// begins with the same bytes: those are compared by their hash, and reading
// goes on behind them.
type pasts struct {
	mu    sync.Mutex
	list  [knownPasts]*past
	tags  [knownPasts]uint64 // of their conversations: one look in the place of many
	clock uint64
}

const (
	// knownPasts are of the conversations that run now. Each takes a
	// kilobyte for every mark, and 24 bytes for each message.
	knownPasts = 48
	// pastStep is the fewest bytes between two marks, and pastShare how much
	// of what is left to read there is at least: the nearer to the end, the
	// likelier is a mark to be the last one that the next body shares.
	pastStep  = 4 << 10
	pastShare = 8
	// maxPastTexts bounds the texts of a mark.
	maxPastTexts = 64
)

// past is what was found in a body up to its marks. It never changes, but for
// when it was used.
type past struct {
	conversation string
	format       Format
	marks        []*mark
	elements     []uint64
	replies      []Reply

	used uint64 // by pasts.clock, under the lock
}

// mark is the state of a scan behind one message.
type mark struct {
	to                int    // bytes before it
	hash              uint64 // of those since the mark before
	elements, replies int    // found before it
	found             Outline
	conversation      conversation
}

// find returns the past that b goes on from and how many of its marks b
// shares, if any.
func (p *pasts) find(conversation string, f Format, b []byte, hash func([]byte) uint64) (best *past, shared int) {
	if conversation == "" {
		return nil, 0
	}
	var few [8]*past
	for _, known := range p.of(conversation, few[:0]) {
		if known.format != f {
			continue
		}
		if n := known.shared(b, hash); n > shared {
			best, shared = known, n
		}
	}
	if best != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clock++
		best.used = p.clock
	}
	return best, shared
}

// of appends the pasts of a conversation to list.
func (p *pasts) of(conversation string, list []*past) []*past {
	tag := tagOf(conversation)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.tags {
		if t == tag && p.list[i].conversation == conversation {
			list = append(list, p.list[i])
		}
	}
	return list
}

var tagSeed = maphash.MakeSeed()

// tagOf is never zero.
func tagOf(conversation string) uint64 { return maphash.String(tagSeed, conversation) | 1 }

// shared is how many marks b has before it differs.
func (k *past) shared(b []byte, hash func([]byte) uint64) int {
	from := 0
	for i := range k.marks {
		m := k.marks[i]
		if m.to > len(b) || hash(b[from:m.to]) != m.hash {
			return i
		}
		from = m.to
	}
	return len(k.marks)
}

// add remembers a past in the place of the one that it grew from, or of the
// one that was used least lately.
func (p *pasts) add(now, before *past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock++
	now.used = p.clock
	oldest := 0
	for i, known := range p.list {
		if known == nil || known == before {
			oldest = i
			break
		}
		if known.used < p.list[oldest].used {
			oldest = i
		}
	}
	p.list[oldest], p.tags[oldest] = now, tagOf(now.conversation)
}

// resume goes on behind what the conversation's last body and this one share.
func (s *scanner) resume() bool {
	o := s.o
	if o.Known == nil || o.Known.Hash == nil || s.sum == nil {
		return false
	}
	known, n := o.Known.pasts.find(o.Conversed, o.Format, s.b, o.Known.Hash)
	if n == 0 {
		return false
	}
	s.past, s.pastMarks = known, known.marks[:n:n]
	m := known.marks[n-1]
	o.restore(&m.found)
	o.elements = append(o.elements[:0], known.elements[:m.elements]...)
	o.Replies = append(o.Replies[:0], known.replies[:m.replies]...)
	s.conversation = m.conversation
	s.depth = 2
	s.jump(m.to)
	return true
}

// restore makes o what it was at a mark, but for elements and replies.
func (o *Outline) restore(found *Outline) {
	was := *o
	*o = *found
	o.ModelSpans = append(was.ModelSpans[:0], found.ModelSpans...)
	to, from := was.lists(), found.lists()
	for i, list := range o.lists() {
		*list = append((*to[i])[:0], *from[i]...)
	}
	o.elements, o.Replies = was.elements, was.Replies
	o.texts, o.arena, o.buf = was.texts, was.arena, was.buf
	o.kept, o.Known, o.Conversed = was.kept, was.Known, was.Conversed
}

// lists are o's lists of texts.
func (o *Outline) lists() [6]*[]Text {
	return [...]*[]Text{&o.System, &o.Leading, &o.FirstUser, &o.PriorUser, &o.LastUser, &o.AfterUser}
}

// mark takes down the state behind a message that was just read.
func (s *scanner) mark() {
	o := s.o
	if s.i < s.nextMark || s.err != nil {
		return
	}
	s.nextMark = s.i + max(pastStep, (len(s.b)-s.i)/pastShare)
	texts := 0
	for _, list := range o.lists() {
		texts += len(*list)
	}
	if texts > maxPastTexts || len(o.ModelSpans) > maxPastTexts {
		return
	}
	m := &mark{to: s.i, elements: len(o.elements), replies: len(o.Replies), found: *o, conversation: s.conversation}
	f := &m.found
	f.Known, f.Conversed, f.kept = nil, "", names{}
	f.elements, f.Replies, f.texts, f.arena, f.buf = nil, nil, nil, nil, nil
	f.ModelSpans = slices.Clone(o.ModelSpans)
	for _, list := range f.lists() {
		*list = slices.Clone(*list)
	}
	s.newMarks = append(s.newMarks, m)
}

// keepPast remembers what was found in a body that was read to its end.
func (s *scanner) keepPast() {
	o := s.o
	if len(s.newMarks) == 0 {
		return
	}
	now := &past{conversation: o.Conversed, format: o.Format, marks: append(s.pastMarks, s.newMarks...)}
	from := 0
	if n := len(s.pastMarks); n > 0 {
		from = s.pastMarks[n-1].to
	}
	for i := len(s.pastMarks); i < len(now.marks); i++ {
		m := now.marks[i]
		m.hash = o.Known.Hash(s.b[from:m.to])
		from = m.to
	}
	last := now.marks[len(now.marks)-1]
	now.elements = slices.Clone(o.elements[:last.elements])
	now.replies = slices.Clone(o.Replies[:last.replies])
	o.Known.pasts.add(now, s.past)
}
