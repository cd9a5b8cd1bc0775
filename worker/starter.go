// Package worker runs the workflows and what keeps them fed: the relay (hand-offs
// become workflows), the outbox dispatcher (decisions and notifications become
// runs), the watch (repairs) and the canary (readiness).
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

// Starter is the one place that starts and signals workflows.
type Starter struct {
	client   client.Client
	provider string
	console  workflows.Console
}

// NewStarter returns a starter for payments through the named provider.
func NewStarter(c client.Client, provider string) *Starter {
	return &Starter{client: c, provider: provider}
}

// LinkedTo has the details of what is started lead to the console at an address, as
// people's browsers see it; "": to nothing.
func (s *Starter) LinkedTo(console string) *Starter {
	s.console = console
	return s
}

// StartPacket starts the workflow of a staged packet. Starting it twice is
// harmless: nil means that Temporal has answered (rule R3).
func (s *Starter) StartPacket(ctx context.Context, p packet.Packet) error {
	return s.startOnce(ctx, s.packetStart(p), workflows.PacketWorkflow, s.packetInput(p))
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
			workflows.AttrUserID.ValueSet(p.SenderID), workflows.AttrProvider.ValueSet(s.provider)),
	}
}

// StartPayout starts the workflow of a claim, as StartPacket does. app may be empty.
func (s *Starter) StartPayout(ctx context.Context, c packet.Claim, app string) error {
	options, in := s.payoutStart(c, app)
	return s.startOnce(observe.WithTraceparent(ctx, c.Trace), options, workflows.PayoutWorkflow, in)
}

func (s *Starter) payoutStart(c packet.Claim, app string) (client.StartWorkflowOptions, workflows.PayoutInput) {
	c.Trace = "" // it goes on in the run's header
	attrs := []temporal.SearchAttributeUpdate{workflows.AttrPacketID.ValueSet(c.PacketID), workflows.AttrUserID.ValueSet(c.UserID),
		workflows.AttrProvider.ValueSet(s.provider)}
	if app != "" {
		attrs = append(attrs, workflows.AttrApp.ValueSet(app))
	}
	in := workflows.PayoutInput{Claim: &c, PaymentID: payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), Console: s.console}
	return client.StartWorkflowOptions{
		ID:                    workflows.PayoutID(c.PacketID, c.UserID),
		WorkflowTaskTimeout:   workflows.TaskTimeout,
		EnableEagerStart:      true, // the first workflow task comes with the answer, when this process has room for it
		StaticSummary:         workflows.PayoutSummary(c),
		StaticDetails:         workflows.PaymentDetails(in.PaymentID, s.console),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrs...),
	}, in
}

// once starts a workflow unless it runs or ever ran (REJECT_DUPLICATE +
// USE_EXISTING). After Temporal's retention it would start a new run, which
// reads the row and ends: an economy, not a lock.
func (s *Starter) startOnce(ctx context.Context, o client.StartWorkflowOptions, name string, in any) error {
	o.TaskQueue = workflows.TaskQueue
	o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := s.client.ExecuteWorkflow(ctx, o, name, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &started) {
		return nil
	}
	return fmt.Errorf("start %s: %w", o.ID, err)
}

// Run starts a new run for a payment whose row wants one (ALLOW_DUPLICATE +
// FAIL); while an earlier run is still open it is woken instead, and the caller
// comes again until the row has moved. Reports whether a new run was started.
func (s *Starter) Run(ctx context.Context, p payout.Payment) (bool, error) {
	id := workflows.PaymentWorkflowID(p)
	name, in := workflows.PayoutWorkflow, any(workflows.PayoutInput{PaymentID: p.ID, Console: s.console})
	switch {
	case id == "" && p.Status.Open(): // an open charge belongs to its packet's run
		return false, s.signal(ctx, workflows.PacketID(p.PacketID), workflows.SignalWake, nil)
	case id == "": // which has gone on since: what is still to be asked has a run of its own
		id, name = workflows.ChargeID(p.PacketID), workflows.ChargeWorkflow
	case p.Kind == payout.KindRefund:
		name, in = workflows.RefundWorkflow, workflows.RefundInput{PaymentID: p.ID, PacketID: p.PacketID, Console: s.console}
	}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := s.client.ExecuteWorkflow(startCtx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                workflows.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            workflows.PaymentSummary(p),
		StaticDetails:                            workflows.PaymentDetails(p.ID, s.console),
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrApp.ValueSet(p.App), workflows.AttrPacketID.ValueSet(p.PacketID),
			workflows.AttrUserID.ValueSet(p.UserID), workflows.AttrProvider.ValueSet(p.Provider)),
	}, name, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &started):
		return false, s.signal(ctx, id, workflows.SignalWake, nil)
	}
	return false, fmt.Errorf("start %s: %w", id, err)
}

// SignalClose tells a packet's workflow why to close. A workflow that is gone
// needs no telling.
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
