package bench

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/internal/store/storetest"
)

// fundingCallers record packets at once, as the workers of a busy installation do.
const fundingCallers = 32

// enoughBalance covers every packet of a run.
const enoughBalance = money.Fen(100_000_000_00)

// measureFunding measures how many packets of one app are recorded a second when the app pays from its balance:
// packet, charge and reservation in one transaction, which locks the balance. The baseline records packets that a
// provider charges, and does not charge them.
func measureFunding(t *testing.T, p plan, say func(string, ...any)) []result {
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	db, err := store.Open(store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	storetest.MoveBalance(t, db, "app", payout.PostCredit, enoughBalance)
	callers := fundingCallers
	if !p.full {
		callers = p.callers[0]
	}
	c := &comparison{title: "packets of one app", callers: callers,
		baseline: recording(db, "charged by a provider", payout.StatusPending, func() packet.Packet { return storetest.SamplePacket(share, 1) }),
		ours:     recording(db, "paid from the balance", payout.StatusPaid, func() packet.Packet { return storetest.OfMerchant(share, 1) })}
	say("packets recorded by %d callers", callers)
	c.compare(t, p.length, p.rounds)
	return compared("packets recorded a second in MySQL", []*comparison{c}, p)
}

// recording is a subject that records packets whose charges then have a status.
func recording(db *store.Store, name string, charged payout.Status, next func() packet.Packet) subject {
	return subject{name: name, begin: func(tb testing.TB, callers int, _ time.Duration) attempt {
		last := make([]packet.Packet, callers)
		a := attempt{finish: func(tb testing.TB, _ int) {
			for _, p := range last {
				charge, err := db.PaymentRow(tb.Context(), payout.ID(payout.KindCharge, p.ID, 0))
				if err != nil || charge.Status != charged {
					tb.Fatalf("charge of %s: %s, %v, want %s", p.ID, charge.Status, err, charged)
				}
			}
		}}
		for i := range callers {
			a.callers = append(a.callers, func() error {
				ctx, cancel := context.WithTimeout(tb.Context(), patience)
				defer cancel()
				last[i] = next()
				_, err := db.RecordPacket(ctx, last[i], []byte("sealed"), nil)
				return err
			})
		}
		return a
	}}
}
