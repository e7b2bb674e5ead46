// Package e2e holds the tests that drive the real Claude Code, Codex and
// OpenCode, offline, through the real agentop binary in front of fake servers.
// They judge by what the servers received, never by agentop's own words. The
// clients are installed from npm at the versions named in clients_test.go,
// into the ignored folder .cache of the repository.
package e2e
