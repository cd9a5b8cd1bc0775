package worker_test

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// reconcile is what a worker of the rig carries out reconciliations with.
func (r *rig) reconcile() *worker.Reconcile {
	return &worker.Reconcile{Steps: &activities.Reconciliations{Store: r.store, Providers: payout.OnlyProvider(r.provider)},
		Store: r.store, Closes: r.reports(),
		Hour: 4, Minute: 10}
}

func today() payout.Day { return payout.DayOf(time.Now(), time.UTC) }

// awayFromMidnight: what follows is about one day, and some of it is minutes old.
func awayFromMidnight(t *testing.T) {
	t.Helper()
	if from, to := today().Span(time.UTC); time.Since(from) < 2*agedBy || time.Until(to) < 2*agedBy {
		t.Skip("a few minutes from midnight UTC there is no one day to compare")
	}
}

// reconcileDay has a day reconciled, as the API does, and waits for the end.
func (r *rig) reconcileDay(t *testing.T, day payout.Day) staff.Reconciliation {
	t.Helper()
	return r.reconcileAt(t, "sandbox", day)
}

func (r *rig) reconcileAt(t *testing.T, provider string, day payout.Day) staff.Reconciliation {
	t.Helper()
	asked, err := r.store.RequestDailyReconciliation(t.Context(), provider, day, "tester")
	if err != nil {
		t.Fatal(err)
	}
	var got staff.Reconciliation
	wait.Until(t, "reconciliation of "+string(day), func() bool {
		got, err = r.store.Reconciliation(t.Context(), asked.ID)
		return err == nil && hasEnded(got)
	})
	return got
}

// sql is a connection to the rig's database that bypasses all checks.
func (r *rig) sql(t *testing.T) *sql.DB {
	t.Helper()
	db := must(store.OpenSQL(r.dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, rows int64, text string, args ...any) {
	t.Helper()
	res := must(db.ExecContext(t.Context(), text, args...))(t)
	if n, err := res.RowsAffected(); err != nil || n != rows {
		t.Fatalf("%s: %d rows, want %d, %v", text, n, rows, err)
	}
}

// age moves everything so far two minutes into the past, on our side and in the provider's
// statement. Nothing counts as in flight then.
type aged struct{ payout.Stated }

const agedBy = 2 * staff.InFlightAge

func (a aged) Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error) {
	page, err := a.Stated.Statement(ctx, day, after)
	from, _ := day.Span(a.Zone())
	for i, l := range page.Lines {
		page.Lines[i].At = l.At.Add(-agedBy)
		if page.Lines[i].At.Before(from) { // the first minutes of a day
			page.Lines[i].At = from
		}
	}
	return page, err
}

// agedRig is a rig of its own whose statements are two minutes old.
func agedRig(t *testing.T) *rig {
	temporal, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns, func(r *rig, c *worker.Config) {
		c.Reconcile.Steps.Providers = payout.OnlyProvider(aged{r.provider})
	})
	return r
}

