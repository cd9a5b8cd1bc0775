package worker_test

import (
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// TestWatchRewinds: the watch resets to now the times that a clock ahead noted for waiting
// payments.
func TestWatchRewinds(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	slow, cold := r.claimOne(t, "slow~confirm"), r.claimOne(t, "cold~frozen")
	r.awaitPayout(t, slow, payout.StatusAwaitingRecipient)
	r.awaitPayout(t, cold, payout.StatusFailed)
	db := r.sql(t)
	ids := []any{payout.ID(payout.KindPayout, slow.PacketID, 0), payout.ID(payout.KindPayout, cold.PacketID, 0)}
	for _, id := range ids {
		r.exec(t, `UPDATE payments p JOIN attempts a ON a.payment_id = p.id SET p.updated_at = p.updated_at + INTERVAL 30 DAY,
			a.next_at = a.next_at + INTERVAL 30 DAY, a.started_at = a.started_at + INTERVAL 30 DAY, a.ask_until = a.ask_until + INTERVAL 30 DAY
			WHERE p.id = ?`, id)
	}
	wait.Until(t, "nothing is noted of a time to come", func() bool {
		n := -1
		err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM payments p JOIN attempts a ON a.payment_id = p.id WHERE p.id IN (?, ?)
			AND GREATEST(p.updated_at, a.next_at, a.started_at, a.ask_until - INTERVAL 1 DAY) > UTC_TIMESTAMP() + INTERVAL 1 HOUR`,
			ids...).Scan(&n)
		return err == nil && n == 0
	})
	// The watch counts after it has written, and nothing else writes the failed payout.
	wait.Until(t, "the repair is counted", func() bool {
		var last time.Time
		return db.QueryRowContext(t.Context(), "SELECT last_at FROM repairs WHERE kind = ?", payout.ClockSetBack).Scan(&last) == nil
	})
}
