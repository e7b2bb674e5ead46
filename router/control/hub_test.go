package control

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

func snapshots(n *int) func() Event {
	return func() Event {
		*n++
		return Event{Kind: EventSnapshot, Text: fmt.Sprint(*n)}
	}
}

func TestHubReaderThatFallsBehindGetsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		h := NewHub(snapshots(&made))
		ctx, cancel := context.WithCancel(t.Context())
		events, err := h.Subscribe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first snapshot waits in the channel
		const published = 100 * maxQueue
		for i := range published {
			h.Publish(Event{Kind: EventSession, Text: fmt.Sprint(i)}) // would deadlock here if it blocked
			h.Publish(Event{Kind: EventRequest})
		}
		var got []Event
		for range 3 * published {
			synctest.Wait()
			select {
			case e := <-events:
				got = append(got, e)
				continue
			default:
			}
			break
		}
		if len(got) > 2*maxQueue+100 {
			t.Errorf("got %d events, want them bounded near %d", len(got), maxQueue)
		}
		last := -1
		for i, e := range got {
			if e.Kind == EventSnapshot {
				last = i
			}
		}
		if last < 1 || got[0].Kind != EventSnapshot || made < 2 {
			t.Fatalf("%d snapshots made, last at %d, want one first and one later", made, last)
		}
		for _, e := range got[last+1:] {
			if e.Kind == EventSession {
				t.Errorf("event %s came after the snapshot that holds it", e.Text)
			}
		}
		h.Publish(Event{Kind: EventSession, Text: "fresh"})
		if e := <-events; e.Text != "fresh" {
			t.Errorf("after catching up: got %+v", e)
		}
		cancel()
		synctest.Wait()
		if _, open := <-events; open || h.Listening() {
			t.Errorf("after the context's end: open %t, listening %t", open, h.Listening())
		}
	})
}

func TestHubKeepsRequestsAfterASnapshot(t *testing.T) {
	got := keepNews([]Event{{Kind: EventSession}, {Kind: EventRequest}, {Kind: EventGone}, {Kind: EventWarning}, {Kind: EventStatus}})
	if len(got) != 2 || got[0].Kind != EventRequest || got[1].Kind != EventWarning {
		t.Errorf("got %+v", got)
	}
}

func TestHubLimitAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		h := NewHub(snapshots(&made))
		h.Publish(Event{Kind: EventWarning}) // nobody listens
		var all []<-chan Event
		ctx, cancel := context.WithCancel(t.Context())
		for range maxSubscribers {
			c, err := h.Subscribe(ctx)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			all = append(all, c)
		}
		if _, err := h.Subscribe(ctx); !isBusy(err) {
			t.Errorf("over the limit: got %v", err)
		}
		h.Close()
		for i, c := range all {
			if e := <-c; e.Kind != EventSnapshot {
				t.Errorf("reader %d: got %+v, want its snapshot", i, e)
			}
			if e, open := <-c; open {
				t.Errorf("reader %d: got %+v after Close", i, e)
			}
		}
		if _, err := h.Subscribe(ctx); !isBusy(err) {
			t.Errorf("after Close: got %v", err)
		}
		cancel()
	})
}

func BenchmarkHubPublishNobody(b *testing.B) {
	h := NewHub(func() Event { return Event{} })
	e := Event{Kind: EventRequest, Request: &Request{}}
	b.ReportAllocs()
	for b.Loop() {
		h.Publish(e)
	}
}
