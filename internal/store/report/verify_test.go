package report

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

func TestR12_VerifyLedger(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	for range 3 {
		manyLives(t, s)
	}
	v, found := verified(t, s)
	if len(found) != 0 || v.Packets != 12 || v.Payments == 0 || v.Attempts == 0 || v.Suspense != 600 ||
		v.OpenBreaks[payout.BreakSecondSuccess] != 3 {
		t.Fatalf("%+v, found %v", v, found)
	}
	var rows int64
	must(t, raw.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM transfers").Scan(&rows))
	if v.Transfers != rows {
		t.Errorf("%d of %d transfers read", v.Transfers, rows)
	}
	var paid string
	must(t, raw.QueryRowContext(t.Context(), "SELECT id FROM payments WHERE kind = 'p' AND status = 'paid' ORDER BY id LIMIT 1").Scan(&paid))
	// Each change is undone by its second statement; the tables' guards are off during it.
	for _, tc := range []struct {
		name, do, undo string
		want           staff.Rule
	}{
		{"paid row without posting", "UPDATE payments SET status = 'paid', version = version + 1000, failure_code = NULL WHERE status = " +
			"'returned'",
			"UPDATE payments SET status = 'returned', version = version - 1000, failure_code = 'returned' WHERE version >= 1000",
			staff.RulePayment},
		{"claim lost", "UPDATE shares SET amount = amount + 1 WHERE user_id = 'u0'", "UPDATE shares SET amount = amount - 1 WHERE user_id = 'u0'",
			staff.RuleClaims},
		{"claim not listed", "UPDATE claims SET packet_id = CONCAT('z', SUBSTRING(packet_id, 2)) WHERE user_id = 'u0'",
			"UPDATE claims c JOIN shares s USING (user_id, share_index, claimed_at) SET c.packet_id = s.packet_id WHERE c.packet_id LIKE 'z%'",
			staff.RuleClaims},
		{"claim listed with another share", "UPDATE claims SET share_index = share_index + 1000 WHERE user_id = 'u0'",
			"UPDATE claims SET share_index = share_index - 1000 WHERE share_index >= 1000", staff.RuleClaims},
		{"remainder changed", "UPDATE packets SET remainder = remainder + 1 WHERE remainder IS NOT NULL",
			"UPDATE packets SET remainder = remainder - 1 WHERE remainder IS NOT NULL", staff.RuleRemainder},
		{"booked without posting", "UPDATE attempts SET booked = 1, asks = asks + 1000 WHERE booked = 0",
			"UPDATE attempts SET booked = 0, asks = asks - 1000 WHERE asks >= 1000", staff.RuleAttempt},
		{"payment deleted", "UPDATE payments SET id = CONCAT('z', SUBSTRING(id, 2)) WHERE id = '" + paid + "'",
			"UPDATE payments SET id = CONCAT('p', SUBSTRING(id, 2)) WHERE id LIKE 'z%'", staff.RuleUnknown},
		{"attempt of nobody", "INSERT INTO attempts SELECT 'x', 'x', 1, op, account, request, sends, asks, noted_until, open_until, statement, " +
			"refused, booked, return_booked, next_action, next_at, asked_at, ask_wanted_at, observed, code, message, provider_ref, sealed_action, " +
			"started_at, ask_until, ended_at, forgotten, consented, renew_at FROM attempts LIMIT 1",
			"DELETE FROM attempts WHERE order_no = 'x'", staff.RuleUnknown},
		{"status without time", "UPDATE payments SET settled_at = NULL WHERE id = '" + paid + "'",
			"UPDATE payments SET settled_at = updated_at WHERE id = '" + paid + "'", staff.RuleSettled},
	} {
		tamper(t, raw, tc.do)
		if _, found := verified(t, s); !slices.ContainsFunc(found, func(v staff.Violation) bool { return v.Rule == tc.want }) {
			t.Errorf("%s: found %v, want %s", tc.name, found, tc.want)
		}
		tamper(t, raw, tc.undo)
		if _, found := verified(t, s); len(found) != 0 {
			t.Fatalf("%s is not undone: %v", tc.name, found)
		}
	}
	// A transfer can only be added: it was owed to no one, and its packet does not exist.
	tamper(t, raw, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
		VALUES ('nobody', 'paid', 'owed', 'provider', 5, 'p-nobody', 'p-nobody:paid', NOW(3), 'sandbox')`)
	if _, found := verified(t, s); len(found) != 2 || found[0].Rule != staff.RuleUnknown {
		t.Errorf("found %v", found)
	}
}

// TestVerifyPages: pages meet without a gap, also within one packet.
func TestVerifyPages(t *testing.T) {
	t.Parallel()
	p := &pages[int]{size: 3, read: func(last *int) ([]int, error) {
		from := 0
		if last != nil {
			from = *last + 1
		}
		var out []int
		for n := from; n < 10 && len(out) < 3; n++ {
			out = append(out, n)
		}
		return out, nil
	}}
	for want := range 10 {
		got, err := p.peek()
		if err != nil || got == nil || *got != want {
			t.Fatalf("%v, %v, want %d", got, err, want)
		}
		p.skip()
	}
	if got, err := p.peek(); got != nil || err != nil {
		t.Errorf("%v, %v after the end", got, err)
	}
}

// TestHealthSnapshot: the unfinished part of many payments.
func TestHealthSnapshot(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	manyLives(t, s)
	c.Pass(48 * time.Hour)
	must(t, s.CountRepair(t.Context(), "packet_without_run", "x"))
	must(t, s.CountRepair(t.Context(), "packet_without_run", "y"))
	for _, name := range []string{"x", "y"} {
		tamper(t, s.db.SQL,
			"INSERT INTO holds (scope, name, kind, cause, reason, placed_by, placed_role, placed_at) VALUES ('provider', '"+name+"', 'staff', '', "+
				"'r', 'o', 'ops', '2026-01-01')")
	}
	tamper(t, s.db.SQL, "UPDATE holds SET released_at = '2026-01-02', released_by = 'o' WHERE name = 'y'")
	must(t, s.AddPoolLanes(t.Context(), []fence.LaneRow{{Lane: 0, Epoch: 1, State: fence.LaneOpen},
		{Lane: 1, Epoch: 1, State: fence.LaneShut, Reason: fence.LaneKeyMissing}}))
	r := NewHealthReader(s.Source)
	v := storetest.NewSnapshot()
	must(t, r.Read(t.Context(), v))
	found := map[string]int64{}
	for _, p := range v.Payments {
		found[p.Kind+" "+p.Status] = p.Waiting
		if (p.Waiting == 0) != p.Oldest.IsZero() {
			t.Errorf("%+v", p)
		}
	}
	if found["charge pending"] != 1 || found["charge failed"] != 0 || found["payout pending"] != 1 || found["payout returned"] != 1 ||
		len(found) != 28 {
		t.Errorf("payments %v", found)
	}
	if len(v.Overdue) != 3 || v.Overdue[0].Waiting != 1 || v.Overdue[1].Waiting != 1 || v.Overdue[2].Waiting != 0 {
		t.Errorf("overdue %+v", v.Overdue)
	}
	open := map[string]int64{}
	for _, b := range v.Breaks {
		if open[b.Kind] = b.Waiting; (b.Waiting == 0) != b.Oldest.IsZero() {
			t.Errorf("%+v", b)
		}
	}
	if len(open) != len(payout.MachineBreaks)+len(payout.StatementBreaks) || open[string(payout.BreakSecondSuccess)] != 1 {
		t.Errorf("breaks %v", open)
	}
	if since, known := v.HeldProviders["x"]; !known || since.IsZero() || !v.HeldProviders["y"].IsZero() || len(v.HeldProviders) != 2 {
		t.Errorf("held %v", v.HeldProviders)
	}
	if v.Repairs["packet_without_run"] != 2 || v.Imbalanced != 0 || v.Suspense != 200 {
		t.Errorf("%+v", v)
	}
	if len(v.Lanes) != 3 || v.Lanes[0].Waiting != 1 || v.Lanes[1].Waiting != 1 || v.Lanes[1].Oldest.IsZero() || !v.Lanes[0].Oldest.IsZero() ||
		v.Lanes[2].Waiting != 0 || v.LostGrabs != 0 {
		t.Errorf("fences %+v, %d lost", v.Lanes, v.LostGrabs)
	}
	tamper(t, s.db.SQL, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
		SELECT packet_id, 'paid', 'owed', 'provider', 5000, order_no, CONCAT(order_no, ':x'), created_at, provider FROM transfers
		ORDER BY id DESC LIMIT 1`)
	for range 2 { // it stays wrong, with or without new transfers
		v = storetest.NewSnapshot()
		must(t, r.Read(t.Context(), v))
		if v.Imbalanced != 1 {
			t.Errorf("%d packets out of balance", v.Imbalanced)
		}
	}
}

// TestR13_HealthAfterRestore: after a restore of MySQL a running process checks new transfers,
// although it had read higher ids before.
func TestR13_HealthAfterRestore(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	older, _ := newStore(t)
	funded(t, older, 300, 2)
	tamper(t, older.db.SQL, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
		SELECT packet_id, 'paid', 'owed', 'provider', 5000, order_no, CONCAT(order_no, ':x'), created_at, provider FROM transfers
		ORDER BY id DESC LIMIT 1`)
	for range 5 {
		funded(t, s, 1000, 4)
		_, err := s.AdvanceHeartbeat(t.Context(), 0)
		must(t, err)
	}
	r, v := NewHealthReader(s.Source), storetest.NewSnapshot()
	if must(t, r.Read(t.Context(), v)); v.Imbalanced != 0 || r.posted == 0 {
		t.Fatalf("%d packets out of balance, up to %d", v.Imbalanced, r.posted)
	}
	*s.db, *older.db = *older.db, *s.db
	if b, err := s.CompareHeartbeat(t.Context(), 0); err != nil || b.State != payout.MySQLRestored {
		t.Fatalf("%+v, %v", b, err)
	}
	if must(t, r.Read(t.Context(), v)); v.Imbalanced != 1 {
		t.Errorf("%d packets out of balance, up to %d", v.Imbalanced, r.posted)
	}
}

// TestHealthReadsIndexes: no statement reads finished rows.
func TestHealthReadsIndexes(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	manyLives(t, s)
	for query, index := range map[string]string{
		"SELECT kind, status, COUNT(*) FROM payments FORCE INDEX (payments_status) WHERE " + unfinished +
			" GROUP BY kind, status": "payments_status",
		"SELECT COUNT(*), MIN(expires_at) FROM packets FORCE INDEX (packets_status) WHERE status = 'open' AND expires_at < NOW() + INTERVAL 9 " +
			"DAY": "packets_status",
		"SELECT id, packet_id FROM transfers WHERE id > 5 ORDER BY id DESC LIMIT " +
			"2000": "PRIMARY",
		"SELECT " + transferColumns + " FROM transfers FORCE INDEX (transfers_packet) WHERE (packet_id = 'a' AND id > 5) OR packet_id > 'a' " +
			"ORDER BY packet_id, id LIMIT 5000": "transfers_packet",
		"SELECT " + transferColumns + " FROM transfers FORCE INDEX (transfers_order) WHERE (order_no = 'a' AND id > 5) OR order_no > 'a' " +
			"ORDER BY order_no, id LIMIT 5000": "transfers_order",
		selectHolds: "holds_list",
		strings.ReplaceAll(selectItemHolds, "?", "1000"): "holds_list",
	} {
		rows, err := raw.QueryContext(t.Context(), "EXPLAIN "+query)
		must(t, err)
		columns, err := rows.Columns()
		must(t, err)
		if !rows.Next() {
			t.Fatal("nothing explained")
		}
		values := make([]sql.NullString, len(columns))
		to := make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		must(t, rows.Scan(to...))
		must(t, rows.Err())
		must(t, rows.Close())
		plan := map[string]string{}
		for i, name := range columns {
			plan[name] = values[i].String
		}
		if plan["key"] != index || plan["type"] != "range" && plan["type"] != "ref" {
			t.Errorf("%s\n%v", query, plan)
		}
		t.Log(plan["type"], plan["key"], plan["Extra"])
	}
}
