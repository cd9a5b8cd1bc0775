package payout

import "errors"

// ErrDecisionPending means that another decision about the payment waits for a second person.
var ErrDecisionPending = errors.New("another decision is waiting")

// ErrKeyReused means that the Idempotency-Key was used with another body.
var ErrKeyReused = errors.New("idempotency key was used with another body")

// ErrInProgress means that the first request under an Idempotency-Key still runs.
var ErrInProgress = errors.New("the first request still runs")

// StaffWrite is who writes, why, and under which Idempotency-Key.
type StaffWrite struct {
	Owner    string
	Role     string
	KeyID    string // of the key with which the owner writes; "" for commands on this machine
	Route    string // method and path
	Key      string
	BodyHash string
	Reason   string
}

// StaffAnswer is the stored answer of a staff write.
type StaffAnswer struct {
	Status   int
	Body     []byte
	Replayed bool
}

// Recall is what staff's recall of a packet will change: the packet's status, before
// and after, for the audit.
type Recall struct {
	Before, After string
	Refused       StaffAnswer // Status 0: the state permits it
	Undecided     StaffAnswer // while a recovery has left the packet to people
}

// DecisionAnswer renders the answer of a decision inside its transaction, so
// that effect and remembered answer are one. d is nil when err is set
// (ErrNotRetryable, ErrDecisionPending, ErrDecisionChanged or ErrUndecided): such answers are remembered too.
type DecisionAnswer func(d *Decision, p Row, err error) (status int, body []byte)
