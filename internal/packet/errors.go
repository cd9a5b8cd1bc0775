package packet

import (
	"errors"
	"fmt"
)

// Errors that cross package borders. pool and store wrap them, so that whoever
// asks need not know which of the two answered.
var (
	// ErrNotFound: no such packet, claim or payment here.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the store could not be asked, or gave no answer in time.
	ErrUnavailable = errors.New("unavailable")
	// ErrConflict: stored with other contents than the caller's.
	ErrConflict = errors.New("conflicts with what is stored")
	// ErrNotOpenYet: the packet is still being funded.
	ErrNotOpenYet = errors.New("not open yet")
	// ErrExpiresInPast: the packet would have expired before it was created.
	ErrExpiresInPast = errors.New("expires in the past")
	// ErrOpensTooFar: opens_at lies further ahead than MaxOpensAhead.
	ErrOpensTooFar = errors.New("opens too far ahead")
	// ErrBooksClosed: the packet's books are closed, nothing can be claimed any more.
	ErrBooksClosed = errors.New("books are closed")
	// ErrNotClosing: books cannot be closed, because the packet is not closing (any more):
	// it was, in books that were restored since.
	ErrNotClosing = errors.New("packet is not closing")
	// ErrNotDeclined: a packet cannot be rejected, because its charge has not failed for that
	// reason (any more): it had, in books that were restored since.
	ErrNotDeclined = errors.New("charge is not declined")
	// ErrStaleClaim: a claim was won before the last rebuild of its lane, which is open: the pool
	// may have been made without it (rule R9). It is booked when the pool has been asked.
	ErrStaleClaim = fmt.Errorf("won before its lane was rebuilt: %w", ErrUnavailable)
	// ErrPoolGone: the pool is not in Redis.
	ErrPoolGone = errors.New("pool is gone")
)
