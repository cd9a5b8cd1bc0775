package worker_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
)

// TestR13_ToldToTwo: after the backup one share was told to two: to one who lost it with
// Redis, and to another who was paid. Redis knows both since its lane was made again. The
// provider knows whom it has paid: the share is his after the recovery, too, and the other's
// claim a promise, in whatever order Redis tells of them.
func TestR13_ToldToTwo(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 3})
	old.awaitOpen(t, p.ID)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	paid := old.won(t, p, "paid")
	late := packet.Claim{PacketID: p.ID, UserID: "late", ShareIndex: paid.ShareIndex, Amount: paid.Amount,
		ClaimedAt: paid.ClaimedAt.Add(-time.Millisecond)}
	if err := old.starter.StartPayout(t.Context(), late, "demo"); err != nil {
		t.Fatal(err)
	}
	promised := func(r *rig) bool {
		told, err := r.store.Claim(t.Context(), p.ID, late.UserID)
		return err == nil && told.PayoutID[0] == 'h'
	}
	wait.Until(t, "the late claim is a promise", func() bool { return promised(old) })
	old.awaitBeat(t, until+1)
	stop()
	rdb := redis.NewClient(&redis.Options{Addr: old.redis})
	defer func() { _ = rdb.Close() }()
	keys := must(rdb.Keys(t.Context(), "hb:{*}:packet:"+p.ID+":winners").Result())(t)
	record := must(rdb.HGet(t.Context(), keys[0], "paid").Result())(t)
	must(rdb.HDel(t.Context(), keys[0], "paid").Result())(t)
	for _, user := range []string{"late", "paid"} {
		must(rdb.HSet(t.Context(), keys[0], user, record).Result())(t)
	}

	r := old.restored(t, dsn)
	r.beat(t)
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || len(told.Undecided) != 0 {
		t.Errorf("%+v, %v", told, err)
	}
	if c, err := r.store.Claim(t.Context(), p.ID, "paid"); err != nil || c.PayoutID != payout.ID(payout.KindPayout, p.ID, paid.ShareIndex) ||
		c.PayoutStatus != string(payout.StatusPaid) {
		t.Errorf("%+v, %v", c, err)
	}
	if !promised(r) {
		t.Error("the late claim is no promise")
	}
	r.verified(t)
}
