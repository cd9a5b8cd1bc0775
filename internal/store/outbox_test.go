package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
)

func failedPayment(t testing.TB, s *testStore) string {
	t.Helper()
	id := owing(t, s)
	fail(t, s, id)
	return id
}

func TestDueOutbox(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	if got := due(t, s, 10); len(got) != 0 {
		t.Errorf("due %v of nothing", got)
	}
	a, b := failedPayment(t, s), failedPayment(t, s)
	decide(t, s, a)
	decide(t, s, b)
	if got := due(t, s, 1); !slices.Equal(got, []string{a}) { // oldest first
		t.Errorf("due %v, want %s", got, a)
	}
	if got := due(t, s, 10); !slices.Equal(got, []string{b}) { // a was delayed
		t.Errorf("due %v, want %s", got, b)
	}
	// Repeated with growing pauses until the payment has moved.
	for try := range 12 {
		want := min(200*time.Millisecond<<min(try, 5), 5*time.Second)
		if got := outboxPause(try); got != want || try > 0 && got < outboxPause(try-1) {
			t.Errorf("pause %d is %v, want %v", try, got, want)
		}
		c.Pass(want - 100*time.Millisecond)
		if got := due(t, s, 10); len(got) != 0 {
			t.Fatalf("try %d: due %v before its pause was over", try, got)
		}
		c.Pass(200 * time.Millisecond)
		rows, err := s.DueOutbox(t.Context(), 10)
		if err != nil || len(rows) != 2 || rows[0].Tries != try+1 {
			t.Fatalf("try %d: %+v, %v", try, rows, err)
		}
	}
	settle(t, s, payout.SourceQuery, payout.OrderNo(a, 1), payout.ObsDeclined)
	begin(t, s, a)
	c.Pass(time.Minute)
	if got := due(t, s, 10); !slices.Equal(got, []string{b}) {
		t.Errorf("due %v, want %s", got, b)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM outbox WHERE payment_id = ?", a); n != 0 {
		t.Error("the row of a payment that has moved is still there")
	}
}

// TestMarkOutboxStarted: a payment that waits for its provider keeps its row for hours. Its run is
// woken less and less often, and no alert is raised. A run that cannot be started is tried every
// five seconds, and an alert is raised.
func TestMarkOutboxStarted(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	reader := report.NewHealthReader(s.Source)
	outbox := func() observe.Backlog {
		t.Helper()
		v := storetest.NewSnapshot()
		must(t, reader.Read(ctx, v))
		return v.Outbox
	}
	held, lost := failedPayment(t, s), failedPayment(t, s)
	decide(t, s, held)
	decide(t, s, lost)
	since := c.Now()
	woken := map[string]int{}
	var last time.Time
	for c.Now().Sub(since) < 4*time.Hour {
		rows, err := s.DueOutbox(ctx, 10)
		must(t, err)
		for _, d := range rows {
			woken[d.Payment.ID]++
			if d.Payment.ID != held {
				continue
			}
			age, paused := c.Now().Sub(since), c.Now().Sub(last)
			if most := max(5*time.Second, age/15) + 5*time.Second; !last.IsZero() && paused > min(most, startedCap+5*time.Second) {
				t.Fatalf("after %v its run was not woken for %v", age, paused)
			}
			last = c.Now()
			must(t, s.MarkOutboxStarted(ctx, d))
		}
		c.Pass(5 * time.Second)
	}
	if woken[held] < 60 || woken[held] > 200 || woken[lost] < 2500 {
		t.Errorf("a started run was woken %d times, one that could not be started %d times", woken[held], woken[lost])
	}
	if got := outbox(); got.Waiting != 1 || got.Oldest.Sub(since).Abs() > time.Second {
		t.Errorf("waiting: %+v, want one since %v", got, since)
	}
	settle(t, s, payout.SourceQuery, payout.OrderNo(lost, 1), payout.ObsDeclined)
	begin(t, s, lost)
	c.Pass(5 * time.Second)
	due(t, s, 10) // it has moved
	if got := outbox(); got.Waiting != 0 || !got.Oldest.IsZero() {
		t.Errorf("waiting: %+v, of a run that was reached", got)
	}
	// The dispatcher is down: the row is due and stays.
	c.Pass(startedCap + time.Minute)
	if got := outbox(); got.Waiting != 1 || c.Now().Sub(got.Oldest) < time.Minute || c.Now().Sub(got.Oldest) > startedCap+time.Minute {
		t.Errorf("waiting: %+v at %v", got, c.Now())
	}
	// A rewritten row is due at once; the start recorded before does not delay it.
	rows, err := s.DueOutbox(ctx, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	must(t, s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.putOutbox(held, outboxBegin) }))
	must(t, s.MarkOutboxStarted(ctx, rows[0]))
	if got := due(t, s, 10); !slices.Equal(got, []string{held}) || outbox().Waiting != 1 {
		t.Errorf("due %v, waiting %+v", got, outbox())
	}
}

