package activities

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// CombinedMaxShares is the largest packet that CombinedSteps opens and closes: a workflow task
// must not take longer than some milliseconds.
const CombinedMaxShares = 2000

// CombinedSteps runs several activities of a run in sequence and returns how far it came; the run
// continues from there with single activities. It runs once, as a local activity inside a
// workflow task, because one regular activity costs Temporal more than all of these.
//
// Each step is one of Packets or Payments and is repeatable, so nothing depends on its result
// arriving. A step that fails ends the sequence. The run repeats it as a regular activity,
// visible in the Temporal UI.
type CombinedSteps struct {
	Packets  *Packets
	Payments *Payments
}

// Opened is how far OpenNow brought a packet.
type Opened struct {
	// Status is the row's.
	Status packet.Status `json:"status"`
	// Charge is the outcome of the charge; nil if it was not attempted: the packet is past it, or
	// the charge's row was not read.
	Charge *Outcome `json:"charge,omitempty"`
	// Open: the pool is open.
	Open bool `json:"open,omitempty"`
}

// OpenNow records a packet, charges its sender, writes its shares and opens its pool. Errors:
// those of RecordPacket; a later failure only shortens the progress that it returns.
func (a *CombinedSteps) OpenNow(ctx context.Context, p packet.Packet) (Opened, error) {
	status, err := a.Packets.RecordPacket(ctx, p)
	out := Opened{Status: status}
	if err != nil || status != packet.StatusFunding {
		return out, err
	}
	charge, err := a.Payments.sendInWorkflowTask(ctx, payout.ID(payout.KindCharge, p.ID, 0))
	if err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	out.Charge = &charge
	if !charge.ended(payout.StatusPaid) || p.ShareCount > CombinedMaxShares || !a.Payments.clock().Before(p.ExpiresAt) {
		return out, nil
	}
	funded, err := a.Packets.Fund(ctx, p.ID)
	if err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.Status = funded; funded != packet.StatusOpen {
		return out, nil
	}
	if err := a.Packets.OpenPool(ctx, p.ID); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	out.Open = true
	return out, nil
}

// Closed is how far CloseNow brought a packet.
type Closed struct {
	// Closing: the row is closing or past it.
	Closing bool `json:"closing,omitempty"`
	// Pool: grabbing has ended.
	Pool bool `json:"pool,omitempty"`
	// Books: the ledger accounts are closed, and Remainder is refunded.
	Books     bool      `json:"books,omitempty"`
	Remainder money.Fen `json:"remainder,omitempty"`
	// Finished: there was no remainder, and the packet is closed.
	Finished bool `json:"finished,omitempty"`
}

// CloseNow ends grabbing. If every winner has a row it closes the ledger accounts, and without a
// remainder the packet too. It never returns an error; the result shows how far it came.
func (a *CombinedSteps) CloseNow(ctx context.Context, p packet.Packet, reason packet.CloseReason) (out Closed, _ error) {
	if _, err := a.Packets.BeginClosing(ctx, p.ID, reason); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	out.Closing = true
	rem, err := a.Packets.ClosePool(ctx, p.ID, reason)
	if err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.Pool = rem.NotYet <= 0; !out.Pool || p.ShareCount > CombinedMaxShares {
		return out, nil
	}
	if drained, err := a.awaitDrained(ctx, p.ID); err != nil || !drained {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.Remainder, err = a.Packets.CloseBooks(ctx, p.ID); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.Books = true; out.Remainder > 0 {
		return out, nil
	}
	if out.Finished, err = a.Packets.FinishPacket(ctx, p.ID); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	return out, nil
}

// drainLooks are the pauses before each check: the last claims of a sold-out packet are paid
// while it closes.
var drainLooks = []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond}

// awaitDrained checks a few times whether every winner has a row.
func (a *CombinedSteps) awaitDrained(ctx context.Context, id string) (drained bool, err error) {
	for _, wait := range drainLooks {
		if wait > 0 {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(wait):
			}
		}
		if _, drained, err = a.Packets.recorded(ctx, id); err != nil || drained {
			return drained, err
		}
	}
	return false, nil
}

// Refunded is how far RefundNow brought a refund.
type Refunded struct {
	Outcome
	// Closed: the refund is paid and the packet closed.
	Closed bool `json:"closed,omitempty"`
}

// RefundNow sends a refund that is due and closes the packet once it is paid. Errors: those of
// reading the row.
func (a *CombinedSteps) RefundNow(ctx context.Context, paymentID, packetID string) (Refunded, error) {
	sent, err := a.Payments.sendInWorkflowTask(ctx, paymentID)
	out := Refunded{Outcome: sent}
	if err != nil || !sent.ended(payout.StatusPaid, payout.StatusPaidOutside) {
		return out, err
	}
	if out.Closed, err = a.Packets.FinishPacket(ctx, packetID); err != nil {
		return out, a.logStopped(ctx, packetID, err)
	}
	return out, nil
}

// logStopped logs why the run continues with single steps. It returns nil, because the caller has
// a result to return.
func (a *CombinedSteps) logStopped(ctx context.Context, packetID string, why error) error {
	if why != nil {
		logger(ctx).Warn("Combined steps stopped; the run continues with single steps.", "packet_id", packetID, "error", why)
	}
	return nil
}
