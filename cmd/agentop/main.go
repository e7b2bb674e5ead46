// Command agentop is a local proxy for coding agents with a terminal UI: it
// shows and chooses which inference server each agent's conversations use.
package main

import (
	"os"

	"agentop/cmd/agentop/command"
)

// Stamped by the linker; see the Makefile.
var version, commit, date string

func main() {
	os.Exit(command.Main(command.NewBuild(version, commit, date), os.Args[1:]))
}
