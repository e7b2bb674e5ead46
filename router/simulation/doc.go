// Package simulation lets random conversations of all agents live through
// switches, forks, crashes and losses, and holds one rule: no main turn of a
// conversation ever reaches a server other than the one that made its last
// reply, and where agentop cannot know, only the agent's own upstream. The
// judge is the signature that the fake servers put into each reply; nothing of
// the product decides. It holds tests alone. Start reading at world.
package simulation