func (r *rig) openBreaks(t *testing.T) map[payout.BreakKind][]staff.BreakRow {
	t.Helper()
	no := false
	rows, err := r.reports().Breaks(t.Context(), staff.BreakFilter{Resolved: &no, Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	out := map[payout.BreakKind][]staff.BreakRow{}
	for _, b := range rows {
		out[b.Kind] = append(out[b.Kind], b)
	}
	return out
}

// spoil makes the sandbox misbehave until the test ends.
func (r *rig) spoil(t *testing.T, rules string) {
	t.Helper()
	r.call(t, http.MethodPut, "/_faults", rawJSON(`{"rules":[`+rules+`]}`), nil)
	t.Cleanup(func() {
		req := must(http.NewRequestWithContext(context.Background(), http.MethodPut, r.url+"/_faults", strings.NewReader(`{"rules":[]}`)))(t)
		req.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})
}

type rawJSON string

func (j rawJSON) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// TestReconcileFindsUnnotifiedReturn: the money was returned and its notification never
// arrived. The row says paid until the statement is read.
func TestReconcileFindsUnnotifiedReturn(t *testing.T) {
	awayFromMidnight(t)
	r := sharedRig(t)
	r.spoil(t, `{"op":"transfer","kind":"notify_never","rate":1,"account_prefix":"silent"}`)
	p := r.create(t, spec{total: 100, count: 1})
	r.awaitOpen(t, p.ID)
	c := r.grab(t, p.ID, "silent~returned").Claim
	r.awaitPayout(t, c, payout.StatusPaid)
	wait.Until(t, "money is returned", func() bool { return len(r.movements(t, p.ID)) == 3 })
	if got := r.payoutOf(t, c).Status; got != payout.StatusPaid {
		t.Fatalf("payout is %s before anybody asked", got)
	}
	got := r.reconcileDay(t, today())
	if got.Status != staff.ReconciliationDone || !got.Provisional || got.InFlight != 0 || got.Lines < 3 || got.Repaired != 1 ||
		got.Matched != got.Lines {
		t.Errorf("%+v", got)
	}
	if st := r.payoutOf(t, c).Status; st != payout.StatusReturned {
		t.Errorf("payout is %s after the reconciliation", st)
	}
	r.balanced(t, p)
}

// money sends a request to the provider with our key, past the product.
func (r *rig) money(t *testing.T, op payout.Op, orderNo, account string, amount money.Fen) {
	t.Helper()
	raw := must(r.provider.EncodeRequest(payout.Instruction{Op: op, OrderNo: orderNo, Account: account, Amount: amount, Currency: "CNY"}))(t)
	if o := r.provider.Send(t.Context(), payout.Order{Op: op, OrderNo: orderNo, Request: raw, Send: 1}); o.Kind != payout.ObsSucceeded {
		t.Fatalf("%s %s: %+v", op, orderNo, o)
	}
}

// TestReconcileEveryBreak produces each kind of break: rows changed outside the product, and
// money moved at the provider outside it.
func TestReconcileEveryBreak(t *testing.T) {
	awayFromMidnight(t)
	r := agedRig(t)
	db := r.sql(t)
	p := r.create(t, spec{total: 1200, count: 6})
	r.awaitOpen(t, p.ID)
	claims := map[string]string{} // user -> payout id
	for _, user := range []string{"fine", "unbooked", "account", "amount", "unknown", "last~returned"} {
		c := r.grab(t, p.ID, user).Claim
		claims[user] = payout.ID(payout.KindPayout, p.ID, c.ShareIndex)
		want := payout.StatusPaid
		if user == "last~returned" {
			want = payout.StatusReturned
		}
		r.awaitPayout(t, c, want)
	}
	order := func(user string) string { return payout.OrderNo(claims[user], 1) }
	// The ledger is append-only; what is done to it here, a restore could do.
	exec(t, db, 0, "DROP TRIGGER IF EXISTS transfers_no_update")
	exec(t, db, 0, "DROP TRIGGER IF EXISTS transfers_no_delete")
	// Everything was booked long ago, apart from what the rows below say.
	exec(t, db, 1+6+6+1, "UPDATE transfers SET created_at = created_at - INTERVAL 2 MINUTE")
	first := r.reconcileDay(t, today())
	if first.Status != staff.ReconciliationDone || first.Lines != 8 || first.Matched != 8 || first.Breaks != 0 || first.Repaired != 0 ||
		first.InFlight != 0 {
		t.Fatalf("before anything was done: %+v", first)
	}
	for _, sum := range first.Sums {
		if sum.Provider != sum.Books || sum.Op == payout.OpTransfer && (sum.Provider != staff.Sum{Count: 6, Amount: 1200}) {
			t.Errorf("%+v", sum)
		}
	}

	// Repaired: MySQL lost that it was paid, and the watch has no reason to look. A return lost likewise.
	exec(t, db, 1, "DELETE FROM transfers WHERE reference = ?", order("unbooked")+":paid")
	exec(t, db, 1, "UPDATE attempts SET booked = FALSE, statement = 'pending', ended_at = NULL, next_action = 'ask' WHERE order_no = ?",
		order("unbooked"))
	exec(t, db, 1, "UPDATE payments SET status = 'sending', settled_at = NULL, updated_at = UTC_TIMESTAMP(3) + INTERVAL 5 MINUTE WHERE id = ?",
		claims["unbooked"])
	exec(t, db, 1, "DELETE FROM transfers WHERE reference = ?", order("last~returned")+":returned")
	exec(t, db, 1, "UPDATE attempts SET return_booked = FALSE, statement = 'succeeded' WHERE order_no = ?", order("last~returned"))
	exec(t, db, 1, "UPDATE payments SET status = 'paid', failure_code = NULL, failure_message = NULL WHERE id = ?", claims["last~returned"])
	// For staff.
	exec(t, db, 1, "UPDATE attempts SET account = 'other' WHERE payment_id = ?", claims["account"])
	exec(t, db, 1, "UPDATE payments SET amount = amount + 1 WHERE id = ?", claims["amount"])
	exec(t, db, 1, "DELETE FROM attempts WHERE order_no = ?", order("unknown"))
	exec(t, db, 1, "UPDATE payments SET attempt = 0, order_no = NULL WHERE id = ?", claims["unknown"])
	r.money(t, payout.OpTransfer, "NotOurs4711", "stranger", 77)
	r.money(t, payout.OpTransfer, payout.OrderNo(payout.ID(payout.KindPayout, p.ID, 99), 1), "stranger", 78)
	silent := payout.OrderNo(payout.ID(payout.KindPayout, p.ID, 0), 7)
	exec(t, db, 1, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
		SELECT packet_id, 'paid', 'owed', 'provider', 5, ?, ?, UTC_TIMESTAMP(3) - INTERVAL 2 MINUTE, provider FROM payments WHERE id = ?`,
		silent, silent+":paid", claims["fine"])

	second := r.reconcileDay(t, today())
	open := r.openBreaks(t)
	for kind, numbers := range map[payout.BreakKind][]string{
		payout.BreakAccountDiffers: {order("account")}, payout.BreakAmountDiffers: {order("amount")}, payout.BreakNotInStatement: {silent},
		payout.BreakForeignOrder: {"NotOurs4711", payout.OrderNo(payout.ID(payout.KindPayout, p.ID, 99), 1), order("unknown")},
	} {
		var got []string
		for _, b := range open[kind] {
			got = append(got, b.OrderNo)
			if b.ReconciliationID != second.ID || b.Provider != "sandbox" || b.Amount == 0 || b.Seen != 1 {
				t.Errorf("%+v", b)
			}
		}
		if !sameSet(got, numbers) {
			t.Errorf("%s: %q, want %q", kind, got, numbers)
		}
		delete(open, kind)
	}
	if len(open) != 0 {
		t.Errorf("unexpected: %+v", open)
	}
	if second.Breaks != 6 || second.Repaired != 2 || second.Matched != 5 || second.Lines != 10 {
		t.Errorf("%+v", second)
	}
	for user, want := range map[string]payout.Status{"unbooked": payout.StatusPaid, "last~returned": payout.StatusReturned} {
		if got, err := r.store.PaymentRow(t.Context(), claims[user]); err != nil || got.Status != want {
			t.Errorf("%s is %s after the repair, %v", user, got.Status, err)
		}
	}
	yes := true
	repaired, err := r.reports().Breaks(t.Context(), staff.BreakFilter{Resolved: &yes, Limit: 10})
	if err != nil || len(repaired) != 2 || repaired[0].ResolvedBy != staff.ByReconciliation || repaired[0].Reason == "" {
		t.Errorf("%+v, %v", repaired, err)
	}
	third := r.reconcileDay(t, today())
	all, err := r.reports().Breaks(t.Context(), staff.BreakFilter{Limit: 200})
	if err != nil || third.Breaks != 6 || third.Repaired != 0 || len(all) != 8 {
		t.Errorf("a further run finds something new: %+v, %d breaks, %v", third, len(all), err)
	}
}

func sameSet(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestReconciliationsAreScheduled: one schedule, as configured, however often it is set; it
// requests the day before.
func TestReconciliationsAreScheduled(t *testing.T) {
	r := sharedRig(t)
	id := workflows.DailyReconcileID("sandbox")
	schedules := func() (ids []string) {
		list := must(r.temporal.ScheduleClient().List(t.Context(), client.ScheduleListOptions{}))(t)
		for list.HasNext() {
			ids = append(ids, must(list.Next())(t).ID)
		}
		return ids
	}
	wait.Until(t, "schedule is listed", func() bool { return len(schedules()) > 0 })
	handle := r.temporal.ScheduleClient().GetHandle(t.Context(), id)
	check := func(hour, minute int, zone string) {
		t.Helper()
		var d *client.ScheduleDescription
		wait.Until(t, "schedule is as configured", func() bool { // Temporal takes a moment to show an update
			d = must(handle.Describe(t.Context()))(t)
			return len(d.Schedule.Spec.Calendars) == 1 && len(d.Schedule.Spec.Calendars[0].Minute) == 1 &&
				d.Schedule.Spec.Calendars[0].Minute[0].Start == minute
		})
		spec := d.Schedule.Spec
		if len(spec.Calendars) != 1 || len(spec.Intervals) != 0 || spec.TimeZoneName != zone {
			t.Fatalf("%+v", spec)
		}
		c := spec.Calendars[0]
		if len(c.Hour) != 1 || c.Hour[0].Start != hour || len(c.Minute) != 1 || c.Minute[0].Start != minute {
			t.Errorf("%+v", c)
		}
		next := d.Info.NextActionTimes
		if len(next) < 2 || next[1].Sub(next[0]) != 24*time.Hour || next[0].Hour() != hour || next[0].Minute() != minute {
			t.Errorf("next at %v", next)
		}
	}
	check(4, 10, "UTC")
	w, stop := r.startWorker(t)
	wait.Until(t, "second worker ready", w.Ready)
	stop() // whatever it does to the schedule is done
	check(4, 10, "UTC")
	if err := r.starter.ScheduleReconciliations(t.Context(), "sandbox", time.UTC, 5, 20); err != nil {
		t.Fatal(err)
	}
	check(5, 20, "UTC")
	if got := schedules(); len(got) != 1 || got[0] != id {
		t.Errorf("schedules: %q", got)
	}
	if err := handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "by hand"}); err != nil {
		t.Fatal(err)
	}
	if err := r.starter.ScheduleReconciliations(t.Context(), "sandbox", time.UTC, 4, 10); err != nil {
		t.Fatal(err)
	}
	if d := must(handle.Describe(t.Context()))(t); !d.Schedule.State.Paused {
		t.Error("a new worker goes on with what a person had paused")
	}
	if err := handle.Unpause(t.Context(), client.ScheduleUnpauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := handle.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the day before is reconciled", func() bool {
		list, err := r.reports().Reconciliations(t.Context(), staff.ReconciliationFilter{Day: today().Add(-1), Limit: 5})
		return err == nil && len(list) == 1 && list[0].Status == staff.ReconciliationDone && list[0].RequestedBy == staff.BySchedule &&
			!list[0].Provisional
	})
	wait.Until(t, "its run has ended", func() bool { return r.runs(t, workflows.ReconcileID("sandbox", today().Add(-1))) == "Completed" })
	asked := must(handle.Describe(t.Context()))(t).Info.RecentActions
	if len(asked) == 0 {
		t.Fatal("the schedule knows of no run")
	}
	daily := asked[len(asked)-1].StartWorkflowResult.WorkflowID
	wait.Until(t, daily+" has ended", func() bool { return r.runs(t, daily) == "Completed" })
	recorded(t, "daily_reconcile", r.history(t, daily))
}

// TestReconciliationSurvivesItsRun: a terminated run is started again and continues the same
// reconciliation.
func TestReconciliationSurvivesItsRun(t *testing.T) {
	r := sharedRig(t)
	day := today().Add(-3)
	asked := must(r.store.RequestDailyReconciliation(t.Context(), "sandbox", day, "tester"))(t)
	id := workflows.ReconcileID("sandbox", day)
	wait.Until(t, "run", func() bool {
		return r.temporal.TerminateWorkflow(t.Context(), id, "", "by hand") == nil || ended(t, r, asked.ID)
	})
	wait.Until(t, "end", func() bool { return ended(t, r, asked.ID) })
	if one := must(r.store.Reconciliation(t.Context(), asked.ID))(t); one.Status != staff.ReconciliationDone {
		t.Errorf("%+v", one)
	}
}

func hasEnded(one staff.Reconciliation) bool {
	return one.Status == staff.ReconciliationDone || one.Status == staff.ReconciliationFailed
}

func ended(t *testing.T, r *rig, id string) bool {
	t.Helper()
	one, err := r.store.Reconciliation(t.Context(), id)
	return err == nil && hasEnded(one)
}
