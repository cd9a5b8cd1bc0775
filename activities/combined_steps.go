package activities

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// CombinedMaxShares is the largest packet that CombinedSteps opens and closes: what takes
// longer than some milliseconds is no matter for a workflow task.
const CombinedMaxShares = 2000

// CombinedSteps does several steps of a run one after the other, as far as nothing stands
// in their way, and says how far it came; the run goes on from there step by step.
// It is run as a local activity, once, inside a workflow task, because a regular
// step costs Temporal more than all of these.
//
// It has no steps of its own: each is one of Packets or Payments, and may be
// repeated at any time, so that nothing depends on its answer arriving. A step
// that fails ends it, and is tried again by the run, where ops see it.
type CombinedSteps struct {
	Packets  *Packets
	Payments *Payments
}

// Opened is how far OpenNow brought a packet.
type Opened struct {
	// Status is the row's.
	Status packet.Status `json:"status"`
	// Charge is what came of the charge; nil when it was not looked at, the packet
	// being past it or the charge's row unread.
	Charge *Outcome `json:"charge,omitempty"`
	// Open: the pool is open.
	Open bool `json:"open,omitempty"`
}

// OpenNow records a packet, charges its sender, writes its shares and opens its
// pool. Errors: those of RecordPacket; whatever comes later is told by how far it came.
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
	// Closing: the row is, or it is past that.
	Closing bool `json:"closing,omitempty"`
	// Pool: nothing can be grabbed any more.
	Pool bool `json:"pool,omitempty"`
	// Books: they are closed, and Remainder goes back.
	Books     bool      `json:"books,omitempty"`
	Remainder money.Fen `json:"remainder,omitempty"`
	// Finished: nothing remained, and the packet is closed.
	Finished bool `json:"finished,omitempty"`
}

// CloseNow ends grabbing and, if every winner has his row already, closes the
// books, and the packet too when nothing remained. Errors: never; how far it came
// is what it says.
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

// The last claims of a packet that is sold out are being paid while it closes.
var drainLooks = []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond}

// awaitDrained looks whether every winner has his row, a few times.
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
	// Closed: the money is back, and its packet is closed.
	Closed bool `json:"closed,omitempty"`
}

// RefundNow sends a refund that is due and closes the packet once it is paid.
// Errors: those of reading the row.
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

// stopped says why the rest is left to the run. Its error is nil: there is an answer.
func (a *CombinedSteps) logStopped(ctx context.Context, packetID string, why error) error {
	if why != nil {
		logger(ctx).Warn("Not all at once: the run goes on step by step.", "packet_id", packetID, "error", why)
	}
	return nil
}
