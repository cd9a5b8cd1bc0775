package payout

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
)

// decides makes a decision that needs no further approval.
func (s *script) decides(kind DecisionKind, second bool) *script {
	s.t.Helper()
	s.must(s.paymentStore.decide(kind, second))
	return s.after(time.Second)
}

// carries carries out the open decision.
func (s *script) carries(want DecisionStatus) *script {
	s.t.Helper()
	got, err := s.carryOut()
	if err != nil || got != want {
		s.t.Fatalf("carried out: %s, %v; want %s", got, err, want)
	}
	return s
}

var (
	failed = func(t *testing.T) *script {
		return story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
	}
	cameBack = func(t *testing.T) *script {
		return story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).is(StatusReturned)
	}
	lost = func(t *testing.T) *script { // the provider no longer knows the number; the outcome is unknown
		return story(t, KindPayout).sends(ObsNoAnswer).after(limits.Remembers).queries(1, ObsNeverReceived).is(StatusUnknown)
	}
)

// TestR5_DecisionsByStatus checks every decision in every status.
func TestR5_DecisionsByStatus(t *testing.T) {
	may := map[Status][]DecisionKind{
		StatusFailed:   {DecisionRetry, DecisionCancel, DecisionMarkPaid, DecisionQuery},
		StatusReturned: {DecisionRetry, DecisionCancel, DecisionMarkPaid, DecisionQuery},
	}
	sentOnce := []Attempt{{No: 1, QueryUntil: t0.Add(time.Hour)}}
	for _, kind := range []Kind{KindCharge, KindPayout, KindRefund} {
		for _, status := range Statuses {
			for _, d := range []DecisionKind{DecisionRetry, DecisionCancel, DecisionMarkPaid, DecisionQuery, "other"} {
				want := slices.Contains(may[status], d) && kind != KindCharge && (d != DecisionCancel || kind == KindPayout) || d == DecisionQuery
				if got := CheckDecision(Payment{Kind: kind, Status: status, Attempt: 1}, sentOnce, d, t0) == nil; got != want {
					t.Errorf("%c %s %s: permitted %v", kind, status, d, got)
				}
			}
		}
	}
	if err := CheckDecision(Payment{Kind: KindPayout, Status: StatusPending}, nil, DecisionQuery, t0); !errors.Is(err, ErrNotRetryable) {
		t.Errorf("nothing was sent: %v", err)
	}
	s := lost(t)
	for d, want := range map[DecisionKind]bool{DecisionRetry: true, DecisionMarkPaid: true, DecisionCancel: false, DecisionQuery: true} {
		if got := CheckDecision(s.p, s.attempts, d, s.now) == nil; got != want {
			t.Errorf("unknown and forgotten, %s: permitted %v", d, got)
		}
	}
}

func TestR5_SecondPerson(t *testing.T) {
	const from = amount
	for _, row := range []struct {
		name   string
		s      *script
		kind   DecisionKind
		from   money.Fen
		second bool
	}{
		{"a small retry", failed(t), DecisionRetry, from + 1, false},
		{"a big retry", failed(t), DecisionRetry, from, true},
		{"a cancel", failed(t), DecisionCancel, from + 1, true},
		{"mark-paid", failed(t), DecisionMarkPaid, from + 1, true},
		{"ask", failed(t), DecisionQuery, 0, false},
		{"a small retry of a forgotten number", lost(t), DecisionRetry, from + 1, true},
		{"a small retry of a refusal long ago", failed(t).after(limits.Remembers), DecisionRetry, from + 1, false},
		{"a small retry of what was never received, long ago",
			story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed).after(limits.Remembers), DecisionRetry, from + 1,
			true},
	} {
		if got := NeedsApproval(row.s.p, row.s.attempts, DecisionRequest{Kind: row.kind, ApproveFrom: row.from}, row.s.now); got != row.second {
			t.Errorf("%s: second person %v", row.name, got)
		}
	}
}

