package report

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// desks are lists longer than the counting limit: half of the decisions need no approval, few breaks
// are open and few are of one kind, and one person wrote most of the audit.
const desks = `
INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at, preview_hash, approved_by,
	created_at, ended_at)
	SELECT CONCAT('x', payment), payment, 'cancel', 'why', 'li-na', 'finance', status, IF(two, CONCAT('y', payment), NULL), IF(two,
	NOW(3) + INTERVAL IF(seq MOD 100 = 2, -1, 1) HOUR, NULL), IF(two, REPEAT('h', 32), NULL),
		IF(two AND status IN ('open', 'carried_out', 'rejected'), 'wang-wei', NULL), NOW(3) - INTERVAL seq SECOND, IF(status IN ('waiting',
		'open'), NULL, NOW(3))
	FROM (SELECT seq, seq MOD 2 = 0 AS two, CONCAT('p', packet, LPAD(CONV(seq, 10, 32), 4, '0')) AS payment,
		CASE seq MOD 100 WHEN 0 THEN 'waiting' WHEN 2 THEN 'waiting' WHEN 4 THEN 'expired' WHEN 6 THEN 'overtaken' WHEN 8 THEN 'open' WHEN 10 THEN 'carried_out' ELSE IF(seq MOD 2, 'carried_out', 'rejected') END AS status
		FROM (SELECT seq, IF(seq MOD 2, 'ggggggggggggggggggg0', LPAD(LOWER(CONV(seq, 10, 32)), 20, '0')) AS packet FROM seq_1_to_24000) x) y;
INSERT INTO breaks (kind, packet_id, payment_id, order_no, amount, detail, created_at, last_seen, resolved_at, resolved_by, reason,
reconciliation_id)
	SELECT IF(seq MOD 100, 'not_in_statement', 'mismatch'), IF(seq MOD 300, 'ggggggggggggggggggg0', '00000000000000000004'),
		CASE seq MOD 6 WHEN 1 THEN CONCAT('pggggggggggggggggggg0', LPAD(CONV(seq, 10, 32), 4,
		'0')) WHEN 3 THEN 'pggggggggggggggggggg00001' ELSE CONCAT('p', seq) END, seq, ELT(seq MOD 6, NULL, seq, NULL, 7, 0), 'seen',
		NOW(3) - INTERVAL seq SECOND, NOW(3),
		IF(seq MOD 10, NOW(3), NULL), IF(seq MOD 10, 'li-na', NULL), IF(seq MOD 10, 'found', NULL), ELT(seq MOD 3, 'run1', 'run2')
		FROM seq_1_to_12000;
INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash)
	SELECT seq, NOW(3) - INTERVAL seq SECOND, IF(seq MOD 12, 'li-na', 'wang-wei'), 'finance', IF(seq MOD 5, 'ask', 'retry'), CONCAT('p',
	seq MOD 6000), '', 'null', 'null', REPEAT('h', 32) FROM seq_1_to_12000;
ANALYZE TABLE decisions, breaks, audit`

// tallies compares counts with the lists themselves.
type tallies struct {
	t   *testing.T
	s   *testStore
	raw *sql.DB
	rec *storetest.Recorder
}

func newTallies(t *testing.T) *tallies {
	t.Helper()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	for _, statements := range []string{archive, desks} {
		_, err := raw.ExecContext(t.Context(), statements)
		must(t, err)
	}
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	return &tallies{t: t, s: s, raw: raw, rec: rec}
}

// everything is more rows than any list has.
const everything = 100_000

