// Package control is the API on agentop.sock that the TUI and the commands
// use: HTTP with JSON over a Unix socket that only this user can open. It has
// both ends, Handler and Client, and knows neither the rules nor the screens.
package control
