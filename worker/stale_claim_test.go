package worker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// staleCase is a packet of which Redis lost a claim. A stalled relay holds its hand-off.
type staleCase struct {
	*rig
	p     packet.Packet
	stale packet.Claim
}

// relayed delivers the hand-off after the rebuild, and waits until the claim is recorded: as a share,
// or as a share conflict (h).
func (c *staleCase) relayed(t *testing.T, kind byte) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: c.redis})
	defer func() { _ = rdb.Close() }()
	keys := must(rdb.Keys(t.Context(), "hb:{*}:packet:"+c.p.ID).Result())(t)
	if len(keys) != 1 {
		t.Fatalf("the packet is in %q", keys)
	}
	lane, _, _ := strings.Cut(keys[0], "packet:")
	str := func(s string) string { return "\xd9" + string([]byte{byte(len(s))}) + s } // MessagePack
	part := str(fmt.Sprint(c.stale.Epoch)) + "\xcd" + string([]byte{byte(c.stale.Seq >> 8), byte(c.stale.Seq)}) + str("demo") +
		str(fmt.Sprint(c.stale.ClaimedAt.UnixMilli())) + "\xc2" +
		str(string(packet.AppendShare(nil, c.stale.ShareIndex, c.stale.Amount))) + str("\x91"+str(c.stale.UserID)) + str("")
	must(rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: lane + "handoff", Values: []any{"kind", "claims", c.p.ID, part}}).Result())(t)
	wait.Until(t, "the stale claim is recorded", func() bool {
		users, err := c.store.ShareConflictUsers(t.Context(), c.p.ID)
		if kind == 'p' {
			claim, err := c.store.Claim(t.Context(), c.p.ID, c.stale.UserID)
			return err == nil && claim.PayoutID[0] == 'p' && claim.PayoutStatus == string(payout.StatusPaid)
		}
		return err == nil && len(users) == 1 && users[0] == c.stale.UserID
	})
}

// conflicts checks the number of share conflicts and their default decision.
func (c *staleCase) conflicts(t *testing.T, n int, decision payout.DecisionKind) {
	t.Helper()
	found := must(c.store.OpenShareConflicts(t.Context(), staff.ConflictFilter{PacketID: c.p.ID, Limit: 10}))(t)
	if len(found) != n || n > 0 && (found[0].Default() != decision || found[0].Payment.Amount != c.stale.Amount) {
		t.Errorf("share conflicts %+v, want %d, %s by default", found, n, decision)
	}
}

