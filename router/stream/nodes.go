package stream

// node is a place in an answer's JSON that means something to us. Everything
// else is passed over.
type node uint8

const (
	nowhere node = iota

	messagesEvent // the data of an event of the Messages format
	messagesBody  // a whole answer, and "message" of message_start
	messagesBlocks
	messagesBlock // an element of "content"
	messagesStart // content_block_start's content_block
	messagesDelta
	partialJSON
	aside // text that no mark counts: thinking, a signature

	responsesEvent
	responsesBody // a whole answer, and "response" of an event
	responsesOutput
	responsesItem
	responsesParts
	responsesPart
	partType
	incomplete
	incompleteReason
	status

	chatEvent
	chatBody
	eventChoices
	eventChoice
	chatDelta
	deltaContent
	deltaCalls
	deltaCall
	deltaFunction
	deltaArguments
	deltaInput
	deltaLegacy // a call as it was before there were several
	bodyChoices
	bodyChoice
	chatMessage
	chatParts // "content" as a string, or as parts
	chatPart
	bodyCalls
	bodyCall
	bodyFunction
	bodyLegacy

	eventType // "type" of an event
	object
	index
	callIndex
	answerID
	model
	stopReason
	itemType
	startID   // of a call whose arguments are still to come
	startName //
	text
	callID
	callName
	callArguments // JSON text in a string
	callInput     // any value, as it is

	failure
	failureType
	failureCode

	usage
	inputTokens
	promptTokens
	outputTokens
	cacheRead
	cacheWrite
	inputDetails

	nodeCount
)

// use says what is done with a value at a node.
type use uint8

const (
	pass      use = iota
	capture       // strings and numbers are kept, as text
	hashText      // hashed, and its beginning kept
	hashID        //
	hashName      //
	hashJSON      // the string values in the JSON text that the string holds
	hashValue     // a string, or all strings of an object or array
)

var uses = [nodeCount]use{
	partialJSON: capture, partType: capture, incompleteReason: capture, status: capture,
	deltaContent: capture, deltaArguments: capture, deltaInput: capture, eventType: capture, object: capture,
	index: capture, callIndex: capture, answerID: capture, model: capture, stopReason: capture,
	itemType: capture, startID: capture, startName: capture,
	failure: capture, failureType: capture, failureCode: capture,
	inputTokens: capture, promptTokens: capture, outputTokens: capture, cacheRead: capture, cacheWrite: capture,
	text: hashText, chatParts: hashText, callID: hashID, callName: hashName, callArguments: hashJSON, callInput: hashValue,
}

// elements names the node of an array's elements.
var elements = [nodeCount]node{
	messagesBlocks: messagesBlock, responsesOutput: responsesItem, responsesParts: responsesPart,
	eventChoices: eventChoice, deltaCalls: deltaCall, bodyChoices: bodyChoice, chatParts: chatPart, bodyCalls: bodyCall,
}

// member is one of an object's members.
type member struct {
	name string
	node node
}

// memberOf is the node of a member of an object at n.
func memberOf(n node, name []byte) node {
	for i := range members[n] {
		if m := &members[n][i]; m.name == string(name) {
			return m.node
		}
	}
	return nowhere
}

// members names the nodes of an object's members.
var members = [nodeCount][]member{
	messagesEvent: {
		{"type", eventType}, {"index", index}, {"message", messagesBody}, {"content_block", messagesStart},
		{"delta", messagesDelta}, {"usage", usage}, {"error", failure},
	},
	messagesBody: {
		{"model", model}, {"content", messagesBlocks}, {"stop_reason", stopReason}, {"usage", usage}, {"error", failure},
	},
	messagesBlock: {{"type", itemType}, {"id", callID}, {"name", callName}, {"text", text}, {"input", callInput}},
	messagesStart: {{"type", itemType}, {"id", startID}, {"name", startName}, {"text", deltaContent}, {"input", callInput}},
	messagesDelta: {{"text", deltaContent}, {"partial_json", partialJSON}, {"thinking", aside}, {"signature", aside}, {"stop_reason", stopReason}},

	responsesEvent: {
		{"type", eventType}, {"response", responsesBody}, {"item", responsesItem}, {"code", failureCode}, {"error", failure},
	},
	responsesBody: {
		{"id", answerID}, {"model", model}, {"status", status}, {"usage", usage}, {"error", failure},
		{"incomplete_details", incomplete}, {"output", responsesOutput},
	},
	responsesItem: {
		{"type", itemType}, {"content", responsesParts}, {"call_id", callID}, {"name", callName},
		{"arguments", callArguments}, {"input", callInput},
	},
	responsesPart: {{"type", partType}, {"text", text}},
	incomplete:    {{"reason", incompleteReason}},

	chatEvent: {
		{"object", object}, {"type", failureType}, {"code", failureCode}, {"model", model},
		{"choices", eventChoices}, {"usage", usage}, {"error", failure},
	},
	eventChoice: {{"index", index}, {"delta", chatDelta}, {"finish_reason", stopReason}, {"usage", usage}},
	chatDelta: {
		{"content", deltaContent}, {"tool_calls", deltaCalls}, {"function_call", deltaLegacy},
		{"reasoning_content", aside}, {"reasoning", aside},
	},
	deltaCall:     {{"index", callIndex}, {"id", startID}, {"function", deltaFunction}, {"custom", deltaFunction}},
	deltaFunction: {{"name", startName}, {"arguments", deltaArguments}, {"input", deltaInput}},
	deltaLegacy:   {{"name", startName}, {"arguments", deltaArguments}},
	chatBody: {
		{"object", object}, {"type", failureType}, {"code", failureCode}, {"model", model},
		{"choices", bodyChoices}, {"usage", usage}, {"error", failure},
	},
	bodyChoice:   {{"index", index}, {"message", chatMessage}, {"finish_reason", stopReason}, {"usage", usage}},
	chatMessage:  {{"content", chatParts}, {"tool_calls", bodyCalls}, {"function_call", bodyLegacy}},
	chatPart:     {{"type", partType}, {"text", text}},
	bodyCall:     {{"id", callID}, {"function", bodyFunction}, {"custom", bodyFunction}},
	bodyFunction: {{"name", callName}, {"arguments", callArguments}, {"input", callInput}},
	bodyLegacy:   {{"name", callName}, {"arguments", callArguments}},

	failure: {{"type", failureType}, {"code", failureCode}},
	usage: {
		{"input_tokens", inputTokens}, {"prompt_tokens", promptTokens},
		{"output_tokens", outputTokens}, {"completion_tokens", outputTokens},
		{"cache_read_input_tokens", cacheRead}, {"cache_creation_input_tokens", cacheWrite},
		{"prompt_cache_hit_tokens", cacheRead},
		{"input_tokens_details", inputDetails}, {"prompt_tokens_details", inputDetails},
	},
	inputDetails: {{"cached_tokens", cacheRead}, {"cache_write_tokens", cacheWrite}},
}
