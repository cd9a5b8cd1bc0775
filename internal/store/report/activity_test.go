package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestActivity: a transfer counts in its minute, cached or not, and is dropped after an hour.
func TestActivity(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	s.minutes.timeLimit = time.Minute
	c.At = time.Date(2026, 2, 17, 12, 0, 30, 0, time.UTC)
	want := map[time.Time][2]int64{}
	book := func(grabs, paid int) {
		t.Helper()
		p := funded(t, s, 1000, 4)
		for i := range grabs {
			claim(t, s, p, i, fmt.Sprint("u", i))
		}
		for i := range paid {
			pay(t, s, payoutID(p, i))
		}
		n := want[c.Now().Truncate(time.Minute)]
		want[c.Now().Truncate(time.Minute)] = [2]int64{n[0] + int64(grabs), n[1] + int64(paid)}
	}
	check := func(what string) {
		t.Helper()
		minutes, err := s.Activity(t.Context())
		must(t, err)
		now := c.Now().Truncate(time.Minute)
		if len(minutes) != 60 || !minutes[0].At.Equal(now.Add(-59*time.Minute)) || !minutes[59].At.Equal(now) {
			t.Fatalf("%s: %d minutes: %+v", what, len(minutes), minutes)
		}
		for _, m := range minutes {
			n := want[m.At]
			if m.Grabs != (staff.Sum{Count: n[0], Amount: money.Fen(250 * n[0])}) ||
				m.Paid != (staff.Sum{Count: n[1], Amount: money.Fen(250 * n[1])}) || !m.Counted {
				t.Errorf("%s: %+v, want %v", what, m, n)
			}
		}
	}
	check("empty")
	book(3, 2)
	check("new")
	book(4, 1)
	check("more of the minute")
	for _, d := range []time.Duration{7 * time.Second, 50 * time.Second, time.Minute, 90 * time.Second, 20 * time.Minute} {
		c.Pass(d)
		check(fmt.Sprint("after ", d))
		book(2, 2)
		check(fmt.Sprint("booked after ", d))
	}
	if len(s.minutes.booked) == 0 {
		t.Fatal("nothing was remembered")
	}
	for range 4 {
		c.Pass(20 * time.Minute)
		check("time goes on")
	}
	for at := range s.minutes.booked {
		if old := c.Now().Sub(time.Unix(at, 0)); old > time.Hour {
			t.Errorf("what was booked %v ago is remembered", old)
		}
	}
	c.Pass(-3 * time.Hour) // MySQL's clock was set
	check("clock set back")
}

// TestActivityInTurns: an hour that takes longer than one call is counted in turns, and until then
// reported as not counted.
func TestActivityInTurns(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 1000, 4)
	claim(t, s, p, 0, "a")
	s.minutes.timeLimit = -time.Second
	minutes, err := s.Activity(t.Context())
	must(t, err)
	if slices.ContainsFunc(minutes, func(m staff.ActivityMinute) bool { return m.Counted || m.Grabs.Count > 0 }) {
		t.Errorf("reported before it was counted: %+v", minutes)
	}
	s.minutes.timeLimit = time.Minute
	minutes, err = s.Activity(t.Context())
	must(t, err)
	if slices.ContainsFunc(minutes, func(m staff.ActivityMinute) bool { return !m.Counted }) ||
		minutes[59].Grabs.Count+minutes[58].Grabs.Count != 1 {
		t.Errorf("%+v", minutes)
	}
}

// TestActivityReadsItsRange: a minute is read by the index on the ledger's times, and cached minutes
// are not read again.
func TestActivityReadsItsRange(t *testing.T) {
	t.Parallel()
	s, c, raw := newStoreAt(t, stacktest.MariaDB(t))
	s.minutes.timeLimit = time.Minute
	p := funded(t, s, 1000, 4)
	for i := range 4 {
		claim(t, s, p, i, fmt.Sprint("u", i))
	}
	_, err := s.Activity(t.Context())
	must(t, err)
	c.Pass(10 * time.Minute)
	_, err = s.Activity(t.Context())
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm.Logger = rec
	_, err = s.Activity(t.Context())
	must(t, err)
	read := 0
	for _, text := range rec.Texts {
		if strings.Contains(text, "FROM transfers") {
			explain(t, raw, text)
			readsAtMost(t, raw, text, 4)
			read++
		}
	}
	if read != 1 {
		t.Errorf("%d statements: %q", read, rec.Texts)
	}
}

// TestR13_ActivityAfterRestore: after a restore of MySQL a running process does not report
// transfers that no longer exist.
func TestR13_ActivityAfterRestore(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	older, _ := newStore(t)
	s.minutes.timeLimit = time.Minute
	p := funded(t, s, 1000, 4)
	claim(t, s, p, 0, "u")
	_, err := s.AdvanceHeartbeat(t.Context(), 0)
	must(t, err)
	booked := func() (n int64) {
		minutes, err := s.Activity(t.Context())
		must(t, err)
		for _, m := range minutes {
			n += m.Grabs.Count
		}
		return n
	}
	c.Pass(5 * time.Minute)
	if n := booked(); n != 1 || len(s.minutes.booked) == 0 {
		t.Fatalf("%d booked, remembered %v", n, s.minutes.booked)
	}
	*s.db, *older.db = *older.db, *s.db
	if b, err := s.CompareHeartbeat(t.Context(), 0); err != nil || b.State != payout.MySQLRestored {
		t.Fatalf("%+v, %v", b, err)
	}
	if n := booked(); n != 0 {
		t.Errorf("%d transfers reported of a MySQL without any", n)
	}
}
