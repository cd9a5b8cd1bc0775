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
)

// ObservationKind is what the provider said, or that it said nothing.
type ObservationKind string

// What can be observed. Only a confirmed final failure ever fails a payment.
const (
	// ObsSucceeded: the money has moved.
	ObsSucceeded ObservationKind = "succeeded"
	// ObsPending: the provider has the order and no final answer yet.
	ObsPending ObservationKind = "pending"
	// ObsNeedsRecipient: the recipient has to confirm (Token, Until).
	ObsNeedsRecipient ObservationKind = "needs_recipient"
	// ObsDeclined: refused with a documented code. Of a send it is a claim to be confirmed by asking.
	ObsDeclined ObservationKind = "declined"
	// ObsReturned: the money moved and came back (退票).
	ObsReturned ObservationKind = "returned"
	// ObsRetryAfter: a documented passing refusal (rate limit, no balance); nothing was stored under the number.
	ObsRetryAfter ObservationKind = "retry_after"
	// ObsNeverReceived: asked, the provider does not know the number.
	ObsNeverReceived ObservationKind = "never_received"
	// ObsUnknown: answered, but the answer says nothing about the money (5xx, undecodable). A send
	// stays open for the landing window.
	ObsUnknown ObservationKind = "unknown"
	// ObsNoAnswer: the request left, no answer came. A send stays open for the landing window.
	ObsNoAnswer ObservationKind = "no_answer"
	// ObsNotSent: nothing left this process.
	ObsNotSent ObservationKind = "not_sent"
)

// Observation is one answer (or silence) of the provider about one order number.
type Observation struct {
	// ID names the observation, so that settling it twice changes nothing the second time.
	ID      string          `json:"id"`
	Adapter Adapter         `json:"adapter"` // whose word it is
	Source  Source          `json:"source"`
	Kind    ObservationKind `json:"kind"`
	OrderNo string          `json:"order_no"`
	// Account and Amount are what the provider says the order is about; zero values: it did not say.
	Account     string        `json:"account,omitempty"`
	Amount      money.Fen     `json:"amount,omitempty"`
	Code        string        `json:"code,omitempty"`
	Message     string        `json:"message,omitempty"`
	ProviderRef string        `json:"provider_ref,omitempty"`
	Token       string        `json:"token,omitempty"` // needs_recipient: what the recipient's client needs
	Until       time.Time     `json:"until,omitzero"`
	RetryAfter  time.Duration `json:"retry_after,omitempty"`
	StartedAt   time.Time     `json:"started_at"`
	EndedAt     time.Time     `json:"ended_at"`
}

// Definite reports whether the observation states where the money is.
func (k ObservationKind) Definite() bool {
	return k == ObsSucceeded || k == ObsDeclined || k == ObsReturned
}

// moves reports whether the observation says that money moves, has moved, or may.
func (k ObservationKind) mayMove() bool {
	return k == ObsPending || k == ObsNeedsRecipient || k == ObsSucceeded
}

// endsSend reports whether a send with this answer cannot land any more (rule R4): the
// provider has the order, or documents that nothing is stored under the number, or the
// request did not leave. Any other answer, and a kind added later, leaves the send open.
func (k ObservationKind) endsSend() bool {
	switch k {
	case ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsReturned, ObsRetryAfter, ObsNotSent:
		return true
	}
	return false
}

// Limits are the facts about a provider that the machine needs.
type Limits struct {
	Adapter Adapter
	// LandingWindow is how long a send without a final answer may still take effect; up to
	// LongestPause.
	LandingWindow time.Duration
	// Remembers is how long the provider knows an order number. Nothing is sent
	// and "never received" proves nothing from a day before its end.
	Remembers time.Duration
	// RefundWindow is how long after a charge the provider still refunds it.
	RefundWindow time.Duration
}

// RefundMargin is what is left at least of the refund window when a packet expires: for the
// remainder, for cancelled payouts, and for people to decide about both.
const RefundMargin = 60 * 24 * time.Hour

// MaxOpensAhead is how far ahead of its charge a packet may open that then lives so long.
func (l Limits) MaxOpensAhead(life time.Duration) time.Duration {
	return l.RefundWindow - RefundMargin - life
}
