package router

import (
	"sync"

	"agentop/router/placement"
)

// maxDecoded bounds the pins that are kept decoded: those of the conversations
// that run now.
const maxDecoded = 128

// decodedPins remembers what pins that were read before decode to. It says
// nothing of which pin a conversation has: the store does, each time.
type decodedPins struct {
	mu   sync.Mutex
	pins map[placement.Conversation]decodedPin
}

type decodedPin struct {
	value string
	pin   pinRecord
}

func newDecodedPins() *decodedPins {
	return &decodedPins{pins: make(map[placement.Conversation]decodedPin)}
}

// decode is decodePin. The record is the caller's own, but for the map of
// names, which nobody changes in place.
func (d *decodedPins) decode(c placement.Conversation, value string) (*pinRecord, error) {
	d.mu.Lock()
	known, ok := d.pins[c]
	d.mu.Unlock()
	if ok && known.value == value {
		return &known.pin, nil
	}
	p, err := decodePin(c, value)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pins) >= maxDecoded {
		clear(d.pins)
	}
	d.pins[c] = decodedPin{value, *p}
	return p, nil
}