func TestR5_RetryOfAForgottenNumber(t *testing.T) {
	// One person: nothing may be sent, back to unknown.
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed).after(limits.Remembers)
	s.decides(DecisionRetry, false).is(StatusPending).queries(1, ObsNeverReceived).begins(NoOrderNo)
	// Two: a new number, after one more query.
	s = lost(t).decides(DecisionRetry, true).is(StatusPending).next(ActionQuery, 1).begins(NoOrderNo)
	s.queries(1, ObsNeverReceived).begins(NewOrderNo).sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed)
	// The old number is given up: the next retry needs no consent.
	s.decides(DecisionRetry, false).queries(1, ObsNeverReceived).queries(2, ObsDeclined).begins(NewOrderNo)
	// The number of the consent has moved after all: settled, nothing is sent.
	lost(t).decides(DecisionRetry, true).queries(1, ObsSucceeded).is(StatusPaid).owes(0)
	lost(t).decides(DecisionRetry, true).queries(1, ObsPending).is(StatusUnknown).begins(NoOrderNo)
}

func TestR5_CancelQueriesFirst(t *testing.T) {
	s := failed(t).decides(DecisionCancel, true).is(StatusFailed).next(ActionQuery, 1).carries(DecisionOpen)
	if err := CheckDecision(s.p, s.attempts, DecisionRetry, s.now); !errors.Is(err, ErrDecisionPending) {
		t.Errorf("retry during a cancel: %v", err)
	}
	s.queries(1, ObsNoAnswer).next(ActionQuery, 1).carries(DecisionOpen)
	s.queries(1, ObsDeclined).next(ActionCarryOut, 0).carries(DecisionCarriedOut).is(StatusCancelled).owes(0).next(ActionEnd, 0)
	if s.p.Failure != nil || s.p.OpenDecision != "" {
		t.Errorf("%+v", s.p)
	}
	if s.carries(DecisionOpen); len(s.posted) != 1 || s.posted[0] != NewTransfer(PostCancel, s.p.ID, amount) {
		t.Errorf("posted %v", s.posted)
	}
	// Every number, not only the last.
	s = failed(t).retries().queries(1, ObsDeclined).sends(ObsDeclined).queries(2, ObsDeclined).decides(DecisionCancel, true)
	s.next(ActionQuery, 1).queries(1, ObsDeclined).next(ActionQuery, 2).carries(DecisionOpen).queries(2,
		ObsDeclined).carries(DecisionCarriedOut)
	cameBack(t).decides(DecisionCancel, true).is(StatusReturned).queries(1,
		ObsReturned).carries(DecisionCarriedOut).is(StatusCancelled).owes(0)
	// Never received is final here: nothing is sent again.
	story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).decides(DecisionCancel, true).queries(1,
		ObsNeverReceived).carries(DecisionCarriedOut).is(StatusCancelled)
}

// TestR5_CancelWaitsForSends: a cancel waits for a send that may still land, even if it is carried
// out too early.
func TestR5_CancelWaitsForSends(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).decides(DecisionCancel, true).queries(1, ObsNeverReceived)
	s.attempt(1).EarlierSendsUntil = s.now.Add(5 * time.Second)
	if step := s.step(); step.Do != ActionQuery || !step.At.Equal(s.attempt(1).EarlierSendsUntil) {
		t.Errorf("%+v", step)
	}
	s.carries(DecisionOpen).is(StatusFailed).after(5*time.Second).queries(1, ObsNeverReceived).carries(DecisionCarriedOut).is(StatusCancelled)
	// A number that was given up.
	s = lost(t).decides(DecisionNotMoved, true).queries(1, ObsNeverReceived).carries(DecisionCarriedOut).decides(DecisionCancel, true)
	s.queries(1, ObsNeverReceived).attempt(1).EarlierSendsUntil = s.now.Add(5 * time.Second)
	if step := s.step(); step.Do != ActionCarryOut || !step.At.Equal(s.attempt(1).EarlierSendsUntil) {
		t.Errorf("%+v", step)
	}
	s.carries(DecisionOpen).is(StatusFailed).after(5 * time.Second).carries(DecisionCarriedOut).is(StatusCancelled)
}

