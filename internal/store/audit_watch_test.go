package store

import (
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestWatchAudit: appended entries are checked from where the last call ended, and a changed entry
// is found when the check reaches it.
func TestWatchAudit(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	watch := func() staff.AuditWatch {
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
		_, err := s.db.SQL.ExecContext(t.Context(), statement)
		must(t, err)
	}
	change("UPDATE audit SET reason = 'another' WHERE seq IN (5, 15)")
	if w := watch(); w.FirstBad == nil || *w.FirstBad != 15 || w.Checked != 14 {
		t.Errorf("behind what was checked: %+v", w)
	}
	c.Pass(2 * time.Hour)
	if w := watch(); w.FirstBad == nil || *w.FirstBad != 5 {
		t.Errorf("from the beginning: %+v", w)
	}
}

// TestR13_AuditAfterRestore: after a restore of MySQL a running process checks the chain as it
// is, with other entries after those of the backup.
func TestR13_AuditAfterRestore(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	older, _ := newStore(t)
	appended(t, s, 12)
	appended(t, older, 10)
	_, err := s.AdvanceHeartbeat(t.Context(), 0)
	must(t, err)
	if w, err := s.WatchAudit(t.Context()); err != nil || w.FirstBad != nil || w.Checked != 12 {
		t.Fatalf("%+v, %v", w, err)
	}
	*s.db, *older.db = *older.db, *s.db
	b, err := s.CompareHeartbeat(t.Context(), 0)
	must(t, err)
	if b.State != payout.MySQLRestored {
		t.Fatalf("%+v", b)
	}
	appended(t, s, 5)
	if w, err := s.WatchAudit(t.Context()); err != nil || w.FirstBad != nil || w.Checked != 15 {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestWatchAuditEnd: missing entries at the end are found.
func TestWatchAuditEnd(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	appended(t, s, 3)
	unguarded(t, s)
	_, err := s.db.SQL.ExecContext(t.Context(), "DELETE FROM audit WHERE seq = 3")
	must(t, err)
	w, err := s.WatchAudit(t.Context())
	must(t, err)
	if w.FirstBad == nil || *w.FirstBad != 3 || w.Checked != 2 {
		t.Errorf("%+v", w)
	}
}
