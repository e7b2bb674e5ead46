package stream

// maxBlocks is how many blocks of one answer may be open at once. An answer
// with more has no mark.
const maxBlocks = 64

// block is a text or a tool call that comes in deltas.
type block struct {
	index int64
	call  bool
	text  running // or the plain input of a custom tool call
	id    tally
	name  tally
	input tally // arguments that came whole at the start
	args  arguments
}

// tally is what the block is worth now that it is complete, and empties it.
func (b *block) tally() tally {
	var t tally
	if b.text.bytes > 0 {
		t.add(b.text.take())
	}
	if !b.call {
		return t
	}
	t.add(b.id)
	t.add(b.name)
	if b.args.whole.bytes > 0 {
		b.input = b.args.take()
	}
	t.add(b.input)
	return t
}

// blocks are those that are open, and spare ones to be used again.
type blocks struct {
	newHash func() Hash
	open    []*block
	spare   []*block
}

// keptBlocks is how many blocks are left to another answer.
const keptBlocks = 4

// empty is what of bs may be used for another answer.
func (bs *blocks) empty() blocks {
	spare := append(bs.spare, bs.open...)
	for i, b := range spare {
		if i < keptBlocks {
			*b = block{}
		} else {
			spare[i] = nil
		}
	}
	return blocks{open: bs.open[:0], spare: spare[:min(len(spare), keptBlocks)]}
}

func (bs *blocks) find(index int64, call bool) *block {
	for _, b := range bs.open {
		if b.index == index && b.call == call {
			return b
		}
	}
	return nil
}

// start opens a block; nil when there are too many.
func (bs *blocks) start(index int64, call bool) *block {
	if len(bs.open) == maxBlocks {
		return nil
	}
	var b *block
	if n := len(bs.spare); n > 0 {
		b, bs.spare = bs.spare[n-1], bs.spare[:n-1]
	} else {
		b = &block{}
	}
	b.text.newHash, b.args.whole.newHash, b.args.value.newHash = bs.newHash, bs.newHash, bs.newHash
	b.index, b.call = index, call
	b.id, b.name, b.input = tally{}, tally{}, tally{}
	bs.open = append(bs.open, b)
	return b
}

// finish closes b and returns what it is worth.
func (bs *blocks) finish(b *block) tally {
	for i, other := range bs.open {
		if other == b {
			bs.open = append(bs.open[:i], bs.open[i+1:]...)
			break
		}
	}
	bs.spare = append(bs.spare, b)
	return b.tally()
}

// finishAll closes all open blocks.
func (bs *blocks) finishAll() tally {
	var t tally
	for len(bs.open) > 0 {
		t.add(bs.finish(bs.open[len(bs.open)-1]))
	}
	return t
}
