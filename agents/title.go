package agents

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentop/agents/outline"
)

// titleBytes is the length in bytes of the longest title.
const titleBytes = 200

// textLimit bounds what Title and Dir decode of one text.
const textLimit = 64 << 10

// Title is a short name for the conversation that an opening begins: what the
// user wrote, without what the agent put around it, in one line of at most
// titleBytes, with no control characters. "" when the user wrote nothing that
// is text. It decodes texts, so it is for openings only. o must be the outline
// of body.
func Title(o *outline.Outline, body []byte, agent Agent) string {
	messages := [][]outline.Text{o.FirstUser, o.LastUser}
	if agent == Codex {
		// Codex's first user messages are its own; the user's is the last.
		messages[0], messages[1] = messages[1], messages[0]
	}
	for _, texts := range messages {
		for _, t := range texts {
			title := oneLine(withoutBlocks(decodeText(body, t.Raw)))
			if agent == OpenCode {
				title = withoutQuotes(title)
			}
			if title != "" {
				return title
			}
		}
	}
	return ""
}

// Dir is the working directory that an opening states, "" when it states none
// or none that is absolute. Like Title it is for openings only.
func Dir(o *outline.Outline, body []byte, agent Agent) string {
	marks := []string{"orking directory: "} // "Working", "Primary working"; Claude Code and OpenCode
	switch agent {
	case ClaudeCode:
		marks = append(marks, "CWD: ")
	case Codex:
		marks = []string{"<cwd>"}
	case QwenCode:
		marks = []string{"working in the directory: "}
	}
	for _, texts := range [][]outline.Text{o.System, o.Leading, o.FirstUser, o.PriorUser, o.AfterUser, o.LastUser} {
		for _, t := range texts {
			for _, mark := range marks {
				if dir := lineAfter(body, t.Raw, mark); dir != "" {
					return dir
				}
			}
		}
	}
	return ""
}

// lineAfter finds mark in a text and returns what follows it on the line, if
// that is an absolute path. The text is searched as it stands in the body, and
// only the path is decoded.
func lineAfter(body []byte, raw outline.Span, mark string) string {
	text := clip(body, raw)
	for {
		at := bytes.Index(text, []byte(mark))
		if at < 0 {
			return ""
		}
		text = text[at+len(mark):]
		line := text
		if end := bytes.Index(line, []byte(`\n`)); end >= 0 {
			line = line[:end]
		}
		if end := bytes.IndexByte(line, '<'); end >= 0 {
			line = line[:end]
		}
		if dir := oneLine(decodeString(line)); isAbsolute(dir) {
			return dir
		}
	}
}

func isAbsolute(dir string) bool {
	windows := len(dir) > 2 && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/')
	return strings.HasPrefix(dir, "/") || windows
}

// clip is the text at raw in body, as it stands there, at most textLimit of it.
func clip(body []byte, raw outline.Span) []byte {
	if raw.From < 0 || raw.To > len(body) || raw.From >= raw.To {
		return nil
	}
	return body[raw.From:min(raw.To, raw.From+textLimit)]
}

func decodeText(body []byte, raw outline.Span) string {
	return decodeString(clip(body, raw))
}

// decodeString decodes the inside of a JSON string. What was cut within an
// escape loses its last bytes.
func decodeString(raw []byte) string {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	const longestEscape = len(`\ud83d\ude00`)
	for range longestEscape {
		var text string
		if json.Unmarshal(quoted, &text) == nil {
			return text
		}
		if len(quoted) < 3 {
			break
		}
		quoted = append(quoted[:len(quoted)-2], '"')
	}
	return ""
}

// agentBlocks are the elements that agents put into a user's message. The
// first list's go with what is in them; of the second's the words stay, which
// are the user's.
var (
	agentBlocks = []string{
		"system-reminder", "command-message", "local-command-stdout", "local-command-stderr", "local-command-caveat",
		"bash-stdout", "bash-stderr", "environment_context", "user_instructions", "ide_opened_file", "ide_selection",
	}
	userBlocks = []string{"command-name", "command-args", "bash-input"}
)

// withoutBlocks takes the agents' own elements out of a text. An element that
// is not closed reaches to the end.
func withoutBlocks(text string) string {
	if strings.HasPrefix(text, "# AGENTS.md instructions") {
		return ""
	}
	for _, name := range agentBlocks {
		for {
			before, rest, found := strings.Cut(text, "<"+name+">")
			if !found {
				break
			}
			_, after, _ := strings.Cut(rest, "</"+name+">")
			text = before + " " + after
		}
	}
	for _, name := range userBlocks {
		text = strings.NewReplacer("<"+name+">", " ", "</"+name+">", " ").Replace(text)
	}
	return text
}

// withoutQuotes takes off the quotes that OpenCode's run command puts around a
// prompt of several words.
func withoutQuotes(title string) string {
	if len(title) > 1 && title[0] == '"' && title[len(title)-1] == '"' {
		return title[1 : len(title)-1]
	}
	return title
}

// oneLine makes text safe and short: words with single spaces between them,
// nothing that a terminal would not print, cut between two characters.
func oneLine(text string) string {
	var line strings.Builder
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = line.Len() > 0
			continue
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			continue
		}
		size := utf8.RuneLen(r)
		if space {
			size++
		}
		if line.Len()+size > titleBytes {
			break
		}
		if space {
			line.WriteByte(' ')
			space = false
		}
		line.WriteRune(r)
	}
	return line.String()
}

// TitleOf is the title in the answer to a title request: the "title" of a JSON
// object (Claude Code asks for a schema), else the text itself. It is cleaned
// and cut as Title does.
func TitleOf(answer string) string {
	answer = strings.TrimSpace(answer)
	var object struct {
		Title string `json:"title"`
	}
	if strings.HasPrefix(answer, "{") {
		if json.Unmarshal([]byte(answer), &object) != nil {
			return ""
		}
		answer = object.Title
	}
	return oneLine(answer)
}