// TestR9_StaleClaims: Redis loses claims, and a stalled relay delivers their hand-offs after the lane's
// rebuild. Whatever has become of the share, the user's amount stays the same from then on, nobody is paid
// twice, and no lane is rebuilt again because of it.
func TestR9_StaleClaims(t *testing.T) {
	t.Parallel()
	r, _ := newR9Rig(t)
	ctx := t.Context()
	opened := func() *staleCase {
		c := &staleCase{rig: r, p: r.create(t, spec{total: 1000, count: 10})}
		r.awaitOpen(t, c.p.ID)
		return c
	}
	free, again, same, taken, recorded := opened(), opened(), opened(), opened(), opened()
	recorded.stale = r.grab(t, recorded.p.ID, "lost").Claim
	r.awaitPayout(t, recorded.stale, payout.StatusPaid)
	r.stop() // the hand-offs stay in Redis and are lost with it
	r.grab(t, again.p.ID, "before")
	for _, c := range []*staleCase{free, again, same, taken} {
		c.stale = r.grab(t, c.p.ID, "lost").Claim
	}
	for _, c := range []*staleCase{free, again, same, taken, recorded} {
		c.stale.Epoch, c.stale.Seq = 1, 2 // as in a hand-off
	}
	r.flush(t)
	_, r.stop = r.startWorker(t)
	r.awaitRebuilt(t, harness.Lanes-1)
	grabs := func(c *staleCase, user string, share int) packet.Claim {
		t.Helper()
		won := r.grab(t, c.p.ID, user)
		if won.Result != packet.GrabWon || won.Claim.ShareIndex != share {
			t.Fatalf("%s got %s %+v, want share %d", user, won.Result, won.Claim, share)
		}
		r.awaitPayout(t, won.Claim, payout.StatusPaid)
		return won.Claim
	}
	for _, tc := range []struct {
		name string
		*staleCase
		before, after func(c *staleCase) packet.Claim // a grab before and after the hand-off arrives
		kept          bool                            // the user keeps the stale claim, not the first of the two grabs
		kind          byte
		conflicts     int
		decision      payout.DecisionKind
	}{
		{"free", free, nil, func(c *staleCase) packet.Claim { return grabs(c, "second", c.stale.ShareIndex) }, true, 'h', 1,
			payout.DecisionRetry},
		{"free, grabbed again", again, func(c *staleCase) packet.Claim { return grabs(c, "lost", 0) },
			func(c *staleCase) packet.Claim { return grabs(c, "second", c.stale.ShareIndex) }, false, 'h', 1, payout.DecisionCancel},
		{"grabbed again, the same share", same, func(c *staleCase) packet.Claim { return grabs(c, "lost", c.stale.ShareIndex) },
			func(c *staleCase) packet.Claim { return grabs(c, "second", 1) }, true, 'p', 0, ""},
		{"taken by another", taken, func(c *staleCase) packet.Claim { return grabs(c, "second", c.stale.ShareIndex) },
			func(c *staleCase) packet.Claim { return grabs(c, "third", 1) }, true, 'h', 1, payout.DecisionRetry},
		{"recorded", recorded, nil, func(c *staleCase) packet.Claim { return grabs(c, "second", 1) }, true, 'p', 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lane := packet.Lane(tc.p.ID, harness.Lanes)
			epoch, shown := r.laneRow(t, lane).Epoch, tc.stale
			if tc.before != nil {
				if won := tc.before(tc.staleCase); !tc.kept {
					shown = won
				}
			}
			tc.relayed(t, tc.kind)
			r.acknowledged(t, shown)
			tc.staleCase.conflicts(t, tc.conflicts, tc.decision)
			other := tc.after(tc.staleCase)
			r.acknowledged(t, shown)
			if row := r.laneRow(t, lane); row.Epoch != epoch || row.State != fence.LaneOpen {
				t.Errorf("the lane was rebuilt again: %+v", row)
			}
			if err := r.pool.HaltLane(ctx, lane, fence.LaneRequested); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "rebuilt", func() bool { row := r.laneRow(t, lane); return row.Epoch == epoch+1 && row.State == fence.LaneOpen })
			r.acknowledged(t, shown)
			r.acknowledged(t, other)
			tc.relayed(t, tc.kind) // delivered once more
			r.acknowledged(t, shown)
			tc.staleCase.conflicts(t, tc.conflicts, tc.decision)
			r.recall(t, tc.p.ID)
			r.awaitStatus(t, tc.p.ID, packet.StatusClosed)
			r.balanced(t, tc.p)
		})
	}
}

// TestR9_StaleClaimWithoutRun: the run of a stale claim ends between its write to the pool and its write to
// MySQL. The counts of claims agree, and the watch records the claim as a share conflict.
func TestR9_StaleClaimWithoutRun(t *testing.T) {
	t.Parallel()
	r, _ := newR9Rig(t)
	ctx := t.Context()
	c := &staleCase{rig: r, p: r.create(t, spec{total: 1000, count: 10})}
	r.awaitOpen(t, c.p.ID)
	r.stop() // the hand-off stays in Redis and is lost with it
	c.stale = r.grab(t, c.p.ID, "lost").Claim
	r.flush(t)
	_, r.stop = r.startWorker(t)
	r.awaitRebuilt(t, harness.Lanes-1)
	if _, result, err := r.pool.KeepStaleClaim(ctx, c.stale); result != packet.StaleKept || err != nil {
		t.Fatalf("%s, %v", result, err)
	}
	wait.Until(t, "the stale claim is recorded", func() bool {
		users := must(r.store.ShareConflictUsers(ctx, c.p.ID))(t)
		return len(users) == 1 && users[0] == c.stale.UserID
	})
	c.conflicts(t, 1, payout.DecisionRetry)
	r.acknowledged(t, c.stale)
}
