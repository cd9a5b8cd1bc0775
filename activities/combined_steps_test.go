package activities

import (
	"cmp"
	"context"
	"errors"
	"reflect"
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
	ended   packet.Status // of a row that is past open
	// movedBack: the books of the row cannot be closed.
	movedBack bool
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

func (w *whole) RecordPacket(context.Context, packet.Packet, []byte, []string) (packet.Status, error) {
	return w.status, w.do("record")
}

func (w *whole) PacketRow(context.Context, string) (packet.Record, error) {
	return packet.Record{Packet: w.packet, Stored: w.status, SealedSeed: w.sealed}, nil
}

func (w *whole) Fund(context.Context, string, []money.Fen) (packet.Status, error) {
	return packet.StatusOpen, w.do("fund")
}

func (w *whole) OpenPool(context.Context, string, []money.Fen, func(int)) error { return w.do("open") }

func (w *whole) BeginClosing(context.Context, string, packet.CloseReason) (packet.Status, error) {
	return cmp.Or(w.ended, packet.StatusClosing), w.do("begin closing")
}

func (w *whole) ClosePool(_ context.Context, _ string, reason packet.CloseReason) (packet.PoolCloseResult, error) {
	return packet.PoolCloseResult{NotYet: w.notYet, Reason: reason}, w.do("close pool")
}

func (w *whole) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{ClaimedCount: w.won}, nil
}

func (w *whole) CountClaims(context.Context, string) (n, _ int, _ error) {
	if len(w.winners) > 0 {
		n, w.winners = w.winners[0], w.winners[1:]
	}
	return n, 0, w.do("count")
}

func (w *whole) CloseBooks(_ context.Context, _ string, reason packet.CloseReason) (money.Fen, error) {
	w.reason = reason
	if err := w.do("close books"); err != nil || !w.movedBack {
		return w.rest, err
	}
	return 0, packet.ErrMoved
}

func (w *whole) FinishPacket(context.Context, string, *packet.FirstAnswer) (bool, error) {
	err := w.do("finish")
	return err == nil, err
}

func (w *whole) PaymentState(ctx context.Context, id string) (payout.State, error) {
	return w.rows.PaymentState(ctx, id)
}

func (w *whole) Retire(context.Context, string) error { return w.do("retire") }

func (w *whole) run(t *testing.T, out any, step func(*CombinedSteps) any, args ...any) error {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	a := &CombinedSteps{Packets: &Packets{Store: w, Pool: w, SeedKey: w.key}, Payments: w.Payments}
	value, err := env.ExecuteLocalActivity(step(a), args...)
	if err != nil {
		return err
	}
	return value.Get(out)
}

// TestAdvanceOpens: each step is taken once, in order, and the facts show the exact progress,
// whichever step fails or is not due.
func TestAdvanceOpens(t *testing.T) {
	charged := []string{"record", "note", "send stored", "settle"}
	funding, taken := packet.Facts{Status: packet.StatusFunding}, packet.Facts{Status: packet.StatusFunding, Charge: packet.ChargeTaken}
	unopened := []string{"begin closing", "close pool", "count", "close books", "finish", "retire"}
	for name, tc := range map[string]struct {
		set    func(*whole)
		did    []string
		want   packet.Facts
		charge payout.Status // while it is not final
	}{
		"all": {did: slices.Concat(charged, []string{"fund", "open"}),
			want: packet.Facts{Status: packet.StatusOpen, Charge: packet.ChargeTaken, Pool: packet.PoolUsed}},
		"record breaks": {set: func(w *whole) { w.breaks = "record" }, did: charged[:1]},
		"note breaks":   {set: func(w *whole) { w.rows.beginErr = errBroke }, did: charged[:2], want: funding},
		"fund breaks":   {set: func(w *whole) { w.breaks = "fund" }, did: slices.Concat(charged, []string{"fund"}), want: taken},
		"open breaks": {set: func(w *whole) { w.breaks = "open" }, did: slices.Concat(charged, []string{"fund", "open"}),
			want: packet.Facts{Status: packet.StatusOpen, Charge: packet.ChargeTaken}},
		"past funding": {set: func(w *whole) { w.status, w.breaks = packet.StatusClosing, "close pool" },
			did: []string{"record", "close pool"}, want: packet.Facts{Status: packet.StatusClosing}},
		"noted before: queried": {set: func(w *whole) { w.rows.noted = true }, did: charged[:2], want: funding, charge: payout.StatusSending},
		"answer not settled":    {set: func(w *whole) { w.rows.settleErr = errBroke }, did: charged, want: funding, charge: payout.StatusSending},
		"large":                 {set: func(w *whole) { w.packet.ShareCount = CombinedMaxShares + 1 }, did: charged, want: taken},
		"expired": {set: func(w *whole) { w.packet.ExpiresAt = w.at }, did: slices.Concat(charged, unopened),
			want: packet.Facts{Status: packet.StatusClosed, Charge: packet.ChargeTaken, Pool: packet.PoolEnded, Reason: packet.CloseUnopened,
				Remainder: new(money.Fen), Finished: true}},
		"slow provider": {set: func(w *whole) {
			for range slowCalls + 1 {
				w.calls.note(call{"sandbox", payout.OpCharge}, slowCall+1, w.at)
			}
		}, did: []string{"record", "read"}, want: funding, charge: payout.StatusPending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t)
			if tc.set != nil {
				tc.set(w)
			}
			got := w.advance(t, packet.Facts{}, tc.want, tc.did)
			var charge payout.Status
			if got.Charge != nil {
				charge = got.Charge.State.Status
			}
			if charge != tc.charge {
				t.Errorf("charge %q", charge)
			}
		})
	}
}

