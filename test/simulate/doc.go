// Package simulate tests lifetimes of packets with the product's own steps and payment
// state machine. MySQL, Redis and the provider are in memory, and the money is counted
// after every change.
//
// A lifetime is one packet: its charge, a crowd, the hand-offs, payouts, closing, refunds,
// and the decisions of finance, with and without approval. These faults are drawn:
//
//   - requests and answers of the provider are lost or late
//   - an order is refused, pending, returned later, or executed after a refusal
//   - the provider is silent until it has forgotten its orders, has no balance, or is held
//   - an order is in progress for ever, or queries about it are never answered
//   - a process is killed before or after a transaction
//   - steps are repeated, several runs work on one row, runs continue as new ones
//   - hand-offs and notifications are lost or delivered twice
//   - a charge succeeds after its packet has expired or was rejected
//   - a sender who has to pay in an app pays late, twice, with a coupon, after the close or never;
//     the app withdraws the charge at any time
//   - Redis loses its last grabs or everything, noticed or not; when the loss is noticed,
//     the fence closes and the pool is rebuilt from MySQL (R9)
//   - MySQL is restored from a backup and recovered (R13), repeatedly: after a recovery,
//     before it, and while it runs
//   - a recovery gets no answer about an order and leaves it to staff, who resolve it or
//     recover again
//
// Then all faults end, and everything has to end by itself, apart from what only staff
// can decide.
//
// TestModel draws lifetimes with rapid and takes the steps itself, one after the other,
// so that a violation shrinks to its shortest story. TestWorkflows runs the real
// workflows in Temporal's test environment, concurrently.
//
//	make simulate SIMULATE='-lifetimes 100000 -seed 7'
//
// Limits of the model:
//
//   - A claim that a rebuild reports as lost counts as lost, and its user may grab again.
//     Late hand-offs meet the new pool.
//   - A claim that an unnoticed loss of Redis removed before it was recorded is not missed.
//   - Only TestModel restores MySQL, and not over changes that no store can show
//     afterwards: a payment by other means, a share conflict honoured since, an unnoticed
//     loss of Redis, or a lost share that was sent to the provider. The recovery leaves
//     such cases to staff.
//   - What staff resolve without another recovery stays as they resolved it.
//
// TestRecoverStories restores MySQL with share conflicts, and with Redis or Temporal lost;
// each story has a known end.
//
// This package implements only the ports of packages activities and worker. Decisions,
// sends, transfers and recovery are the product's own code (recovery.Recovery too). All of
// it is in test files.
package simulate
