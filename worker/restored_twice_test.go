package worker_test

import (
	"context"
	"errors"
	"testing"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/store"
	"hongbao/test/night"
	"hongbao/worker"
)

// restoredAgain is MySQL that is restored a second time when a recovery has put back what
// it had found, and looks at the lanes.
type restoredAgain struct {
	worker.RestoredStore
	to worker.RestoredStore
}

func (s *restoredAgain) PoolLanes(ctx context.Context) ([]packet.LaneRow, error) {
	s.RestoredStore = s.to
	return s.to.PoolLanes(ctx)
}

// TestR13_RestoredAgainMeanwhile: MySQL is restored once more while it is recovered. What
// the recovery has put back is gone again: it does not call these books complete, and a
// further run puts it back.
func TestR13_RestoredAgainMeanwhile(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 3})
	old.awaitOpen(t, p.ID)
	old.paid(t, p, "early")
	first, second := old.backup(t), old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	old.paid(t, p, "late")
	old.awaitBeat(t, until)
	stop()

	once, r := old.restored(t, first), old.restored(t, second)
	recovery := once.recovery(t)
	for _, books := range []*rig{once, r} { // as the workers notice it each time
		books.beat(t)
	}
	recovery.Store = &restoredAgain{once.store, r.store}
	told, err := recovery.Run(t.Context())
	if told.Claims != 1 || told.Ended || !errors.Is(err, store.ErrMoved) {
		t.Errorf("%+v, %v", told, err)
	}
	if err := r.store.BooksBelieved(t.Context()); !errors.Is(err, payout.ErrBooksRestored) {
		t.Errorf("believed without what was put back into others: %v", err)
	}
	if told, err := r.recovery(t).Run(t.Context()); err != nil || !told.Ended || told.Claims != 1 {
		t.Errorf("%+v, %v", told, err)
	}
	if c := must(r.store.Claim(t.Context(), p.ID, "late"))(t); c.PayoutStatus != string(payout.StatusPaid) {
		t.Errorf("%+v", c)
	}
}
