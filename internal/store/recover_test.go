package store

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// The writes of a recovery on real rows; package simulate has them in memory.

// declared declares MySQL restored.
func declared(t *testing.T, s *testStore) payout.MySQLState {
	t.Helper()
	b, err := s.DeclareRestored(t.Context(), staff.Write{Owner: "op", Role: "operator", Reason: "r"}, 0, s.Now())
	must(t, err)
	return b
}

// ended ends the recovery, and operations release the provider.
func ended(t *testing.T, s *testStore, found payout.MySQLState) {
	t.Helper()
	must(t, storetest.ErrOnly(s.EndRecovery(t.Context(), staff.Write{Owner: "op", Role: "operator", Reason: "r"}, found, 0,
		[]string{provider}, []staff.StatementDay{{Provider: provider, Day: payout.DayOf(s.Now(), time.UTC)}}, nil)))
	must(t, storetest.ErrOnly(s.HoldProvider(t.Context(), financeWrite(t, s, rand.Text(), "h"), provider, false, renderProvider)))
}

// TestR13_ListIsLost: only a recovery records a packet whose user list is lost, and every reader
// sees that it is not open to everybody. Its shares take the claims won before; it does not open,
// and closes in full.
func TestR13_ListIsLost(t *testing.T) {
	s, _ := newStore(t)
	ctx := t.Context()
	p, later := samplePacket(1000, 2), samplePacket(500, 1)
	p.EligibleCount, later.EligibleCount = 2, 1
	wantErr(t, storetest.ErrOnly(s.RecordPacket(ctx, p, []byte("sealed"), nil)), ErrMoved)
	found := declared(t, s)
	for _, one := range []packet.Packet{p, later} {
		must(t, storetest.ErrOnly(s.RecordPacket(ctx, one, []byte("sealed"), nil)))
	}
	ended(t, s, found)
	pay(t, s, chargeID(p))
	found = declared(t, s)
	if status, err := s.RecoverFund(ctx, p.ID, even(p)); err != nil || status != packet.StatusClosing {
		t.Errorf("recovered as %s: %v", status, err)
	}
	must(t, storetest.ErrOnly(s.RecoverClaim(ctx, packet.Claim{PacketID: p.ID, UserID: "guest", Amount: 500, ClaimedAt: s.Now()})))
	ended(t, s, found)
	pay(t, s, chargeID(later))
	for _, one := range []packet.Packet{p, later} {
		if status, err := s.Fund(ctx, one.ID, even(one)); err != nil || status != packet.StatusClosing {
			t.Errorf("funded as %s: %v", status, err)
		}
		rec, err := s.Packet(ctx, one.ID)
		must(t, err)
		pool, _, err := s.PoolOf(ctx, one.ID)
		must(t, err)
		listed, err := s.Packets(ctx, packet.RecordFilter{App: one.App, Limit: 10})
		must(t, err)
		unfinished, _, err := s.UnfinishedPacket(ctx, one.ID)
		must(t, err)
		counts := []int{rec.EligibleCount, pool.EligibleCount, unfinished.EligibleCount}
		for _, l := range listed {
			if l.ID == one.ID {
				counts = append(counts, l.EligibleCount)
			}
		}
		if want := slices.Repeat([]int{one.EligibleCount}, 4); !slices.Equal(counts, want) || !rec.EligibleListLost() ||
			!pool.EligibleListLost() ||
			rec.Reason != packet.CloseUnopened {
			t.Errorf("for %v users, closed as %s", counts, rec.Reason)
		}
	}
	if remainder, err := s.CloseBooks(ctx, p.ID, ""); err != nil || remainder != 500 {
		t.Errorf("remainder %d: %v", remainder, err)
	}
	if remainder, err := s.CloseBooks(ctx, later.ID, ""); err != nil || remainder != 500 {
		t.Errorf("remainder %d: %v", remainder, err)
	}
}

