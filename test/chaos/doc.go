// Package chaos breaks the whole local stack under load and counts the money afterwards.
// It kills and stops processes, breaks the network between them, and makes the payment
// provider misbehave. Then it lifts all faults and gives the stack its backlog and two
// minutes. The judge compares every acknowledged answer with the movements at the
// provider, the answers of the API, and the contents of MySQL, Redis and Temporal. At
// last the product verifies its own ledger and audit, as an operator does.
//
// Some senders have to pay in an app: most pay soon, some near the deadline or never, and the app closes some of their
// packets while they wait for the payment. What was paid opens or is refunded in full.
//
// Every fault is derived from a seed: the same seed and length give the same schedule of
// faults and the same packets, users and accounts. Which request meets which fault
// depends on the machine.
//
//	make chaos CHAOS='-length 5m -seed 7 -rate 50'
//
// With -provider wechat the recipients are paid through the simulator of WeChat Pay, in a process of its
// own. Its process stops, its network is cut and its answers are wrong; charges stay at the sandbox. A
// recipient confirms with what the API gives to the recipient's app.
//
// Without -length it is the short form that `make test` runs: a fixed seed, every
// process killed once, one pair, two broken links. After a violation it prints the
// seed, the schedule, the violations and the ends of the logs, and keeps the
// home folder.
//
// TestSoak (make soak) breaks nothing: it keeps a steady load on the same stack and
// fails when memory, goroutines, connections or keys grow after the warm-up.
//
// All of it is in test files. It uses the client package and the protocols of the
// parts, and none of the code that it judges.
package chaos
