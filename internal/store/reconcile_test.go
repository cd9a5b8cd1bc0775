package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// statement is a provider's statement about a store.
type statement struct {
	*storetest.Statement
	t *testing.T
	s *testStore
	c *storetest.Clock
}

func newStatement(t *testing.T) *statement {
	s, c := newStore(t)
	return &statement{storetest.NewStatement(t, s, c), t, s, c}
}

// owing is a claimed share of 100 fen whose request is sent.
func (x *statement) owing() payout.Order {
	x.t.Helper()
	p := samplePacket(100, 1)
	recorded(x.t, x.s, p)
	charge := begin(x.t, x.s, chargeID(p))
	x.Paid(charge, 100, p.SenderID)
	_, err := x.s.Fund(x.t.Context(), p.ID, even(p))
	must(x.t, err)
	claim(x.t, x.s, p, 0, "u")
	return begin(x.t, x.s, payoutID(p, 0))
}

// breaks are the open breaks as "kind number", sorted.
func (x *statement) breaks(resolved bool) (out []string) {
	x.t.Helper()
	rows, err := x.s.Breaks(x.t.Context(), staff.BreakFilter{Resolved: &resolved, Limit: 100})
	must(x.t, err)
	for _, b := range rows {
		out = append(out, string(b.Kind)+" "+b.OrderNo)
	}
	slices.Sort(out)
	return out
}

func (x *statement) want(got []string, want ...string) {
	x.t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		x.t.Errorf("%q, want %q", got, want)
	}
}

func (x *statement) sums(r staff.Reconciliation, op payout.Op) staff.OpSum {
	i := slices.IndexFunc(r.Sums, func(s staff.OpSum) bool { return s.Op == op })
	return r.Sums[max(i, 0)]
}

// TestReconcileAgrees: a movement on both sides counts as matched on both.
func TestReconcileAgrees(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	for range 3 {
		o := x.owing()
		x.Paid(o, 100, "u")
		x.Add(payout.OpReturn, o.OrderNo, "u", 100, x.s.Now())
		settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsReturned)
	}
	x.c.Pass(2 * staff.InFlightAge)
	r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false))
	if r.Lines != 9 || r.Matched != 9 || r.InFlight+r.Breaks+r.Repaired != 0 || !r.Provisional {
		t.Errorf("%+v", r)
	}
	for _, op := range []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpReturn} {
		if got := x.sums(r, op); got.Provider != got.Books || got.Books != (staff.Sum{Count: 3, Amount: 300}) {
			t.Errorf("%+v", got)
		}
	}
}

// TestReconcileHugeAmounts: a statement may have any amounts, of foreign orders too. The run still
// ends: otherwise no other run of the day could start.
func TestReconcileHugeAmounts(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	const lines = 3 // with amounts that stand for those of hundreds
	day := payout.DayOf(x.s.Now(), time.UTC)
	for i := range lines {
		x.Lines[day] = append(x.Lines[day], payout.StatementLine{Ref: fmt.Sprint("foreign", i), Op: payout.OpTransfer, OrderNo: "foreign",
			Account: "a", Amount: 1 << 62, At: x.s.Now()})
	}
	r := x.Reconcile(day)
	for _, sum := range r.Sums {
		if sum.Op == payout.OpTransfer && (sum.Provider.Count != lines || sum.Provider.Amount != money.Saturated) {
			t.Errorf("%+v", sum)
		}
	}
	if r.Lines != lines {
		t.Errorf("%+v", r)
	}
	// And MySQL may have what the statement lacks, of any number of large packets.
	var page staff.TransferPage
	for range 2000 {
		page.AddMissing(payout.OpCharge, money.Max)
	}
	asked, err := x.s.RequestDailyReconciliation(t.Context(), provider, day, "tester")
	must(t, err)
	_, end := day.Span(time.UTC)
	again, err := x.s.BeginReconciliation(t.Context(), asked.ID, end)
	must(t, err)
	x.Add(payout.OpCharge, "foreign charge", "a", 1, x.s.Now())
	x.Read(again, day)
	_, err = x.s.CompareLines(t.Context(), again, 0, false, 100)
	must(t, err)
	page.Missing[payout.OpTransfer] = staff.Sum{Count: 2, Amount: 2 * money.Max}
	must(t, x.s.FinishReconciliation(t.Context(), again.ID, page.Missing))
	r, err = x.s.Reconciliation(t.Context(), again.ID)
	must(t, err)
	for op, want := range map[payout.Op]staff.Sum{payout.OpCharge: {Count: 2000, Amount: money.Saturated},
		payout.OpTransfer: {Count: 2, Amount: 2 * money.Max}} {
		if got := x.sums(r, op).Books; got != want {
			t.Errorf("missing: %+v", got)
		}
	}
}

