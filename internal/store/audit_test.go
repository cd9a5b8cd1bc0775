package store

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/failpoint"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// appended writes n entries as decisions do.
func appended(t testing.TB, s *testStore, n int) {
	t.Helper()
	for i := range n {
		must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
			w := financeWrite(t, s, fmt.Sprint(i), "h")
			w.Owner, w.Reason = fmt.Sprint("person ", i%3), "因为 <&> \"\\ \u2028 🧧 "
			return tx.audit(w, []string{"retry", "cancel"}[i%2], fmt.Sprint("s", i%5), map[string]string{"status": "failed"}, map[string]any{"n": i})
		}))
	}
}

func audited(t testing.TB, s *testStore) staff.AuditCheck {
	t.Helper()
	check, err := s.VerifyAudit(t.Context())
	must(t, err)
	return check
}

// unguarded removes the triggers that protect the audit, as an owner of the database could.
func unguarded(t testing.TB, s *testStore) {
	t.Helper()
	rows, err := s.db.SQL.QueryContext(t.Context(), "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE() "+
		"AND event_object_table IN ('audit', 'audit_head')")
	must(t, err)
	var names []string
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		names = append(names, name)
	}
	must(t, rows.Err())
	must(t, rows.Close())
	for _, name := range names {
		_, err := s.db.SQL.ExecContext(t.Context(), "DROP TRIGGER "+name)
		must(t, err)
	}
}

// TestVerifyAudit: every change of the rows is found, with the entry where it begins. Each member of
// an entry is changed separately.
func TestVerifyAudit(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	if check := audited(t, s); check.FirstBad != nil || check.Entries != 0 || check.Head != (staff.AuditHead{}) {
		t.Errorf("empty: %+v", check)
	}
	appended(t, s, 7)
	whole := audited(t, s)
	if whole.FirstBad != nil || whole.Entries != 7 || whole.Head.Seq != 7 || whole.Head.Hash == (staff.AuditHash{}) {
		t.Fatalf("%+v", whole)
	}
	unguarded(t, s)
	_, err := s.db.SQL.ExecContext(ctx, "CREATE TABLE audit_kept AS SELECT * FROM audit")
	must(t, err)
	_, err = s.db.SQL.ExecContext(ctx, "CREATE TABLE head_kept AS SELECT * FROM audit_head")
	must(t, err)
	for statements, bad := range map[string]int64{
		"UPDATE audit SET at = at + INTERVAL 1000 MICROSECOND WHERE seq = 3": 3,
		"UPDATE audit SET actor = 'person 1' WHERE seq = 4":                  4,
		"UPDATE audit SET role = 'ops' WHERE seq = 1":                        1,
		"UPDATE audit SET key_id = 'k2' WHERE seq = 5":                       5,
		"UPDATE audit SET action = 'Retry' WHERE seq = 3":                    3,
		"UPDATE audit SET subject = 'S1' WHERE seq = 2":                      2,
		"UPDATE audit SET subject = X'FF' WHERE seq = 2":                     2,
		"UPDATE audit SET reason = TRIM(reason) WHERE seq = 7":               7,
		"UPDATE audit SET before_is = '{\"status\":\"paid\"}' WHERE seq = 5": 5,
		"UPDATE audit SET after_is = CONCAT(after_is, ' ') WHERE seq = 6":    6,
		"UPDATE audit SET hash = REPEAT('x', 32) WHERE seq = 6":              6,
		"DELETE FROM audit WHERE seq = 1":                                    1,
		"DELETE FROM audit WHERE seq = 4":                                    4,
		"DELETE FROM audit WHERE seq = 7":                                    7,
		"DELETE FROM audit WHERE seq > 4":                                    5,
		"DELETE FROM audit":                                                  1,
		"DELETE FROM audit_head":                                             1,
		"UPDATE audit_head SET seq = 6":                                      7,
		"UPDATE audit_head SET hash = REPEAT('x', 32)":                       7,
		"INSERT audit SELECT 8, at, actor, role, key_id, action, subject, reason, before_is, after_is, hash FROM audit_kept WHERE seq = 7": 8,
		"INSERT audit SELECT 0, at, actor, role, key_id, action, subject, reason, before_is, after_is, hash FROM audit_kept WHERE seq = 7": 0,
		"UPDATE audit SET seq = seq + 1 WHERE seq > 3 ORDER BY seq DESC":                                                                   4,
		"UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 99":         2,
		"UPDATE audit SET seq = 99 WHERE seq = 6; UPDATE audit SET seq = 6 WHERE seq = 7; UPDATE audit SET seq = 7 WHERE seq = 99":         6,
		"DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = seq - 1 WHERE seq > 3 ORDER BY seq; UPDATE audit_head SET seq = seq - 1":  3,
	} {
		for _, text := range strings.Split(statements, "; ") {
			res, err := s.db.SQL.ExecContext(ctx, text)
			must(t, err)
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				t.Fatalf("%s changed nothing", text)
			}
		}
		check := audited(t, s)
		rows := storetest.Query[int64](t, s, "SELECT COUNT(*) FROM audit")
		if check.FirstBad == nil || *check.FirstBad != bad || check.Entries != rows {
			t.Errorf("%s: %+v, want first bad entry %d of %d", statements, check, bad, rows)
		}
		for _, text := range []string{"DELETE FROM audit", "DELETE FROM audit_head", "INSERT INTO audit SELECT * FROM audit_kept",
			"INSERT INTO audit_head SELECT * FROM head_kept"} {
			_, err := s.db.SQL.ExecContext(ctx, text)
			must(t, err)
		}
	}
	if again := audited(t, s); again != whole {
		t.Errorf("put back: %+v", again)
	}
	// Entries cut off together with the head: only a head stored elsewhere shows it.
	for _, text := range []string{"DELETE FROM audit WHERE seq > 4", "UPDATE audit_head SET seq = 4, hash = (SELECT hash FROM audit WHERE " +
		"seq = 4)"} {
		_, err := s.db.SQL.ExecContext(ctx, text)
		must(t, err)
	}
	if cut := audited(t, s); cut.FirstBad != nil || cut.Head == whole.Head || cut.Entries != 4 {
		t.Errorf("%+v", cut)
	}
}

