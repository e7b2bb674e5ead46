package placement

// Known is what is known of conversations when a question is asked: the pins
// and the index of the request log. Place only reads it, from one goroutine.
// All answers must come from memory.
type Known interface {
	// Pin is the conversation's pin. A record that is broken or has lapsed is
	// no pin; whoever reads it logs that.
	Pin(Conversation) (Pin, bool)
	// Last is the place of the conversation's last main turn as the log tells
	// it: a server's name or Own. A move since then counts; a conversation
	// that the user made agentop forget has none.
	Last(Conversation) (server string, ok bool)
	// Response, Key and Mark name who got the answer with that id, sent an
	// input with that key as a main turn, or got a reply with that mark: the
	// newest first. They may leave some out, but keep at least one for each
	// server, since two servers make a claim ambiguous. Forgotten
	// conversations claim nothing.
	Response(id string) []Owner
	Key(key uint64) []Owner
	Mark(mark uint64) []Owner
	// Ready says that the index has been read back, or that it never will be.
	Ready() bool
}

// Pin is the stored fact that a conversation belongs to a server.
type Pin struct {
	Server string // a server's name (a pool's, not a member's) or Own
}

// Owner claims a key, a mark or a response id.
type Owner struct {
	// Conversation that claims it. Without a session the claim is a side
	// request's reply, known by its server alone; the agent may be "" then.
	Conversation Conversation
	Server       string // where the conversation was at that time: a server's name or Own
}
