package payout

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// waitsFor returns an order that was just sent and waits for a person until a time; zero: nobody knows until when.
func waitsFor(kind ObservationKind, until time.Time) *paymentStore {
	b := newPaymentStore(KindPayout)
	if kind == ObsNeedsPayer {
		b = newPaymentStore(KindCharge)
		b.p.PayUntil = until
	}
	if _, err := b.send(); err != nil {
		panic(err)
	}
	b.waits(SourceSend, kind, until)
	return b
}

// waits settles that the order still waits. Client data of a sender stays valid, so that only queries are due.
func (b *paymentStore) waits(from Source, kind ObservationKind, until time.Time) {
	o := said(from, b.attempt(1).OrderNo, kind)
	if o.Until = until; kind == ObsNeedsPayer {
		o.Until = t0.Add(1000 * 24 * time.Hour)
	}
	if err := b.settle(1, o); err != nil {
		panic(err)
	}
}

// TestPersonQueries: an order that waits for its sender or recipient has one schedule of queries. That of a charge ends
// with the close at its deadline.
func TestPersonQueries(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		kind  ObservationKind
		valid time.Duration // 0: not known
		want  []time.Duration
	}{
		{ObsNeedsRecipient, day, []time.Duration{time.Minute, 10 * time.Minute, time.Hour, day, day + time.Hour, 2*day + time.Hour,
			3*day + time.Hour}},
		{ObsNeedsRecipient, 2 * time.Minute, []time.Duration{time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour, time.Hour + 2*time.Minute,
			day + time.Hour + 2*time.Minute}},
		{ObsNeedsRecipient, 0, []time.Duration{time.Minute, 10 * time.Minute, time.Hour, day + time.Hour, 2*day + time.Hour}},
		{ObsNeedsPayer, 3 * day, []time.Duration{time.Minute, 10 * time.Minute, time.Hour, day + time.Hour, 2*day + time.Hour, 3 * day}},
		{ObsNeedsPayer, 5 * time.Minute, []time.Duration{time.Minute, 5 * time.Minute}},
	} {
		until := time.Time{}
		if tc.valid > 0 {
			until = t0.Add(tc.valid)
		}
		b := waitsFor(tc.kind, until)
		var got []time.Duration
		for len(got) < len(tc.want) {
			step := b.step()
			b.now = step.At
			got = append(got, b.now.Sub(t0))
			if step.Do == ActionClose {
				break
			}
			b.waits(SourceQuery, tc.kind, until)
		}
		if !slices.Equal(got, tc.want) || (b.step().Do == ActionClose) != (tc.kind == ObsNeedsPayer) {
			t.Errorf("%s for %v: due after %v, want %v; then %+v", tc.kind, tc.valid, got, tc.want, b.step())
		}
	}
}

// TestPersonQueriesAreFew: however late the answers are and whenever the time for the act ends, an order that waits is
// queried at most five times within a day and at least daily, and not in its first minute unless that time ends. No
// repair of times brings a query forward, and a charge is closed at its deadline.
func TestPersonQueriesAreFew(t *testing.T) {
	const day, most = 24 * time.Hour, 5
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]ObservationKind{ObsNeedsPayer, ObsNeedsRecipient}).Draw(t, "kind")
		valid := time.Duration(rapid.Int64Range(1, int64(5*day)).Draw(t, "valid"))
		b := waitsFor(kind, t0.Add(valid))
		var queried []time.Time
		for b.now.Sub(t0) < 8*day {
			if open := (OpenPayment{Payment: b.p, NextAt: b.attempt(1).NextAt}); open.TooFarAhead(b.now) ||
				ClampFutureTimes(&b.p, b.attempts, b.now) {
				t.Fatalf("at %v: the query at %v counts as written by a clock ahead", b.now, open.NextAt)
			}
			step := NextDue(b.p, b.attempts, b.now)
			if step.Do == ActionClose {
				if kind != ObsNeedsPayer || !step.At.Equal(t0.Add(valid)) {
					t.Fatalf("closed at %v, the deadline is %v", step.At, t0.Add(valid))
				}
				return
			}
			if step.Do != ActionQuery || step.At.Sub(b.now) > day || step.At.Before(t0.Add(min(time.Minute, valid))) {
				t.Fatalf("at %v: %+v", b.now, step)
			}
			if n := len(queried); n >= most && step.At.Sub(queried[n-most]) < day {
				t.Fatalf("more than %d queries within a day: %v, %v", most, queried, step.At)
			}
			queried = append(queried, step.At)
			b.now = maxTime(b.now, step.At).Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "late")))
			b.waits(SourceQuery, kind, t0.Add(valid))
		}
		if kind == ObsNeedsPayer {
			t.Fatalf("not closed at %v", t0.Add(valid))
		}
	})
}

// TestPersonQueryUnanswered: a query that a notification has brought forward is repeated soon when it has no answer.
func TestPersonQueryUnanswered(t *testing.T) {
	for _, kind := range []ObservationKind{ObsNeedsPayer, ObsNeedsRecipient} {
		b := waitsFor(kind, t0.Add(24*time.Hour))
		b.now = t0.Add(3 * time.Hour)
		b.waits(SourceQuery, kind, t0.Add(24*time.Hour))
		b.now = b.now.Add(time.Minute)
		b.attempt(1).QueryWantedAt, b.attempt(1).NextAt = b.now, b.now // as a notification is recorded
		if step := b.step(); step.Do != ActionQuery || !step.At.Equal(b.now) {
			t.Fatalf("%s, notified: %+v", kind, step)
		}
		if err := b.settle(1, said(SourceQuery, b.attempt(1).OrderNo, ObsNoAnswer)); err != nil {
			t.Fatal(err)
		}
		if step := b.step(); step.Do != ActionQuery || step.At.Sub(b.now) > pauseCap {
			t.Errorf("%s, not answered: again %+v after %v", kind, step, step.At.Sub(b.now))
		}
	}
}
