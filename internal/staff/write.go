package staff

import "errors"

// ErrKeyReused means that the Idempotency-Key was used with another body.
var ErrKeyReused = errors.New("idempotency key was used with another body")

// ErrInProgress means that the first request under an Idempotency-Key still runs.
var ErrInProgress = errors.New("the first request still runs")

// Write is the author, reason and Idempotency-Key of a write by staff.
type Write struct {
	Owner    string
	Role     string
	KeyID    string // the API key of the owner; "" for the local CLI
	Route    string // method and path
	Key      string
	BodyHash string
	Reason   string
}

// Answer is the stored answer of a staff write.
type Answer struct {
	Status   int
	Body     []byte
	Replayed bool
}

// Recall is the effect of a recall by staff: the packet's status before and after, for the audit.
type Recall struct {
	Before, After string
	Refused       Answer // Status 0: the state permits the recall
}

// DecisionAnswer renders the answer of a decision inside its transaction, so that effect and stored
// answer are atomic. p is zero when d is about a movement. d is nil when err is set (ErrNotRetryable, ErrDecisionPending,
// ErrDecisionChanged or ErrUndecided, of a movement
// ErrInsufficientBalance or ErrReferenceUsed); such answers are stored too.
type DecisionAnswer func(d *Decision, p PaymentRow, err error) (status int, body []byte)