// TestReconcileRepairsByQuery: a query books what the statement shows; the break is resolved
// automatically.
func TestReconcileRepairsByQuery(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	young := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	if x.want(x.breaks(false)); young.InFlight != 1 || young.Breaks != 0 {
		t.Errorf("in flight: %+v", young)
	}
	x.c.Pass(2 * staff.InFlightAge)
	first := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false), "not_booked "+o.OrderNo)
	if sum := x.sums(first, payout.OpTransfer); first.Breaks != 1 || first.Repaired != 0 || sum.Provider.Amount != 100 ||
		sum.Books.Amount != 0 {
		t.Errorf("%+v", first)
	}
	id := parse(t, o.OrderNo).PaymentID
	if d := due(t, x.s, 10); len(d) != 1 || d[0] != id {
		t.Errorf("to be run: %+v", d)
	}
	if st, err := x.s.PaymentState(t.Context(), id); err != nil || st.Step.Do != payout.ActionQuery || st.Step.OrderNo != o.OrderNo {
		t.Errorf("%+v, %v", st, err)
	}
	detail, err := x.s.Payment(t.Context(), id)
	must(t, err)
	if last := detail.Events[len(detail.Events)-1]; last.Source != staff.ByReconciliation || last.OrderNo != o.OrderNo ||
		last.What() != "the statement of "+last.Args["day"]+" has a transfer that MySQL lacks: query requested" {
		t.Errorf("%+v", last)
	}
	settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	second := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false))
	x.want(x.breaks(true), "not_booked "+o.OrderNo)
	if second.Matched != 2 || second.Breaks != 0 {
		t.Errorf("%+v", second)
	}
	// Deleted from MySQL, with its triggers off: the same break is open again.
	must(t, x.s.db.Gorm.Exec("DROP TRIGGER transfers_no_delete").Error)
	must(t, x.s.db.Gorm.Exec("DELETE FROM transfers WHERE reference = ?", o.OrderNo+":paid").Error)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false), "not_booked "+o.OrderNo)
	if n := storetest.Query[int](t, x.s, "SELECT seen FROM breaks"); n != 2 {
		t.Errorf("seen %d times, want 2: by the two runs that found it", n)
	}
}

// TestReconcileQueriesReturnInFlight: nothing else would query a paid payout.
func TestReconcileQueriesReturnInFlight(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	x.Paid(o, 100, "u")
	x.Add(payout.OpReturn, o.OrderNo, "u", 100, x.s.Now())
	r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false))
	if n, err := x.s.CountUnsettled(t.Context(), r); err != nil || n != 1 || r.InFlight != 1 || r.Matched != 2 {
		t.Errorf("%d unsettled, %v, %+v", n, err, r)
	}
	if d := due(t, x.s, 10); len(d) != 1 {
		t.Errorf("to be run: %+v", d)
	}
	// The answer comes between two runs.
	next, err := x.s.RequestDailyReconciliation(t.Context(), provider, r.Day, "tester")
	must(t, err)
	next, err = x.s.BeginReconciliation(t.Context(), next.ID, x.s.Now())
	must(t, err)
	_, err = x.s.CompareLines(t.Context(), next, 0, false, 10)
	must(t, err)
	settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsReturned)
	for range 2 {
		_, err = x.s.CompareLines(t.Context(), next, 0, true, 10)
		must(t, err)
	}
	must(t, x.s.FinishReconciliation(t.Context(), next.ID, nil))
	if next, err = x.s.Reconciliation(t.Context(), next.ID); err != nil || next.Repaired != 1 || next.Matched != 3 || next.InFlight != 0 {
		t.Errorf("%+v, %v", next, err)
	}
	if last := x.Reconcile(r.Day); last.Repaired != 0 || last.Matched != 3 {
		t.Errorf("a further run: %+v", last)
	}
}

