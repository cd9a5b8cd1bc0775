package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestR11_ShareConflictHidesNoClaim: a share conflict that the pool contains without counting it, as
// after a rebuild (rule R9), does not hide a winner without a row. The watch starts the payout.
// Neither does a user's own conflict about another share.
func TestR11_ShareConflictHidesNoClaim(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	first := r.grab(t, p.ID, "first").Claim
	r.awaitPayout(t, first, payout.StatusPaid)
	conflict := packet.Claim{PacketID: p.ID, UserID: "conflict", ShareIndex: first.ShareIndex, Amount: first.Amount,
		ClaimedAt: time.Now().UTC()}
	if _, err := r.store.RecordShareConflict(ctx, conflict, "claimed by another"); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	winners := must(rdb.Keys(ctx, "hb:{*}:packet:"+p.ID+":winners").Result())(t)
	if len(winners) != 1 {
		t.Fatalf("winners are in %q", winners)
	}
	record := fmt.Sprintf("%d:%d:%d:restored:", conflict.ShareIndex, conflict.Amount, conflict.ClaimedAt.UnixMilli())
	if err := rdb.HSet(ctx, winners[0], conflict.UserID, record).Err(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	second := r.grab(t, p.ID, "second").Claim
	for _, key := range must(rdb.Keys(ctx, "hb:{*}:handoff").Result())(t) {
		if err := rdb.XTrimMaxLen(ctx, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	_, r.stop = r.startWorker(t)
	r.watchFast(t)
	r.awaitPayout(t, second, payout.StatusPaid)
	// A run for the user's lost claim is open when the relay starts the one for the other share.
	r.stop()
	twice := r.grab(t, p.ID, "twice").Claim
	early := conflict
	early.UserID = twice.UserID
	answered(t, func() error { _, err := r.starter.StartPayout(ctx, early, "demo"); return err })
	_, r.stop = r.startWorker(t)
	r.awaitPayout(t, twice, payout.StatusPaid)
	if n := len(must(r.store.ShareConflictUsers(ctx, p.ID))(t)); n != 2 {
		t.Errorf("%d share conflicts, want two", n)
	}
	if _, open := r.pool.Fence(p.ID); !open {
		t.Error("the pool lacks nothing, and its lane is shut")
	}
}

// TestR9_PoolLacksShareConflict: a share conflict is recorded during the lane's rebuild, and the pool
// lacks it. The watch detects that, and a repeated grab returns the acknowledged claim again.
func TestR9_PoolLacksShareConflict(t *testing.T) {
	t.Parallel()
	r, _ := newR9Rig(t)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	first := r.grab(t, p.ID, "first").Claim
	r.awaitPayout(t, first, payout.StatusPaid)
	conflict := first
	conflict.UserID = "conflict"
	if _, err := r.store.RecordShareConflict(t.Context(), conflict, "claimed by another"); err != nil {
		t.Fatal(err)
	}
	r.watchFast(t)
	lane := packet.Lane(p.ID, harness.Lanes)
	wait.Until(t, "rebuilt", func() bool { row := r.laneRow(t, lane); return row.Epoch == 2 && row.State == fence.LaneOpen })
	r.acknowledged(t, conflict)
	r.acknowledged(t, first)
	if lost := r.lost(t); lost != 0 {
		t.Errorf("%d grabs reported as lost", lost)
	}
}
