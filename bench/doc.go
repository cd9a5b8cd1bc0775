// Package bench measures how many grabs per second are possible, and how long
// pages of long lists take, each beside a baseline in the same run, because a
// number from another day or machine says nothing. The measurements are programs,
// not tests: nothing in `make test` depends on how fast a machine is. `make bench`
// runs them and prints tables.
//
// Two comparisons, each alternating baseline, ours, baseline, ours:
//
//   - grabs in Redis: pool.Grab beside s0.lua, the well-known design of a red
//     packet in Redis, both on the same server with appendfsync always;
//   - grabs over HTTP: the API as it runs, keys checked, beside a handler with
//     the same settings of the web server that does nothing.
//
// And pages: how long one takes over HTTP, or a summary, when there are a million
// claims in MySQL and another million in Redis. An API that has a thousand is
// asked the same in turn. Before, every list is read to its end and has to add up.
// `-rows` says how many; 0 leaves pages out.
//
// The load is made in the same process and on the same cores as what is
// measured: every rate includes the cost of asking. Each grab is by a new user
// who wins; after each run the claims in Redis are compared with the answers, one
// by one, so that speed cannot come from losing or inventing any.
//
// All of it is in test files, so that neither the product nor the rules about who
// may import whom know of it.
package bench
