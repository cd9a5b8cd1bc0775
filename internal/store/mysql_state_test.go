package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
)

// another returns another process on the same database.
func another(t testing.TB, s *testStore, dsn string, cfg Config) *testStore {
	t.Helper()
	cfg.DSN = dsn
	o, err := Open(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, o.Close()) })
	o.db.Adjust = s.db.Adjust
	return &testStore{o, report.New(o.MySQL())}
}

// newHeartbeatStore returns a store whose MySQL has had three heartbeats, and its database.
func newHeartbeatStore(t testing.TB) (s *testStore, c *storetest.Clock, dsn string, set func(number int64)) {
	t.Helper()
	dsn = stacktest.MariaDB(t)
	s, c, raw := newStoreAt(t, dsn)
	for range 3 {
		_, err := s.AdvanceHeartbeat(t.Context(), 0)
		must(t, err)
	}
	return s, c, dsn, func(number int64) {
		_, err := raw.ExecContext(t.Context(), "UPDATE books SET number = ? WHERE id = 1", number)
		must(t, err)
	}
}

func TestR13_HeartbeatAdvances(t *testing.T) {
	t.Parallel()
	s, c, dsn, set := newHeartbeatStore(t)
	ctx := t.Context()
	b, err := s.MySQLState(ctx)
	if err != nil || b.Heartbeat != 3 || b.State != payout.MySQLNormal || b.HeartbeatAt.IsZero() {
		t.Fatalf("%+v, %v", b, err)
	}
	c.Pass(time.Minute)
	if same, err := s.CompareHeartbeat(ctx, 3); err != nil || same != b {
		t.Errorf("comparing changes %+v to %+v, %v", b, same, err)
	}
	if b, err = s.AdvanceHeartbeat(ctx, 3); err != nil || b.Heartbeat != 4 {
		t.Errorf("%+v, %v", b, err)
	}
	// A restore that loses nothing seen is not detected.
	set(4)
	if b, err = another(t, s, dsn, Config{}).AdvanceHeartbeat(ctx, 4); err != nil || b.Heartbeat != 5 || b.State != payout.MySQLNormal {
		t.Errorf("%+v, %v", b, err)
	}
	// Redis knows a higher number than MySQL: after one comparison every process knows it.
	set(2)
	fresh := another(t, s, dsn, Config{})
	must(t, fresh.CheckNotRestored(ctx)) // Redis was not read, and no process has noticed
	if b, err = fresh.CompareHeartbeat(ctx, 5); err != nil || b.State != payout.MySQLRestored || b.Heartbeat != 2 || b.Known != 5 ||
		b.RestoredAt.IsZero() {
		t.Fatalf("%+v, %v", b, err)
	}
	later := another(t, s, dsn, Config{})
	wantErr(t, later.CheckNotRestored(ctx), payout.ErrMySQLRestored)
	// The number does not rise, whatever Redis has lost since.
	if b, err = later.AdvanceHeartbeat(ctx, 0); err != nil || b.State != payout.MySQLRestored || b.Heartbeat != 2 || b.Known != 5 {
		t.Errorf("%+v, %v", b, err)
	}
}

// guarded are the operations, by name, that a restored MySQL must refuse.
type guarded map[string]func(s *testStore) error

// errHeld stands for a send that was not recorded.
var errHeld = errors.New("held")

