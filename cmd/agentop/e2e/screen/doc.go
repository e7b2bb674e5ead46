// Package screen holds the tests of the terminal UI as a user meets it: the
// built binary in a real pseudo-terminal, with a proxy and servers behind it.
package screen