// TestVerifyAuditWhileItGrows: entries appended during the check are neither surplus nor missing.
func TestVerifyAuditWhileItGrows(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	appended(t, s, 3)
	done := make(chan struct{})
	errs := make(chan error, 1)
	go func() {
		defer close(done)
		for i := range 60 {
			if err := s.inTx(t.Context(), failpoint.Administration,
				func(tx tx) error { return tx.audit(financeWrite(t, s, fmt.Sprint(i), "h"), "ask", "s", nil, nil) }); err != nil {
				errs <- err
				return
			}
		}
	}()
	for looks, grown := 0, false; !grown || looks < 3; looks++ {
		select {
		case <-done:
			grown = true
		default:
		}
		if check := audited(t, s); check.FirstBad != nil || check.Head.Seq != check.Entries {
			t.Fatalf("%+v", check)
		}
	}
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	if check := audited(t, s); check.Entries != 63 {
		t.Errorf("%+v", check)
	}
}

func TestAuditList(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	appended(t, s, 12)
	mid := s.Now()
	c.Pass(time.Second)
	appended(t, s, 9)
	walk := func(f staff.AuditFilter, limit int) (seqs []int64) {
		t.Helper()
		f.Limit = limit
		for {
			page, err := s.Audit(t.Context(), f)
			must(t, err)
			if len(page) == 0 {
				return seqs
			}
			if len(seqs) > 100 {
				t.Fatalf("%+v has no end: %v", f, seqs)
			}
			for _, e := range page {
				seqs, f.AfterTime, f.AfterSeq = append(seqs, e.Seq), e.At, e.Seq
			}
		}
	}
	// Some have the same time.
	unguarded(t, s)
	_, err := s.db.SQL.ExecContext(t.Context(), "UPDATE audit SET at = (SELECT at FROM (SELECT at FROM audit WHERE seq = 15) x) WHERE seq "+
		"BETWEEN 15 AND 18")
	must(t, err)
	entry := func(seq int64) int { // position among those of its call of appended
		if seq > 12 {
			return int(seq) - 13
		}
		return int(seq) - 1
	}
	for name, tc := range map[string]struct {
		filter staff.AuditFilter
		keep   func(seq int64) bool
	}{
		"all":     {staff.AuditFilter{}, func(int64) bool { return true }},
		"actor":   {staff.AuditFilter{Actor: "person 1"}, func(n int64) bool { return entry(n)%3 == 1 }},
		"action":  {staff.AuditFilter{Action: "cancel"}, func(n int64) bool { return entry(n)%2 == 1 }},
		"subject": {staff.AuditFilter{Subject: "s3"}, func(n int64) bool { return entry(n)%5 == 3 }},
		"case":    {staff.AuditFilter{Subject: "S3"}, func(int64) bool { return false }},
		"both":    {staff.AuditFilter{Subject: "s3", Action: "cancel"}, func(n int64) bool { return entry(n)%5 == 3 && entry(n)%2 == 1 }},
		"from":    {staff.AuditFilter{From: mid}, func(n int64) bool { return n > 12 }},
		"to":      {staff.AuditFilter{To: mid}, func(n int64) bool { return n <= 12 }},
		"within": {staff.AuditFilter{Actor: "person 0", From: mid.Add(-time.Hour), To: mid},
			func(n int64) bool { return n <= 12 && entry(n)%3 == 0 }},
		"nothing": {staff.AuditFilter{From: mid, To: mid}, func(int64) bool { return false }},
	} {
		var want []int64
		for seq := int64(21); seq > 0; seq-- {
			if tc.keep(seq) {
				want = append(want, seq)
			}
		}
		for _, limit := range []int{1, 2, 5, 100} {
			if got := walk(tc.filter, limit); !slices.Equal(got, want) {
				t.Errorf("%s by %d: %v, want %v", name, limit, got, want)
			}
		}
	}
	page, err := s.Audit(t.Context(), staff.AuditFilter{Limit: 1})
	must(t, err)
	e := page[0]
	if hash := storetest.Query[string](t, s, "SELECT HEX(hash) FROM audit WHERE seq = 21"); e.Actor != "person 2" || e.Role != "finance" ||
		e.Action != "retry" || e.Subject != "s3" ||
		e.Reason != "因为 <&> \"\\ \u2028 🧧 " || e.Before != `{"status":"failed"}` || e.After != `{"n":8}` ||
		!strings.EqualFold(hash, hex.EncodeToString(e.Hash[:])) {
		t.Errorf("%+v", e)
	}
}

