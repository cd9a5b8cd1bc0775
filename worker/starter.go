// Package worker runs the workflows and their feeders. The relay starts workflows from hand-offs,
// and the outbox dispatcher starts runs from decisions and notifications. The watch repairs, and
// the canary reports readiness.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/workflows"
)

// startTimeout bounds one call to Temporal's frontend.
const startTimeout = 10 * time.Second

// Starter starts and signals workflows; no other code does.
type Starter struct {
	client  client.Client
	console workflows.Console
}

// NewStarter returns a starter.
func NewStarter(c client.Client) *Starter { return &Starter{client: c} }

// LinkedTo sets the console's address, as seen by browsers of staff, for links in the details of
// runs; "": no links.
func (s *Starter) LinkedTo(console string) *Starter {
	s.console = console
	return s
}

// StartPacket starts the workflow of a staged packet. It is idempotent; nil means that Temporal
// has answered (rule R3).
func (s *Starter) StartPacket(ctx context.Context, p packet.Packet) error {
	_, err := s.start(ctx, once, s.packetStart(p), workflows.PacketWorkflow, s.packetInput(p))
	return err
}

func (s *Starter) packetInput(p packet.Packet) workflows.PacketInput {
	return workflows.PacketInput{Packet: p, Console: s.console}
}

func (s *Starter) packetStart(p packet.Packet) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                  workflows.PacketID(p.ID),
		WorkflowTaskTimeout: workflows.TaskTimeout,
		EnableEagerStart:    true,
		StaticSummary:       workflows.PacketSummary(p),
		StaticDetails:       workflows.PacketDetails(p, s.console),
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrApp.ValueSet(p.App), workflows.AttrPacketID.ValueSet(p.ID),
			workflows.AttrUserID.ValueSet(p.SenderID), workflows.AttrProvider.ValueSet(p.ChargeProvider)),
	}
}

// StartPayout starts the workflow of a claim, as StartPacket does. app may be empty. It reports false if
// the user's workflow exists, which may be that of another claim.
func (s *Starter) StartPayout(ctx context.Context, c packet.Claim, app string) (started bool, err error) {
	options, in := s.payoutStart(c, app)
	return s.start(observe.WithTraceparent(ctx, c.Trace), once, options, workflows.PayoutWorkflow, in)
}

func (s *Starter) payoutStart(c packet.Claim, app string) (client.StartWorkflowOptions, workflows.PayoutInput) {
	c.Trace = "" // the run's header carries it
	attrs := []temporal.SearchAttributeUpdate{workflows.AttrPacketID.ValueSet(c.PacketID), workflows.AttrUserID.ValueSet(c.UserID)}
	if app != "" {
		attrs = append(attrs, workflows.AttrApp.ValueSet(app))
	}
	in := workflows.PayoutInput{Claim: &c, PaymentID: payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), Console: s.console}
	return client.StartWorkflowOptions{
		ID:                    workflows.PayoutID(c.PacketID, c.UserID),
		WorkflowTaskTimeout:   workflows.TaskTimeout,
		EnableEagerStart:      true, // the answer includes the first workflow task if this process has a free slot
		StaticSummary:         workflows.PayoutSummary(c),
		StaticDetails:         workflows.PaymentDetails(in.PaymentID, s.console),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrs...),
	}, in
}

// When a workflow id that is not open may be used. once saves runs and is no lock: after Temporal's retention it
// starts a new run, which reads the row and ends. Any start may be repeated (rule R3): the run reads the row.
const (
	once  = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE // it was never used
	again = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
)

// start starts a workflow unless its id is open, or was used and may not be, and reports whether it started one.
func (s *Starter) start(ctx context.Context, reuse enumspb.WorkflowIdReusePolicy, o client.StartWorkflowOptions, name string, in any,
) (bool, error) {
	o.TaskQueue = workflows.TaskQueue
	o.WorkflowIDReusePolicy = reuse
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	o.WorkflowExecutionErrorWhenAlreadyStarted = true
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := s.client.ExecuteWorkflow(ctx, o, name, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &started):
		return false, nil
	}
	return false, fmt.Errorf("start %s: %w", o.ID, err)
}

// Run starts a new run for a payment with an outbox entry (ALLOW_DUPLICATE + FAIL). If an earlier
// run is open it wakes that instead, and the caller repeats until the row has changed. It reports
// whether it started a run.
func (s *Starter) Run(ctx context.Context, p payout.Payment) (bool, error) {
	id := workflows.PaymentWorkflowID(p)
	name, in := workflows.PayoutWorkflow, any(workflows.PayoutInput{PaymentID: p.ID, Console: s.console})
	switch {
	case id == "" && p.Status.Open(): // an open charge belongs to its packet's run
		return false, s.signal(ctx, workflows.PacketID(p.PacketID), workflows.SignalWake, nil)
	case id == "": // the packet's run has continued: later queries have a run of their own
		id, name = workflows.ChargeID(p.PacketID), workflows.ChargeWorkflow
	case p.Kind == payout.KindRefund:
		name, in = workflows.RefundWorkflow, workflows.RefundInput{PaymentID: p.ID, PacketID: p.PacketID, Console: s.console}
	}
	started, err := s.start(ctx, again, client.StartWorkflowOptions{
		ID:            id,
		StaticSummary: workflows.PaymentSummary(p),
		StaticDetails: workflows.PaymentDetails(p.ID, s.console),
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrApp.ValueSet(p.App), workflows.AttrPacketID.ValueSet(p.PacketID),
			workflows.AttrUserID.ValueSet(p.UserID), workflows.AttrProvider.ValueSet(p.Provider)),
	}, name, in)
	if err != nil || started {
		return started, err
	}
	return false, s.signal(ctx, id, workflows.SignalWake, nil)
}

// SignalClose sends a packet's workflow the reason to close. A missing workflow is no error.
func (s *Starter) SignalClose(ctx context.Context, packetID string, reason packet.CloseReason) error {
	return s.signal(ctx, workflows.PacketID(packetID), workflows.SignalClose, reason)
}

func (s *Starter) signal(ctx context.Context, id, name string, arg any) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := s.client.SignalWorkflow(ctx, id, "", name, arg)
	var gone *serviceerror.NotFound
	if err == nil || errors.As(err, &gone) {
		return nil
	}
	return fmt.Errorf("signal %s: %w", id, err)
}
