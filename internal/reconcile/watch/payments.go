package watch

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
	"hongbao/internal/reconcile"
	"hongbao/workflows"
)

// paymentPage is the number of open payments per kind and status that one round checks.
const paymentPage = 500

// watchPayments starts or wakes the run of every open payment whose step is overdue. Charges
// belong to their packets' runs, which are only woken. A failing list does not delay the others.
// Payments that wait for staff have no step; of those only times from a clock ahead are repaired.
func (w *Watch) watchPayments(ctx context.Context) error {
	lists, err := w.cfg.Store.WaitingLists(ctx)
	if err != nil {
		return err
	}
	var faults []error
	w.asksUntil = time.Now().Add(w.cfg.Pace.Pages)
	for _, of := range lists {
		faults = append(faults, w.pages(func() (bool, error) { return w.paymentPage(ctx, of) }))
	}
	return errors.Join(faults...)
}

// paymentPage checks the next page and reports whether there is another.
func (w *Watch) paymentPage(ctx context.Context, of payout.WaitingList) (more bool, err error) {
	now, err := w.cfg.Store.Clock(ctx)
	if err != nil {
		return false, err
	}
	page, next, err := reconcile.WaitingPayments(w.cfg.Store, of, paymentPage).Page(ctx, w.payments[of])
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
		if overdue := p.Overdue(now); of.Status.Open() && overdue > w.cfg.Pace.Overdue && w.retryState.allow("payment/"+p.ID, time.Now()) {
			group.Go(func() error { return w.overdue(ctx, p, overdue) })
		}
		if p.Status == payout.StatusAwaitingPayer && p.CloseRequestedAt.IsZero() {
			group.Go(func() error { return w.lostAction(ctx, p) })
		}
	}
	w.payments[of] = next
	return next != packet.Cursor{}, group.Wait()
}

// lostAction makes the run of a charge obtain its client data again, which Redis has lost: a rebuild of a lane
// cannot restore it. So a sender gets it without any request for it.
func (w *Watch) lostAction(ctx context.Context, p payout.OpenPayment) error {
	if time.Now().After(w.asksUntil) {
		return nil // Redis is slow
	}
	view, err := w.cfg.Pools.View(ctx, p.PacketID)
	if err != nil || view.State != packet.PoolFunding || len(view.Action) > 0 {
		return nil //nolint:nilerr // watchLanes reports pools that cannot be read, and has them rebuilt
	}
	requested, err := w.cfg.Store.RequestAction(ctx, p.OrderNo)
	if err == nil && requested {
		w.repaired(ctx, RepairAction, p.ID)
	}
	return err
}

// rewind sets the times that a clock ahead noted to now, and wakes the run that has read them.
func (w *Watch) rewind(ctx context.Context, p payout.OpenPayment) error {
	if err := w.cfg.Store.ClampFutureTimes(ctx, p.ID); err != nil {
		return err
	}
	w.repaired(ctx, RepairClock, p.ID)
	if !p.Status.Open() {
		return nil
	}
	_, err := w.cfg.Runs.Run(ctx, p.Payment)
	return err
}

// overdue starts or wakes the run of a payment. A query may still not be made, for example
// because an operator paused the run or no code can replay its history. Then the watch makes it.
// The answer is settled like any other, and the run reads the row when it can.
func (w *Watch) overdue(ctx context.Context, p payout.OpenPayment, overdue time.Duration) error {
	started, err := w.cfg.Runs.Run(ctx, p.Payment)
	if err != nil {
		return err
	}
	if started {
		w.repaired(ctx, RepairPaymentRun, p.ID, slog.String("status", string(p.Status)))
		return nil
	}
	if overdue < w.cfg.Pace.Ask || time.Now().After(w.asksUntil) {
		return nil // a hanging provider must not delay lanes and packets
	}
	id := workflows.PaymentWorkflowID(p.Payment)
	if p.Kind == payout.KindCharge {
		id = workflows.PacketID(p.PacketID)
	}
	latest, err := w.cfg.Runs.Latest(ctx, id)
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
		return fmt.Errorf("settle the answer to the watch's query: %w", err)
	}
	w.repaired(ctx, RepairAsked, p.ID, slog.String("answer", string(o.Kind)))
	return nil
}

// logPaused logs a run that an operator has paused. It is left paused: unlike an end, a pause is
// meant to be resumed by an operator.
func (w *Watch) logPaused(ctx context.Context, id string, r RunState) {
	if r.Paused && w.retryState.allow("paused/"+id, time.Now()) {
		w.cfg.Logger.WarnContext(ctx, "Run or activity is paused by an operator; resume it to continue.",
			slog.String("workflow_id", id))
	}
}
