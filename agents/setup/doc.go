// Package setup points a coding agent at agentop through the agent's own
// settings file, and takes that back exactly: Plan tells what would change,
// Enable changes it, Disable undoes it, Status tells what is set and who
// overrides it. Edits splice bytes, so comments, order and layout stay.
//
// What a crash can leave. For each settings file the order is: a private copy
// of the original, then the record of what will be written (both synced), then
// a temporary file beside the target, synced, renamed over it, and the folder
// synced. The rename is the commit point: before it the old file is whole,
// after it the new one is, and the record undoes either. At worst a temporary
// file is left over, which the next Enable or Disable removes.
//
// The package knows the agents' files, not their traffic: it opens no
// connection. It does not promise to see an address that only another shell
// exports. Functions may be called from several processes; a lock in the
// records' folder orders them. Start reading at Setup.Plan.
package setup
