package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// run is one run of a payment workflow. It has no authority and reads its row (R3). Its steps are
// those of package workflows, one activity each.
type run struct {
	w       *world
	id      string // of the run
	key     string // of its workflow
	payment string
	claim   *packet.Claim
	payNow  bool // BeginClaim is still to be tried

	st    *payout.State
	seen  *payout.Observation // to be settled
	about string              // the order number that it is settled under
	seq   int                 // observations of this run
	over  bool
	final bool // the payment is final, and its packet was finished
}

// runKey returns the workflow of a payment: one per user for payouts, one per share conflict, one
// per refund.
func (b *database) runKey(payment string) (key string) {
	b.world.look(func() {
		if r := b.rows[payment]; r != nil && r.Kind == payout.KindPayout {
			key = r.UserID
		} else {
			key = payment
		}
	})
	return key
}

var ctx = context.Background()

// due returns when the next step can be taken.
func (r *run) due() time.Time {
	if r.st == nil || r.seen != nil {
		return time.Time{}
	}
	return r.st.Step.At
}

// step takes the next step; after an error it is repeated.
func (r *run) step() (err error) {
	p := r.w.payments
	var st payout.State
	switch {
	case r.seen != nil:
		if st, err = p.Settle(ctx, *r.seen, r.about); err == nil {
			r.seen = nil
		}
	case r.st == nil:
		st, err = r.enter()
	case r.st.Status.Final() && !r.final:
		return r.finish()
	case r.st.Step.Do == payout.ActionSend:
		out, serr := p.Send(ctx, r.payment)
		st, err = out.State, serr
	case r.st.Step.Do == payout.ActionQuery:
		seen, aerr := p.Ask(ctx, r.st.Step.OrderNo)
		if aerr == nil {
			r.book(seen, r.st.Step.OrderNo)
		}
		return aerr
	case r.st.Step.Do == payout.ActionClose:
		st, err = p.CloseOrder(ctx, r.payment)
	case r.st.Step.Do == payout.ActionCarryOut:
		st, err = p.CarryOut(ctx, r.payment)
	default:
		return r.end()
	}
	if err == nil {
		if r.st, r.payment = &st, st.PaymentID; st.Step.Deferred != payout.NotDeferred {
			r.w.look(func() { r.w.reached["deferred: "+string(st.Step.Deferred)]++ })
		}
	}
	return err
}

func (r *run) book(o payout.Observation, about string) {
	r.seq++
	o.ID = fmt.Sprintf("%s/%d", r.id, r.seq)
	r.seen, r.about = &o, about
}

func (r *run) enter() (payout.State, error) {
	if r.claim == nil {
		return r.w.payments.ReadPayment(ctx, r.payment)
	}
	if r.payNow {
		r.payNow = false // it is tried once
		out, err := r.w.payments.PayNow(ctx, *r.claim)
		return out.State, err
	}
	return r.w.payments.RecordClaim(ctx, *r.claim)
}

// finish closes the packet once its refund is final; queries may follow.
func (r *run) finish() error {
	if r.payment == payout.ID(payout.KindRefund, r.w.packet.ID, 0) {
		if _, err := r.w.packets.FinishPacket(ctx, r.w.packet, packet.Facts{}); err != nil {
			return err
		}
	}
	r.final = true
	return nil
}

func (r *run) end() error {
	r.over = true
	r.w.look(func() {
		if delete(r.w.ended, r.payment); r.st.Status != payout.StatusFailed { // that run fails
			r.w.ended[r.payment] = r.st.Status
		}
	})
	return nil
}

// packetRun is a run of the packet's workflow. Its steps are those of packet.Next, one activity each.
type packetRun struct {
	w      *world
	id     string
	facts  packet.Facts
	charge *run      // while the charge is executed
	again  time.Time // the earliest repetition of a step that was too early
	over   bool
}

func (l *packetRun) next() (packet.Step, time.Duration) {
	return packet.Next(l.w.packet, l.facts, l.w.clock())
}

// before reports whether this step is the next.
func (l *packetRun) before(step packet.Step) bool {
	next, _ := l.next()
	return next == step
}

func (l *packetRun) due() time.Time {
	switch step, wait := l.next(); {
	case step == packet.StepCharge && l.charge != nil:
		return l.charge.due()
	case step == packet.StepBeginClosing && wait > 0:
		_, at := l.w.pool.closesAt()
		return at
	case step == packet.StepOpenPool, step == packet.StepClosePool:
		return l.again
	}
	return time.Time{}
}

// waits reports whether the drain waits for claims that are not recorded. A retired pool returns
// none.
func (l *packetRun) waits() bool {
	step, _ := l.next()
	return step == packet.StepDrain && !l.w.pool.retired &&
		slices.ContainsFunc(l.w.pool.claims(), func(c packet.Claim) bool { return !l.w.db.accountedFor(c) })
}

func (l *packetRun) step() error {
	step, wait := l.next()
	switch {
	case step == packet.StepEnd:
		l.over = true
		return nil
	case step == packet.StepBeginClosing && wait > 0:
		l.facts.Reason, _ = l.w.pool.closesAt()
		return nil
	case step == packet.StepCharge:
		return l.stepCharge()
	case step == packet.StepOpenPool:
		l.again = l.w.clock().Add(time.Minute)
	}
	l.facts.NotYet = 0
	after, err := activities.TakeStep(ctx, l.w.packets, step, l.w.packet, l.facts)
	if err != nil {
		return err
	}
	if l.facts = after; after.Status == "" {
		l.charge = nil
		l.w.look(func() { l.w.reached["the row moved back before "+string(step)]++ })
	}
	if _, wait = l.next(); step == packet.StepClosePool && wait > 0 {
		l.again = l.w.clock().Add(wait)
	}
	return nil
}

func (l *packetRun) stepCharge() error {
	if l.charge == nil {
		l.charge = &run{w: l.w, id: l.id, payment: payout.ID(payout.KindCharge, l.w.packet.ID, 0)}
	}
	err := l.charge.step()
	if err == nil && l.charge.over {
		l.facts.Charge = activities.ChargeFact(*l.charge.st)
	}
	return err
}
