package watch

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
)

const (
	// endedBatch bounds the terminated runs that one round reads; the rows show the rest.
	endedBatch = 1000
	// endedOverlap is the overlap of two lists, because Temporal's lists lag.
	endedOverlap = time.Minute
)

// endedRuns stores which terminated runs were handled.
type endedRuns struct {
	since time.Time
	done  map[string]time.Time // run id -> when
}

func newEndedRuns(now time.Time) *endedRuns {
	return &endedRuns{since: now, done: map[string]time.Time{}}
}

// watchEnded handles the packets and payments of terminated and cancelled runs quickly. What it
// misses, for example a deleted run, the comparison of rows finds.
func (w *Watch) watchEnded(ctx context.Context) error {
	now := time.Now()
	runs, err := w.cfg.Runs.TerminatedRuns(ctx, w.ended.since.Add(-endedOverlap), endedBatch)
	if err != nil {
		return err
	}
	w.ended.since = now
	var group errgroup.Group
	group.SetLimit(maxChecks)
	for _, r := range runs {
		if _, ok := w.ended.done[r.RunID]; ok {
			continue
		}
		w.ended.done[r.RunID] = now
		group.Go(func() error { return w.endedRun(ctx, r.WorkflowID) })
	}
	for id, at := range w.ended.done {
		if now.Sub(at) > 3*endedOverlap {
			delete(w.ended.done, id)
		}
	}
	return group.Wait()
}

// numberedRuns are the kinds of payments whose workflow ids end with their number.
var numberedRuns = map[string]payout.Kind{"refund": payout.KindRefund, "honour": payout.KindHonour}

func (w *Watch) endedRun(ctx context.Context, workflowID string) error {
	kind, rest, _ := strings.Cut(workflowID, "/")
	switch kind {
	case "packet":
		return w.packetEnded(ctx, rest)
	case "payout":
		packetID, user, _ := strings.Cut(rest, "/")
		p, err := w.cfg.Store.PayoutOf(ctx, packetID, user)
		if errors.Is(err, packet.ErrNotFound) {
			return w.claimEnded(ctx, packetID, user)
		}
		return w.paymentEnded(ctx, p, err)
	case "refund", "honour":
		packetID, number, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(number)
		if err != nil || !packet.ValidID(packetID) {
			return nil //nolint:nilerr // not one of ours
		}
		p, err := w.cfg.Store.PaymentRow(ctx, payout.ID(numberedRuns[kind], packetID, n))
		if errors.Is(err, packet.ErrNotFound) {
			return nil
		}
		return w.paymentEnded(ctx, p, err)
	}
	return nil
}

// claimEnded starts the payout of a claim whose run ended before the claim was recorded.
func (w *Watch) claimEnded(ctx context.Context, packetID, user string) error {
	if !packet.ValidID(packetID) {
		return nil
	}
	view, err := w.cfg.Pools.View(ctx, packetID)
	if errors.Is(err, packet.ErrNotFound) || err == nil && view.Retired {
		return nil
	}
	if err != nil {
		return err
	}
	c, found, err := w.cfg.Pools.Claim(ctx, packetID, user)
	if err != nil || !found {
		return err
	}
	return reconcile.DiffClaims(ctx, w.cfg.Store, reconcile.Normal, packetID, []packet.Claim{c}, func(repairs []reconcile.Repair) error {
		_, err := w.startWinner(ctx, view, repairs[0])
		return err
	})
}

func (w *Watch) paymentEnded(ctx context.Context, p payout.Payment, err error) error {
	if err != nil || !p.Status.Open() {
		return err // after a paid refund the packet is checked
	}
	started, err := w.cfg.Runs.Run(ctx, p)
	if err == nil && started {
		w.repaired(ctx, RepairPaymentRun, p.ID)
	}
	return err
}
