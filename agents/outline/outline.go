// Package outline makes one pass over the JSON body of an inference request
// and notes what agentop needs of it: who speaks (roles, the first words of
// texts, tools), where the two permitted edits would be spliced, and a hash of
// each element of the conversation. It copies nothing of the body but short
// strings and heads of escaped texts, decodes nothing by reflection, and never
// judges what a request is: package agents does that. Start reading at Scan.
//
// # Elements
//
// The system prompt ("system" of the Messages API, "instructions" of
// Responses) is the first element if a string in it counts; each message or
// input item is one more, except that an item of type reasoning (or thinking,
// redacted_thinking) is none. A string input is one user message. An
// element's value is the wrapping sum of the hashes of its strings at any
// depth, its role among them, so order, structure and field names do not
// count, and a string equals its one-part array. Not counted are
//   - numbers, booleans, null, and the names of members;
//   - the values of type, cache_control, signature, encrypted_content and
//     reasoning_content, and a message's or item's own id;
//   - all of an object whose type is thinking, redacted_thinking or reasoning;
//   - Claude Code's billing block.
//
// Ids of tool calls and names of tools count. Of equal keys in one object all
// strings count, but only the last role and the last type speak.
//
// # Replies
//
// A Reply is one assistant message; in the Responses API, all items up to the
// next one that the model did not write: a message of another role, a tool's
// output (type ..._output) or a compaction. Its Mark is the wrapping sum of the
// hashes of
//   - each text that is not empty: a string content, and the text of a part of
//     type text or output_text;
//   - for each tool call (tool_use, server_tool_use, mcp_tool_use; tool_calls;
//     function_call, custom_tool_call) its id (Responses: call_id), its name,
//     and all strings of its arguments at any depth, empty ones and what the
//     elements leave out included. Arguments that are JSON in a string count
//     as the strings in that JSON; if it is not JSON, as one string. The input
//     of a custom tool is text, and not looked into. An id, a name or
//     arguments that are but an empty string do not count.
//
// Thinking and reasoning never count. Bytes is the length of what was hashed.
// Package stream computes the same of an answer as it passes.
//
// # Edits
//
// Billing is what to cut so that the billing block leaves the system prompt:
// an array's element with one comma; a string system, key and all (or what is
// between its quotes, if an equal key before it would then speak). Where text
// follows the billing line, only the line goes. Of several blocks it is the
// first, and none of them counts.
package outline

// Format is the API format that a body is written in.
type Format uint8

// The three API formats that agentop reads.
const (
	NoFormat        Format = iota // not an inference request
	Messages                      // Anthropic Messages: POST .../messages
	Responses                     // OpenAI Responses: POST .../responses
	ChatCompletions               // OpenAI Chat Completions: POST .../chat/completions
)

// Span is the half-open byte range [From, To) of the scanned body.
type Span struct{ From, To int }

// Text is one text of a system block or a message.
type Text struct {
	// Head holds the first bytes of the decoded text, at most HeadBytes. It
	// may alias the body and is valid until the Outline is reused.
	Head []byte
	// Raw is where the string stands in the body, without its quotes.
	Raw Span
}

// HeadBytes is the most that a Text keeps of its decoded beginning.
const HeadBytes = 256

// Reply is an assistant's answer as it stands in a request's history.
type Reply struct {
	Mark  uint64 // sum of the hashes of its texts and its tool calls' ids, names and argument strings
	Bytes int    // decoded bytes that went into Mark
}

// Outline is what one pass over a body found. The zero value is an empty
// body. An Outline may be reused for another body (Scan resets it); it is not
// safe for concurrent use.
type Outline struct {
	// Known, if set, spares Scan what was read before in another body. It
	// stays from one body to the next.
	Known *Known
	// Conversed names the conversation that the body is likely of: what Known
	// remembers of it may be the body's beginning. Empty when that is not
	// known. It stays, too, and has no say in what is found.
	Conversed string

	Format Format
	// Err says why the scan stopped: the body is not one JSON object. Then
	// Elements and Replies are empty and no edit may be made.
	Err error

	Model      string // last top-level "model"; "" when absent or not a string
	ModelSpans []Span // every top-level model string, quotes included
	Stream     bool   // the last top-level "stream" is true
	MaxTokens  int64  // -1 when absent or not an integer

	ContextManagement bool   // key "context_management" is present
	OutputFormat      bool   // "output_config.format" is present
	ToolChoice        string // "tool_choice.type", "" when absent
	Tools             int    // elements of "tools", and of the "tools" of input items
	ServerTools       int    // those of Tools that have a "type" other than "custom" (Messages: tools that run on the server)

	UserID             string // Messages: metadata.user_id
	PromptCacheKey     string // Responses: prompt_cache_key
	PreviousResponseID string // Responses: previous_response_id
	TurnMetadata       string // Responses: client_metadata["x-codex-turn-metadata"], decoded

	System []Text // texts of "system" (Messages) or "instructions" (Responses) or leading system/developer messages (Chat Completions)
	// Leading are the texts of the system messages that lead the input
	// (Responses): some clients put there what others call "instructions".
	Leading []Text
	// Billing is the span to cut so that Claude Code's billing block leaves
	// "system" and valid JSON stays; empty when there is none.
	Billing Span

	Count        int    // messages or input items
	History      bool   // an assistant message or a function call is among them
	LastRole     string // role of the last message, or its type for an item without a role
	LastType     string // Responses: type of the last input item
	FirstUser    []Text // texts of the first user message
	PriorUser    []Text // texts of the user message before the last one; none if there is but one
	LastUser     []Text // texts of the last user message
	AfterUser    []Text // texts of system messages that follow the last user message
	Signed       bool   // signed thinking or encrypted reasoning is in the history
	Conversation Span   // the messages or input value

	// Elements are the hashes of system and of each message in order, as
	// prefix.Chain takes them: system first where there is one.
	Elements []uint64
	// Began is how many Elements come before the first that the assistant
	// wrote; all of them where there is none.
	Began   int
	Replies []Reply // the assistant's answers, oldest first

	elements []uint64 // Elements, and before them the system's place
	texts    []Text   // of the message being read
	arena    []byte   // decoded heads
	buf      []byte   // decoded arguments
	kept     names
}
