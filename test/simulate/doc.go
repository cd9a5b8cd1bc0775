// Package simulate lives whole packets with the real steps and the real machine of
// payments on books, a pool and a provider that are kept in memory, and counts the
// money after every change.
//
// A lifetime is one packet: its charge, a crowd, the hand-offs, payouts, closing,
// refunds, what persons of finance decide, alone and in pairs. What goes wrong is
// drawn: requests and answers that are lost or come late, an order that is refused,
// pending, returned later or, after a refusal, carried out all the same; a provider
// that is silent until it has forgotten its orders, has no balance, or is held; a
// process that dies before or after a transaction, steps that are repeated, several
// runs at work on one row, runs that go on as new ones, hand-offs and notifications
// that are lost or come twice; a charge that goes through after its packet has expired, or
// after the provider had refused it and the packet was rejected; a Redis that lacks its last
// grabs, or everything, so that claims cannot be booked, or whose loss is found: then its
// fence is closed, and the pool is rebuilt from MySQL (R9); books that are put back to
// an older moment, and recovered (rule R13), once and again: after a recovery, before it, and
// while it runs; orders about which the provider says nothing then, and which are left to
// people, who resolve them, or recover again. Then all faults end, and everything has to come
// to its end by itself, but for what only people can move.
//
// TestModel draws lifetimes with rapid and takes the steps itself, one after the other,
// so that a violation shrinks to its shortest story. TestWorkflows lets the real
// workflows take them, in Temporal's test environment, at the same time.
//
//	make simulate SIMULATE='-lifetimes 100000 -seed 7'
//
// What a rebuild reports as lost is known here to be lost, and whoever was told it may
// grab again; hand-offs that come late meet the new pool. Of a loss that nobody notices,
// what was promised and lost before it was booked is not missed. Books are restored by
// TestModel alone, never to a backup of books that were lost, and not over a payment by other
// means, a promise that was honoured since, a loss of Redis that nobody noticed, or one after
// which the provider was sent a share that was lost: nobody could tell of those, and the
// recovery leaves what it finds of them to people. What people resolve that was left to them,
// without recovering again, stays as they have it: so does a winner whom nobody remembers, of a
// packet of which the recovery could not tell how it was closed. TestRecoverStories restores
// MySQL under share conflicts, and with Redis or Temporal lost; each story has a known end.
//
// Only the ports of packages activities and worker are made here: what is decided,
// sent, posted and recovered is the product's own code (worker.Recover too). All of it
// is in test files.
package simulate