// TestReconcileMoneyUnderOtherNumbers: unknown, reused and abandoned order numbers.
func TestReconcileMoneyUnderOtherNumbers(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	x.Paid(o, 100, "u")
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	x.Add(o.Op, "NotOurs4711", "v", 5, x.s.Now())
	other := payout.OrderNo(payoutID(samplePacket(1, 1), 0), 1)
	x.Add(o.Op, other, "v", 6, x.s.Now())
	later := parse(t, o.OrderNo).PaymentID
	x.Add(o.Op, payout.OrderNo(later, 2), "u", 100, x.s.Now())
	x.Add(payout.OpRefund, chargeOf(o.OrderNo), "sender", 100, x.s.Now())
	old := x.superseded()
	x.c.Pass(2 * staff.InFlightAge)
	r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false), "moved_twice "+o.OrderNo, "foreign_order NotOurs4711", "foreign_order "+other, "foreign_order "+
		payout.OrderNo(later, 2),
		"op_differs "+chargeOf(o.OrderNo), "superseded "+old)
	if r.Breaks != 6 {
		t.Errorf("%+v", r)
	}
	settle(t, x.s, payout.SourceQuery, old, payout.ObsSucceeded)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(true), "superseded "+old)
	if n := len(x.breaks(false)); n != 6 { // Settle's second_success replaces it
		t.Errorf("%q", x.breaks(false))
	}
}

func chargeOf(orderNo string) string {
	parts, _ := payout.Parse(orderNo)
	return payout.OrderNo(payout.ID(payout.KindCharge, parts.PacketID, 0), 1)
}

// superseded is an order number that failed and was retried under a later, paid one; its money moved
// after all.
func (x *statement) superseded() string {
	x.t.Helper()
	o := x.owing()
	settle(x.t, x.s, payout.SourceSend, o.OrderNo, payout.ObsDeclined)
	settle(x.t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsDeclined)
	id := parse(x.t, o.OrderNo).PaymentID
	decide(x.t, x.s, id)
	settle(x.t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsDeclined)
	second := begin(x.t, x.s, id)
	if second.OrderNo == o.OrderNo {
		x.t.Fatal("the same number again")
	}
	x.Paid(second, 100, "u")
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	return o.OrderNo
}

// TestReconcileCutAtMidnight: the provider moved before midnight what was booked after it, and the
// reverse with differing clocks.
func TestReconcileCutAtMidnight(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]time.Duration{"booked after midnight": -3 * time.Second,
		"the provider's clock is ahead": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			x := newStatement(t)
			midnight := x.c.At.Truncate(24 * time.Hour).Add(24 * time.Hour)
			o := x.owing()
			x.c.Pass(midnight.Add(-moved).Sub(x.c.At)) // booked on the other side of midnight
			x.Add(o.Op, o.OrderNo, "u", 100, midnight.Add(moved))
			settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
			x.c.Pass(5 * time.Hour)
			yesterday, booked := payout.DayOf(midnight.Add(-1), time.UTC), payout.DayOf(midnight.Add(-moved), time.UTC)
			r := x.Reconcile(booked)
			x.want(x.breaks(false))
			if booked == yesterday && r.Provisional {
				t.Errorf("%+v", r)
			}
			if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM statements"); n != 2 {
				t.Errorf("%d days were read, want both", n)
			}
			// The day with the line counts it, on both sides.
			if r := x.Reconcile(payout.DayOf(midnight.Add(moved), time.UTC)); r.Breaks != 0 ||
				x.sums(r, payout.OpTransfer).Books != (staff.Sum{Count: 1, Amount: 100}) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestReconcileBookedAndNotInStatement: found once, and resolved when a corrected statement has it.
