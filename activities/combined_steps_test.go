package activities

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// whole is a packet and its charge or refund, on stores that record their calls; one call fails.
type whole struct {
	reason packet.CloseReason // that the row was given by the pool
	*short
	PacketStore
	Pool
	key     [32]byte
	packet  packet.Packet
	sealed  []byte
	status  packet.Status
	breaks  string
	winners []int // how many have their rows, look by look
	won     int
	rest    money.Fen
	notYet  time.Duration
}

func newWhole(t *testing.T) *whole {
	w := &whole{short: newShort(nil), key: [32]byte{3}, status: packet.StatusFunding}
	id := packet.NewID([]byte("salt"), "a")
	seed := packet.DeriveSeed(w.key, id)
	w.packet = packet.Packet{ID: id, TotalAmount: 100, ShareCount: 2, Split: packet.SplitRandom, MinShare: 1,
		Commitment: packet.Commitment(seed), ExpiresAt: w.at.Add(time.Hour)}
	var err error
	if w.sealed, err = packet.SealSeed(w.key, id, seed); err != nil {
		t.Fatal(err)
	}
	return w
}

var errBroke = errors.New("broke")

func (w *whole) do(step string) error {
	w.rows.did = append(w.rows.did, step)
	if step == w.breaks {
		return errBroke
	}
	return nil
}

func (w *whole) RecordPacket(context.Context, packet.Packet, []byte, []string, string) (packet.Status, error) {
	return w.status, w.do("record")
}

func (w *whole) Packet(context.Context, string) (packet.Record, error) {
	return packet.Record{Packet: w.packet, Stored: w.status, SealedSeed: w.sealed}, nil
}

func (w *whole) Fund(context.Context, string, []money.Fen) (packet.Status, error) {
	return packet.StatusOpen, w.do("fund")
}

func (w *whole) OpenPool(context.Context, string, []money.Fen, func(int)) error { return w.do("open") }

func (w *whole) BeginClosing(context.Context, string, packet.CloseReason) (packet.Status, error) {
	return packet.StatusClosing, w.do("begin closing")
}

func (w *whole) ClosePool(_ context.Context, _ string, reason packet.CloseReason) (packet.PoolCloseResult, error) {
	return packet.PoolCloseResult{NotYet: w.notYet, Reason: reason}, w.do("close pool")
}

func (w *whole) CorrectReason(_ context.Context, _ string, reason packet.CloseReason) error {
	w.reason = reason
	return nil
}

func (w *whole) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{ClaimedCount: w.won}, nil
}

func (*whole) ShareConflictUsers(context.Context, string) ([]string, error) { return nil, nil }

func (w *whole) CountRecordedClaims(context.Context, string) (n int, _ error) {
	if len(w.winners) > 0 {
		n, w.winners = w.winners[0], w.winners[1:]
	}
	return n, w.do("count")
}

func (w *whole) CloseBooks(context.Context, string) (money.Fen, error) {
	return w.rest, w.do("close books")
}

func (w *whole) FinishPacket(context.Context, string, *packet.FirstAnswer) (bool, error) {
	err := w.do("finish")
	return err == nil, err
}

func (w *whole) Retire(context.Context, string) error { return w.do("retire") }

func (w *whole) run(t *testing.T, out any, step func(*CombinedSteps) any, args ...any) error {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	a := &CombinedSteps{Packets: &Packets{Store: w, Pool: w, Provider: w.wire, SeedKey: w.key}, Payments: w.Payments}
	value, err := env.ExecuteLocalActivity(step(a), args...)
	if err != nil {
		return err
	}
	return value.Get(out)
}

// TestOpenNow: each step is made once, in order, and the result shows the exact progress,
// whichever step fails or is not due.
func TestOpenNow(t *testing.T) {
	charged := []string{"record", "note", "send stored", "settle"}
	for name, tc := range map[string]struct {
		set    func(*whole)
		did    []string
		status packet.Status
		charge payout.Status // "": not looked at
		open   bool
		fails  bool
	}{
		"all": {did: slices.Concat(charged, []string{"fund", "open"}), status: packet.StatusOpen, charge: payout.StatusPaid,
			open: true},
		"record breaks": {set: func(w *whole) { w.breaks = "record" }, did: charged[:1], fails: true},
		"note breaks":   {set: func(w *whole) { w.rows.beginErr = errBroke }, did: charged[:2], status: packet.StatusFunding},
		"fund breaks": {set: func(w *whole) { w.breaks = "fund" }, did: slices.Concat(charged, []string{"fund"}),
			status: packet.StatusFunding, charge: payout.StatusPaid},
		"open breaks": {set: func(w *whole) { w.breaks = "open" }, did: slices.Concat(charged, []string{"fund", "open"}),
			status: packet.StatusOpen, charge: payout.StatusPaid},
		"past funding": {set: func(w *whole) { w.status = packet.StatusClosing }, did: charged[:1], status: packet.StatusClosing},
		"noted before: asked": {set: func(w *whole) { w.rows.noted = true }, did: charged[:2], status: packet.StatusFunding,
			charge: payout.StatusSending},
		"answer not booked": {set: func(w *whole) { w.rows.settleErr = errBroke }, did: charged, status: packet.StatusFunding,
			charge: payout.StatusSending},
		"large": {set: func(w *whole) { w.packet.ShareCount = CombinedMaxShares + 1 }, did: charged, status: packet.StatusFunding,
			charge: payout.StatusPaid},
		"expired": {set: func(w *whole) { w.packet.ExpiresAt = w.at }, did: charged, status: packet.StatusFunding, charge: payout.StatusPaid},
		"slow provider": {set: func(w *whole) {
			for range slowCalls + 1 {
				w.calls.note(payout.OpCharge, slowCall+1, w.at)
			}
		}, did: []string{"record", "read"}, status: packet.StatusFunding, charge: payout.StatusPending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t)
			if tc.set != nil {
				tc.set(w)
			}
			var got Opened
			err := w.run(t, &got, func(a *CombinedSteps) any { return a.OpenNow }, w.packet)
			if (err != nil) != tc.fails {
				t.Fatalf("ended with %v", err)
			}
			w.want(t, tc.did...)
			var charge payout.Status
			if got.Charge != nil {
				charge = got.Charge.State.Status
			}
			if got.Status != tc.status || charge != tc.charge || got.PoolOpen != tc.open {
				t.Errorf("%+v, charge %q", got, charge)
			}
		})
	}
}

