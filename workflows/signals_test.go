package workflows

import (
	"log/slog"
	"testing"
	"time"

	tlog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"hongbao/internal/packet"
	"hongbao/test/logs"
)

// TestSignalsAreTaken: a run handles the signals that it did not wait for before it ends.
func TestSignalsAreTaken(t *testing.T) {
	charge := PayoutInput{PaymentID: chargeNo}
	for name, tc := range map[string]struct {
		workflow, in any
		after        time.Duration
	}{
		PayoutWorkflow: {Payout, claimInput(), 0},
		RefundWorkflow: {Refund, RefundInput{PaymentID: refundID, PacketID: packetID}, 0},
		ChargeWorkflow: {Charge, charge, 0},
		PacketWorkflow: {Packet, aPacket(time.Hour), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSteps(t)
			p.env.RegisterDelayedCallback(func() {
				for range 2 {
					p.env.SignalWorkflow(SignalClose, packet.CloseSoldOut)
					p.env.SignalWorkflow(SignalWake, nil)
				}
			}, tc.after)
			p.env.ExecuteWorkflow(tc.workflow, tc.in)
			if err := p.env.GetWorkflowError(); err != nil || !p.env.IsWorkflowCompleted() {
				t.Fatal(err)
			}
		})
	}
}

// TestUnhandledSignalsAreDetected: a run that leaves signals fails the tests here.
func TestUnhandledSignalsAreDetected(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	left := 0
	suite.SetLogger(tlog.NewStructuredLogger(slog.New(logs.Refuse(slog.DiscardHandler, logs.SignalsLeft, func(slog.Record) { left++ }))))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalWake, nil) }, 0)
	env.ExecuteWorkflow(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Minute) })
	if left != 1 {
		t.Errorf("%d runs left signals, want 1", left)
	}
}