func TestReconcileBookedAndNotInStatement(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	day := payout.DayOf(x.s.Now(), time.UTC)
	if x.Reconcile(day); len(x.breaks(false)) != 0 {
		t.Errorf("in flight: %q", x.breaks(false))
	}
	x.c.Pass(2 * staff.InFlightAge)
	r := x.Reconcile(day)
	x.want(x.breaks(false), "not_in_statement "+o.OrderNo)
	if sum := x.sums(r, payout.OpTransfer); r.Breaks != 1 || sum.Provider.Count != 0 || sum.Books != (staff.Sum{Count: 1, Amount: 100}) {
		t.Errorf("%+v", r)
	}
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	if r := x.Reconcile(day); r.Breaks != 0 || r.Repaired != 0 && r.Repaired != 1 {
		t.Errorf("%+v", r)
	}
	x.want(x.breaks(true), "not_in_statement "+o.OrderNo)
	// The provider removes the line.
	x.Lines[day] = x.Lines[day][:1]
	x.Reconcile(day)
	x.want(x.breaks(false), "not_in_statement "+o.OrderNo)
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM statement_lines"); n != 1 {
		t.Errorf("%d lines, want the one that is still there", n)
	}
}

// TestResolvedBreakStaysResolved: a break resolved by staff is not found again in the same
// statement; new money under the order number is a new break.
func TestResolvedBreakStaysResolved(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	x.Paid(o, 100, "u")
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	day := payout.DayOf(x.s.Now(), time.UTC)
	x.Reconcile(day)
	rows, err := x.s.Breaks(t.Context(), staff.BreakFilter{Kind: payout.BreakMovedTwice, Limit: 10})
	must(t, err)
	w := by(t, x.s, staff.Write{Owner: "li.na", Role: "finance", Route: "POST /x", Key: "k", BodyHash: "h",
		Reason: "they paid it back by bank"})
	render := func(b staff.BreakRow) (int, []byte) { return 200, []byte(b.ResolvedBy + ": " + b.Reason) }
	for try := range 3 {
		a, err := x.s.ResolveBreak(t.Context(), w, rows[0].ID, render)
		must(t, err)
		if string(a.Body) != "li.na: they paid it back by bank" || a.Replayed != (try > 0) {
			t.Errorf("%+v", a)
		}
	}
	other := w
	other.Key, other.Owner = "k2", "another person"
	other = by(t, x.s, other)
	if a, err := x.s.ResolveBreak(t.Context(), other, rows[0].ID, render); err != nil || string(a.Body) != "li.na: they paid it back by bank" {
		t.Errorf("%s, %v", a.Body, err)
	}
	other = w
	other.BodyHash = "other"
	_, err = x.s.ResolveBreak(t.Context(), other, rows[0].ID, render)
	wantErr(t, err, staff.ErrKeyReused)
	w.Key = "k3"
	_, err = x.s.ResolveBreak(t.Context(), w, 1<<40, render)
	wantErr(t, err, ErrNotFound)
	if n := storetest.Query[int](t, x.s,
		"SELECT COUNT(*) FROM audit WHERE action = 'resolve_break' AND actor = 'li.na' AND reason = 'they paid it "+
			"back by bank'"); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if r := x.Reconcile(day); r.Breaks != 0 {
		t.Errorf("%+v", r)
	}
	x.want(x.breaks(false))
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	if r := x.Reconcile(day); r.Breaks != 1 {
		t.Errorf("%+v", r)
	}
	x.want(x.breaks(false), "moved_twice "+o.OrderNo)
}

