// Package simulate lives whole packets with the real steps and the real machine of
// payments on books, a pool and a provider that are kept in memory, and counts the
// money after every change.
//
// A lifetime is one packet: its charge, a crowd, the hand-offs, payouts, closing,
// refunds, what finance decides. What goes wrong is drawn: requests and answers that
// are lost or come late, an order that is refused, pending, returned later or, after
// a refusal, carried out all the same; a process that dies before or after a
// transaction, steps that are repeated, several runs at work on one row, hand-offs
// and notifications that are lost or come twice. Then all faults end, and everything
// has to come to its end by itself.
//
// TestModel draws lifetimes with rapid and takes the steps itself, one after the other,
// so that a violation shrinks to its shortest story. TestWorkflows lets the real
// workflows take them, in Temporal's test environment, at the same time.
//
//	make simulate SIMULATE='-lifetimes 100000 -seed 7'
//
// Only the ports of package activities are made here: what is decided, sent and
// posted is the product's own code. All of it is in test files.
package simulate
