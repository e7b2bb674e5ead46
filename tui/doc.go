// Package tui is the terminal UI: keys and messages in, a view.Screen out. It
// reads and acts through Source alone, which the caller gives it, and knows
// neither the proxy nor its files.
//
// The rules of this package: Update does no I/O, whatever waits is a command;
// a command changes no state; an answer that comes late carries the number of
// its question and is dropped when another has been asked since. What is on
// the screen follows an event stream, in at most ten frames a second.
//
// Start reading at Run, then model.Update.
package tui
