package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// keys handles what was typed since the last look: a key held down over a slow
// line comes as several letters at once, and esc with a letter behind it as
// that letter with alt, which no key here has.
func (m *model) keys(k tea.KeyMsg) tea.Cmd {
	if k.Type != tea.KeyRunes || k.Paste || len(k.Runes) == 1 && !k.Alt {
		return m.key(k)
	}
	var cmds []tea.Cmd
	press := func(k tea.KeyMsg) {
		cmds = append(cmds, m.key(k))
		m.arrange() // the next key is meant for what this one has made
	}
	if k.Alt {
		press(tea.KeyMsg{Type: tea.KeyEsc})
	}
	for i, r := range k.Runes {
		if m.typing() {
			press(tea.KeyMsg{Type: tea.KeyRunes, Runes: k.Runes[i:]})
			break
		}
		press(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
	}
	return tea.Batch(cmds...)
}

// typing reports whether letters go into a line.
func (m *model) typing() bool {
	s := &m.screen
	return s.Body == view.BodySwitch || s.Body == view.BodyLog && s.Log.Filter.Active || s.Body == view.BodyList && s.Filter.Active
}

// filterKey handles a key while the conversations' filter is typed.
func (m *model) filterKey(k tea.KeyMsg) {
	s := &m.screen
	switch name := k.String(); name {
	case "up", "down", "pgup", "pgdown":
		m.choose(moved(name, s.Cursor, len(s.Rows), s.ListHeight(m.width, m.height, m.now())))
	default:
		typeInto(&s.Filter, k)
	}
}

// longestInput bounds what can be typed or pasted into a line.
const longestInput = 200

// typeInto edits a line with one key: enter keeps it, esc clears it.
func typeInto(in *view.Input, k tea.KeyMsg) {
	switch k.Type {
	case tea.KeyEnter:
		in.Active = false
	case tea.KeyEsc:
		*in = view.Input{}
	case tea.KeyBackspace, tea.KeyCtrlH:
		if in.Text == "" {
			in.Active = false
		}
		in.Text = shortened(in.Text)
	case tea.KeyCtrlU:
		in.Text = ""
	case tea.KeyRunes, tea.KeySpace:
		in.Text = typed(in.Text, k.Runes)
	}
}

// typed appends what can be shown of the runes, as far as there is room.
func typed(text string, runes []rune) string {
	for _, r := range runes {
		if r >= ' ' && r != 0x7f && len(text) < longestInput {
			text += string(r)
		}
	}
	return text
}

// shortened is text without its last rune.
func shortened(text string) string {
	runes := []rune(text)
	if len(runes) == 0 {
		return ""
	}
	return string(runes[:len(runes)-1])
}