// TestAuditListReadsOnePage: on a full table, with any filters.
func TestAuditListReadsOnePage(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	_, err := raw.ExecContext(t.Context(), `
INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash)
	SELECT seq, NOW(3) - INTERVAL (6000 - seq) SECOND, IF(seq MOD 3, 'giant', CONCAT('a', seq)), 'finance', IF(seq MOD 100, 'retry', 'cancel'),
	IF(seq MOD 2, 's', CONCAT('s', seq)), '', '{}', '{}', REPEAT('x', 32) FROM seq_1_to_6000;
ANALYZE TABLE audit`)
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	hour := time.Now().Add(-time.Hour)
	for _, f := range []staff.AuditFilter{{}, {Actor: "giant"}, {Action: "retry"}, {Action: "cancel"}, {Subject: "s"}, {Subject: "s2"},
		{Actor: "a3"}, {Actor: "nobody"}} {
		for _, span := range [][2]time.Time{{}, {hour}, {{}, hour}} {
			for _, after := range []time.Time{{}, hour} {
				f.From, f.To, f.Limit, f.AfterTime = span[0], span[1], 51, after
				if f.AfterSeq = 0; !after.IsZero() {
					f.AfterSeq = 2400
				}
				_, err := s.Audit(t.Context(), f)
				must(t, err)
			}
		}
	}
	for _, text := range rec.Texts {
		explain(t, raw, text)
		sortFree(t, raw, text)
		readsAtMost(t, raw, text, 51*2)
	}
	if len(rec.Texts) != 48 {
		t.Errorf("%d statements", len(rec.Texts))
	}
}

func BenchmarkVerifyAudit(b *testing.B) {
	s, _ := newStore(b)
	for range 100 {
		appended(b, s, 100)
	}
	for b.Loop() {
		audited(b, s)
	}
	b.ReportMetric(10_000, "entries/op")
}
