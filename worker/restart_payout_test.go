package worker_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR10_SecondShare: Redis lost the claim of a user whose payout waits for days, and the user
// won another share; the workflow id is taken. The second claim becomes a share conflict before a
// rebuild of the lane can lose it. Once two persons honour it, it is paid beside the first, which
// still waits. The rebuilt lane returns the first claim, as MySQL does, and forgets it with the
// packet.
func TestR10_SecondShare(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	first := r.grab(t, p.ID, "slow~confirm").Claim
	r.awaitPayout(t, first, payout.StatusAwaitingRecipient)

	// Redis after it lost that and the user grabbed again: share 1 has no other owner yet.
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	var amount int64
	if err := r.sql(t).QueryRowContext(ctx, "SELECT amount FROM shares WHERE packet_id = ? AND share_index = 1",
		p.ID).Scan(&amount); err != nil {
		t.Fatal(err)
	}
	winners := must(rdb.Keys(ctx, "hb:{*}:packet:"+p.ID+":winners").Result())(t)
	if len(winners) != 1 {
		t.Fatalf("winners are in %q", winners)
	}
	record := fmt.Sprintf("1:%d:%d:restored:", amount, time.Now().UnixMilli())
	if err := rdb.HSet(ctx, winners[0], first.UserID, record).Err(); err != nil {
		t.Fatal(err)
	}
	lane := packet.Lane(p.ID, harness.Lanes)
	if err := r.pool.HaltLane(ctx, lane, fence.LaneRequested); err != nil {
		t.Fatal(err)
	}
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	cfg.Pace.Patience = 5 * time.Second // after it the rebuild continues without the claim
	wait.Until(t, "rebuilt", func() bool {
		_, did, err := rebuilt(t, rebuild.New(cfg), lane)
		if err != nil {
			t.Fatal(err)
		}
		return did
	})
	number := payout.HonourNumber(p.ID, first.UserID)
	id := payout.ID(payout.KindHonour, p.ID, number)
	conflict, err := r.store.PaymentRow(ctx, id)
	if err != nil || conflict.UserID != first.UserID || int64(conflict.Amount) != amount || conflict.Status != payout.StatusFailed ||
		conflict.Failure.Code != payout.FailureShareConflict {
		t.Fatalf("%+v, %v", conflict, err)
	}
	if open := r.openBreaks(t); len(open) != 1 || len(open[payout.BreakShareConflict]) != 1 {
		t.Errorf("breaks: %+v", open)
	}

	wait.Until(t, "gate open", func() bool { _, open := r.pool.Fence(p.ID); return open })
	if kept := must(r.store.Claim(ctx, p.ID, first.UserID))(t).Claim; !sameClaim(kept, first) {
		t.Errorf("acknowledged %+v, MySQL has %+v", first, kept)
	}
	r.acknowledged(t, first)
	if list := must(listed(r, p.ID))(t); len(list) != 1 || !sameClaim(list[0], first) {
		t.Errorf("the list has %+v, want %+v", list, first)
	}

	r.twoPersons(t, id, payout.DecisionRequest{Kind: payout.DecisionRetry})
	wait.Until(t, "the share conflict is honoured beside the first share", func() bool {
		kept, err := r.store.PaymentRow(ctx, id)
		return err == nil && kept.Status == payout.StatusAwaitingRecipient // the account must confirm this one too
	})
	for _, no := range []string{payout.OrderNo(id, 1), payout.OrderNo(payout.ID(payout.KindPayout, p.ID, 0), 1)} {
		r.call(t, http.MethodPost, "/_confirm/"+no, nil, nil)
	}
	r.awaitPayout(t, first, payout.StatusPaid)
	wait.Until(t, "both runs are at their end", func() bool {
		return r.runs(t, workflows.HonourID(p.ID, number)) == "Completed" && r.runs(t, workflows.PayoutID(p.ID, first.UserID)) == "Completed"
	})

	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	wait.Until(t, "retired", func() bool { return must(r.pool.View(ctx, p.ID))(t).Retired })
	if left, err := r.pool.ClaimsOf(ctx, first.UserID, []string{p.ID}); err != nil || len(left) != 0 {
		t.Errorf("claims of a user whose packet is retired: %+v, %v", left, err)
	}
	places := must(rdb.Keys(ctx, "hb:{*}:claimed").Result())(t)
	for _, key := range places {
		t.Errorf("%s keeps %q", key, must(rdb.ZRange(ctx, key, 0, -1).Result())(t))
	}
}
