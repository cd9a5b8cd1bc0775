package activities

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"hongbao/payout"
)

// overtaken is a cashbook whose rows have moved on since the send was noted.
type overtaken struct {
	*book
	err error
}

func (o overtaken) StillCurrent(context.Context, string, int, payout.Limits) (bool, error) {
	return false, o.err
}

// TestR3_OvertakenPayIsNotSent: the row is looked at right before the request
// leaves. When it has moved on nothing is sent; when it cannot be read nothing is
// sent either, and that is known for certain.
func TestR3_OvertakenPayIsNotSent(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want Sent
	}{
		{"overtaken", nil, Sent{Overtaken: true}},
		{"unreadable", errors.New("connection refused"), Sent{Observation: payout.Observation{Kind: payout.ObsNotSent, Source: payout.SourceSend}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := &bank{answer: payout.Observation{Kind: payout.ObsSucceeded}}
			steps := &Payments{Cashbook: overtaken{&book{}, tc.err}, Provider: to}
			env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
			env.RegisterActivity(steps.Pay)
			order := payout.Order{Op: payout.OpTransfer, OrderNo: payout.OrderNo(paymentID(0), 1), Send: 1}
			value, err := env.ExecuteActivity(steps.Pay, order)
			if err != nil {
				t.Fatal(err)
			}
			var got Sent
			if err := value.Get(&got); err != nil {
				t.Fatal(err)
			}
			if got.Overtaken != tc.want.Overtaken || got.Observation.Kind != tc.want.Observation.Kind || got.Observation.Source != tc.want.Observation.Source {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if to.sends != 0 {
				t.Errorf("%d sends", to.sends)
			}
		})
	}
}
