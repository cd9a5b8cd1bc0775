package activities

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// lostHandOffs is a packet whose winners' hand-offs were lost: claims are recorded only when
// their payouts are started.
type lostHandOffs struct {
	PacketStore
	Pool
	winners  []packet.Claim
	recorded map[string]bool
	started  []string
}

func (l *lostHandOffs) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{ClaimedCount: len(l.winners)}, nil
}

func (l *lostHandOffs) EachClaim(_ context.Context, _ string, visit func([]packet.Claim) error) error {
	return visit(l.winners)
}

func (l *lostHandOffs) CountClaims(context.Context, string) (shares, conflicts int, err error) {
	return len(l.recorded), 0, nil
}

func (l *lostHandOffs) RecordedClaims(_ context.Context, _ string, claims []packet.Claim) (out packet.Recorded, _ error) {
	for _, c := range claims {
		if l.recorded[c.UserID] {
			out.Claims = append(out.Claims, packet.RecordedClaim{UserID: c.UserID, ShareIndex: c.ShareIndex})
		}
	}
	return out, nil
}

func (l *lostHandOffs) RestartPayout(_ context.Context, c packet.Claim, app string) (bool, error) {
	l.started = append(l.started, c.UserID+" of "+app)
	l.recorded[c.UserID] = true
	return true, nil
}

// TestR11_DrainStartsWhatIsMissing: the drain does not end before every winner is recorded, and
// starts the payouts that nothing else started.
func TestR11_DrainStartsWhatIsMissing(t *testing.T) {
	l := &lostHandOffs{recorded: map[string]bool{"ann": true},
		winners: []packet.Claim{{PacketID: "p", UserID: "ann"}, {PacketID: "p", UserID: "bob"}, {PacketID: "p", UserID: "eve"}}}
	steps := &Packets{Store: l, Pool: l, Starter: l}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(steps.Drain)
	if _, err := env.ExecuteActivity(steps.Drain, packet.Packet{ID: "p", App: "app"}, packet.Facts{}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"bob of app", "eve of app"}; !slices.Equal(l.started, want) {
		t.Errorf("started %q, want %q", l.started, want)
	}
}

// withConflict is a packet with a share conflict that its rebuilt pool lacks.
type withConflict struct{ lostHandOffs }

func (p *withConflict) CountClaims(context.Context, string) (shares, conflicts int, err error) {
	return len(p.recorded), 1, nil
}

// TestR9_DrainLooksPastConflicts: a share conflict that the pool lacks does not hide a missing
// winner, though the counts agree.
func TestR9_DrainLooksPastConflicts(t *testing.T) {
	p := &withConflict{lostHandOffs{recorded: map[string]bool{"ann": true},
		winners: []packet.Claim{{PacketID: "p", UserID: "ann"}, {PacketID: "p", UserID: "bob"}}}}
	steps := &Packets{Store: p, Pool: p, Starter: p}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(steps.Drain)
	if _, err := env.ExecuteActivity(steps.Drain, packet.Packet{ID: "p", App: "app"}, packet.Facts{}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"bob of app"}; !slices.Equal(p.started, want) {
		t.Errorf("started %q, want %q", p.started, want)
	}
}

// busyRelay is a packet of which one claim is recorded between two checks.
type busyRelay struct{ lostHandOffs }

func (r *busyRelay) CountClaims(context.Context, string) (shares, conflicts int, err error) {
	if n := len(r.recorded); n < len(r.winners) {
		r.recorded[r.winners[n].UserID] = true
	}
	return len(r.recorded), 0, nil
}

// TestDrainLeavesTheRelayItsWork: while claims are being recorded, nothing is started twice.
func TestDrainLeavesTheRelayItsWork(t *testing.T) {
	t.Parallel()
	r := &busyRelay{lostHandOffs{recorded: map[string]bool{}}}
	for _, user := range []string{"ann", "bob", "eve", "ida", "joe", "kim", "lou"} { // enough looks for what would be a stall
		r.winners = append(r.winners, packet.Claim{PacketID: "p", UserID: user})
	}
	steps := &Packets{Store: r, Pool: r, Starter: r}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(steps.Drain)
	if _, err := env.ExecuteActivity(steps.Drain, packet.Packet{ID: "p", App: "app"}, packet.Facts{}); err != nil {
		t.Fatal(err)
	}
	if len(r.started) != 0 || len(r.recorded) != len(r.winners) {
		t.Errorf("started %q, recorded %d", r.started, len(r.recorded))
	}
}

