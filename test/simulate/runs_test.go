package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

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
		if _, err := r.w.packets.FinishPacket(ctx, r.w.packet.ID); err != nil {
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

// packetRun is a run of the packet's workflow.
type packetRun struct {
	w      *world
	id     string
	status packet.Status
	charge *run // while the charge is executed
	reason packet.CloseReason
	again  time.Time // the earliest repetition of a step that was too early
	stage  int
	over   bool
}

// The stages of a packet's run.
const (
	stageRecord = iota
	stageCharge
	stageReject
	stageFund
	stageOpen
	stageAwait
	stageBegin
	stageClose
	stageDrain
	stageBooks
	stageFinish
)

func (l *packetRun) due() time.Time {
	switch l.stage {
	case stageCharge:
		return l.charge.due()
	case stageOpen, stageClose:
		return l.again
	case stageAwait:
		_, at := l.w.pool.closesAt()
		return at
	}
	return time.Time{}
}

// waits reports whether the drain waits for claims that are not recorded. A retired pool returns
// none.
func (l *packetRun) waits() bool {
	return l.stage == stageDrain && !l.w.pool.retired &&
		slices.ContainsFunc(l.w.pool.winners, func(c packet.Claim) bool { return !l.w.db.accountedFor(c) })
}

func (l *packetRun) step() (err error) {
	w, id := l.w, l.w.packet.ID
	next := l.stage + 1
	switch l.stage {
	case stageRecord:
		if l.status, err = w.packets.RecordPacket(ctx, w.packet); err == nil {
			next = l.after()
		}
	case stageCharge:
		if err = l.charge.step(); err == nil && !l.charge.over {
			return nil
		}
		if next = stageFund; err == nil && l.charge.st.Status == payout.StatusFailed {
			next = stageReject
		}
	case stageReject:
		f := payout.NewFailure("", "")
		if l.charge != nil && l.charge.st.Failure != nil {
			f = l.charge.st.Failure
		}
		if err = w.packets.RejectPacket(ctx, id, *f); isType(err, activities.TypeNotDeclined) {
			w.look(func() { w.reached["declined no more"]++ })
			l.restart()
			return nil
		}
		l.over = err == nil
	case stageFund:
		if !w.now().Before(w.packet.ExpiresAt) {
			l.reason, next = packet.CloseUnopened, stageBegin
			break
		}
		l.status, err = w.packets.Fund(ctx, id)
		if l.status != packet.StatusOpen {
			next = stageBegin
		}
	case stageOpen:
		if !w.now().Before(w.packet.ExpiresAt) {
			l.reason, next = packet.CloseUnopened, stageBegin
			break
		}
		err = w.packets.OpenPool(ctx, id)
		l.again = w.clock().Add(time.Minute)
	case stageAwait:
		l.reason, _ = w.pool.closesAt()
	case stageBegin:
		_, err = w.packets.BeginClosing(ctx, id, l.reason)
	case stageClose:
		var rem packet.PoolCloseResult
		if rem, err = w.packets.ClosePool(ctx, id, l.reason); err == nil && rem.NotYet > 0 {
			l.again = w.clock().Add(rem.NotYet)
			return nil
		}
	case stageDrain:
		err = w.packets.Drain(ctx, w.packet)
	case stageBooks:
		rem, cerr := w.packets.CloseBooks(ctx, id)
		if isType(cerr, activities.TypeNotClosing) {
			l.restart()
			return nil
		}
		err, l.over = cerr, cerr == nil && rem > 0
	case stageFinish:
		_, err = w.packets.FinishPacket(ctx, id)
		l.over = err == nil
	}
	if err == nil {
		l.stage = next
	}
	return err
}

func isType(err error, name string) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.Type() == name
}

// restart makes the run begin again, from the row.
func (l *packetRun) restart() { l.stage, l.charge, l.again = stageRecord, nil, time.Time{} }

// after returns the stage of a run that has read the packet's row.
func (l *packetRun) after() int {
	switch l.status {
	case packet.StatusFunding:
		l.charge = &run{w: l.w, id: l.id, payment: payout.ID(payout.KindCharge, l.w.packet.ID, 0)}
		return stageCharge
	case packet.StatusRejected, packet.StatusClosed:
		l.over = true
		return stageFinish
	case packet.StatusOpen:
		l.reason = packet.CloseExpired
		return stageOpen
	}
	l.reason = packet.CloseExpired
	return stageBegin
}
