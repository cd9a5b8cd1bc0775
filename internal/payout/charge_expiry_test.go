package payout

import (
	"errors"
	"testing"
	"time"
)

// TestR4_OnlyUnsentFail: only a charge or refund without an order number fails without a statement of the
// provider.
func TestR4_OnlyUnsentFail(t *testing.T) {
	for _, kind := range []Kind{KindCharge, KindPayout, KindRefund, KindHonour} {
		for _, status := range Statuses {
			for attempt := range 2 {
				p := newPaymentStore(kind).p
				p.Status, p.Attempt = status, attempt
				before := p
				want := (kind == KindCharge || kind == KindRefund) && status == StatusPending && attempt == 0
				if p.Unsent() != want {
					t.Errorf("%c %s, %d numbers: unsent %t", kind, status, attempt, !want)
				}
				if status == StatusSending || status == StatusUnknown || status == StatusAwaitingRecipient ||
					status == StatusAwaitingPayer || status == StatusFailed {
					continue // the provider's statements move these to failed
				}
				err := ExpireUnsent(&p, t0.Add(time.Hour))
				switch {
				case !want && (!errors.Is(err, ErrTransition) || p != before):
					t.Errorf("%c %s, %d numbers: lapsed: %+v, %v", kind, status, attempt, p, err)
				case want && (err != nil || p.Status != StatusFailed || p.Failure.Code != FailureExpiredBeforeCharge ||
					!p.UpdatedAt.Equal(t0.Add(time.Hour)) ||
					Next(p, nil).Do != ActionEnd):
					t.Errorf("%+v, %v", p, err)
				}
			}
		}
	}
}

// TestExpiredChargeIsExplained: the catalogue says that nothing was taken, and what to do.
func TestExpiredChargeIsExplained(t *testing.T) {
	f := FailureOf(KindCharge, FailureExpiredBeforeCharge, "")
	if f.Message == FailureCodes[0].Message || f.NextAction == FailureCodes[0].NextAction || !f.Retryable {
		t.Errorf("%+v", f)
	}
}