// TestR5_CancelOvertaken: the money had moved after all.
func TestR5_CancelOvertaken(t *testing.T) {
	s := failed(t).decides(DecisionCancel, true).queries(1, ObsSucceeded).next(ActionQuery, 1).carries(DecisionOpen).is(StatusFailed)
	s.queries(1, ObsSucceeded).is(StatusPaid).owes(0)
	if s.last.OvertakenDecision != DecisionCancel || s.p.OpenDecision != "" {
		t.Errorf("overtaken %q, deciding %q", s.last.OvertakenDecision, s.p.OpenDecision)
	}
	s.carries(DecisionOpen).is(StatusPaid)
	// Under a superseded number: returned money stays in suspense until staff look.
	s = failed(t).retries().queries(1, ObsDeclined).sends(ObsSucceeded).queries(2,
		ObsReturned).is(StatusReturned).decides(DecisionCancel, true)
	s.queries(1, ObsSucceeded).broke(BreakSecondSuccess).queries(2, ObsReturned).carries(DecisionOvertaken).is(StatusReturned).owes(amount)
	if s.p.OpenDecision != "" {
		t.Errorf("%+v", s.p)
	}
	// The provider contradicts itself twice: only a repeated statement counts.
	s = failed(t).decides(DecisionCancel, true).queries(1, ObsPending).carries(DecisionOpen).queries(1, ObsDeclined).carries(DecisionOpen)
	s.queries(1, ObsDeclined).carries(DecisionCarriedOut).is(StatusCancelled)
}

// TestR12_SuccessAfterCancelOrMarkPaid: money that was not owed is suspense and a break.
func TestR12_SuccessAfterCancelOrMarkPaid(t *testing.T) {
	s := failed(t).decides(DecisionCancel, true).queries(1, ObsDeclined).carries(DecisionCarriedOut)
	s.queries(1, ObsSucceeded).queries(1, ObsSucceeded).is(StatusCancelled).broke(BreakContradiction, BreakSecondSuccess)
	if got := s.posted[len(s.posted)-1]; got.Kind != PostSecondSuccess || got.Debit != AccountSuspense {
		t.Errorf("posted %v", s.posted)
	}
	s = lost(t).decides(DecisionMarkPaid, true).is(StatusPaidOutside).owes(0).next(ActionQuery, 1)
	s.queries(1, ObsSucceeded).is(StatusPaidOutside).broke(BreakOutcomeUnknown, BreakSecondSuccess).next(ActionEnd, 0)
}

func TestR12_MarkPaidOfARefund(t *testing.T) {
	s := story(t, KindRefund).sends(ObsDeclined).queries(1, ObsDeclined).decides(DecisionMarkPaid, true).is(StatusPaidOutside)
	if len(s.posted) != 1 || s.posted[0].Debit != AccountRefunding || s.posted[0].Credit != AccountOutside {
		t.Errorf("posted %v", s.posted)
	}
}

func TestPreview(t *testing.T) {
	c := DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}
	s := failed(t)
	of := func(s *script) Preview {
		t.Helper()
		v, err := PreviewDecision(s.p, s.attempts, c, s.now)
		if err != nil || v.Hash == ([32]byte{}) {
			t.Errorf("%+v, %v", v, err)
		}
		v.Hash = [32]byte{}
		return v
	}
	if v, want := of(s), (Preview{Amount: amount, Status: StatusFailed, FailureCode: s.p.Failure.Code, AttemptCount: 1,
		LastAnswer: ObsDeclined, OrderNo: OrderNo(s.p.ID, 2)}); v != want {
		t.Errorf("%+v", v)
	}
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived)
	if v, want := of(s), (Preview{Amount: amount, Status: StatusFailed, FailureCode: "never_received", AttemptCount: 1,
		LastAnswer: ObsNeverReceived, OrderNo: OrderNo(s.p.ID, 1), SameOrderNo: true}); v != want {
		t.Errorf("%+v", v)
	}
	if _, err := PreviewDecision(story(t, KindPayout).sends(ObsSucceeded).p, nil, c, t0); !errors.Is(err, ErrNotRetryable) {
		t.Errorf("of a paid one: %v", err)
	}
	if r := CancelRefund(s.p, "sender", t0); r.ID != ID(KindRefund, s.p.PacketID, s.p.ShareIndex+1) || r.Account != "sender" ||
		r.Amount != amount || r.Status != StatusPending {
		t.Errorf("%+v", r)
	}
}