// TestDueOutboxOfManyWorkers: each row goes to one worker at a time, and none waits for another's
// lock.
func TestDueOutboxOfManyWorkers(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	const n = 12
	p := funded(t, s, 1200, n)
	for i := range n {
		claim(t, s, p, i, fmt.Sprint("u", i))
		fail(t, s, payoutID(p, i))
		decide(t, s, payoutID(p, i))
	}
	got := make([][]string, 4)
	for _, err := range together(len(got), func(i int) error {
		for range 6 {
			rows, err := s.DueOutbox(t.Context(), 3)
			if err != nil {
				return err
			}
			for _, r := range rows {
				got[i] = append(got[i], r.Payment.ID)
			}
		}
		return nil
	}) {
		must(t, err)
	}
	if all := slices.Concat(got...); len(all) != n || len(slices.Compact(slices.Sorted(slices.Values(all)))) != n {
		t.Errorf("%d rows handed out, want each of %d once", len(all), n)
	}
	// A row locked by another worker is skipped.
	c.Pass(time.Minute)
	must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
		if err := tx.Exec("SELECT * FROM outbox WHERE payment_id = ? FOR UPDATE", payoutID(p, 0)).Error; err != nil {
			return err
		}
		if got := due(t, s, 100); len(got) != n-1 || slices.Contains(got, payoutID(p, 0)) {
			t.Errorf("%d rows due beside a locked one, want %d", len(got), n-1)
		}
		return nil
	}))
}

// TestR12_NotificationMovesNothing: it is stored once and requests a query, nothing more.
func TestR12_NotificationMovesNothing(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsPending)
	c.Pass(time.Millisecond)
	before, err := s.Payment(ctx, id)
	must(t, err)
	unchanged := func(what string) {
		t.Helper()
		after, err := s.PaymentRow(ctx, id)
		must(t, err)
		if after != before.Payment {
			t.Errorf("%s changed the payment: %+v", what, after)
		}
	}
	for name, n := range map[string]struct {
		by           payout.Adapter
		event, order string
	}{
		"unknown order":    {adapter, "e1", payout.OrderNo(payout.ID('p', newID(), 0), 1)},
		"later number":     {adapter, "e2", payout.OrderNo(id, 2)},
		"payment id":       {adapter, "e3", id},
		"nonsense":         {adapter, "e4", "x"},
		"another provider": {payout.Adapter{Provider: "other", Account: adapter.Account}, "e5", o.OrderNo},
		"another account":  {payout.Adapter{Provider: provider, Account: "other"}, "e5b", o.OrderNo},
	} {
		must(t, s.RecordNotification(ctx, n.by, n.event, n.order, []byte("{}")))
		unchanged(name)
		if got := due(t, s, 10); len(got) != 0 {
			t.Errorf("%s: due %v", name, got)
		}
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM notifications WHERE NOT known"); n != 6 {
		t.Errorf("%d unknown notifications stored", n)
	}
	for _, err := range together(6, func(int) error {
		return s.RecordNotification(ctx, adapter, "e6", o.OrderNo, []byte(`{"status":"succeeded"}`))
	}) {
		must(t, err)
	}
	unchanged("a notification of success")
	if got := due(t, s, 10); !slices.Equal(got, []string{id}) {
		t.Errorf("due %v, want %s", got, id)
	}
	st, err := s.PaymentState(ctx, id)
	if err != nil || st.Step.Do != payout.ActionQuery || st.Step.At.After(s.Now()) {
		t.Errorf("%+v, %v: to be queried now", st, err)
	}
	// The query settles it; the outbox row is done, and a repeated event requests nothing.
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	c.Pass(time.Minute)
	if got := due(t, s, 10); len(got) != 0 {
		t.Errorf("due %v after the query", got)
	}
	must(t, s.RecordNotification(ctx, adapter, "e6", o.OrderNo, []byte("{}")))
	if got := due(t, s, 10); len(got) != 0 {
		t.Errorf("due %v after a repeat", got)
	}
	// A new event about a paid payment is queried too: the money may have been returned.
	must(t, s.RecordNotification(ctx, adapter, "e7", o.OrderNo, []byte("{}")))
	if got := due(t, s, 10); !slices.Equal(got, []string{id}) {
		t.Errorf("due %v", got)
	}
	if st, err := s.PaymentState(ctx, id); err != nil || st.Status != payout.StatusPaid || st.Step.Do != payout.ActionQuery {
		t.Errorf("%+v, %v", st, err)
	}
	if st := settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsReturned); st.Status != payout.StatusReturned ||
		st.Step.Do != payout.ActionEnd {
		t.Errorf("%+v", st)
	}
}

