package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/payout"
	"hongbao/workflows"
)

const (
	// listPage is the number of runs per page of Temporal's list.
	listPage = 1000
	// compareUsers is the number of users that one query of MySQL compares.
	compareUsers = 500
)

// eachRun calls visit for every run, open or ended, that a query finds. Temporal lists a run
// about a second after its start. Lists are retried for the given time.
func (s *Starter) eachRun(ctx context.Context, query string, retry time.Duration, visit func(id, runID string) error) error {
	for token := []byte(nil); ; {
		page, err := s.listRuns(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: listPage, Query: query, NextPageToken: token},
			retry)
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			if err := visit(e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()); err != nil {
				return err
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}

// listRetryFor bounds the retries of a list for a recovery, which starts from the first packet again
// when it fails. listPause is the pause between two. Servers limit lists most, by default to 10 a
// second, and answer a rejected call only at its timeout.
const (
	listRetryFor = 2 * time.Minute
	listPause    = time.Second
)

// listRuns reads a page, and retries for a time while Temporal is overloaded or unavailable.
func (s *Starter) listRuns(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest, retry time.Duration) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	for until := time.Now().Add(retry); ; {
		callCtx, cancel := context.WithTimeout(ctx, startTimeout)
		page, err := s.client.ListWorkflow(callCtx, request)
		cancel()
		if err == nil {
			return page, nil
		}
		if !activities.TemporalUnavailable(err) || time.Now().After(until) || !pause.For(ctx, listPause) {
			return nil, fmt.Errorf("list runs: %w", err)
		}
	}
}

// PacketsSince returns the packets whose runs were started since a time.
func (s *Starter) PacketsSince(ctx context.Context, since time.Time) ([]string, error) {
	var ids []string
	query := fmt.Sprintf("WorkflowType = '%s' AND StartTime >= '%s'", workflows.PacketWorkflow, since.UTC().Format(time.RFC3339Nano))
	err := s.eachRun(ctx, query, listRetryFor, func(id, _ string) error {
		if id = strings.TrimPrefix(id, workflows.PacketID("")); packet.ValidID(id) {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// WinnersSince returns, by packet, the users whose payouts were started since a time.
func (s *Starter) WinnersSince(ctx context.Context, since time.Time) (map[string][]string, error) {
	users := map[string][]string{}
	query := fmt.Sprintf("WorkflowType = '%s' AND StartTime >= '%s'", workflows.PayoutWorkflow, since.UTC().Format(time.RFC3339Nano))
	err := s.eachRun(ctx, query, listRetryFor, func(id, _ string) error {
		_, rest, _ := strings.Cut(id, "/")
		packetID, user, _ := strings.Cut(rest, "/")
		if packet.ValidID(packetID) && id == workflows.PayoutID(packetID, user) {
			users[packetID] = append(users[packetID], user)
		}
		return nil
	})
	return users, err
}

// ClaimsOf returns the claims of a packet with which payouts were started, except for users that
// known reports. The workflow id contains the user id.
func (s *Starter) ClaimsOf(ctx context.Context, packetID string, known func(users []string) (map[string]bool, error)) ([]packet.Claim,
	error) {
	runs, users := map[string][]string{}, []string{}
	query := fmt.Sprintf("WorkflowType = '%s' AND %s = '%s'", workflows.PayoutWorkflow, workflows.AttrPacketID.GetName(), packetID)
	err := s.eachRun(ctx, query, listRetryFor, func(id, runID string) error {
		user, ok := strings.CutPrefix(id, workflows.PayoutID(packetID, ""))
		if ok && runs[user] == nil {
			users = append(users, user)
		}
		runs[user] = append(runs[user], runID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var claims []packet.Claim
	for some := range slices.Chunk(users, compareUsers) {
		have, err := known(some)
		if err != nil {
			return nil, err
		}
		for _, user := range some {
			if have[user] {
				continue
			}
			c, err := s.claimOf(ctx, packetID, user, runs[user])
			if err != nil {
				return nil, err
			}
			if c != nil {
				claims = append(claims, *c)
			}
		}
	}
	return claims, nil
}

// claimOf returns the claim with which one of a payout's runs was started. It is nil if there is
// none, because a decision or a repair starts a run with only the payment id.
func (s *Starter) claimOf(ctx context.Context, packetID, user string, runIDs []string) (*packet.Claim, error) {
	for _, runID := range runIDs {
		var in workflows.PayoutInput
		found, err := s.input(ctx, workflows.PayoutID(packetID, user), runID, &in)
		if err != nil {
			return nil, err
		}
		if found && in.Claim != nil && in.Claim.PacketID == packetID && in.Claim.UserID == user {
			return in.Claim, nil
		}
	}
	return nil, nil
}

// PacketOf returns the input of a packet's latest run; found is false if Temporal has none.
func (s *Starter) PacketOf(ctx context.Context, packetID string) (p packet.Packet, found bool, err error) {
	var in workflows.PacketInput
	found, err = s.input(ctx, workflows.PacketID(packetID), "", &in)
	return in.Packet, found && in.ID == packetID, err
}

// input reads the input of a run; runID "" is the latest.
func (s *Starter) input(ctx context.Context, id, runID string, to any) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	events := s.client.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return false, nil
	}
	first, err := events.Next()
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("history of %s: %w", id, err)
	}
	return true, decodeInput(id, first.GetWorkflowExecutionStartedEventAttributes().GetInput(), to)
}

func decodeInput(id string, input *commonpb.Payloads, to any) error {
	if err := converter.GetDefaultDataConverter().FromPayloads(input, to); err != nil {
		return fmt.Errorf("input of %s: %w", id, err)
	}
	return nil
}

// EndedAs returns the status with which the latest run of a payment completed; "" if it has not,
// or Temporal has no such run.
func (s *Starter) EndedAs(ctx context.Context, p payout.Payment) (payout.Status, error) {
	id := workflows.PaymentWorkflowID(p)
	if id == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) || err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("describe %s: %w", id, err)
	}
	var status payout.Status
	if err := s.client.GetWorkflow(ctx, id, d.GetWorkflowExecutionInfo().GetExecution().GetRunId()).Get(ctx, &status); err != nil {
		return "", fmt.Errorf("result of %s: %w", id, err)
	}
	return status, nil
}
