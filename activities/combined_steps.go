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
	// Status is the status of the row.
	Status packet.Status `json:"status"`
	// Charge is the outcome of the charge; nil if the packet is past it, or the charge's row could
	// not be read.
	Charge   *Outcome `json:"charge,omitempty"`
	PoolOpen bool     `json:"open,omitempty"`
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
	if !charge.endedAs(payout.StatusPaid) || p.ShareCount > CombinedMaxShares || !a.Payments.clock().Before(p.ExpiresAt) {
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
	out.PoolOpen = true
	return out, nil
}

// Closed is how far CloseNow brought a packet.
type Closed struct {
	// Closing: the status of the row is closing, or a later one.
	Closing bool `json:"closing,omitempty"`
	// PoolClosed: the pool accepts no more grabs.
	PoolClosed bool `json:"pool,omitempty"`
	// LedgerClosed: the remainder is fixed; it is what has to be refunded.
	LedgerClosed bool      `json:"books,omitempty"`
	Remainder    money.Fen `json:"remainder,omitempty"`
	// PacketClosed: the end, because there was no remainder.
	PacketClosed bool `json:"finished,omitempty"`
}

// CloseNow ends grabbing. If every claim is recorded it fixes the remainder; if that is 0 it closes
// the packet too. It never returns an error; the result shows how far it came.
func (a *CombinedSteps) CloseNow(ctx context.Context, p packet.Packet, reason packet.CloseReason) (out Closed, _ error) {
	if _, err := a.Packets.BeginClosing(ctx, p.ID, reason); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	out.Closing = true
	rem, err := a.Packets.ClosePool(ctx, p.ID, reason)
	if err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.PoolClosed = rem.NotYet <= 0; !out.PoolClosed || p.ShareCount > CombinedMaxShares {
		return out, nil
	}
	if drained, err := a.awaitDrained(ctx, p.ID); err != nil || !drained {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.Remainder, err = a.Packets.CloseBooks(ctx, p.ID); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	if out.LedgerClosed = true; out.Remainder > 0 {
		return out, nil
	}
	if out.PacketClosed, err = a.Packets.FinishPacket(ctx, p.ID); err != nil {
		return out, a.logStopped(ctx, p.ID, err)
	}
	return out, nil
}

// drainPauses are the pauses before each check of awaitDrained: the payouts that record the last
// claims of a sold-out packet start together with its closing.
var drainPauses = []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond}

// awaitDrained checks a few times whether every claim is recorded.
func (a *CombinedSteps) awaitDrained(ctx context.Context, id string) (drained bool, err error) {
	for _, wait := range drainPauses {
		if wait > 0 {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(wait):
			}
		}
		if _, drained, err = a.Packets.countRecorded(ctx, id); err != nil || drained {
			return drained, err
		}
	}
	return false, nil
}

// Refunded is how far RefundNow brought a refund.
type Refunded struct {
	Outcome
	// PacketClosed: the refund has ended.
	PacketClosed bool `json:"closed,omitempty"`
}

// RefundNow sends a refund that is due and closes the packet once it has ended. Errors: those of
// reading the row.
func (a *CombinedSteps) RefundNow(ctx context.Context, paymentID, packetID string) (Refunded, error) {
	sent, err := a.Payments.sendInWorkflowTask(ctx, paymentID)
	out := Refunded{Outcome: sent}
	if err != nil || !sent.endedAs(payout.StatusPaid, payout.StatusPaidOutside, payout.StatusCancelled) {
		return out, err
	}
	if out.PacketClosed, err = a.Packets.FinishPacket(ctx, packetID); err != nil {
		return out, a.logStopped(ctx, packetID, err)
	}
	return out, nil
}

// logStopped logs an error after which the run continues with single steps. It returns nil,
// because the caller has a result to return.
func (a *CombinedSteps) logStopped(ctx context.Context, packetID string, err error) error {
	if err != nil {
		logger(ctx).Warn("Combined steps stopped; the run continues with single steps.", "packet_id", packetID, "error", err)
	}
	return nil
}
