package activities

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/internal/payout"
)

// inStatus is a store whose payments all have a status.
type inStatus struct {
	ahead
	status payout.Status
}

func (s inStatus) PaymentState(_ context.Context, id string) (payout.State, error) {
	return payout.State{PaymentID: id, Status: s.status}, nil
}

// TestQueryThrottle: queries of unknown outcomes and routine ones have throttles of their own. A query that has to wait
// is not put: the step is repeated after the wait, and nothing is settled, because no answer may decide about money.
func TestQueryThrottle(t *testing.T) {
	to, orderNo := &bank{}, payout.OrderNo(paymentID(0), 1)
	doubtful, routine, sends := &queue{}, &queue{}, &queue{wait: time.Hour}
	g := NewAdmission("sandbox", sends, slog.New(slog.DiscardHandler))
	ask := func(status payout.Status) error {
		steps := &Payments{Store: inStatus{ahead{at: time.Now()}, status}, Providers: payout.OnlyProvider(to),
			Admissions: Admissions{"sandbox": g}}
		_, err := steps.Ask(t.Context(), orderNo)
		return err
	}
	if err := ask(payout.StatusUnknown); err != nil || to.asks != 1 {
		t.Fatalf("without a throttle of queries: %v, %d queries", err, to.asks)
	}
	g.Limit(OpQuery, doubtful)
	g.Limit(OpRoutineQuery, routine)
	for _, status := range payout.Statuses {
		own, other := routine, doubtful
		switch status {
		case payout.StatusPending, payout.StatusSending, payout.StatusUnknown:
			own, other = doubtful, routine
		}
		*own, *other, to.asks = queue{wait: 3 * time.Second}, queue{wait: time.Hour}, 0
		var throttled *temporal.ApplicationError
		if err := ask(status); !errors.As(err, &throttled) || throttled.Type() != TypeThrottled || throttled.NonRetryable() ||
			throttled.NextRetryDelay() != own.wait || to.asks != 0 {
			t.Errorf("%s: %v, %d queries", status, err, to.asks)
		}
		own.wait = 0
		if err := ask(status); err != nil || to.asks != 1 || own.calls != 2 || other.calls != 0 {
			t.Errorf("%s: %v, %d queries; %d and %d calls of the throttles", status, err, to.asks, own.calls, other.calls)
		}
	}
	*doubtful = queue{err: errors.New("Redis is away")}
	if err := ask(payout.StatusUnknown); err != nil || to.asks != 2 {
		t.Errorf("without Redis: %v, %d queries", err, to.asks)
	}
	if sends.calls != 0 {
		t.Errorf("queries called the throttle of sends %d times", sends.calls)
	}
}

// TestThrottlePerOperation: an operation waits only for its own throttle.
func TestThrottlePerOperation(t *testing.T) {
	c := newTimed(nil)
	c.admission.Limit(payout.OpTransfer, &queue{wait: time.Minute})
	if step := c.try(t, paymentID(1)); step.Deferred != payout.DeferredThrottled || c.bank.sends != 0 {
		t.Errorf("%+v, %d sends", step, c.bank.sends)
	}
	if step := c.try(t, refundID(1)); step.Deferred != payout.NotDeferred || c.bank.sends != 1 {
		t.Errorf("%+v, %d sends", step, c.bank.sends)
	}
}
