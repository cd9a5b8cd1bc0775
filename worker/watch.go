package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/pool"
)

// WatchStore is the part of MySQL the watch needs.
type WatchStore interface {
	UnrecordedPackets(ctx context.Context, ids []string) ([]string, error)
	AccountedFor(ctx context.Context, packetID string) (int, error)
	Recorded(ctx context.Context, packetID string, users []string) (map[string]bool, error)
	Stuck(ctx context.Context, before time.Time, limit int) ([]payout.Payment, error)
}

// LivePools is the part of Redis the watch needs.
type LivePools interface {
	Live(ctx context.Context, lane int) ([]pool.LivePacket, error)
	View(ctx context.Context, id string) (packet.PoolView, error)
	Claims(ctx context.Context, id string) ([]packet.Claim, error)
	Retire(ctx context.Context, id string) error
}

const (
	watchEvery = 5 * time.Second
	// stagedGrace is how long a staged packet may be without a row (rule R11).
	stagedGrace = 10 * time.Second
	// claimGrace is how long a winner may be without a row before his payout is
	// started again: the relay is normally much faster, a dead one is taken over.
	claimGrace = 10 * time.Second
	// rejectedKept is how long a rejected packet stays in Redis, so that a repeated
	// create gets its 402 from there.
	rejectedKept = 10 * time.Minute
	// stuckAfter is how long an open payment may lie untouched past its own next_at.
	stuckAfter = 30 * time.Second
	stuckBatch = 100
)

// watch compares hand-offs, winners and rows and repairs by starting the same
// repeatable steps (rule R11). It is an independent loop: it needs neither the
// stream nor a run to be right.
func (w *Worker) watch(ctx context.Context) error {
	for pause(ctx, watchEvery) {
		var group errgroup.Group
		group.SetLimit(lanesAtOnce)
		for lane := range w.cfg.Lanes {
			group.Go(func() error { return w.watchLane(ctx, lane) })
		}
		if err := group.Wait(); err != nil && ctx.Err() == nil { // the first of them; all lanes come again next round
			w.cfg.Logger.WarnContext(ctx, "Watch could not compare every lane.", slog.Any("error", err))
		}
		if err := w.watchPayments(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "Watch could not look for stuck payments.", slog.Any("error", err))
		}
	}
	return nil
}

func (w *Worker) watchLane(ctx context.Context, lane int) error {
	live, err := w.cfg.Live.Live(ctx, lane)
	if err != nil || len(live) == 0 {
		return err
	}
	var ids []string
	for _, p := range live {
		if time.Since(p.CreatedAt) > stagedGrace {
			ids = append(ids, p.ID)
		}
	}
	lost, err := w.cfg.Watch.UnrecordedPackets(ctx, ids)
	if err != nil {
		return err
	}
	missing := make(map[string]bool, len(lost))
	for _, id := range lost {
		missing[id] = true
		if err := w.restage(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if missing[id] {
			continue
		}
		if err := w.watchWinners(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// ignoreGone: a packet that is not in Redis any more needs no repair from there.
func ignoreGone(err error) error {
	if errors.Is(err, packet.ErrNotFound) {
		return nil
	}
	return err
}

// restage gives a staged packet without a row its workflow again.
func (w *Worker) restage(ctx context.Context, id string) error {
	view, err := w.cfg.Live.View(ctx, id)
	if err != nil || view.State != packet.PoolFunding {
		return ignoreGone(err)
	}
	w.cfg.Logger.WarnContext(ctx, "Staged packet had no row; its workflow is started again.", slog.String("packet_id", id))
	return w.cfg.Starter.StartPacket(ctx, view.Packet)
}

// watchWinners compares the count first, then the sets, and starts the payouts that are missing.
func (w *Worker) watchWinners(ctx context.Context, id string) error {
	view, err := w.cfg.Live.View(ctx, id)
	if err == nil && view.State == packet.PoolRejected && view.Now.Sub(view.Packet.CreatedAt) > rejectedKept {
		return w.cfg.Live.Retire(ctx, id)
	}
	if err != nil || view.Retired || view.ClaimedCount == 0 {
		return ignoreGone(err)
	}
	recorded, err := w.cfg.Watch.AccountedFor(ctx, id)
	if err != nil || recorded >= view.ClaimedCount {
		return err
	}
	claims, err := w.cfg.Live.Claims(ctx, id)
	if err != nil {
		return err
	}
	const part = 500
	for len(claims) > 0 {
		some := claims[:min(part, len(claims))]
		claims = claims[len(some):]
		users := make([]string, len(some))
		for i, c := range some {
			users[i] = c.UserID
		}
		have, err := w.cfg.Watch.Recorded(ctx, id, users)
		if err != nil {
			return err
		}
		for _, c := range some {
			if have[c.UserID] || view.Now.Sub(c.ClaimedAt) < claimGrace {
				continue
			}
			w.cfg.Logger.WarnContext(ctx, "Winner had no payout; it is started.", slog.String("packet_id", id), slog.Int("share_index", c.ShareIndex))
			if err := w.cfg.Starter.StartPayout(ctx, c, view.Packet.App); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchPayments starts or wakes the run of every open payment that lies untouched.
func (w *Worker) watchPayments(ctx context.Context) error {
	stuck, err := w.cfg.Watch.Stuck(ctx, time.Now().Add(-stuckAfter), stuckBatch)
	if err != nil {
		return err
	}
	for _, p := range stuck {
		started, err := w.cfg.Starter.Run(ctx, p)
		if err != nil {
			return err
		}
		if started {
			w.cfg.Logger.WarnContext(ctx, "Open payment had no run; one is started.", slog.String("payment_id", p.ID), slog.String("status", string(p.Status)))
		}
	}
	return nil
}
