package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// copy puts text on the clipboard of the terminal, through the terminal (OSC
// 52): that works over ssh too, where the terminal allows it. Whether it did
// is not told, so the text is shown as well.
func (m *model) copy(text string) tea.Cmd {
	for _, r := range text {
		if r < 0x20 || r == 0x7f {
			m.say("it holds characters that cannot be copied")
			return nil
		}
	}
	out := m.out
	return guarded(func() tea.Msg {
		// One write, which the screen's own writes cannot split.
		if _, err := out.Write([]byte(ansi.SetSystemClipboard(text))); err != nil {
			return failedMsg{fmt.Errorf("write to the terminal: %w", err)}
		}
		return wroteMsg{"sent to the terminal's clipboard: " + text}
	})
}
