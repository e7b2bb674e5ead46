// Package stream reads an inference server's answer as it passes by, SSE or
// JSON, in any of the three API formats: reply mark, token counts, stop reason
// and whether it ended as its format says. It only observes: it holds nothing
// back, keeps bounded state, and an answer it cannot read is simply not
// observed. Pure. Start reading at New.
package stream

// Usage is what the server says a turn cost, in tokens. Zero means not told.
type Usage struct {
	Input      int64 `json:"input,omitempty"`       // all input tokens, cached ones included
	CacheRead  int64 `json:"cache_read,omitempty"`  // those of Input that were read from the server's cache
	CacheWrite int64 `json:"cache_write,omitempty"` // those of Input that were written to it
	Output     int64 `json:"output,omitempty"`
}

// Summary is what is known of an answer once it has ended, or was cut.
type Summary struct {
	Mark       uint64 // reply mark of what was complete
	MarkBytes  int    // decoded bytes that went into Mark; a mark of fewer than 48 bytes does not count
	Usage      Usage
	Model      string // model that the server says answered
	ResponseID string // Responses: response.id
	StopReason string
	// Terminated says that the answer ended as its format ends: message_stop;
	// response.completed, failed or incomplete; a finish reason or [DONE]; an
	// error event or chunk; for JSON, the end of the value.
	Terminated bool
	Error      string // type or code of an error that the answer carried, never its text
	// EventStream says that the answer was server-sent events, by its bytes or,
	// where there were none, by its content type.
	EventStream bool
	// Unread says that the answer could not be read (a content coding that is
	// unknown or broken, or neither events nor JSON). Terminated is then false
	// without saying that the answer was cut.
	Unread bool
	Text   string // first bytes of the answer's text, at most 512 (a title request's answer is the title)
}
