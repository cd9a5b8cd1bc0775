package payout

import (
	"testing"
	"time"
)

// TestCheckRefund: which refund of a charge may get an order number, and when.
func TestCheckRefund(t *testing.T) {
	paid := t0.Add(-365 * 24 * time.Hour)
	of := func(ago time.Duration, change func(*Attempt)) Attempt {
		a := NewAttempt(newPaymentStore(KindRefund).p, 1, nil)
		p := newPaymentStore(KindRefund).p
		if err := RecordSend(&p, &a, limits, t0.Add(-ago)); err != nil {
			t.Fatal(err)
		}
		change(&a)
		return a
	}
	silent := func(*Attempt) {}
	accepted := func(a *Attempt) { a.Statement, a.CurrentSendUntil = ObsPending, time.Time{} }
	ended := func(a *Attempt) { a.EndedAt = t0 }
	repeated := func(a *Attempt) { a.EarlierSendsUntil = t0.Add(3 * time.Second) }
	all := Limits{RefundWindow: 365 * 24 * time.Hour, RefundsPerCharge: 3, RefundSpacing: time.Minute}
	short := all
	short.RefundSpacing = time.Second
	const after = time.Minute + LeaveWithin // a send may leave that much later
	for name, tc := range map[string]struct {
		limits Limits
		paidAt time.Time
		sent   []Attempt
		again  bool
		code   string
		wait   time.Duration // from now; 0: it is sent
	}{
		"the first":                      {limits: all, paidAt: paid},
		"no limits":                      {sent: []Attempt{of(0, silent), of(0, silent), of(0, silent)}, paidAt: paid.Add(-time.Hour)},
		"sent just now":                  {limits: all, sent: []Attempt{of(0, silent)}, wait: after},
		"accepted before":                {limits: all, sent: []Attempt{of(20*time.Second, accepted)}, wait: after - 20*time.Second},
		"after the latest":               {limits: all, sent: []Attempt{of(time.Second, ended), of(time.Hour, ended)}, wait: after - time.Second},
		"the spacing has passed":         {limits: all, sent: []Attempt{of(after, accepted)}},
		"unknown, passed by":             {limits: all, sent: []Attempt{of(after, silent)}},
		"may still land":                 {limits: short, sent: []Attempt{of(10*time.Second, silent)}, wait: LeaveWithin},
		"may land no more":               {limits: short, sent: []Attempt{of(15*time.Second, silent)}},
		"a repeat may still land":        {limits: all, sent: []Attempt{of(time.Hour, repeated)}, wait: 3 * time.Second},
		"a repeat of one that has ended": {limits: all, sent: []Attempt{of(time.Hour, func(a *Attempt) { repeated(a); ended(a) })}},
		"sent by a clock ahead":          {limits: all, sent: []Attempt{of(-time.Hour, accepted)}},
		"as many as there may be": {limits: all, sent: []Attempt{of(0, silent), of(after, ended), of(after, ended)},
			code: FailureRefundLimit},
		"too late": {limits: all, paidAt: paid.Add(-time.Second), code: FailureRefundWindowOver},
		"too late and too many": {limits: all, paidAt: paid.Add(-time.Second), sent: []Attempt{of(0, silent), of(0, silent), of(0, silent)},
			code: FailureRefundWindowOver},
		"retried under another number": {limits: all, paidAt: paid.Add(-time.Second), again: true,
			sent: []Attempt{of(time.Hour, ended), of(time.Hour, ended), of(time.Minute, ended)}, wait: LeaveWithin},
	} {
		p := newPaymentStore(KindRefund).p
		if tc.again {
			p.Attempt = 1
		}
		code, from := tc.limits.CheckRefund(p, tc.paidAt, tc.sent, t0)
		if wait := max(from.Sub(t0), 0); code != tc.code || wait != tc.wait {
			t.Errorf("%s: %q, after %v; want %q, %v", name, code, wait, tc.code, tc.wait)
		}
	}
}

// TestRefundBeyondLimitsFails: it has failed without an order number, with advice of its own, and is paid outside.
func TestRefundBeyondLimitsFails(t *testing.T) {
	for _, code := range []string{FailureRefundLimit, FailureRefundWindowOver} {
		b := newPaymentStore(KindRefund)
		if err := FailUnsent(&b.p, code, t0); err != nil {
			t.Fatal(err)
		}
		f := b.p.Failure
		if b.p.Status != StatusFailed || f.Code != code || f.Retryable || f.NextAction == FailureCodes[0].RefundNextAction ||
			b.step().Do != ActionEnd {
			t.Errorf("%+v, %+v", b.p, f)
		}
		if err := b.decide(DecisionMarkPaid, true); err != nil || b.p.Status != StatusPaidOutside || len(b.posted) != 1 {
			t.Errorf("%s: %s, %v, %v", code, b.p.Status, b.posted, err)
		}
	}
}
