// Package quiet keeps the program from asking the terminal for its colours.
//
// Bubble Tea does that when it is initialised, that is in every command of a
// binary that holds it: the query blocks in the background, and stalls for
// seconds where a multiplexer does not answer. An answer given beforehand
// stops it. Packages are initialised in the order of their import paths once
// what they import is, so this one, which needs lipgloss alone, comes before
// Bubble Tea; a test of the binary on a terminal holds that.
//
// The answer given does not matter: the screens use colours that are readable
// on both, and no other package draws.
package quiet

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
