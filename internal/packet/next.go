package packet

import (
	"hash/fnv"
	"time"

	"hongbao/internal/money"
)

// Step is what a packet needs next.
type Step string

// The steps, in the order of a packet's life.
const (
	StepRecord       Step = "record"        // write the row and its pending charge
	StepCharge       Step = "charge"        // carry out the charge until it is final
	StepReject       Step = "reject"        // end the packet of a declined charge
	StepFund         Step = "fund"          // write the shares
	StepOpenPool     Step = "open_pool"     // load the shares and accept grabs
	StepBeginClosing Step = "begin_closing" // move the row to closing
	StepClosePool    Step = "close_pool"    // end grabs
	StepDrain        Step = "drain"         // wait until every claim is recorded
	StepCloseBooks   Step = "close_books"   // fix the remainder
	StepFinish       Step = "finish"        // close the packet and retire its pool
	StepEnd          Step = "end"           // nothing is left to do; a refund closes its packet itself
)

// ChargeFact is what is known about a packet's charge.
type ChargeFact string

// The values; ChargeUnknown covers every status that is not final.
const (
	ChargeUnknown  ChargeFact = ""
	ChargeTaken    ChargeFact = "taken" // paid, even if it was returned since
	ChargeDeclined ChargeFact = "declined"
)

// PoolFact is what is known about a packet's pool.
type PoolFact string

// The values. PoolUsed  is a pool that is open or has been.
const (
	PoolUnknown PoolFact = ""
	PoolUsed    PoolFact = "used"
	PoolEnded   PoolFact = "ended" // it accepts no more grabs
)

// Facts are what a run knows about its packet. The zero value of each fact is unknown, and no step
// that ends something follows from an unknown one. They are a proposal: each step proves its own
// precondition again, in its transaction or script (rule R3). A step that finds the row at an earlier
// status, because MySQL was restored, returns no facts, so that the row is read again.
type Facts struct {
	// Status is the status of the row.
	Status Status     `json:"status,omitempty"`
	Charge ChargeFact `json:"charge,omitempty"`
	Pool   PoolFact   `json:"pool,omitempty"`
	// Late: the pool could not be opened by expires_at.
	Late bool `json:"late,omitempty"`
	// Reason is why grabs end; "" while nothing has ended them.
	Reason CloseReason `json:"reason,omitempty"`
	// NotYet is how long the pool stays open by Redis TIME, as its last answer to a close.
	NotYet time.Duration `json:"not_yet,omitempty"`
	// Drained: every claim of the pool was recorded when read, after the pool had ended.
	Drained bool `json:"drained,omitempty"`
	// Remainder is the amount to refund; nil until the books are closed.
	Remainder *money.Fen `json:"remainder,omitempty"`
	// Failure says why the packet was rejected.
	Failure *Failure `json:"failure,omitempty"`
	// Finished: Redis knows that the packet is closed or rejected.
	Finished bool `json:"finished,omitempty"`
}

// CloseReason returns the reason with which grabs end. The state of the pool decides: a pool that
// never opened ends as unopened, and the first reason of an open one stays (close.lua).
func (f Facts) CloseReason() CloseReason {
	switch {
	case f.Reason != "":
		return f.Reason
	case f.Late || f.Status == StatusFunding:
		return CloseUnopened
	}
	return CloseExpired
}

// Next returns the next step of a packet and how long to wait before it. now is compared only with
// the packet's own expires_at, for the step that is tried: MySQL and Redis decide by their clocks.
func Next(p Packet, f Facts, now time.Time) (Step, time.Duration) {
	late := f.Late || p.expired(now)
	switch f.Status {
	case StatusFunding:
		switch {
		case f.Charge == ChargeUnknown:
			return StepCharge, 0
		case f.Charge == ChargeDeclined:
			return StepReject, 0
		case late:
			return StepBeginClosing, 0
		}
		return StepFund, 0
	case StatusOpen:
		switch {
		case f.Reason != "" || f.Pool == PoolUnknown && late:
			return StepBeginClosing, 0
		case f.Pool == PoolUnknown:
			return StepOpenPool, 0
		}
		return StepBeginClosing, max(p.ExpiresAt.Add(expiryJitter(p)).Sub(now), 0)
	case StatusClosing:
		return nextOfClosing(f)
	case StatusRejected:
		if !f.Finished {
			return StepReject, 0
		}
		return StepEnd, 0
	case StatusClosed:
		if !f.Finished {
			return StepFinish, 0
		}
		return StepEnd, 0
	}
	return StepRecord, 0
}

func nextOfClosing(f Facts) (Step, time.Duration) {
	switch {
	case f.Pool != PoolEnded:
		// Its clock may be corrected in between, so a distant expiry is checked earlier.
		return StepClosePool, min(f.NotYet, max(notYetShortest, f.NotYet/notYetPart))
	case !f.Drained && f.Remainder == nil:
		return StepDrain, 0
	case f.Remainder == nil:
		return StepCloseBooks, 0
	case *f.Remainder > 0:
		return StepEnd, 0
	}
	return StepFinish, 0
}

// A pool that has not expired by its own clock is checked again after a part of the remaining time.
const (
	notYetShortest = 15 * time.Second
	notYetPart     = 40
)

// jitterFrom is the packet life from which closing times are spread. Packets of 24 h created in the
// same second should not expire in the same one.
const (
	jitterFrom = time.Hour
	jitterMax  = 2 * time.Second
)

func expiryJitter(p Packet) time.Duration {
	if p.ExpiresAt.Sub(p.OpensAt) < jitterFrom {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.ID))
	return time.Duration(h.Sum32()) % jitterMax
}