// guardedCases makes one packet for each operation, in one database.
func guardedCases(t *testing.T, s *testStore) guarded {
	ctx := t.Context()
	closing := funded(t, s, 100, 2)
	_, err := s.BeginClosing(ctx, closing.ID, packet.CloseExpired)
	must(t, err)
	unopened := samplePacket(100, 2)
	recorded(t, s, unopened)
	pay(t, s, chargeID(unopened))
	charged, refused := recorded(t, s, samplePacket(100, 2)), recorded(t, s, samplePacket(100, 2))
	pay(t, s, chargeID(charged))
	failAs(t, s, chargeID(refused), "declined")
	first := owing(t, s)
	failed, cancelled, waiting, withdrawn := owing(t, s), owing(t, s), owing(t, s), openCancel(t, s)
	for _, id := range []string{failed, cancelled, waiting} {
		fail(t, s, id)
	}
	claimed, taken := funded(t, s, 100, 2), funded(t, s, 100, 2)
	claim(t, s, taken, 0, "u")
	w := by(t, s, staff.Write{Owner: "f", Role: "finance", Route: "r", BodyHash: "h", Reason: "why"})
	decision := func(d *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) { return 202, []byte("{}") }
	decide := func(s *testStore, key, id string, kind payout.DecisionKind) error {
		w := w
		w.Key = key
		_, err := s.Decide(ctx, w, id, payout.DecisionRequest{Kind: kind, ApproveFrom: 1 << 40}, decision)
		return err
	}
	must(t, decide(s, "cancel", cancelled, payout.DecisionCancel))
	approval := storetest.Query[string](t, s, "SELECT approval_id FROM decisions WHERE payment_id = ?", cancelled)
	agree := func(s *testStore, key, approval string) error {
		w := w
		w.Owner, w.Key = "g", key
		w = by(t, s, w)
		_, err := s.AnswerApproval(ctx, w, approval, true, decision)
		return err
	}
	must(t, agree(s, "agree", approval))
	must(t, decide(s, "waits", waiting, payout.DecisionCancel))
	waits := storetest.Query[string](t, s, "SELECT approval_id FROM decisions WHERE payment_id = ?", waiting)
	// Every order number of the cancelled payout is queried: only carrying out is left.
	for range 2 {
		settle(t, s, payout.SourceQuery, payout.OrderNo(cancelled, 1), payout.ObsDeclined)
	}
	held := func(b payout.SendStart, err error) error {
		if err == nil && b.Hold != nil && b.Order == nil {
			err = errHeld
		}
		return err
	}
	return guarded{
		"rebuild a lane": func(s *testStore) error {
			_, _, err := s.BeginRebuild(ctx, 0, "h", time.Minute, fence.LanePosition{})
			return err
		},
		"end a rebuild": func(s *testStore) error { // on a normal MySQL it fails for lack of a lane
			if err := s.EndRebuild(ctx, fence.Rebuild{}); !errors.Is(err, ErrMoved) {
				return err
			}
			return nil
		},
		"close the books": func(s *testStore) error { _, err := s.CloseBooks(ctx, closing.ID, ""); return err },
		"close what never opened": func(s *testStore) error {
			_, err := s.BeginClosing(ctx, unopened.ID, packet.CloseUnopened)
			return err
		},
		"write the shares": func(s *testStore) error { _, err := s.Fund(ctx, charged.ID, even(charged)); return err },
		"reject":           func(s *testStore) error { return s.RejectPacket(ctx, refused.ID, packet.Failure{Code: "declined"}) },
		"send":             func(s *testStore) error { return held(s.BeginSend(ctx, first, limits, encode)) },
		"book and send": func(s *testStore) error {
			return held(s.BeginClaim(ctx, claimOf(claimed, 0, "u"), limits, encode))
		},
		"book": func(s *testStore) error { _, err := s.RecordClaim(ctx, claimOf(claimed, 1, "v")); return err },
		"share conflict": func(s *testStore) error {
			_, err := s.RecordShareConflict(ctx, claimOf(taken, 0, "v"), "claimed by another")
			return err
		},
		"retry": func(s *testStore) error { return decide(s, "retry", failed, payout.DecisionRetry) },
		"agree": func(s *testStore) error { return agree(s, "agree late", waits) },
		"carry out a cancel": func(s *testStore) error {
			st, err := s.CarryOut(ctx, cancelled)
			if err == nil && st.Status != payout.StatusCancelled {
				t.Errorf("the cancel is not ready to be carried out: %+v", st)
			}
			return err
		},
		"withdraw a cancel": func(s *testStore) error {
			w := w
			w.Key = "withdraw"
			return storetest.ErrOnly(s.WithdrawCancel(ctx, w, withdrawn, decision))
		},
		"recall a packet": func(s *testStore) error {
			w := w
			w.Key = "recall"
			_, err := s.PlanRecall(ctx, w, claimed.ID, func(context.Context) (staff.Recall, error) {
				return staff.Recall{Before: "open", After: "closing"}, nil
			})
			return err
		},
		"plan many": func(s *testStore) error {
			w := w
			w.Key = "bulk"
			_, _, err := s.PlanBulk(ctx, w, []string{failed})
			return err
		},
	}
}