// TestR13_RejectedAgain: Redis knows that a packet was rejected. A charge that succeeded is refunded
// in full, any other is not. A repeat changes nothing.
func TestR13_RejectedAgain(t *testing.T) {
	s, _ := newStore(t)
	ctx := t.Context()
	charged, refused := recorded(t, s, samplePacket(100, 1)), recorded(t, s, samplePacket(100, 1))
	pay(t, s, chargeID(charged))
	fail(t, s, chargeID(refused))
	why := packet.Failure{Code: "declined", Message: "y"}
	wantErr(t, s.RecoverRejected(ctx, charged.ID, why), ErrMoved)
	found := declared(t, s)
	for range 2 {
		for _, p := range []packet.Packet{charged, refused} {
			must(t, s.RecoverRejected(ctx, p.ID, why))
			rec, err := s.Packet(ctx, p.ID)
			must(t, err)
			if rec.Stored != packet.StatusRejected || rec.Failure == nil || *rec.Failure != why {
				t.Errorf("%s, %+v", rec.Stored, rec.Failure)
			}
		}
	}
	ended(t, s, found)
	back, err := s.PaymentRow(ctx, refundID(charged))
	if err != nil || back.Status != payout.StatusPending || back.Amount != 100 {
		t.Errorf("%+v, %v", back, err)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE kind = 'r'"); n != 1 {
		t.Errorf("%d refunds", n)
	}
	pay(t, s, back.ID)
	if _, wrong := verified(t, s); len(wrong) != 0 {
		t.Errorf("%+v", wrong)
	}
}

// TestR13_RemainderAsRefunded: a packet is closed with the remainder that was refunded. Another
// amount is undecided and changes nothing.
func TestR13_RemainderAsRefunded(t *testing.T) {
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 100, 2)
	claim(t, s, p, 0, "u")
	found := declared(t, s)
	wantErr(t, s.RecoverRemainder(ctx, p.ID, 100, packet.CloseRecalled), payout.ErrUndecided)
	if rec, err := s.Packet(ctx, p.ID); err != nil || rec.Stored != packet.StatusOpen || !rec.BooksClosedAt.IsZero() {
		t.Errorf("%s, %s, %v", rec.Stored, rec.BooksClosedAt, err)
	}
	for range 2 {
		must(t, s.RecoverRemainder(ctx, p.ID, 50, packet.CloseRecalled))
	}
	rec, err := s.Packet(ctx, p.ID)
	if err != nil || rec.Stored != packet.StatusClosing || rec.Reason != packet.CloseRecalled || rec.Remainder != 50 {
		t.Errorf("%+v, %v", rec, err)
	}
	_, err = s.RecoverClaim(ctx, claimOf(p, 1, "late"))
	wantErr(t, err, packet.ErrBooksClosed)
	ended(t, s, found)
	pay(t, s, refundID(p))
	if _, wrong := verified(t, s); len(wrong) != 0 {
		t.Errorf("%+v", wrong)
	}
}

// TestR13_RecoveryOfEarlierRestoreIsRefused: MySQL was restored again during its recovery. The end of that
// recovery is refused.
func TestR13_RecoveryOfEarlierRestoreIsRefused(t *testing.T) {
	s, c := newStore(t)
	first := declared(t, s)
	ended(t, s, first)
	c.Pass(time.Minute)
	again := declared(t, s)
	_, err := s.EndRecovery(t.Context(), staff.Write{Owner: "op", Role: "operator", Reason: "r"}, first, 0, []string{provider}, nil,
		nil)
	wantErr(t, err, ErrMoved)
	wantErr(t, s.CheckNotRestored(t.Context()), payout.ErrMySQLRestored)
	ended(t, s, again)
	must(t, s.CheckNotRestored(t.Context()))
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM reconciliations WHERE status = 'requested' AND requested_by = 'op'"); n < 1 {
		t.Error("the day is not reconciled again")
	}
}