// TestNotificationsAndOutboxAtOnce: a notification is not lost when the dispatcher deletes the row
// of the previous one concurrently.
func TestNotificationsAndOutboxAtOnce(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	o := begin(t, s, id)
	for round := range 15 {
		c.Pass(time.Minute)
		for _, err := range together(3, func(i int) error {
			switch i {
			case 0:
				return s.RecordNotification(ctx, adapter, fmt.Sprint(round), o.OrderNo, nil)
			case 1:
				_, err := s.DueOutbox(ctx, 10)
				return err
			}
			_, err := s.Settle(ctx, observation(payout.SourceQuery, o.OrderNo, payout.ObsPending), o.OrderNo)
			return err
		}) {
			must(t, err)
		}
		c.Pass(time.Minute)
		wanted := storetest.Query[bool](t, s, "SELECT ask_wanted_at IS NOT NULL FROM attempts WHERE order_no = ?", o.OrderNo)
		if got := due(t, s, 10); wanted != slices.Contains(got, id) {
			t.Fatalf("round %d: query wanted %t, due %v", round, wanted, got)
		}
	}
}

// TestNotificationOvertakesAnAnswer: a notification stored after the begin of the answer's first statement,
// which waits for the row, is queried: the answer belongs to an earlier query.
func TestNotificationOvertakesAnAnswer(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	o := begin(t, s, id)
	answer := observation(payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	answer.StartedAt, answer.EndedAt = c.Now(), c.Now()
	c.Pass(time.Second)
	begun := c.Now()
	c.Pass(time.Second)
	must(t, s.RecordNotification(t.Context(), adapter, "e1", o.OrderNo, nil))
	s.db.Adjust = func(time.Time) time.Time { return begun }
	st, err := s.Settle(t.Context(), answer, o.OrderNo)
	must(t, err)
	if st.Status != payout.StatusPaid || st.Step.Do != payout.ActionQuery {
		t.Errorf("after the answer: %+v", st)
	}
	if !storetest.Query[bool](t, s, "SELECT ask_wanted_at IS NOT NULL FROM attempts WHERE order_no = ?", o.OrderNo) {
		t.Error("the notification requested no query")
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for range 2 {
		must(t, s.Quarantine(t.Context(), 3, "1-1", map[string]any{"claim": "\xff", "n": 1}, "bad \xff"))
	}
	must(t, s.Quarantine(t.Context(), 3, "1-2", map[string]any{"cannot": func() {}}, "cannot be encoded"))
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM quarantine"); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// TestOutboxRowWithoutPayment: it does not block the others.
func TestOutboxRowWithoutPayment(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	fail(t, s, id)
	must(t, s.db.Gorm.Exec("INSERT INTO outbox (payment_id, kind, due_at, created_at) VALUES ('p-nobody', 'begin', ?, ?)",
		c.Now().Add(-time.Minute), c.Now()).Error)
	decide(t, s, id)
	due, err := s.DueOutbox(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].Payment.ID != id {
		t.Errorf("%+v, %v", due, err)
	}
	c.Pass(outboxPause(0))
	if due, err = s.DueOutbox(t.Context(), 10); err != nil || len(due) != 1 {
		t.Errorf("%+v, %v", due, err)
	}
}