// advance takes the steps of the packet and compares those taken and the facts afterwards.
func (w *whole) advance(t *testing.T, from, want packet.Facts, did []string) (got Advanced) {
	t.Helper()
	if err := w.run(t, &got, func(a *CombinedSteps) any { return a.Advance }, w.packet, from); err != nil {
		t.Fatal(err)
	}
	w.want(t, did...)
	if !reflect.DeepEqual(got.Facts, want) {
		t.Errorf("facts %+v, want %+v", got.Facts, want)
	}
	return got
}

// TestAdvanceCloses: as TestAdvanceOpens; the books do not close while a claim is not recorded (rule
// R11).
func TestAdvanceCloses(t *testing.T) {
	all := []string{"begin closing", "close pool", "count", "close books", "finish", "retire"}
	open := packet.Facts{Status: packet.StatusOpen, Pool: packet.PoolUsed, Reason: packet.CloseExpired}
	after := func(change func(*packet.Facts)) packet.Facts {
		f := packet.Facts{Status: packet.StatusClosing, Pool: packet.PoolEnded, Reason: packet.CloseExpired}
		change(&f)
		return f
	}
	ended := after(func(*packet.Facts) {})
	closed := after(func(f *packet.Facts) { f.Status, f.Remainder, f.Finished = packet.StatusClosed, new(money.Fen), true })
	for name, tc := range map[string]struct {
		set  func(*whole)
		did  []string
		want packet.Facts
	}{
		"all": {did: all, want: closed},
		"a remainder": {set: func(w *whole) { w.rest = 7 }, did: all[:4],
			want: after(func(f *packet.Facts) { f.Remainder = new(money.Fen(7)) })},
		"closing breaks": {set: func(w *whole) { w.breaks = "begin closing" }, did: all[:1], want: open},
		"pool breaks": {set: func(w *whole) { w.breaks = "close pool" }, did: all[:2],
			want: after(func(f *packet.Facts) { f.Pool = packet.PoolUsed })},
		"not yet": {set: func(w *whole) { w.notYet = 1 }, did: all[:2],
			want: after(func(f *packet.Facts) { f.Pool, f.NotYet = packet.PoolUsed, 1 })},
		"count breaks": {set: func(w *whole) { w.breaks = "count" }, did: all[:3], want: ended},
		"books break":  {set: func(w *whole) { w.breaks = "close books" }, did: all[:4], want: ended},
		"finish breaks": {set: func(w *whole) { w.breaks = "finish" }, did: all[:5],
			want: after(func(f *packet.Facts) { f.Remainder = new(money.Fen) })},
		"a claim is not recorded": {set: func(w *whole) { w.won, w.winners = 2, []int{0, 1, 1} },
			did: []string{"begin closing", "close pool", "count", "count", "count"}, want: ended},
		"the last claim is recorded": {set: func(w *whole) { w.won, w.winners = 2, []int{1, 2} },
			did: slices.Insert(slices.Clone(all), 2, "count"), want: closed},
		"large: claims not read": {set: func(w *whole) { w.packet.ShareCount = CombinedMaxShares + 1 }, did: all[:2], want: ended},
		"the row is open no longer": {set: func(w *whole) { w.ended = packet.StatusClosed }, did: []string{all[0], all[4], all[5]},
			want: packet.Facts{Status: packet.StatusClosed, Pool: packet.PoolUsed, Reason: packet.CloseExpired, Finished: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t)
			if tc.set != nil {
				tc.set(w)
			}
			w.advance(t, open, tc.want, tc.did)
			if stored := w.reason == packet.CloseExpired; stored != slices.Contains(tc.did, "close books") {
				t.Errorf("the reason %q was stored with the books", w.reason)
			}
		})
	}
}

// TestAdvanceReadsTheRowAgain: MySQL is restored, so that the packet is open again when its books are
// to be closed. The facts of the run are void, and the row decides.
func TestAdvanceReadsTheRowAgain(t *testing.T) {
	w := newWhole(t)
	w.status, w.movedBack = packet.StatusOpen, true
	w.advance(t, packet.Facts{Status: packet.StatusClosing, Pool: packet.PoolEnded, Reason: packet.CloseExpired},
		packet.Facts{Status: packet.StatusOpen, Pool: packet.PoolUsed}, []string{"count", "close books", "record", "open"})
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
