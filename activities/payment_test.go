package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// ahead is a store whose clock differs from this machine's.
type ahead struct {
	anyPacket
	at  time.Time
	err error
}

func (a ahead) BeginQuery(context.Context, string, payout.Adapter) (time.Time, error) {
	return a.at, a.err
}

// Ask answers after three seconds, by this machine's clock.
func (b *bank) Query(_ context.Context, _ payout.Op, orderNo string) payout.Observation {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks++
	now := time.Now().UTC()
	return payout.Observation{Source: payout.SourceQuery, Kind: payout.ObsDeclined, OrderNo: orderNo, StartedAt: now,
		EndedAt: now.Add(3 * time.Second)}
}

// TestR5_QueryByMySQLClock: a query is timed by the clock that also times decisions, whatever
// this machine's clock shows. Without that time there is no query.
func TestR5_QueryByMySQLClock(t *testing.T) {
	at := time.Now().UTC().Add(-10 * time.Minute)
	orderNo := payout.OrderNo(paymentID(0), 1)
	to := &bank{}
	ask := func(b ahead) (payout.Observation, error) {
		env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
		steps := &Payments{Store: b, Providers: payout.OnlyProvider(to)}
		env.RegisterActivity(steps.Ask)
		value, err := env.ExecuteActivity(steps.Ask, orderNo)
		if err != nil {
			return payout.Observation{}, err
		}
		var o payout.Observation
		err = value.Get(&o)
		return o, err
	}
	if o, err := ask(ahead{at: at}); err != nil || !o.StartedAt.Equal(at) || !o.EndedAt.Equal(at.Add(3*time.Second)) {
		t.Errorf("%+v, %v; MySQL's time was %v", o, err, at)
	}
	if _, err := ask(ahead{err: errors.New("connection refused")}); err == nil || to.asks != 1 {
		t.Errorf("%v, asked %d times", err, to.asks)
	}
}

// lacking is a store without the order number of an answer.
type lacking struct {
	anyPacket
	row payout.State
	err error
}

func (lacking) Settle(context.Context, payout.Observation, string) (payout.State, error) {
	return payout.State{}, packet.ErrNotFound
}

func (l lacking) PaymentState(_ context.Context, id string) (payout.State, error) {
	l.row.PaymentID = id
	return l.row, l.err
}

// TestR13_SettleOfALostNumber: a run with an answer about an order number that a restored MySQL
// lacks continues from the row. While the row is missing too, it retries.
func TestR13_SettleOfALostNumber(t *testing.T) {
	id := paymentID(0)
	for _, tc := range []struct {
		err  error
		want string
	}{{nil, ""}, {packet.ErrNotFound, TypeNotFound}, {packet.ErrUnavailable, TypeUnavailable}} {
		steps := &Payments{Store: lacking{row: payout.State{Status: payout.StatusPending}, err: tc.err}}
		st, err := steps.Settle(t.Context(), payout.Observation{Kind: payout.ObsNoAnswer}, payout.OrderNo(id, 1))
		app, _ := errors.AsType[*temporal.ApplicationError](err)
		switch {
		case tc.want == "" && (err != nil || st.PaymentID != id || st.Status != payout.StatusPending):
			t.Errorf("%+v, %v", st, err)
		case tc.want != "" && (app == nil || app.Type() != tc.want || app.NonRetryable()):
			t.Errorf("%v, want it tried again as %s", err, tc.want)
		}
	}
}

// foreign is a store with payments of another account.
type foreign struct{ lacking }

func (foreign) BeginQuery(context.Context, string, payout.Adapter) (time.Time, error) {
	return time.Time{}, payout.ErrWrongProvider
}

func (foreign) BeginSend(context.Context, string, payout.Limits, func(payout.Instruction) ([]byte, error)) (payout.SendStart, error) {
	return payout.SendStart{}, payout.ErrWrongProvider
}

func (foreign) Settle(context.Context, payout.Observation, string) (payout.State, error) {
	return payout.State{}, payout.ErrWrongProvider
}

// TestStepsOfAnotherProvider: a worker of another account sends and queries nothing, and its
// activities are retried until a matching worker takes them. An answer of another provider is
// ignored, and the run continues from the row.
func TestStepsOfAnotherProvider(t *testing.T) {
	id, to := paymentID(0), &bank{}
	steps := &Payments{Store: foreign{lacking{row: payout.State{Status: payout.StatusUnknown}}}, Providers: payout.OnlyProvider(to)}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(steps)
	for _, step := range []func() error{
		func() error { _, err := env.ExecuteActivity(steps.Ask, payout.OrderNo(id, 1)); return err },
		func() error { _, err := env.ExecuteActivity(steps.Send, id); return err },
	} {
		err := step()
		if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Type() != TypeOtherProvider || app.NonRetryable() {
			t.Errorf("%v, want it tried again as %s", err, TypeOtherProvider)
		}
	}
	if to.asks != 0 || to.sends != 0 {
		t.Errorf("asked %d times, sent %d times", to.asks, to.sends)
	}
	st, err := steps.Settle(t.Context(), payout.Observation{Kind: payout.ObsNeverReceived}, payout.OrderNo(id, 1))
	if err != nil || st.PaymentID != id || st.Status != payout.StatusUnknown {
		t.Errorf("%+v, %v", st, err)
	}
}