// ledgerOfShares records what is funded and what is opened.
type ledgerOfShares struct {
	PacketStore
	Pool
	records map[string]packet.Record
	reads   int
	funded  map[string][]money.Fen
	opened  map[string][]money.Fen
}

func (l *ledgerOfShares) PacketRow(_ context.Context, id string) (packet.Record, error) {
	l.reads++
	return l.records[id], nil
}

func (l *ledgerOfShares) Fund(_ context.Context, id string, shares []money.Fen) (packet.Status, error) {
	l.funded[id] = shares
	return packet.StatusOpen, nil
}

func (*ledgerOfShares) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{}, nil
}

func (l *ledgerOfShares) OpenPool(_ context.Context, id string, shares []money.Fen, _ func(int)) error {
	l.opened[id] = shares
	return nil
}

// TestOpenPoolOpensWhatWasFunded: the pool gets the shares of MySQL, also if another packet was
// funded in between, and if it is opened again.
func TestOpenPoolOpensWhatWasFunded(t *testing.T) {
	key := [32]byte{3}
	l := &ledgerOfShares{records: map[string]packet.Record{}, funded: map[string][]money.Fen{}, opened: map[string][]money.Fen{}}
	var ids []string
	for _, name := range []string{"a", "b"} {
		id := packet.NewID([]byte("salt"), name)
		sealed, err := packet.SealSeed(key, id, packet.DeriveSeed(key, id))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		l.records[id] = packet.Record{Stored: packet.StatusFunding, SealedSeed: sealed,
			Packet: packet.Packet{ID: id, TotalAmount: 10_000, ShareCount: 50, Split: packet.SplitRandom, MinShare: 1}}
	}
	steps := &Packets{Store: l, Pool: l, SeedKey: key}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(steps)
	do := func(step any, id string) {
		t.Helper()
		if _, err := env.ExecuteActivity(step, packet.Packet{ID: id}, packet.Facts{}); err != nil {
			t.Fatal(err)
		}
	}
	open := func(id string, reads int) {
		t.Helper()
		l.reads = 0
		delete(l.opened, id)
		do(steps.OpenPool, id)
		if got := l.opened[id]; len(got) != 50 || !slices.Equal(got, l.funded[id]) || l.reads != reads {
			t.Errorf("packet %s: funded %v, opened %v, the row was read %d times, want %d", id, l.funded[id], got, l.reads, reads)
		}
	}
	do(steps.Fund, ids[0])
	open(ids[0], 0)
	open(ids[0], 1)
	do(steps.Fund, ids[0])
	do(steps.Fund, ids[1])
	open(ids[0], 1)
	open(ids[1], 0)
	if slices.Equal(l.opened[ids[0]], l.opened[ids[1]]) {
		t.Error("both packets have the same shares")
	}
}

// slowBooks blocks until a heartbeat has arrived.
type slowBooks struct {
	PacketStore
	Provider
	beats chan struct{}
}

func (slowBooks) Name() string { return "sandbox" }

func (b slowBooks) CloseBooks(context.Context, string, packet.CloseReason) (money.Fen, error) {
	select {
	case <-b.beats:
		return 7, nil
	case <-time.After(wait.Limit()):
		return 0, errors.New("the step does not beat")
	}
}

// TestClosingHeartbeats: reading a million shares takes longer than the heartbeat timeout.
func TestClosingHeartbeats(t *testing.T) {
	t.Parallel()
	b := slowBooks{beats: make(chan struct{}, 100)}
	steps := &Packets{Store: b}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { b.beats <- struct{}{} })
	env.RegisterActivity(steps.CloseBooks)
	if _, err := env.ExecuteActivity(steps.CloseBooks, packet.Packet{ID: "p"}, packet.Facts{}); err != nil {
		t.Error(err)
	}
}
