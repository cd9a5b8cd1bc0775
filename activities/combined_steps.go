package activities

import (
	"context"
	"time"

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

// Advanced is how far Advance brought a packet.
type Advanced struct {
	Facts packet.Facts `json:"facts"`
	// Charge is the outcome of a charge that is not final yet, from where the run continues.
	Charge *Outcome `json:"charge,omitempty"`
}

// Advance takes a packet's steps until one has to wait, takes long or fails. It never returns an
// error: what it has not done is still the next step.
func (a *CombinedSteps) Advance(ctx context.Context, p packet.Packet, f packet.Facts) (Advanced, error) {
	out := Advanced{Facts: f}
	for range advanceSteps {
		step, wait := packet.Next(p, out.Facts, a.Payments.clock())
		if wait > 0 || step == packet.StepEnd || p.ShareCount > CombinedMaxShares && readsShares(step) {
			break
		}
		if more, err := a.take(ctx, step, p, &out); err != nil || !more {
			return out, a.logStopped(ctx, p.ID, err)
		}
	}
	return out, nil
}

// advanceSteps is above the number of steps of any packet, so that a row that moves back in each of
// them does not keep Advance busy.
const advanceSteps = 12

// take takes one step. more: the next step may follow at once.
func (a *CombinedSteps) take(ctx context.Context, step packet.Step, p packet.Packet, out *Advanced) (more bool, err error) {
	switch step {
	case packet.StepCharge:
		charge, err := a.Payments.sendInWorkflowTask(ctx, payout.ID(payout.KindCharge, p.ID, 0))
		if err != nil {
			return false, err
		}
		if !charge.Unsettled {
			out.Facts.Charge = ChargeFact(charge.State)
		}
		if out.Facts.Charge == packet.ChargeUnknown {
			out.Charge = &charge
			return false, nil
		}
		return true, nil
	case packet.StepDrain: // no fact by itself: if the books stay open, the claims are read again
		if drained, err := a.awaitDrained(ctx, p.ID); err != nil || !drained {
			return false, err
		}
		step = packet.StepCloseBooks
	}
	f, err := TakeStep(ctx, a.Packets, step, p, out.Facts)
	if err == nil {
		out.Facts = f
	}
	return err == nil, err
}

// readsShares reports whether a step reads or writes every share of a packet.
func readsShares(step packet.Step) bool {
	switch step {
	case packet.StepFund, packet.StepOpenPool, packet.StepDrain, packet.StepCloseBooks:
		return true
	}
	return false
}

// ChargeFact returns what a packet's run learns from its charge.
func ChargeFact(charge payout.State) packet.ChargeFact {
	switch {
	case charge.Step.Do != payout.ActionEnd:
		return packet.ChargeUnknown
	case charge.Status == payout.StatusFailed:
		return packet.ChargeDeclined
	}
	return packet.ChargeTaken
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
	f, err := a.Packets.FinishPacket(ctx, packet.Packet{ID: packetID}, packet.Facts{})
	out.PacketClosed = err == nil && f.Finished
	return out, a.logStopped(ctx, packetID, err)
}

// logStopped logs an error after which the run continues with single steps. It returns nil,
// because the caller has a result to return.
func (a *CombinedSteps) logStopped(ctx context.Context, packetID string, err error) error {
	if err != nil {
		logger(ctx).Warn("Combined steps stopped; the run continues with single steps.", "packet_id", packetID, "error", err)
	}
	return nil
}
