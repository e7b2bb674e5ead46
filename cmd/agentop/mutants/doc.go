// Package mutants plants faults in the rules that keep a conversation where it
// is, one at a time, and wants a test to fail for each: a rule without such a
// test is a wish. The faults are a table; the tree is never touched, the
// compiler is handed the changed file as an overlay. It holds tests alone.
// Start reading at faults.
package mutants