// TestOneActiveReconciliationADay: concurrent requests make one; after its end another can be made.
func TestOneActiveReconciliationADay(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	const day = payout.Day("2026-02-17")
	render := func(r staff.Reconciliation) (int, []byte) { return 202, []byte(r.ID) }
	ids := make([]string, 12)
	for _, err := range together(len(ids), func(i int) error {
		if i%2 == 0 {
			r, err := s.RequestDailyReconciliation(ctx, provider, day, staff.BySchedule)
			ids[i] = r.ID
			return err
		}
		w := by(t, s, staff.Write{Owner: fmt.Sprint(i), Role: "finance", Route: "POST /x", Key: "k", BodyHash: "h", Reason: "now"})
		a, err := s.RequestReconciliation(ctx, w, provider, day, render)
		ids[i] = string(a.Body)
		return err
	}) {
		must(t, err)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 1 || ids[0] == "" {
		t.Errorf("%q", ids)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM audit WHERE action = 'reconcile' AND subject = ?", ids[0]); n != 6 {
		t.Errorf("%d audit entries, want one each", n)
	}
	if r, err := s.RequestDailyReconciliation(ctx, provider, "2026-02-18", "x"); err != nil || r.ID == ids[0] {
		t.Errorf("another day: %+v, %v", r, err)
	}
	wanted, err := s.DueReconciliations(ctx, time.Minute, 10)
	if err != nil || len(wanted) != 2 || wanted[0].Status != staff.ReconciliationRequested {
		t.Errorf("%+v, %v", wanted, err)
	}
	if again, err := s.DueReconciliations(ctx, time.Minute, 10); err != nil || len(again) != 0 {
		t.Errorf("put off: %+v, %v", again, err)
	}
	end := s.Now().Add(-staff.InFlightAge)
	for range 2 {
		r, err := s.BeginReconciliation(ctx, ids[0], end)
		if err != nil || r.Status != staff.ReconciliationRunning || r.Provisional || !r.StartedAt.After(r.CreatedAt) {
			t.Errorf("%+v, %v", r, err)
		}
		end = s.Now().Add(time.Hour) // has begun: nothing changes
	}
	must(t, s.FailReconciliation(ctx, ids[0], "no statement"))
	must(t, s.FinishReconciliation(ctx, ids[0], nil))
	r, err := s.Reconciliation(ctx, ids[0])
	if err != nil || r.Status != staff.ReconciliationFailed || r.Error != "no statement" || r.EndedAt.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
	if next, err := s.RequestDailyReconciliation(ctx, provider, day, "x"); err != nil || next.ID == ids[0] ||
		next.Status != staff.ReconciliationRequested {
		t.Errorf("%+v, %v", next, err)
	}
	_, err = s.Reconciliation(ctx, "nobody's")
	wantErr(t, err, ErrNotFound)
	list, err := s.Reconciliations(ctx, staff.ReconciliationFilter{Day: day, Limit: 10})
	if err != nil || len(list) != 2 || list[1].ID != ids[0] {
		t.Errorf("%+v, %v", list, err)
	}
	rest, err := s.Reconciliations(ctx, staff.ReconciliationFilter{Day: day, Limit: 10, AfterTime: list[0].CreatedAt, AfterID: list[0].ID})
	if err != nil || len(rest) != 1 || rest[0].ID != ids[0] {
		t.Errorf("%+v, %v", rest, err)
	}
	if failed, err := s.Reconciliations(ctx, staff.ReconciliationFilter{Status: staff.ReconciliationFailed, Provider: provider,
		Limit: 10}); err != nil || len(failed) != 1 {
		t.Errorf("%+v, %v", failed, err)
	}
}

// TestBreakList: filters and pages.
func TestBreakList(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	for n := range 5 {
		x.Add(payout.OpTransfer, fmt.Sprintf("Foreign%d", n), "v", money.Fen(n+1), x.s.Now())
	}
	r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	var got []string
	f := staff.BreakFilter{ReconciliationID: r.ID, Limit: 2}
	for range 5 {
		rows, err := x.s.Breaks(t.Context(), f)
		must(t, err)
		for _, b := range rows {
			got = append(got, b.OrderNo)
			f.AfterTime, f.AfterID = b.CreatedAt, b.ID
			if b.Amount == 0 || b.Provider != provider || b.PacketID != "" || b.Seen != 1 || b.Detail == "" {
				t.Errorf("%+v", b)
			}
		}
	}
	slices.SortFunc(got, func(a, b string) int { return cmp.Compare(a, b) })
	if fmt.Sprint(got) != "[Foreign0 Foreign1 Foreign2 Foreign3 Foreign4]" {
		t.Errorf("%q", got)
	}
	yes := true
	for want, f := range map[int]staff.BreakFilter{
		0: {Resolved: &yes}, 5: {Kind: payout.BreakForeignOrder, CreatedTo: x.s.Now()},
	} {
		f.Limit = 10
		if rows, err := x.s.Breaks(t.Context(), f); err != nil || len(rows) != want {
			t.Errorf("%+v: %d, %v", f, len(rows), err)
		}
	}
	for _, f := range []staff.BreakFilter{{PacketID: "x"}, {Kind: "x"}, {ReconciliationID: "x"}, {CreatedTo: x.s.Now().Add(-time.Hour)}} {
		f.Limit = 10
		if rows, err := x.s.Breaks(t.Context(), f); err != nil || len(rows) != 0 {
			t.Errorf("%+v: %d, %v", f, len(rows), err)
		}
	}
}

// TestReconcileJudgesItsOwnDay: of an order number with lines on two days, each is judged by the
// reconciliation of its day.
func TestReconcileJudgesItsOwnDay(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	midnight := x.c.At.Truncate(24 * time.Hour).Add(24 * time.Hour)
	o := x.owing()
	x.c.Pass(midnight.Add(-30 * time.Second).Sub(x.c.At))
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	first := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	if first.InFlight != 1 || first.Breaks != 0 {
		t.Errorf("%+v", first)
	}
	x.c.Pass(time.Hour)
	x.Add(payout.OpReturn, o.OrderNo, "u", 100, x.s.Now())
	x.c.Pass(time.Hour)
	second := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false), "return_not_booked "+o.OrderNo)
	if second.Lines != 1 || second.Breaks != 1 {
		t.Errorf("%+v", second)
	}
	if v := storetest.Query[string](t, x.s, "SELECT verdict FROM statement_lines WHERE op = 'transfer'"); v != verdictInFlight {
		t.Errorf("the other day's line is %s now", v)
	}
}

