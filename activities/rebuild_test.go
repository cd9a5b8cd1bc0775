package activities

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// lostPool is a funded packet that is not in Redis, and its lane.
type lostPool struct {
	PacketStore
	Pool
	row      packet.Record
	there    bool  // another rebuild has written it
	restored error // the state of MySQL
	shut     []fence.LaneReason
}

func (l *lostPool) PacketRow(context.Context, string) (packet.Record, error) { return l.row, nil }

func (*lostPool) OpenPool(context.Context, string, []money.Fen, func(int)) error {
	return packet.ErrPoolGone
}

func (l *lostPool) View(context.Context, string) (packet.PoolView, error) {
	if l.there {
		return packet.PoolView{State: packet.PoolOpen}, nil
	}
	return packet.PoolView{}, packet.ErrNotFound
}

func (l *lostPool) CheckNotRestored(context.Context) error { return l.restored }

func (*lostPool) Lanes() int { return 4 }

func (l *lostPool) HaltLane(_ context.Context, _ int, reason fence.LaneReason) error {
	l.shut = append(l.shut, reason)
	return nil
}

// TestR9_LostPoolRebuildsItsLane: only where a rebuild can write it and is of use. Not with
// rebuilds by hand, not with a restored MySQL, and not shortly before expiry. The step fails
// until the pool exists.
func TestR9_LostPoolRebuildsItsLane(t *testing.T) {
	key := [32]byte{3}
	id := packet.NewID([]byte("salt"), "a")
	sealed, err := packet.SealSeed(key, id, packet.DeriveSeed(key, id))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(l *lostPool, p *Packets)
		shut   int
	}{
		"funded":             {func(*lostPool, *Packets) {}, 1},
		"not funded yet":     {func(l *lostPool, _ *Packets) { l.row.Stored = packet.StatusFunding }, 0},
		"closing":            {func(l *lostPool, _ *Packets) { l.row.Stored = packet.StatusClosing }, 0},
		"about to expire":    {func(l *lostPool, _ *Packets) { l.row.ExpiresAt = time.Now().Add(rebuildMinLife / 2) }, 0},
		"written in between": {func(l *lostPool, _ *Packets) { l.there = true }, 0},
		"MySQL is restored":  {func(l *lostPool, _ *Packets) { l.restored = payout.ErrMySQLRestored }, 0},
		"rebuilt by hand":    {func(_ *lostPool, p *Packets) { p.PoolRebuild = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lostPool{row: packet.Record{Stored: packet.StatusOpen, SealedSeed: sealed,
				Packet: packet.Packet{ID: id, TotalAmount: 10_000, ShareCount: 50,
					Split: packet.SplitRandom, MinShare: 1, ExpiresAt: time.Now().Add(time.Hour)}}}
			steps := &Packets{Store: l, Pool: l, SeedKey: key, PoolRebuild: &PoolRebuild{Fences: l, MySQL: l}}
			tc.change(l, steps)
			env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
			env.RegisterActivity(steps.OpenPool)
			if _, err := env.ExecuteActivity(steps.OpenPool, packet.Packet{ID: id}, packet.Facts{}); err == nil {
				t.Error("the pool is said to be open")
			}
			if len(l.shut) != tc.shut || tc.shut > 0 && l.shut[0] != fence.LanePoolBehind {
				t.Errorf("the lane is shut because of %q", l.shut)
			}
		})
	}
}
