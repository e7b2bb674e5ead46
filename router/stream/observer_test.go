package stream

import (
	"reflect"
	"strings"
	"testing"

	"agentop/agents/outline"
)

// markOf is the mark of an answer with these texts, ids, names and values.
func markOf(texts ...string) (mark uint64, n int) {
	for _, s := range texts {
		mark += refHash(s)
		n += len(s)
	}
	return mark, n
}

const (
	sse    = "text/event-stream"
	asJSON = "application/json"
)

// answers are answers of servers of many kinds and what they say.
var answers = []struct {
	name   string
	format outline.Format
	media  string
	answer string
	counts []string // what the mark is made of
	want   Summary  // Mark and MarkBytes from counts, EventStream from media
}{
	{"a cut stream keeps the blocks that were complete", outline.Messages, sse, `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"whole"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" half"}}

`, []string{"whole"}, Summary{Text: "whole half"}},
	{"an error event ends the stream", outline.Messages, sse,
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"secret sk-fake-1\"}}\n\n",
		nil, Summary{Terminated: true, Error: "overloaded_error"}},
	{"an error's words are not repeated where a code belongs", outline.ChatCompletions, sse,
		"data: {\"error\":{\"type\":\"the key sk-fake-1 is wrong\",\"code\":\"key: sk-fake-1\"}}\n\n",
		nil, Summary{Terminated: true, Error: "error"}},
	{"an error that is one string", outline.ChatCompletions, sse, "data: {\"error\":\"no room\"}\n\n",
		nil, Summary{Terminated: true, Error: "error"}},
	{"an error object without a wrapper", outline.ChatCompletions, sse,
		"data: {\"object\":\"error\",\"type\":\"BadRequestError\",\"code\":400}\n\n",
		nil, Summary{Terminated: true, Error: "BadRequestError"}},
	{"no space, carriage returns, names left out", outline.Messages, "Text/Event-Stream ; Charset=UTF-8",
		"data:{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{\"output_tokens\":3}}\r\rdata:{\"type\":\"message_stop\"}\r\r",
		nil, Summary{Terminated: true, StopReason: "max_tokens", Usage: Usage{Output: 3}}},
	{"a type that is only the event's name", outline.Messages, sse, "event: message_stop\ndata: {}\n\n",
		nil, Summary{Terminated: true}},
	{"an event that ends with the stream", outline.Messages, sse, `data: {"type":"message_stop"}`,
		nil, Summary{Terminated: true}},
	{"an event that was cut ends nothing", outline.Messages, sse, `data: {"type":"message_stop"`,
		nil, Summary{}},
	{"cached tokens are input", outline.Messages, asJSON,
		`{"type":"message","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":7}}`,
		nil, Summary{Terminated: true, Usage: Usage{Input: 125, CacheRead: 100, CacheWrite: 20, Output: 7}}},
	{"a zero told later does not undo a count", outline.Messages, sse,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":0,\"output_tokens\":2}}\n\n",
		nil, Summary{Usage: Usage{Input: 9, Output: 2}}},
	{"arguments count by their strings, keys and other values not", outline.Messages, asJSON,
		`{"content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"a/b","n":3,"deep":[{"type":"x"}]}}]}`,
		[]string{"toolu_1", "Read", "a/b", "x"}, Summary{Terminated: true}},
	{"thinking and its signature do not count", outline.Messages, asJSON,
		`{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"hello"}]}`,
		[]string{"hello"}, Summary{Terminated: true, Text: "hello"}},
	{"items count once, though the last event repeats them", outline.Responses, sse, `data: {"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"one"}]}}

data: {"type":"response.output_item.done","item":{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"{\"a\":1}"}}

data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":2},"output":[{"type":"message","content":[{"type":"output_text","text":"one"}]}]}}

`, []string{"one", "c1", "patch", `{"a":1}`}, Summary{
		Terminated: true, ResponseID: "resp_1", Model: "m", StopReason: "completed", Text: "one",
		Usage: Usage{Input: 10, CacheRead: 4, Output: 2},
	}},
	{"a type that comes last", outline.Responses, sse,
		`data: {"item":{"arguments":"{\"q\":\"x\"}","name":"f","call_id":"c","type":"function_call"},"type":"response.output_item.done"}` + "\n\n",
		[]string{"c", "f", "x"}, Summary{}},
	{"a response that failed", outline.Responses, sse,
		`data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}}` + "\n\n",
		nil, Summary{Terminated: true, StopReason: "failed", Error: "rate_limit_exceeded"}},
	{"a response that is incomplete", outline.Responses, sse,
		`data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}` + "\n\n",
		nil, Summary{Terminated: true, StopReason: "max_output_tokens"}},
	{"[DONE] is no end of a response", outline.Responses, sse, "data: [DONE]\n\n", nil, Summary{}},
	{"calls in pieces, interleaved", outline.ChatCompletions, sse, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"g","arguments":"no"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":" json"},"index":1},{"index":0,"function":{"arguments":":\"v\"}"}}]},"finish_reason":"tool_calls","index":0}]}

`, []string{"a", "f", "v", "b", "g", "no json"}, Summary{Terminated: true, StopReason: "tool_calls"}},
	{"one of two choices is not finished", outline.ChatCompletions, sse, `data: {"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"},{"index":1,"delta":{"content":"no"}}]}

