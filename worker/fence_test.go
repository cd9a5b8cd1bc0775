package worker_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestR9_PoolBehindMySQL: the watch finds a pool that lacks claims which MySQL has, although
// the lane's counters are right, and fences its lane.
func TestR9_PoolBehindMySQL(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 5})
	r.awaitOpen(t, p.ID)
	for _, user := range []string{"a", "b"} {
		r.awaitPayout(t, r.grab(t, p.ID, user).Claim, payout.StatusPaid)
	}
	r.watchFast(t)
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	keys := must(rdb.Keys(ctx, "hb:{*}:packet:"+p.ID).Result())(t)
	if len(keys) != 1 {
		t.Fatal(keys)
	}
	if err := rdb.HSet(ctx, keys[0], "claimed", "1:100:0:100:1").Err(); err != nil {
		t.Fatal(err)
	}
	lane := packet.Lane(p.ID, harness.Lanes)
	wait.Until(t, "the lane was shut, and rebuilt", func() bool {
		return slices.ContainsFunc(must(r.store.Rebuilds(ctx, 100))(t), func(b fence.Rebuild) bool {
			return b.Lane == lane && b.Reason == fence.LanePoolBehind && !b.EndedAt.IsZero() && b.Lost == 0
		})
	})
	wait.Until(t, "the lane is open", func() bool { _, open := r.pool.Fence(p.ID); return open })
	c := r.grab(t, p.ID, "c").Claim
	r.awaitPayout(t, c, payout.StatusPaid)
	var epoch, seq int64
	if err := r.sql(t).QueryRowContext(ctx, "SELECT epoch, seq FROM claims WHERE packet_id = ? AND user_id = 'c'", p.ID).Scan(&epoch,
		&seq); err != nil {
		t.Fatal(err)
	}
	if e := must(r.pool.ReadEpoch(ctx, lane))(t); epoch != e.Number || epoch < 2 || seq < 1 || seq > e.Seq {
		t.Errorf("recorded with epoch %d, seq %d; the lane is at %+v", epoch, seq, e)
	}
}
