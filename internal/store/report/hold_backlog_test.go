package report

import (
	"testing"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

// TestHealthHolds: active holds by scope and kind, releases that wait, and the money that is held,
// each fen once.
func TestHealthHolds(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	read := func() (v *observe.HealthSnapshot, groups map[string]int64) {
		t.Helper()
		v, groups = storetest.NewSnapshot(), map[string]int64{}
		must(t, NewHealthReader(s.Source).Read(t.Context(), v))
		for _, g := range v.Holds {
			if groups[g.Scope+" "+g.Kind] = g.Waiting; (g.Waiting == 0) != g.Oldest.IsZero() {
				t.Errorf("%+v", g)
			}
		}
		return v, groups
	}
	place := func(scope payout.HoldScope, name string) {
		t.Helper()
		must(t, storetest.ErrOnly(s.PlaceHold(t.Context(), storetest.StaffWrite(t, s, "ops"), scope, name, renderHold)))
	}
	fen := func(want int64, why string) {
		t.Helper()
		if v, _ := read(); v.HeldFen != want {
			t.Errorf("%s: %d fen are held, want %d", why, v.HeldFen, want)
		}
	}
	if v, groups := read(); len(groups) != len(placedHolds) || v.HeldItems() != (observe.Backlog{}) || v.Releases != (observe.Backlog{}) ||
		v.HeldFen != 0 {
		t.Errorf("without holds: %v, %+v", groups, v)
	}

	p, other, charging := funded(t, s, 300, 3), funded(t, s, 50, 2), recorded(t, s, samplePacket(70, 2))
	declined := recorded(t, s, samplePacket(90, 2))
	failAs(t, s, chargeID(declined), "declined")
	claim(t, s, p, 0, "u")
	pay(t, s, payoutID(p, 0))
	claim(t, s, p, 1, "v")
	claim(t, s, other, 0, "w")
	since := c.Now()
	place(payout.HoldPayment, payoutID(other, 0))
	fen(25, "a payout")
	c.Pass(time.Hour)
	place(payout.HoldPacket, p.ID)
	fen(225, "what is owed and not claimed")
	place(payout.HoldPayment, payoutID(p, 1))
	place(payout.HoldPayment, payoutID(p, 0))
	recovery := payout.RecoveryHold(p.ID, "x", "y", payout.MySQLState{})
	must(t, s.read(t.Context()).Exec(`INSERT INTO holds (scope, name, kind, cause, reason, placed_by, placed_role, placed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, string(recovery.Scope), recovery.Name, string(recovery.Kind), recovery.Cause, recovery.Reason,
		recovery.By, recovery.Role, c.Now()).Error)
	fen(225, "held twice")
	place(payout.HoldPacket, charging.ID)
	place(payout.HoldPayment, chargeID(charging))
	fen(295, "an open charge")
	place(payout.HoldPacket, declined.ID)
	fen(295, "a declined charge")
	place(payout.HoldPacket, other.ID)
	fen(320, "the packet of a held payment")
	place(payout.HoldPayment, payoutID(other, 1)) // no row yet
	fen(320, "no payment yet")

	v, groups := read()
	if groups["packet staff"] != 4 || groups["packet recovery"] != 1 || groups["payment staff"] != 5 || groups["provider staff"] != 0 ||
		len(groups) != len(placedHolds) {
		t.Errorf("%v", groups)
	}
	if items := v.HeldItems(); items.Waiting != 10 || items.Oldest.Sub(since).Abs() > time.Minute {
		t.Errorf("%+v, the first since %s", items, since)
	}
	release(t, s, "packet", p.ID, "anna")
	asked := c.Now()
	c.Pass(time.Hour)
	release(t, s, "packet", other.ID, "anna")
	if v, _ := read(); v.Releases.Waiting != 2 || v.Releases.Oldest.Sub(asked).Abs() > time.Minute {
		t.Errorf("%+v, the first since %s", v.Releases, asked)
	}
	release(t, s, "packet", other.ID, "ben")
	if v, groups := read(); v.Releases.Waiting != 1 || groups["packet staff"] != 3 || v.HeldFen != 295 {
		t.Errorf("after a release: %+v, %v, %d fen", v.Releases, groups, v.HeldFen)
	}
	c.Pass(mysql.ApprovalLife - time.Hour) // nobody can approve what anna asked for any more
	if v, groups := read(); v.Releases != (observe.Backlog{}) || groups["packet staff"] != 3 {
		t.Errorf("after a day: %+v, %v", v.Releases, groups)
	}
	c.WhileAhead(func() { release(t, s, "packet", p.ID, "anna") })
	if v, _ := read(); v.Releases != (observe.Backlog{}) {
		t.Errorf("asked for by a clock ahead: %+v", v.Releases)
	}
}

// release has a person release the hold of staff on a name.
func release(t *testing.T, s *testStore, scope, name, who string) {
	t.Helper()
	id := storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = ? AND name = ? AND kind = 'staff' AND released_at IS NULL", scope,
		name)
	must(t, storetest.ErrOnly(s.ReleaseHold(t.Context(), storetest.StaffWrite(t, s, who), id, renderHold)))
}

// TestHealthHeldFenBounded: packets too large to be added up count with their totals.
func TestHealthHeldFenBounded(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	small, large := funded(t, s, 300, 3), funded(t, s, 300, 3)
	for _, p := range []packet.Packet{small, large} {
		claim(t, s, p, 0, "u")
		pay(t, s, payoutID(p, 0))
		must(t, storetest.ErrOnly(s.PlaceHold(t.Context(), storetest.StaffWrite(t, s, "ops"), payout.HoldPacket, p.ID, renderHold)))
	}
	tamper(t, s.db.SQL, "UPDATE packets SET share_count = 20000 WHERE id = '"+large.ID+"'")
	v := storetest.NewSnapshot()
	if must(t, NewHealthReader(s.Source).Read(t.Context(), v)); v.HeldFen != 500 {
		t.Errorf("%d fen", v.HeldFen)
	}
}

// TestHealthHeldByAll: a hold on everything holds every provider.
func TestHealthHeldByAll(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	since := c.Now()
	must(t, storetest.ErrOnly(s.PlaceHold(t.Context(), storetest.StaffWrite(t, s, "ops"), payout.HoldAll, "", renderHold)))
	c.Pass(time.Hour)
	must(t, storetest.ErrOnly(s.PlaceHold(t.Context(), storetest.StaffWrite(t, s, "ops"), payout.HoldProvider, "x", renderHold)))
	v := storetest.NewSnapshot()
	v.HeldProviders["y"] = time.Time{}
	must(t, NewHealthReader(s.Source).Read(t.Context(), v))
	for _, name := range []string{"x", "y"} {
		if v.HeldProviders[name].Sub(since).Abs() > time.Minute {
			t.Errorf("%s is held since %s, want %s", name, v.HeldProviders[name], since)
		}
	}
}
