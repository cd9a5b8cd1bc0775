package watch

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
	"hongbao/workflows"
)

const (
	// packetPage is the number of rows per status that one round compares with their runs.
	packetPage = 100
	// maxChecks is the number of runs that are checked concurrently.
	maxChecks = 8
)

// watchPackets starts a run for every unfinished packet without one, unless its refund or staff
// must act next. It checks in the order of expiry; overdue packets are checked every round.
func (w *Watch) watchPackets(ctx context.Context) error {
	var faults []error
	for _, status := range reconcile.UnfinishedStatuses {
		if !w.packets[status].At.IsZero() {
			_, err := w.packetPage(ctx, status, packet.Cursor{}, true)
			faults = append(faults, err)
		}
		faults = append(faults, w.pages(func() (bool, error) { return w.packetPage(ctx, status, w.packets[status], false) }))
	}
	return errors.Join(faults...)
}

// packetPage compares a page of rows with their runs. With overdue it reads the first page
// besides the current one and checks only overdue packets. It reports whether there is a next
// page.
func (w *Watch) packetPage(ctx context.Context, status packet.Status, after packet.Cursor, overdue bool) (more bool, err error) {
	now, err := w.cfg.Store.Clock(ctx)
	if err != nil {
		return false, err
	}
	page, next, err := reconcile.UnfinishedPackets(w.cfg.Store, status, packetPage).Page(ctx, after)
	if err != nil {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(maxChecks)
	for _, u := range page {
		if now.Sub(u.UpdatedAt).Abs() < w.cfg.Pace.Grace || overdue && now.Sub(u.ExpiresAt) < w.cfg.Pace.Grace {
			continue
		}
		group.Go(func() error { return w.unfinished(ctx, u) })
	}
	if !overdue {
		w.packets[status] = next
	}
	return next != packet.Cursor{}, group.Wait()
}

// unfinished repairs one packet that is not at its end.
func (w *Watch) unfinished(ctx context.Context, u packet.UnfinishedPacket) error {
	key := "packet/" + u.ID
	if u.BooksClosed() && u.Remainder > 0 {
		if payout.Status(u.RefundStatus).Final() {
			return w.finish(ctx, u)
		}
		return nil // an open refund is handled as a payment; a refused one waits for staff
	}
	latest, err := w.cfg.Runs.Latest(ctx, workflows.PacketID(u.ID))
	if err != nil {
		return err
	}
	if latest.Open {
		w.logPaused(ctx, workflows.PacketID(u.ID), latest)
		w.retryState.clear(key)
		return w.resendClosing(ctx, u, latest)
	}
	// The run may have ended since the row was read.
	fresh, found, err := w.cfg.Store.UnfinishedPacket(ctx, u.ID)
	if err != nil || !found || !fresh.UpdatedAt.Equal(u.UpdatedAt) || !w.retryState.allow(key, time.Now()) {
		return err
	}
	started, err := w.cfg.Runs.RestartPacket(ctx, fresh.Packet)
	if err == nil && started {
		w.repaired(ctx, RepairPacketRun, u.ID)
	}
	return err
}

// resendClosing signals the run of a closing packet that waits for something else. The run found
// the row open, and a recovery of MySQL has closed it since, or Temporal was restored
// from before the signal. It would wait until the packet expires. A run that waits for Redis'
// clock to reach the expiry is left alone.
func (w *Watch) resendClosing(ctx context.Context, u packet.UnfinishedPacket, latest RunState) error {
	key := "closing/" + u.ID
	byClock := !u.BooksClosed() && u.Reason == packet.CloseExpired
	if u.Stored != packet.StatusClosing || !latest.Idle || byClock {
		w.retryState.clear(key)
		return nil
	}
	if !w.retryState.allow(key, time.Now()) {
		return nil
	}
	if err := w.cfg.Runs.SignalClose(ctx, u.ID, u.Reason); err != nil {
		return err
	}
	w.repaired(ctx, RepairCloseSignal, u.ID)
	return nil
}

// finish closes a packet whose refund is paid: a new run of the refund finds nothing to pay and
// closes the packet.
func (w *Watch) finish(ctx context.Context, u packet.UnfinishedPacket) error {
	if !w.retryState.allow("packet/"+u.ID, time.Now()) {
		return nil
	}
	refund, err := w.cfg.Store.PaymentRow(ctx, payout.ID(payout.KindRefund, u.ID, 0))
	if err != nil {
		return err
	}
	started, err := w.cfg.Runs.Run(ctx, refund)
	if err == nil && started {
		w.repaired(ctx, RepairUnfinished, u.ID)
	}
	return err
}

// packetEnded checks a packet whose run an operator has ended.
func (w *Watch) packetEnded(ctx context.Context, id string) error {
	u, found, err := w.cfg.Store.UnfinishedPacket(ctx, id)
	if err != nil || found {
		if err == nil {
			err = w.unfinished(ctx, u)
		}
		return err
	}
	// Nothing is recorded, or everything: only the pool shows which.
	view, err := w.cfg.Pools.View(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return nil
	}
	if err != nil || view.Retired || view.State != packet.PoolFunding {
		return err
	}
	started, err := w.cfg.Runs.RestartPacket(ctx, view.Packet)
	if err == nil && started {
		w.repaired(ctx, RepairUnrecorded, id)
	}
	return err
}
