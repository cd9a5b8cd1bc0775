// Package bench measures rates and latencies, each beside a baseline in the same run, because a
// number from another day or machine is not comparable. The measurements are programs, not tests:
// `make test` does not depend on the speed of the machine. `make bench` runs them, prints tables,
// and with `-docs` writes those of docs/performance.md with its plots.
//
// The report is a list of sections (section_test.go), which run in order:
//
//   - engine: grabs in Redis: pool.Grab beside s0.lua, the well-known design of a
//     red packet in Redis, both on the same server with appendfsync always;
//   - script: the time of Redis in one call of the grab script, beside S0 and this
//     project's script before shares were packed;
//   - lanes: grabs of many packets with more and fewer lanes, each with a Redis of
//     its own;
//   - http: the API as it runs, keys checked, beside a handler with the same
//     settings of the web server that does nothing;
//   - baselines: pool.Grab beside eight published designs on the same Redis and
//     MariaDB, one file each (baseline_*_test.go). TestBaselines shows the failures
//     of each, and that ours has none, by the same trials;
//   - profile: where the processor time of one run of each goes, and which resource
//     bounds the rate;
//   - many: grabs that spread over a thousand packets, and small packets beside a
//     giant, for the grab and for the money;
//   - big: packets of up to a million shares: from POST to open, the room they take,
//     grabs of them beside grabs of small ones; ten thousand packets made at once;
//   - pages: the time of a page of a list, or a summary, over HTTP, with a million
//     claims in MySQL and another million in Redis, beside an API with a thousand.
//     First, every list is read to its end and its numbers are checked. `-rows` sets
//     the number of rows; 0 skips the section;
//   - console: the time of lists, searches, counts, exports and pages of the console with
//     a million payouts (package bulk), beside a thousand. `-rows` sets the number of
//     payouts; 0 skips the section.
//
// A further section is a file with its own `section`, one line in sections(), and a place in
// docs/performance.md.
//
// The load runs in the same process and on the same cores as the measured code: every rate includes
// the cost of the calls. Each grab is by a new user who wins. After each run the claims in Redis
// are compared with the answers, one by one, so that no rate comes from lost or invented claims.
//
// All of it is in test files, outside the product and its import rules.
package bench