`, []string{"yes"}, Summary{StopReason: "stop", Text: "yes"}},
	{"a finish reason in a chunk that was cut", outline.ChatCompletions, sse,
		`data: {"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}],"usa`, nil, Summary{}},
	{"[DONE] without a finish reason", outline.ChatCompletions, sse,
		"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata:[DONE]\n\n", []string{"hi"}, Summary{Terminated: true, Text: "hi"}},
	{"calls without an index", outline.ChatCompletions, sse, `data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

`, []string{"a", "f", "b", "g"}, Summary{Terminated: true, StopReason: "tool_calls"}},
	{"a call as it was before there were several", outline.ChatCompletions, asJSON,
		`{"choices":[{"message":{"function_call":{"name":"f","arguments":"{\"a\":\"b\"}"}}}]}`,
		[]string{"f", "b"}, Summary{Terminated: true}},
	{"a custom call in pieces", outline.ChatCompletions, sse, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","custom":{"name":"f","input":"\"pl"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"custom":{"input":"ain\""}}]},"finish_reason":"tool_calls"}]}

`, []string{"a", "f", `"plain"`}, Summary{Terminated: true, StopReason: "tool_calls"}},
	{"JSON that is called an event stream", outline.Messages, sse, "\n {\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}",
		[]string{"x"}, Summary{Terminated: true, Text: "x"}},
	{"events that are called plain text", outline.Messages, "text/plain", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		nil, Summary{Terminated: true, EventStream: true}},
	{"a page", outline.Messages, "text/html", "<!doctype html><p>Sign in", nil, Summary{Unread: true}},
	{"JSON that is cut", outline.Messages, asJSON, `{"content":[{"type":"text","text":"x"}]`, nil, Summary{}},
	{"JSON that is wrong", outline.Messages, asJSON, `{"content":]`, nil, Summary{Unread: true}},
	{"nothing", outline.Messages, sse, "", nil, Summary{EventStream: true}},
	{"too long a model name is left out", outline.ChatCompletions, asJSON,
		`{"model":"` + strings.Repeat("m", maxModel+1) + `"}`, nil, Summary{Terminated: true}},
}

func TestObserverReadsAnswers(t *testing.T) {
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			want.Mark, want.MarkBytes = markOf(c.counts...)
			if c.name != "JSON that is called an event stream" && IsEventStream(c.media) {
				want.EventStream = true
			}
			for _, step := range []int{1, 7, 1 << 20} {
				o := New(c.format, c.media, fnvHash)
				for rest := c.answer; rest != ""; {
					n := min(step, len(rest))
					o.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				if got := o.Summary(); got != want {
					t.Errorf("in steps of %d\ngot  %+v\nwant %+v", step, got, want)
				}
			}
		})
	}
}

func TestKF_S1_EventStreamInAnySpelling(t *testing.T) {
	for media, want := range map[string]bool{
		"text/event-stream": true, "text/event-stream; charset=utf-8": true, " Text/Event-STREAM ;x=y": true,
		"text/event-stream;charset=utf-8": true, "text/event-streams": false, "application/json": false, "": false,
		"application/json; text/event-stream": false,
	} {
		if got := IsEventStream(media); got != want {
			t.Errorf("IsEventStream(%q) = %v, want %v", media, got, want)
		}
	}
}

// TestKF_S6_CutStreamIsNotTerminated cuts each format's answer after every
// event: only the whole one may pass for whole.
func TestKF_S6_CutStreamIsNotTerminated(t *testing.T) {
	for _, c := range []struct {
		format outline.Format
		answer string
	}{
		{outline.Messages, "data: {\"type\":\"message_start\",\"message\":{}}\n\n|data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n|" +
			"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n|data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n|data: {\"type\":\"message_stop\"}\n\n"},
		{outline.Responses, "data: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n|data: {\"type\":\"response.output_item.done\",\"item\":{}}\n\n|" +
			"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"},
		{outline.ChatCompletions, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n|: ping\n\n|data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"},
	} {
		events := strings.Split(c.answer, "|")
		for n := range len(events) + 1 {
			o := New(c.format, sse, fnvHash)
			o.Write([]byte(strings.Join(events[:n], "")))
			if got, want := o.Summary().Terminated, n == len(events); got != want {
				t.Errorf("format %d, %d of %d events: terminated %v, want %v", c.format, n, len(events), got, want)
			}
		}
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	long := strings.Repeat("é", 300)
	for name, answer := range map[string]string{
		"whole":  `{"content":[{"type":"text","text":"x` + long + `"}]}`,
		"stream": "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"x\"}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"" + long + "\"}}\n\n",
	} {
		o := New(outline.Messages, "", fnvHash)
		o.Write([]byte(answer))
		if got, want := o.Summary().Text, "x"+strings.Repeat("é", 255); got != want {
			t.Errorf("%s: %d bytes %q, want %d", name, len(got), got, len(want))
		}
		whole := o.Summary()
		o.Free()
		o = New(outline.Messages, "", fnvHash)
		o.LeaveOutText()
		o.Write([]byte(answer))
		whole.Text = ""
		if got := o.Summary(); !reflect.DeepEqual(got, whole) {
			t.Errorf("%s: without its text %+v, want %+v", name, got, whole)
		}
		o.Free()
		if o = New(outline.Messages, "", fnvHash); o.textFull {
			t.Errorf("%s: the next answer's text is left out, too", name)
		}
	}
}
