// Package chaos breaks everything at once and counts the money afterwards. It
// starts the whole local stack, puts load on it, and while that goes on kills and
// stops its processes, breaks the network between them and lets the payment
// provider misbehave. Then it lifts all faults, gives the stack its backlog and
// two minutes, and compares what every user was told with what moved at the
// provider, what the API tells, and what MySQL, Redis and Temporal hold. In the end
// the product verifies its own ledger and audit, as an operator has it do.
//
// Everything that goes wrong is derived from a seed: the same seed and length
// give the same schedule of faults and the same packets, people and accounts.
// When which request meets which fault is up to the machine.
//
//	make chaos CHAOS='-length 5m -seed 7 -rate 50'
//
// Without -length it is the short form that `make test` runs: a fixed seed, every
// process killed once, one pair, two broken links. On a violation it prints the
// seed, the schedule, the violations and the ends of the logs, and keeps the
// home folder with everything in it.
//
// TestSoak (make soak) breaks nothing: it keeps a steady load on the same stack and
// fails when memory, goroutines, connections or keys grow after the warm-up.
//
// All of it is in test files: it is made from outside, through the client package
// and the parts' own protocols, and uses none of the code that it judges.
package chaos