// TestCloseNow: as TestOpenNow; the packet does not close while a winner has no row (rule R11).
func TestCloseNow(t *testing.T) {
	all := []string{"begin closing", "close pool", "count", "close books", "finish", "retire"}
	for name, tc := range map[string]struct {
		set  func(*whole)
		did  []string
		want Closed
	}{
		"all": {did: all, want: Closed{Closing: true, PoolClosed: true, LedgerClosed: true, PacketClosed: true}},
		"a remainder": {set: func(w *whole) { w.rest = 7 }, did: all[:4],
			want: Closed{Closing: true, PoolClosed: true, LedgerClosed: true, Remainder: 7}},
		"closing breaks": {set: func(w *whole) { w.breaks = "begin closing" }, did: all[:1]},
		"pool breaks":    {set: func(w *whole) { w.breaks = "close pool" }, did: all[:2], want: Closed{Closing: true}},
		"not yet":        {set: func(w *whole) { w.notYet = 1 }, did: all[:2], want: Closed{Closing: true}},
		"count breaks":   {set: func(w *whole) { w.breaks = "count" }, did: all[:3], want: Closed{Closing: true, PoolClosed: true}},
		"books break":    {set: func(w *whole) { w.breaks = "close books" }, did: all[:4], want: Closed{Closing: true, PoolClosed: true}},
		"finish breaks": {set: func(w *whole) { w.breaks = "finish" }, did: all[:5],
			want: Closed{Closing: true, PoolClosed: true, LedgerClosed: true}},
		"a winner has no row": {set: func(w *whole) { w.won, w.winners = 2, []int{0, 1, 1} },
			did: []string{"begin closing", "close pool", "count", "count", "count"}, want: Closed{Closing: true, PoolClosed: true}},
		"the last winner is recorded": {set: func(w *whole) { w.won, w.winners = 2, []int{1, 2} },
			did:  slices.Insert(slices.Clone(all), 2, "count"),
			want: Closed{Closing: true, PoolClosed: true, LedgerClosed: true, PacketClosed: true}},
		"large: not looked at": {set: func(w *whole) { w.packet.ShareCount = CombinedMaxShares + 1 }, did: all[:2],
			want: Closed{Closing: true, PoolClosed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t)
			if tc.set != nil {
				tc.set(w)
			}
			var got Closed
			if err := w.run(t, &got, func(a *CombinedSteps) any { return a.CloseNow }, w.packet, packet.CloseExpired); err != nil {
				t.Fatal(err)
			}
			w.want(t, tc.did...)
			if closed := w.reason == packet.CloseExpired; closed != got.PoolClosed { // the row may have had an earlier one
				t.Errorf("the row says %q, the pool is closed: %t", w.reason, got.PoolClosed)
			}
			if got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestRefundNow: the packet is closed once its refund is paid, not before.
func TestRefundNow(t *testing.T) {
	sent := []string{"note", "send stored", "settle"}
	for name, tc := range map[string]struct {
		set    func(*whole)
		did    []string
		status payout.Status
		closed bool
		fails  bool
	}{
		"all":                 {did: slices.Concat(sent, []string{"finish", "retire"}), status: payout.StatusPaid, closed: true},
		"note breaks":         {set: func(w *whole) { w.rows.beginErr = errBroke }, did: sent[:1], fails: true},
		"answer not booked":   {set: func(w *whole) { w.rows.settleErr = errBroke }, did: sent, status: payout.StatusSending},
		"noted before: asked": {set: func(w *whole) { w.rows.noted = true }, did: sent[:1], status: payout.StatusSending},
		"finish breaks": {set: func(w *whole) { w.breaks = "finish" }, did: slices.Concat(sent, []string{"finish"}),
			status: payout.StatusPaid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t)
			if tc.set != nil {
				tc.set(w)
			}
			var got Refunded
			err := w.run(t, &got, func(a *CombinedSteps) any { return a.RefundNow }, payout.ID(payout.KindRefund, w.packet.ID, 0), w.packet.ID)
			if (err != nil) != tc.fails {
				t.Fatalf("ended with %v", err)
			}
			w.want(t, tc.did...)
			if got.State.Status != tc.status || got.PacketClosed != tc.closed {
				t.Errorf("%+v", got)
			}
		})
	}
}
