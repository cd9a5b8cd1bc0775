package payout

import (
	"time"

	"hongbao/internal/money"
)

// Source says how an observation was made.
type Source string

// The sources.
const (
	SourceSend  Source = "send" // the answer to a charge, transfer or refund call, or its absence
	SourceQuery Source = "ask"  // the answer to a query by order number
	// SourceOperator: two persons state, with evidence, whether money has moved.
	SourceOperator Source = "operator"
)

// ObservationKind is what the provider answered, or that it did not answer.
type ObservationKind string

// The kinds. Only a confirmed final failure fails a payment.
const (
	// ObsSucceeded: the money has moved.
	ObsSucceeded ObservationKind = "succeeded"
	// ObsPending: the provider has the order and no final answer yet.
	ObsPending ObservationKind = "pending"
	// ObsNeedsRecipient: the recipient has to confirm (Action). A query need not have an Action.
	ObsNeedsRecipient ObservationKind = "needs_recipient"
	// ObsNeedsPayer: the sender has to pay in an app (Action, Until). Charges only; a query that says
	// "not paid yet" has no Action.
	ObsNeedsPayer ObservationKind = "needs_payer"
	// ObsDeclined: refused with a documented code. The refusal of a send has to be confirmed by a
	// query.
	ObsDeclined ObservationKind = "declined"
	// ObsReturned: the money moved and was returned (退票).
	ObsReturned ObservationKind = "returned"
	// ObsRetryAfter: a documented temporary refusal (rate limit, low balance); nothing was stored
	// under the number.
	ObsRetryAfter ObservationKind = "retry_after"
	// ObsNeverReceived: queried, the provider does not know the order number.
	ObsNeverReceived ObservationKind = "never_received"
	// ObsNoAnswer: the request left, and no answer arrived, or one without information about the money
	// (5xx, undecodable). A send stays open for the landing window.
	ObsNoAnswer ObservationKind = "no_answer"
	// ObsNotSent: nothing left this process.
	ObsNotSent ObservationKind = "not_sent"
)

// Observation is one answer of the provider about one order number, or its absence.
type Observation struct {
	// ID makes settling idempotent: a repeated observation changes nothing.
	ID      string          `json:"id"`
	Adapter Adapter         `json:"adapter"` // the provider and account that made the statement
	Source  Source          `json:"source"`
	Kind    ObservationKind `json:"kind"`
	OrderNo string          `json:"order_no"`
	// Account and Amount are those of the provider's answer; zero values: not stated.
	Account     string    `json:"account,omitempty"`
	Amount      money.Fen `json:"amount,omitempty"`
	Code        string    `json:"code,omitempty"`
	Message     string    `json:"message,omitempty"`
	ProviderRef string    `json:"provider_ref,omitempty"`
	// Action is what the client of the sender (needs_payer) or recipient (needs_recipient) needs. It works like
	// a bearer key: it is in no log and in no Temporal payload.
	Action *ClientAction `json:"-"`
	// SealedAction is the Action of a recipient, sealed for the payment's row.
	SealedAction []byte `json:"sealed_action,omitempty"`
	// ActionLost: of a query, our copy of the client data is gone.
	ActionLost bool `json:"action_lost,omitempty"`
	// Until is how long the Action of a sender, once delivered, is valid, or how long a recipient may confirm. Zero:
	// not known.
	Until      time.Time     `json:"until,omitzero"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	StartedAt  time.Time     `json:"started_at"`
	EndedAt    time.Time     `json:"ended_at"`
}

// Definite reports whether the observation states where the money is.
func (k ObservationKind) Definite() bool {
	return k == ObsSucceeded || k == ObsDeclined || k == ObsReturned
}

// mayMove reports whether the observation says that money moves, has moved, or may.
func (k ObservationKind) mayMove() bool {
	return k == ObsPending || k == ObsNeedsRecipient || k == ObsNeedsPayer || k == ObsSucceeded
}

// endsSend reports whether a send with this answer cannot land any more (rule R4): the provider has
// the order, or documents that nothing is stored under the number, or the request did not leave.
// Any other answer, and a kind added later, leaves the send open.
func (k ObservationKind) endsSend() bool {
	switch k {
	case ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsNeedsPayer, ObsDeclined, ObsReturned, ObsRetryAfter, ObsNotSent:
		return true
	}
	return false
}