// TestPreviewHash: everything that a person consents to changes the hash; time and repeated calls
// do not.
func TestPreviewHash(t *testing.T) {
	hash := func(change func(p *Payment, attempts []Attempt, c *DecisionRequest, now *time.Time)) [32]byte {
		t.Helper()
		s := failed(t)
		c, now := DecisionRequest{Kind: DecisionRetry}, s.now
		change(&s.p, s.attempts, &c, &now)
		v, err := PreviewDecision(s.p, s.attempts, c, now)
		if err != nil {
			t.Fatal(err)
		}
		return v.Hash
	}
	shown := hash(func(*Payment, []Attempt, *DecisionRequest, *time.Time) {})
	for what, change := range map[string]func(*Payment, []Attempt, *DecisionRequest, *time.Time){
		"times and calls": func(p *Payment, a []Attempt, _ *DecisionRequest, now *time.Time) {
			p.UpdatedAt, a[0].QueriedAt, a[0].Queries, *now = now.Add(time.Hour), now.Add(time.Hour), 7, now.Add(time.Hour)
		},
		"the threshold": func(_ *Payment, _ []Attempt, c *DecisionRequest, _ *time.Time) { c.ApproveFrom = amount + 1 },
	} {
		if hash(change) != shown {
			t.Errorf("%s change the hash", what)
		}
	}
	for what, change := range map[string]func(*Payment, []Attempt, *DecisionRequest, *time.Time){
		"another amount":   func(p *Payment, _ []Attempt, _ *DecisionRequest, _ *time.Time) { p.Amount++ },
		"another account":  func(p *Payment, _ []Attempt, _ *DecisionRequest, _ *time.Time) { p.Account += "x" },
		"another provider": func(p *Payment, _ []Attempt, _ *DecisionRequest, _ *time.Time) { p.Provider += "x" },
		"another status":   func(p *Payment, _ []Attempt, _ *DecisionRequest, _ *time.Time) { p.Status = StatusReturned },
		"another reason":   func(p *Payment, _ []Attempt, _ *DecisionRequest, _ *time.Time) { p.Failure.Code += "x" },
		"another answer":   func(_ *Payment, a []Attempt, _ *DecisionRequest, _ *time.Time) { a[0].Statement = ObsPending },
		"the same number":  func(_ *Payment, a []Attempt, _ *DecisionRequest, _ *time.Time) { a[0].Statement = ObsNeverReceived },
		"a return": func(_ *Payment, a []Attempt, _ *DecisionRequest, _ *time.Time) {
			a[0].Booked, a[0].ReturnBooked = true, true
		},
		"a number was forgotten": func(_ *Payment, a []Attempt, _ *DecisionRequest, _ *time.Time) { a[0].Forgotten = true },
		"a second person":        func(p *Payment, _ []Attempt, _ *DecisionRequest, _ *time.Time) { p.NeedsSecondPerson = true },
		"another decision":       func(_ *Payment, _ []Attempt, c *DecisionRequest, _ *time.Time) { c.Kind = DecisionCancel },
		"a risk is taken": func(_ *Payment, a []Attempt, _ *DecisionRequest, now *time.Time) {
			a[0].Statement, *now = ObsPending, a[0].QueryUntil
		},
	} {
		if hash(change) == shown {
			t.Errorf("%s: the same hash", what)
		}
	}
}

