package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/workflows"
)

// paymentPage is how many open payments of a kind and status one round looks at.
const paymentPage = 500

// watched is a list of open payments that the watch goes through.
type watched struct {
	kind   payout.Kind
	status payout.Status
}

// watchPayments starts or wakes the run of every open payment whose step is
// overdue. Charges belong to the runs of their packets: those are woken only. A list
// that cannot be gone through keeps no other from its turn. What waits for people has no step:
// of that, as of the others, only what was noted by a clock ahead is put right.
func (w *Watch) watchPayments(ctx context.Context) error {
	var faults []error
	w.asksUntil = time.Now().Add(w.cfg.Pace.Pages)
	for _, kind := range []payout.Kind{payout.KindCharge, payout.KindPayout, payout.KindRefund, payout.KindHonour} {
		for _, status := range payout.Statuses {
			if !status.Open() && status != payout.StatusFailed && status != payout.StatusReturned {
				continue
			}
			of := watched{kind, status}
			faults = append(faults, w.pages(func() (bool, error) { return w.paymentPage(ctx, of) }))
		}
	}
	return errors.Join(faults...)
}

// paymentPage looks at the next page and reports whether there is one behind it.
func (w *Watch) paymentPage(ctx context.Context, of watched) (more bool, err error) {
	now, err := w.cfg.Store.Clock(ctx)
	if err != nil {
		return false, err
	}
	page, err := w.cfg.Store.WaitingPayments(ctx, of.kind, of.status, w.payments[of], paymentPage)
	if err != nil {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(maxChecks)
	for _, p := range page {
		if p.TooFarAhead(now) {
			group.Go(func() error { return w.rewind(ctx, p) })
			continue
		}
		if overdue := p.Overdue(now); of.status.Open() && overdue > w.cfg.Pace.Overdue && w.retryState.allow("payment/"+p.ID, time.Now()) {
			group.Go(func() error { return w.overdue(ctx, p, overdue) })
		}
	}
	w.payments[of] = packet.Cursor{}
	if len(page) == paymentPage {
		last := page[len(page)-1]
		w.payments[of] = packet.Cursor{At: last.CreatedAt, ID: last.ID}
	}
	return len(page) == paymentPage, group.Wait()
}

// rewind writes as of now what was noted of a payment by a clock ahead, and wakes the run that
// has read it.
func (w *Watch) rewind(ctx context.Context, p payout.OpenPayment) error {
	if err := w.cfg.Store.Rewind(ctx, p.ID); err != nil {
		return err
	}
	w.repaired(ctx, RepairClock, p.ID)
	if !p.Status.Open() {
		return nil
	}
	_, err := w.cfg.Starter.Run(ctx, p.Payment)
	return err
}

// overdue gives a payment a run, or wakes the one it has. A question that stays
// unasked all the same, because a person paused the run, say, or because no code
// can carry on its history, is put by the watch: the answer is booked like any
// other, and the run reads the row when it can.
func (w *Watch) overdue(ctx context.Context, p payout.OpenPayment, overdue time.Duration) error {
	started, err := w.cfg.Starter.Run(ctx, p.Payment)
	if err != nil {
		return err
	}
	if started {
		w.repaired(ctx, RepairPaymentRun, p.ID, slog.String("status", string(p.Status)))
		return nil
	}
	if overdue < w.cfg.Pace.Ask || time.Now().After(w.asksUntil) {
		return nil // a provider that hangs keeps neither lanes nor packets from their turn
	}
	id := workflows.PaymentWorkflowID(p.Payment)
	if p.Kind == payout.KindCharge {
		id = workflows.PacketID(p.PacketID)
	}
	latest, err := w.cfg.Starter.latest(ctx, id)
	if err != nil {
		return err
	}
	w.logPaused(ctx, id, latest)
	if p.Next != payout.ActionQuery || p.OrderNo == "" {
		return nil
	}
	o, err := w.cfg.Payments.Ask(ctx, p.OrderNo)
	if err != nil {
		return err
	}
	o.ID = "watch/" + rand.Text()
	if _, err := w.cfg.Payments.Settle(ctx, o, p.OrderNo); err != nil {
		return fmt.Errorf("settle what the watch asked: %w", err)
	}
	w.repaired(ctx, RepairAsked, p.ID, slog.String("answer", string(o.Kind)))
	return nil
}

// paused tells of a run that a person has paused. It is left so: unlike an end,
// a pause is meant to be undone by a person.
func (w *Watch) logPaused(ctx context.Context, id string, r run) {
	if r.paused && w.retryState.allow("paused/"+id, time.Now()) {
		w.cfg.Logger.WarnContext(ctx, "A run, or a step of it, is paused by hand; nothing happens until it is resumed.",
			slog.String("workflow_id", id))
	}
}