// same: a count equals the list, or is at most the list when it is incomplete. Each statement reads
// a bounded number of rows.
func (x *tallies) same(name string, more bool, count func() (staff.ListTotal, error), list func() staff.Sum) {
	x.t.Helper()
	x.rec.Texts = nil
	got, err := count()
	must(x.t, err)
	counted := 0
	for _, text := range x.rec.Texts {
		if !strings.Contains(text, "FROM (") {
			continue // the clock
		}
		counted++
		x.bounded(text)
		most := 2 * (tallyLimit + 2) // rows found, and rows kept
		if strings.Contains(text, "JOIN payments") {
			most += tallyLimit + 1
		}
		readsAtMost(x.t, x.raw, text, most)
	}
	want := list()
	switch {
	case counted == 0:
		x.t.Errorf("%s: nothing was counted", name)
	case got.AtLeast != more:
		x.t.Errorf("%s: %+v, more %v is wanted", name, got, more)
	case !more && got.Sum != want, more && (got.Count > want.Count || got.Amount > want.Amount):
		x.t.Errorf("%s: %+v, the list has %+v", name, got, want)
	}
}

// bounded: an index finds the rows, and nothing is sorted.
func (x *tallies) bounded(text string) {
	x.t.Helper()
	rows, err := x.raw.QueryContext(x.t.Context(), "EXPLAIN "+text)
	must(x.t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(x.t, err)
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		must(x.t, rows.Scan(into...))
		cell := func(name string) string { return cells[slices.Index(columns, name)].String }
		if table := cell("table"); strings.HasPrefix(table, "<") || table == "" {
			continue // what was found, or nothing
		}
		if how := cell("type"); how == "ALL" || how == "index" || strings.Contains(cell("Extra"), "filesort") {
			x.t.Errorf("%s of %s by %q, %s: %s", how, cell("table"), cell("key"), cell("Extra"), text)
		}
	}
	must(x.t, rows.Err())
}

// TestTallies: staff lists are counted with every filter, and added up where they have amounts, by
// statements whose cost does not grow with the list.
func TestTallies(t *testing.T) {
	t.Parallel()
	x := newTallies(t)
	t.Run("Packets", func(t *testing.T) { x.in(t).packets() })
	t.Run("Approvals", func(t *testing.T) { x.in(t).approvals() })
	t.Run("Breaks", func(t *testing.T) { x.in(t).breaks() })
	t.Run("Audit", func(t *testing.T) { x.in(t).audit() })
}

func (x tallies) in(t *testing.T) *tallies {
	x.t = t
	return &x
}

func (x *tallies) packets() {
	hour := time.Now().Add(-time.Hour)
	_, err := x.raw.ExecContext(x.t.Context(), "UPDATE packets SET opens_at = created_at, expires_at = created_at + INTERVAL 1 HOUR WHERE "+
		"status = 'open' AND created_at < ?", hour)
	must(x.t, err)
	closed, late := []packet.Status{packet.StatusClosed}, []packet.Status{packet.StatusFunding, packet.StatusOpen, packet.StatusClosing}
	for _, tc := range []struct {
		f    packet.RecordFilter
		more bool
	}{
		{packet.RecordFilter{}, true}, {packet.RecordFilter{Stored: closed}, true}, {packet.RecordFilter{From: hour}, false},
		{packet.RecordFilter{To: hour}, false}, {packet.RecordFilter{Stored: closed, From: hour}, false},
		{packet.RecordFilter{App: "app1"}, false}, {packet.RecordFilter{App: "app1", Stored: closed, To: hour}, false},
		{packet.RecordFilter{SenderID: "giant"}, false}, {packet.RecordFilter{SenderID: "s42", From: hour}, false},
		{packet.RecordFilter{SenderID: "nobody"}, false}, {packet.RecordFilter{SenderID: "giant", Stored: closed}, false},
		{packet.RecordFilter{App: "app1", SenderID: "giant"}, false}, {packet.RecordFilter{App: "app2", SenderID: "giant", Stored: closed},
			false}, {packet.RecordFilter{Stored: late, ExpiresBefore: time.Now()}, false},
		{packet.RecordFilter{Stored: late, ExpiresBefore: time.Now(), App: "app1", To: hour.Add(-time.Hour)}, false},
		{packet.RecordFilter{Stored: late[:1], ExpiresBefore: time.Now(), SenderID: "s100"}, false},
	} {
		x.same(fmt.Sprintf("%+v", tc.f), tc.more, func() (staff.ListTotal, error) { return x.s.PacketTotal(x.t.Context(), tc.f) },
			func() (sum staff.Sum) {
				tc.f.Limit = everything
				rows, err := x.s.Packets(x.t.Context(), tc.f)
				must(x.t, err)
				for _, r := range rows {
					sum = sum.Plus(staff.Sum{Count: 1, Amount: r.TotalAmount})
				}
				return sum
			})
	}
	_, err = x.raw.ExecContext(x.t.Context(), "UPDATE packets SET total_amount = ? WHERE sender_id = 'giant'", int64(money.Max))
	must(x.t, err)
	if got, err := x.s.PacketTotal(x.t.Context(), packet.RecordFilter{SenderID: "giant"}); err != nil || got.Count != 6000 ||
		got.Amount != money.Saturated || got.AtLeast {
		x.t.Errorf("more than an amount can be: %+v, %v", got, err)
	}
}