// TestR12_SecondSuccessReturned: suspense is zero again, and the break stays for staff.
func TestR12_SecondSuccessReturned(t *testing.T) {
	s := failed(t).decides(DecisionCancel, true).queries(1, ObsDeclined).carries(DecisionCarriedOut)
	s.queries(1, ObsSucceeded).queries(1, ObsSucceeded).queries(1, ObsReturned).is(StatusCancelled)
	superseded := failed(t).retries().queries(1, ObsDeclined).sends(ObsSucceeded).is(StatusPaid)
	superseded.queries(1, ObsSucceeded).queries(1, ObsReturned).is(StatusPaid).owes(0)
	for _, s := range []*script{s, superseded} {
		s.queries(1, ObsReturned) // a repeat: nothing more
		suspense := 0
		for _, p := range s.posted {
			if p.Debit == AccountSuspense {
				suspense -= int(p.Amount)
			}
			if p.Credit == AccountSuspense {
				suspense += int(p.Amount)
			}
		}
		if last := s.posted[len(s.posted)-1]; suspense != 0 || last.Kind != PostSecondReturned || !s.attempt(1).ReturnBooked {
			t.Errorf("suspense %d, posted %v", suspense, s.posted)
		}
	}
}

// TestR5_ClockSetBack: MySQL's clock is set back by ten minutes before or after a decision. Every
// number that was queried before the decision is queried after it, at once. The decision does not
// wait until the clock reaches its time again.
func TestR5_ClockSetBack(t *testing.T) {
	for _, kind := range []DecisionKind{DecisionRetry, DecisionCancel} {
		for _, before := range []bool{true, false} {
			b := newPaymentStore(KindPayout)
			settle := func(source Source, no string) {
				t.Helper()
				b.now = b.now.Add(time.Second)
				o := said(source, no, ObsDeclined)
				o.StartedAt = b.now.Add(-100 * time.Millisecond)
				parts, err := Parse(no)
				if err == nil {
					err = b.settle(parts.Attempt, o)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for n := 1; n <= 2; n++ {
				if n > 1 {
					if err := b.retry(); err != nil {
						t.Fatal(err)
					}
					settle(SourceQuery, b.step().OrderNo)
				}
				no, err := b.send()
				if err != nil {
					t.Fatal(err)
				}
				settle(SourceSend, no)
				settle(SourceQuery, no)
				if b.p.Status != StatusFailed || b.p.Attempt != n {
					t.Fatal(b.p)
				}
			}
			back := b.now.Add(-10 * time.Minute)
			b.now = b.now.Add(time.Minute)
			if before {
				b.now = back
			}
			if err := b.decide(kind, true); err != nil {
				t.Fatal(err)
			}
			b.now = back
			ClampFutureTimes(&b.p, b.attempts, b.now)
			queried, queries := map[string]int{}, 0
			for step := b.step(); step.Do == ActionQuery && queries < 6; step = b.step() {
				if step.At.After(b.now) {
					t.Fatalf("%s, set back before %v: at %v next is %+v, not a query at once", kind, before, b.now, step)
				}
				settle(SourceQuery, step.OrderNo)
				queried[step.OrderNo]++
				queries++
			}
			want := 2
			if step := b.step(); len(queried) != 2 || queries != want || step.Do == ActionQuery || step.At.After(b.now) {
				t.Errorf("%s, set back before %v: after queries %v next is %+v", kind, before, queried, step)
			}
		}
	}
}

// TestR5_QueryBeforeClockSetBack: an answer to a query with a time in the future does not count for
// a decision made since.
func TestR5_QueryBeforeClockSetBack(t *testing.T) {
	b := newPaymentStore(KindPayout)
	no, err := b.send()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []Source{SourceSend, SourceQuery} {
		if err := b.settle(1, said(source, no, ObsDeclined)); err != nil {
			t.Fatal(err)
		}
	}
	put := b.now.Add(time.Second)
	b.now = b.now.Add(-10 * time.Minute)
	if err := b.retry(); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Second)
	o := said(SourceQuery, no, ObsDeclined)
	o.StartedAt = put
	if err := b.settle(1, o); err != nil {
		t.Fatal(err)
	}
	if step := b.step(); step.Do != ActionQuery {
		t.Errorf("next is %+v, without a query", step)
	}
}
