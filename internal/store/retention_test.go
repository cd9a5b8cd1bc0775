package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
)

const retainedDay = 24 * time.Hour

// removeAll removes old rows of every table, as a worker's turns do.
func removeAll(t *testing.T, s *testStore, keep time.Duration) map[staff.RetainedTable]int64 {
	t.Helper()
	out := map[staff.RetainedTable]int64{}
	for _, r := range staff.Retentions {
		if _, err := s.TakeRetentionTurn(t.Context(), r.Table, time.Hour); err != nil {
			t.Fatal(err)
		}
		var at staff.RetentionCursor
		for more := true; more; {
			n, next, left, err := s.RemoveOld(t.Context(), r.Table, keep, at)
			must(t, err)
			out[r.Table], at, more = out[r.Table]+n, next, left
		}
	}
	return out
}

func eventsOf(t *testing.T, s *testStore, id string) int {
	t.Helper()
	return storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ?", id)
}

// TestRetention: old rows about final payments are removed. Others stay, as does what waits or is
// open, and a staff write is repeatable until seven days after its packet's end. The ledger, and so
// the proof, loses nothing.
func TestRetention(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 700, 7)
	for i := range 4 {
		claim(t, s, p, i, fmt.Sprint("u", i))
	}
	paid, bad, waits := payoutID(p, 0), payoutID(p, 1), payoutID(p, 2)
	pay(t, s, paid)
	fail(t, s, bad)
	fail(t, s, waits)
	for i, id := range []string{paid, bad} {
		must(t, s.RecordNotification(ctx, adapter, fmt.Sprint("evt", i), payout.OrderNo(id, 1), []byte("{}")))
	}
	must(t, s.RecordNotification(ctx, adapter, "foreign", "Foreign1", []byte("{}")))
	proposed(t, s, waits, payout.DecisionRequest{Kind: payout.DecisionCancel})
	repeated := financeWrite(t, s, "repeated", "h")
	repeated.Route = "POST /v1/staff/payouts/" + paid + "/ask"
	first, err := s.Decide(ctx, repeated, paid, payout.DecisionRequest{Kind: payout.DecisionQuery}, render)
	must(t, err)
	must(t, s.db.Gorm.Exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by,
		reason)
		VALUES ('mismatch', '', '', 'Open1', '', ?, ?, NULL, NULL, NULL), ('mismatch', '', '', 'Done1', '', ?, ?, ?, 'x', 'y'),
		('mismatch', ?, ?, ?, '', ?, ?, ?, 'x', 'y')`, c.At, c.At, c.At, c.At, c.At, p.ID, bad, payout.OrderNo(bad, 1), c.At, c.At, c.At).Error)
	must(t,
		s.db.Gorm.Exec(`INSERT INTO statement_lines (provider, ref, day, op, order_no, account, amount, moved_at, created_at, reconciliation_id)
		VALUES ('x', '1', '2026-01-01', 'transfer', ?, 'a', 1, ?, ?, 'r'), ('x', '2', '2026-01-01', 'transfer', ?, 'a', 1, ?, ?, 'r'),
		('x', '3', '2026-01-01', 'transfer', 'Open1', 'a', 1, ?, ?, 'r'), ('x', '4', '2026-01-01', 'transfer', 'Done1', 'a', 1, ?, ?, 'r')`,
			payout.OrderNo(paid, 1), c.At, c.At, payout.OrderNo(bad, 1), c.At, c.At, c.At, c.At, c.At, c.At).Error)
	must(t, s.db.Gorm.Exec("INSERT INTO quarantine (lane, entry_id, content, error, created_at) VALUES (0, '1-1', '', 'e', ?)", c.At).Error)

	if got := removeAll(t, s, retainedDay); slices.ContainsFunc([]int64{got["notifications"], got["payment_events"], got["decisions"],
		got["breaks"], got["statement_lines"], got["quarantine"], got["staff_idempotency"]}, func(n int64) bool { return n != 0 }) {
		t.Errorf("nothing is old yet: %v", got)
	}
	before, err := s.Balances(ctx, p.ID)
	must(t, err)
	waiting := eventsOf(t, s, bad)
	c.Pass(40 * retainedDay)
	got := removeAll(t, s, 30*retainedDay) // of the answers, the one whose path names no payment
	for table, want := range map[staff.RetainedTable]int64{staff.RetainedNotifications: 2, staff.RetainedLines: 2, staff.RetainedBreaks: 1,
		staff.RetainedDecisions: 1, staff.RetainedQuarantine: 1, staff.RetainedStaffIdempotency: 1} {
		if got[table] != want {
			t.Errorf("%s: %d rows were removed, want %d", table, got[table], want)
		}
	}
	if eventsOf(t, s, paid) != 0 || eventsOf(t, s, bad) != waiting || waiting == 0 {
		t.Errorf("events: %d of what is paid, %d of %d of what failed", eventsOf(t, s, paid), eventsOf(t, s, bad), waiting)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM decisions WHERE payment_id = ?", waits); n != 1 {
		t.Errorf("%d decisions about what failed", n)
	}
	if after, err := s.Balances(ctx, p.ID); err != nil || after.ByAccount[payout.AccountOwed] != before.ByAccount[payout.AccountOwed] {
		t.Errorf("%v, %v", after, err)
	}
	if again, err := s.Decide(ctx, repeated, paid, payout.DecisionRequest{Kind: payout.DecisionQuery}, render); err != nil ||
		!again.Replayed ||
		string(again.Body) != string(first.Body) {
		t.Errorf("repeated while its packet is open: %+v, %v", again, err)
	}
	v := storetest.NewSnapshot()
	must(t, report.NewHealthReader(s.Source).Read(ctx, v))
	for _, r := range v.Retention {
		if r.Removed != got[staff.RetainedTable(r.Table)] || r.Table == "quarantine" && !r.Oldest.IsZero() ||
			r.Table == "payment_events" && r.Oldest.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	must(t,
		s.db.Gorm.Exec("UPDATE packets SET status = 'closed', close_reason = 'expired', closed_at = ?, books_closed_at = ?, remainder = 0, "+
			"claimed_count = 4 WHERE id = ?",
			s.Now(), s.Now(), p.ID).Error)
	for _, step := range []struct {
		pass time.Duration
		want int64
	}{{6 * retainedDay, 0}, {2 * retainedDay, 1}} {
		c.Pass(step.pass)
		if got := removeAll(t, s, 30*retainedDay)[staff.RetainedStaffIdempotency]; got != step.want {
			t.Errorf("%d answers were removed %v on, want %d", got, step.pass, step.want)
		}
	}
}

// TestRetentionTurns: one worker at a time removes from a table.
func TestRetentionTurns(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	turns := func() (n int) {
		mine := make([]bool, 4)
		for _, err := range together(len(mine), func(i int) (err error) {
			mine[i], err = s.TakeRetentionTurn(t.Context(), staff.RetainedBreaks, time.Hour)
			return err
		}) {
			must(t, err)
		}
		for _, yes := range mine {
			if yes {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{0, 1}, {59 * time.Minute, 0}, {2 * time.Minute, 1}} {
		c.Pass(step.pass)
		if got := turns(); got != step.want {
			t.Errorf("after %v %d have a turn, want %d", step.pass, got, step.want)
		}
	}
}

// TestRetentionReadsIndexes: a turn reads pages by an index, skips what stays, and removes by
// primary key.
func TestRetentionReadsIndexes(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	at := s.Now().Add(-100 * retainedDay)
	_, err := raw.ExecContext(t.Context(), `INSERT INTO payment_events (payment_id, at, source, op, order_no, outcome, code, event, args)
		SELECT 'p', ?, 'ledger', '', '', '', '', 'sent', '{}' FROM seq_1_to_3000;
		INSERT INTO notifications (provider, event_id, order_no, known, body, received_at)
		SELECT 'p', seq, CONCAT('x', seq), FALSE, '', ? FROM seq_1_to_3000;
		INSERT INTO statement_lines (provider, ref, day, op, order_no, account, amount, moved_at, created_at, reconciliation_id)
		SELECT 'sandbox', seq, '2026-01-01', 'charge', seq, 'a', 5, ?, ?, 'r' FROM seq_1_to_3000;
		INSERT INTO staff_idempotency (owner, route, idem_key, body_hash, status, body, created_at)
		SELECT 'o', 'r', seq, '', 200, '', ? FROM seq_1_to_3000;
		INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, created_at, ended_at)
		SELECT seq, 'p', 'ask', '', '', '', 'carried_out', ?, ? FROM seq_1_to_3000;
		INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by, reason)
		SELECT 'mismatch', '', '', seq, '', ?, ?, ?, 'x', 'y' FROM seq_1_to_3000;
		INSERT INTO quarantine (lane, entry_id, content, error, created_at) SELECT 1, seq, '', '', ? FROM seq_1_to_3000;
		ANALYZE TABLE payment_events, notifications, statement_lines, staff_idempotency, decisions, breaks, quarantine`,
		at, at, at, at, at, at, at, at, at, at, at)
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	got := removeAll(t, s, 30*retainedDay)
	v := storetest.NewSnapshot()
	must(t, report.NewHealthReader(s.Source).Read(t.Context(), v))
	// Without a payment row: an event or a decision always has one, and stays.
	for table, want := range map[staff.RetainedTable]int64{staff.RetainedEvents: 0, staff.RetainedDecisions: 0,
		staff.RetainedNotifications: 3000,
		staff.RetainedLines:         3000, staff.RetainedStaffIdempotency: 3000, staff.RetainedBreaks: 3000, staff.RetainedQuarantine: 3000} {
		if got[table] != want {
			t.Errorf("%s: %d rows were removed, want %d", table, got[table], want)
		}
	}
	explained := 0
	for _, text := range rec.Texts {
		if strings.Contains(text, "ORDER BY b.") {
			explain(t, raw, text)
			explained++
		}
	}
	if explained < 7*6 {
		t.Errorf("only %d statements were explained", explained)
	}
}