func (x *tallies) approvals() {
	for status, more := range map[payout.DecisionStatus]bool{"": true, payout.DecisionWaiting: false, payout.DecisionOpen: false,
		payout.DecisionCarriedOut: true,
		payout.DecisionOvertaken:  false, payout.DecisionRejected: true, payout.DecisionExpired: false} {
		x.same(string(status), more, func() (staff.ListTotal, error) {
			return x.s.ApprovalTotal(x.t.Context(), staff.ApprovalFilter{Status: status})
		}, func() (sum staff.Sum) {
			rows, err := x.s.Approvals(x.t.Context(), staff.ApprovalFilter{Status: status, Limit: everything})
			must(x.t, err)
			for _, r := range rows {
				sum = sum.Plus(staff.Sum{Count: 1, Amount: r.Row.Amount})
			}
			return sum
		})
	}
	waiting, err := x.s.ApprovalTotal(x.t.Context(), staff.ApprovalFilter{Status: payout.DecisionWaiting})
	must(x.t, err)
	var sum int64
	for seq := int64(100); seq <= 24_000; seq += 100 { // as archive and desks make them
		sum += 1 + seq%1000
	}
	if waiting.Count != 240 || int64(waiting.Amount) != sum {
		x.t.Errorf("%+v, want 240 of %d fen", waiting, sum)
	}
}

