// Package chaos breaks everything around a running agentop, while conversations
// of all agents go on, and counts what comes of it: at the fake servers which
// conversations moved, at the clients which were refused. The short form is an
// ordinary test; `make chaos` runs the whole campaign and prints the table that
// docs/security.md shows. It holds tests alone, for Linux. Start reading at
// TestChaos.
package chaos
