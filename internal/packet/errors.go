package packet

import (
	"errors"
	"fmt"
)

// Errors that cross package borders. pool and store wrap them, so that callers need not know which
// of the two answered.
var (
	// ErrNotFound: no such packet, claim or payment here.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the store did not answer, or not in time.
	ErrUnavailable = errors.New("unavailable")
	// ErrConflict: stored with other contents than the caller's.
	ErrConflict = errors.New("conflicts with what is stored")
	// ErrNotOpenYet: the packet is still being funded.
	ErrNotOpenYet = errors.New("not open yet")
	// ErrExpiresInPast: the packet would have expired before it was created.
	ErrExpiresInPast = errors.New("expires in the past")
	// ErrOpensTooFar: opens_at lies further ahead than MaxOpensAhead.
	ErrOpensTooFar = errors.New("opens too far ahead")
	// ErrBooksClosed: the packet's books are closed, so claims cannot be recorded any more.
	ErrBooksClosed = errors.New("books are closed")
	// ErrMoved: the row is at another step than the caller assumed. A compare-and-set failed, or
	// MySQL was restored.
	ErrMoved = errors.New("row has moved")
	// ErrStaleClaim: the claim is from before the last rebuild of its lane, which is open. The
	// rebuilt pool may lack it, so it is recorded only after it is kept in the pool.
	ErrStaleClaim = fmt.Errorf("won before its lane was rebuilt: %w", ErrUnavailable)
	// ErrPoolGone: the pool is not in Redis.
	ErrPoolGone = errors.New("pool is gone")
)
