package store

import (
	"testing"

	"hongbao/internal/payout"
)

// TestWatchAudit: what is appended is checked in turn, from where the last call
// ended, and what was changed is found as soon as it is come to.
func TestWatchAudit(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	watch := func() payout.AuditWatch {
		t.Helper()
		w, err := s.WatchAudit(t.Context())
		must(t, err)
		return w
	}
	if w := watch(); w.FirstBad != nil || w.Checked != 0 {
		t.Fatalf("empty: %+v", w)
	}
	appended(t, s, 12)
	if w := watch(); w.FirstBad != nil || w.Checked != 12 || w.Head.Seq != 12 {
		t.Fatalf("%+v", w)
	}
	appended(t, s, 9)
	unguarded(t, s)
	change := func(statement string) {
		t.Helper()
		_, err := s.sql.ExecContext(t.Context(), statement)
		must(t, err)
	}
	change("UPDATE audit SET reason = 'another' WHERE seq IN (5, 15)")
	if w := watch(); w.FirstBad == nil || *w.FirstBad != 15 || w.Checked != 14 {
		t.Errorf("behind what was checked: %+v", w)
	}
	c.pass(2 * auditRestartAfter)
	if w := watch(); w.FirstBad == nil || *w.FirstBad != 5 {
		t.Errorf("anew: %+v", w)
	}
}

// TestR13_AuditOfRestoredBooks: a process that lives through a restore of MySQL checks the
// chain of the books as they are, which has other entries behind those of the backup.
func TestR13_AuditOfRestoredBooks(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	older, _ := newStore(t)
	appended(t, s, 12)
	appended(t, older, 10)
	_, err := s.AdvanceBooks(t.Context(), 0)
	must(t, err)
	if w, err := s.WatchAudit(t.Context()); err != nil || w.FirstBad != nil || w.Checked != 12 {
		t.Fatalf("%+v, %v", w, err)
	}
	s.db, s.sql, older.db, older.sql = older.db, older.sql, s.db, s.sql
	b, err := s.CompareBooks(t.Context(), 0)
	must(t, err)
	if b.State != payout.MySQLRestored {
		t.Fatalf("%+v", b)
	}
	appended(t, s, 5)
	if w, err := s.WatchAudit(t.Context()); err != nil || w.FirstBad != nil || w.Checked != 15 {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestWatchAuditEnd: entries that were cut off are missed.
func TestWatchAuditEnd(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	appended(t, s, 3)
	unguarded(t, s)
	_, err := s.sql.ExecContext(t.Context(), "DELETE FROM audit WHERE seq = 3")
	must(t, err)
	w, err := s.WatchAudit(t.Context())
	must(t, err)
	if w.FirstBad == nil || *w.FirstBad != 3 || w.Checked != 2 {
		t.Errorf("%+v", w)
	}
}