// TestR13_RestoredMySQLRefusesWrites: whatever closes, sends or decides is refused by a process that has
// seen a higher number, before any process has noticed, and then by every process. Nothing is
// changed. A normal MySQL lets all of it pass.
func TestR13_RestoredMySQLRefusesWrites(t *testing.T) {
	t.Parallel()
	s, _, dsn, set := newHeartbeatStore(t)
	ctx := t.Context()
	p := funded(t, s, 100, 2)
	claim(t, s, p, 0, "u")
	cases := guardedCases(t, s)
	sums := func() [4]int64 {
		return [4]int64{
			storetest.Query[int64](t, s, "SELECT COALESCE(SUM(version), 0) + COUNT(*) FROM payments"),
			storetest.Query[int64](t, s, "SELECT COALESCE(SUM(sends), 0) FROM attempts"), storetest.Query[int64](t, s,
				"SELECT COUNT(*) FROM staff_idempotency") +
				storetest.Query[int64](t, s, "SELECT COUNT(*) FROM audit"),
			storetest.Query[int64](t, s, "SELECT COUNT(*) FROM packets WHERE books_closed_at IS NOT NULL") +
				storetest.Query[int64](t, s, "SELECT COUNT(*) FROM decisions WHERE status = 'waiting'") +
				storetest.Query[int64](t, s, "SELECT COUNT(*) + COUNT(user_id) FROM shares") +
				storetest.Query[int64](t, s, "SELECT COUNT(*) FROM packets WHERE status = 'rejected'") + storetest.Query[int64](t, s,
				"SELECT COUNT(*) FROM breaks"),
		}
	}
	refuse := func(t *testing.T, s *testStore) {
		t.Helper()
		before := sums()
		for name, do := range cases {
			if err := do(s); !errors.Is(err, payout.ErrMySQLRestored) && !errors.Is(err, errHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := sums(); after != before {
			t.Errorf("changed: %v, before %v", after, before)
		}
	}
	unasked := another(t, s, dsn, Config{MustCompare: true})
	for name, do := range cases {
		if name != "let a send leave" { // its record was refused
			if err := do(unasked); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s before MySQL was compared: %v", name, err)
			}
		}
	}
	set(2)
	refuse(t, s)
	_, err := another(t, s, dsn, Config{}).CompareHeartbeat(ctx, 3)
	must(t, err)
	refuse(t, s)
	refuse(t, another(t, s, dsn, Config{}))
	// A recorded claim stays recorded; a recovery records claims and share conflicts.
	claim(t, s, p, 0, "u")
	must(t, storetest.ErrOnly(s.RecoverClaim(ctx, claimOf(p, 1, "v"))))
	must(t, storetest.ErrOnly(s.RecoverShareConflict(ctx, claimOf(p, 1, "w"), "claimed by another")))

	_, err = s.db.SQL.ExecContext(ctx, "UPDATE books SET number = 10, state = 'normal' WHERE id = 1")
	must(t, err)
	must(t, func() error { _, err := unasked.CompareHeartbeat(ctx, 3); return err }())
	for name, do := range cases {
		if err := do(unasked); err != nil {
			t.Errorf("%s on a normal MySQL: %v", name, err)
		}
	}
	wantErr(t, storetest.ErrOnly(s.RecoverClaim(ctx, claimOf(funded(t, s, 100, 1), 0, "u"))), ErrMoved)
	wantErr(t, storetest.ErrOnly(s.RecoverShareConflict(ctx, claimOf(p, 1, "x"), "claimed by another")), ErrMoved)
}

// TestR13_NumberSentAgain: an order number never received by the time of the backup becomes unknown
// once the provider knows it, and paid without a break. A repeat changes nothing, nor does a normal
// MySQL.
func TestR13_NumberSentAgain(t *testing.T) {
	t.Parallel()
	s, _, _, _ := newHeartbeatStore(t)
	ctx := t.Context()
	p := funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	id := payoutID(p, 0)
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsDeclined)
	if st := settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived); st.Status != payout.StatusFailed {
		t.Fatalf("%+v", st)
	}
	again := func() (bool, error) {
		was, err := s.PaymentRow(ctx, id)
		must(t, err)
		return s.RecoverAttempt(ctx, was, 1, time.Time{}, limits, encode)
	}
	_, err := again()
	wantErr(t, err, ErrMoved)
	_, err = s.DeclareRestored(ctx, staff.Write{Owner: "op", Role: "operator", Reason: "r"}, 0, s.Now())
	must(t, err)
	for n, want := range []bool{true, false} {
		put, err := again()
		if st, serr := s.PaymentState(ctx, id); err != nil || put != want || serr != nil || st.Status != payout.StatusUnknown ||
			st.Step.Do != payout.ActionQuery {
			t.Errorf("time %d: %v, %v; %+v, %v", n, put, err, st, serr)
		}
	}
	// MySQL was restored a second time since the payment was read.
	_, err = s.RecoverAttempt(ctx, payout.Payment{ID: id, Status: payout.StatusReturned, Attempt: 1}, 2, time.Time{}, limits, encode)
	wantErr(t, err, ErrMoved)
	if sends := storetest.Query[int](t, s, "SELECT sends FROM attempts WHERE payment_id = ?", id); sends != 2 {
		t.Errorf("%d sends", sends)
	}
	st := settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM breaks"); st.Status != payout.StatusPaid || n != 0 {
		t.Errorf("%+v, %d breaks", st, n)
	}
}
