// Package dataformat holds the number of the data format: the meaning of rows in MySQL, keys in
// Redis and histories in Temporal. MySQL and Redis each store the number, and every process refuses
// a store with another one. CONTRIBUTING.md says when to raise it.
package dataformat

import "fmt"

// Number is the data format of this build. migrations/00100_data_format.sql writes it.
const Number = 12

// Error means that a store was written by a build with another data format.
type Error struct {
	Store string // MySQL or Redis
	Found int    // 0: a build from before the number existed
}

// Error implements error.
func (e *Error) Error() string {
	age := "an older"
	if e.Found > Number {
		age = "a newer"
	}
	return fmt.Sprintf("the data was written by %s build (%s has data format %d, this build has %d): delete a local stack with `make reset`; "+
		"on a server run the build that made it, or give this one an empty database and an empty Redis (docs/runbook.md#data-format)",
		age, e.Store, e.Found, Number)
}

// Check compares the number in a store with that of this build. A difference is an *Error.
func Check(store string, found int) error {
	if found == Number {
		return nil
	}
	return &Error{Store: store, Found: found}
}