// TestBreakOfManyLines: several lines of one order number are one break with all of them, across
// pages and runs.
func TestBreakOfManyLines(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	x.Paid(o, 100, "u")
	for _, fen := range []money.Fen{100, 100} { // in addition to the booked one
		x.Add(o.Op, o.OrderNo, "u", fen, x.s.Now())
	}
	for _, fen := range []money.Fen{5, 70, 600} {
		x.Add(o.Op, "NotOurs4711", "v", fen, x.s.Now())
		x.Add(payout.OpRefund, "NotOurs4712", "v", 1, x.s.Now())
	}
	x.c.Pass(2 * staff.InFlightAge)
	first := payout.DayOf(x.s.Now(), time.UTC)
	amounts := func(want map[string]money.Fen) {
		t.Helper()
		open := false
		rows, err := x.s.Breaks(t.Context(), staff.BreakFilter{Resolved: &open, Limit: 100})
		must(t, err)
		got := map[string]money.Fen{}
		for _, b := range rows {
			got[string(b.Kind)+" "+b.OrderNo] = b.Amount
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	want := map[string]money.Fen{"moved_twice " + o.OrderNo: 200, "foreign_order NotOurs4711": 675, "foreign_order NotOurs4712": 3}
	for range 2 {
		x.Reconcile(first)
		amounts(want)
	}
	if text := storetest.Query[string](t, x.s, "SELECT detail FROM breaks WHERE order_no = 'NotOurs4711'"); !strings.HasPrefix(text,
		"3 lines, 675 fen in total; one: transfer of ") {
		t.Errorf("%q", text)
	}
	x.c.Pass(24 * time.Hour)
	x.Add(o.Op, "NotOurs4711", "v", 4000, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	x.Reconcile(first.Add(1))
	want["foreign_order NotOurs4711"] = 4675
	amounts(want)
	x.Reconcile(first)
	amounts(want)
	x.Lines[first] = slices.DeleteFunc(x.Lines[first], func(l payout.StatementLine) bool { return l.Amount == 70 })
	x.Reconcile(first) // restated
	want["foreign_order NotOurs4711"] = 4605
	amounts(want)
}