func (x *tallies) breaks() {
	yes, no := true, false
	hour := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		f    staff.BreakFilter
		more bool
	}{
		{staff.BreakFilter{}, true}, {staff.BreakFilter{Resolved: &no}, false}, {staff.BreakFilter{Resolved: &yes}, true},
		{staff.BreakFilter{Kind: "mismatch"}, true}, {staff.BreakFilter{Kind: "mismatch", Resolved: &no}, false},
		{staff.BreakFilter{CreatedTo: hour}, false}, {staff.BreakFilter{CreatedTo: hour, Kind: "mismatch"}, false},
		{staff.BreakFilter{CreatedTo: hour, Resolved: &no}, false}, {staff.BreakFilter{CreatedTo: hour, Resolved: &yes}, true},
		{staff.BreakFilter{PacketID: giantPacket}, true}, {staff.BreakFilter{PacketID: "00000000000000000004"}, false},
		{staff.BreakFilter{PacketID: "00000000000000000004", Resolved: &no, Kind: "mismatch"}, false},
		{staff.BreakFilter{PacketID: giantPacket, Kind: "mismatch", CreatedTo: hour}, false},
		{staff.BreakFilter{ReconciliationID: "run1"}, false}, {staff.BreakFilter{ReconciliationID: "nothing"}, false},
		{staff.BreakFilter{ReconciliationID: "run2", Resolved: &yes, Kind: "mismatch"}, false},
		{staff.BreakFilter{ReconciliationID: "run2", PacketID: "00000000000000000004"}, false},
	} {
		var got staff.ListTotal
		x.same(fmt.Sprintf("%+v", tc.f), tc.more, func() (t staff.ListTotal, err error) {
			got, err = x.s.BreakTotal(x.t.Context(), tc.f)
			return got, err
		}, func() (sum staff.Sum) {
			tc.f.Limit = everything
			rows, err := x.s.Breaks(x.t.Context(), tc.f)
			must(x.t, err)
			without := int64(0)
			for _, r := range rows {
				amount := cmp.Or(r.Amount, r.PaymentAmount)
				if amount == 0 {
					without++
				}
				sum = sum.Plus(staff.Sum{Count: 1, Amount: amount})
			}
			if got.WithoutAmount > without || got.WithoutAmount < without && !tc.more {
				x.t.Errorf("%+v: %d without an amount, the list has %d", tc.f, got.WithoutAmount, without)
			}
			return sum
		})
	}
	open, err := x.s.BreakTotal(x.t.Context(), staff.BreakFilter{Resolved: &no})
	must(x.t, err)
	var sum, without int64
	for seq := int64(10); seq <= 12_000; seq += 10 { // as desks makes them; even ones are about no payment of ours
		switch seq % 6 {
		case 2:
			sum += seq
		case 4:
			sum += 7
		default:
			without++
		}
	}
	if open.Count != 1200 || int64(open.Amount) != sum || open.WithoutAmount != without {
		x.t.Errorf("%+v, want 1200 of %d fen, %d without", open, sum, without)
	}
	about := func(order string, want ...money.Fen) {
		x.t.Helper()
		rows, err := x.s.Breaks(x.t.Context(), staff.BreakFilter{CreatedTo: time.Now(), Limit: everything})
		must(x.t, err)
		i := slices.IndexFunc(rows, func(r staff.BreakRow) bool { return r.OrderNo == order })
		if i < 0 || rows[i].Amount != want[0] || rows[i].PaymentAmount != want[1] {
			x.t.Errorf("break of %s: %+v, want %d", order, rows[max(i, 0)], want)
		}
	}
	about("7", 0, 8)  // its payment's
	about("3", 0, 2)  // of a payment with many breaks
	about("10", 7, 0) // of no payment of ours
	about("6", 0, 0)  // of neither
}

func (x *tallies) audit() {
	hour := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		f    staff.AuditFilter
		more bool
	}{
		{staff.AuditFilter{}, true}, {staff.AuditFilter{From: hour}, false}, {staff.AuditFilter{To: hour}, false},
		{staff.AuditFilter{Actor: "li-na"}, true}, {staff.AuditFilter{Actor: "wang-wei"}, false}, {staff.AuditFilter{Actor: "nobody"}, false},
		{staff.AuditFilter{Actor: "li-na", Action: "retry"}, true}, {staff.AuditFilter{Actor: "li-na", Action: "retry", From: hour}, false},
		{staff.AuditFilter{Actor: "wang-wei", Action: "retry"}, false}, {staff.AuditFilter{Action: "ask"}, false},
		{staff.AuditFilter{Action: "retry", To: hour}, false}, {staff.AuditFilter{Subject: "p42"}, false},
		{staff.AuditFilter{Subject: "p42", Actor: "li-na", Action: "ask"}, false}, {staff.AuditFilter{Subject: "p42", From: hour}, false},
	} {
		x.same(fmt.Sprintf("%+v", tc.f), tc.more, func() (staff.ListTotal, error) { return x.s.AuditTotal(x.t.Context(), tc.f) },
			func() staff.Sum {
				tc.f.Limit = everything
				rows, err := x.s.Audit(x.t.Context(), tc.f)
				must(x.t, err)
				return staff.Sum{Count: int64(len(rows))}
			})
	}
}
