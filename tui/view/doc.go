// Package view draws the terminal UI: from what is known, a width, a height
// and the time it makes the text of the whole screen. It is pure: it reads no
// clock and asks no terminal, changes nothing that it is given, and may be
// called at the same time by several goroutines.
//
// What it promises of its text, whatever comes in: as many lines as the screen
// has, each exactly as wide as the screen in cells; no control byte but the
// colour sequences that it makes itself; no character split. Colours are the
// terminal's own sixteen at most, and never the only sign of a state.
//
// Start reading at Screen.Render.
package view
