// Package command is agentop's command line: one file a command, and the
// wiring of all parts. Flags are parsed into an options struct, whose run
// method never sees cobra; exit.go alone turns errors into words and exit
// codes. Whatever comes from outside is printed through plain.Text.
//
// Commands ask the running proxy over its control socket. Where none runs,
// those that only concern config.yaml read or edit the file themselves, and
// the others say that a proxy is needed. Start reading at Main.
package command
