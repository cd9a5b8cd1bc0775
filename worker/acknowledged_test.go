package worker_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/workflows"
)

// tellOf logs the state of a packet when a test fails, because a timed-out wait does not show it.
func (r *rig) tellOf(t testing.TB, id string) {
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	rec, err := r.store.Packet(ctx, id)
	t.Logf("row: %+v, %v", rec, err)
	view, err := r.pool.View(ctx, id)
	t.Logf("pool: %+v, %v", view, err)
	for _, kind := range []payout.Kind{payout.KindCharge, payout.KindPayout, payout.KindRefund} {
		payments, err := r.reports().Payments(ctx, staff.PaymentFilter{Kind: kind, PacketID: id, Limit: 100})
		for _, p := range payments {
			t.Logf("payment: %+v", p)
		}
		if err != nil {
			t.Logf("payments: %v", err)
		}
	}
	for _, workflowID := range []string{workflows.PacketID(id), workflows.RefundID(id, 0)} {
		found, err := r.temporal.DescribeWorkflowExecution(ctx, workflowID, "")
		if err != nil {
			t.Logf("%s: %v", workflowID, err)
			continue
		}
		t.Logf("%s: %v, waits for %v", workflowID, found.GetWorkflowExecutionInfo(), found.GetPendingActivities())
		history := r.temporal.GetWorkflowHistory(ctx, workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				t.Logf("%s: %v", workflowID, err)
				break
			}
			t.Logf("%s: %s %s", workflowID, event.GetEventTime().AsTime().Format(time.StampMilli), event.GetEventType())
		}
	}
}