// TestR13_UnresolvedChargeNeedsAnotherRecovery: the last recovery had no answer about a charge. The packet
// is not released while it has no shares: its winners could not be recorded, and all of it would be
// refunded. Another recovery that knows the outcome ends that.
func TestR13_UnresolvedChargeNeedsAnotherRecovery(t *testing.T) {
	s, c := newStore(t)
	ctx := t.Context()
	p := recorded(t, s, samplePacket(100, 2))
	o := begin(t, s, chargeID(p))
	found := declared(t, s)
	must(t, s.NoteUndecided(ctx, p.ID, o.OrderNo, "no usable answer"))
	ended(t, s, found)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	wantErr(t, storetest.ErrOnly(s.Fund(ctx, p.ID, even(p))), payout.ErrHeld)
	wantErr(t, storetest.ErrOnly(s.BeginClosing(ctx, p.ID, packet.CloseUnopened)), payout.ErrHeld)
	id := storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = 'packet'")
	wantErr(t, storetest.ErrOnly(s.ReleaseHold(ctx, financeWrite(t, s, "release", "h"), id, renderHold)), payout.ErrRecoveryRequired)
	plan, err := s.PreviewRelease(ctx, storetest.StaffWrite(t, s, "anna"), id)
	if wantErr(t, err, payout.ErrRecoveryRequired); plan.Hold.ID != id {
		t.Errorf("%+v", plan)
	}
	c.Pass(time.Minute)
	found = declared(t, s)
	must(t, storetest.ErrOnly(s.RecoverFund(ctx, p.ID, even(p))))
	ended(t, s, found)
	releaseByTwo(t, s, id)
	must(t, storetest.ErrOnly(s.BeginClosing(ctx, p.ID, packet.CloseExpired)))
	must(t, storetest.ErrOnly(s.CloseBooks(ctx, p.ID, "")))
}

// TestR13_BalancesHeld: after a recovery two persons release the balances of apps, on every path. Until then
// nothing is debited, while credits are recorded.
func TestR13_BalancesHeld(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	moveBalance(t, s, "app", payout.PostCredit, 500)
	debit := func(reference, want string) string {
		t.Helper()
		a := askMovement(t, s, staff.BalanceMovement{App: "app", Kind: payout.PostDebit, Amount: 100, Reference: reference})
		if words := strings.Fields(string(a.Body)); !slices.Contains(words, want) {
			t.Errorf("a debit: %d %s, want %s", a.Status, a.Body, want)
		} else if want == "waiting" {
			return words[2]
		}
		return ""
	}
	approve := func(id, want string) {
		t.Helper()
		a, err := s.AnswerApproval(ctx, storetest.StaffWrite(t, s, "finance2"), id, true, render)
		must(t, err)
		if !strings.Contains(string(a.Body), want) {
			t.Errorf("the approval of a debit: %d %s, want %s", a.Status, a.Body, want)
		}
	}
	asked := debit("before", "waiting")
	found := declared(t, s)
	must(t, storetest.ErrOnly(s.EndRecovery(ctx, staff.Write{Owner: "op", Role: "operator", Reason: "r"}, found, 0,
		[]string{payout.BalanceProvider, provider}, nil, nil)))
	providerHold := func(owner, name string, hold bool) error {
		return storetest.ErrOnly(s.HoldProvider(ctx, storetest.StaffWrite(t, s, owner), name, hold, renderProvider))
	}
	must(t, providerHold("anna", payout.BalanceProvider, true)) // another hold, which does not hide that of the recovery
	must(t, providerHold("anna", provider, false))              // one person suffices
	state, err := s.ProviderState(ctx, payout.BalanceProvider)
	must(t, err)
	if state.Hold == nil || !state.Hold.OfBalances() {
		t.Fatalf("%+v", state.Hold)
	}
	release := func(owner string) (after payout.Hold, second bool) {
		t.Helper()
		must(t, storetest.ErrOnly(s.ReleaseHold(ctx, storetest.StaffWrite(t, s, owner), state.Hold.ID, func(h payout.Hold,
			r staff.Releases) (int, []byte) {
			after, second = h, r.NeedSecondPerson(h)
			return 200, []byte("{}")
		})))
		return after, second
	}
	for _, owner := range []string{"anna", "ben"} {
		wantErr(t, providerHold(owner, payout.BalanceProvider, false), payout.ErrHeld)
	}
	for range 2 {
		if h, second := release("anna"); !h.ReleasedAt.IsZero() || h.Release == nil || !second {
			t.Fatalf("one person released %+v", h)
		}
	}
	wantErr(t, providerHold("ben", payout.BalanceProvider, false), payout.ErrHeld)
	approve(asked, "held")
	debit("during", "held")
	moveBalance(t, s, "app", payout.PostCredit, 10)
	balanceIs(t, s, 510, 0)
	if h, second := release("ben"); h.ReleasedAt.IsZero() || second {
		t.Errorf("two persons did not release %+v", h)
	}
	approve(asked, "held") // by the hold of staff
	must(t, providerHold("anna", payout.BalanceProvider, false))
	approve(asked, "carried_out")
	debit("during", "waiting")
	balanceIs(t, s, 410, 0)
}
