package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	commonpb "go.temporal.io/api/common/v1"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile/watch"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// watchFast runs a second watch with short intervals.
func (r *rig) watchFast(t testing.TB) {
	t.Helper()
	w := watch.New(watch.Config{Store: r.store, Pools: r.pool, Runs: r.starter, Lanes: harness.Lanes, Logger: r.logger,
		Payments: &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(r.provider)},
		Pace: watch.Intervals{Every: 100 * time.Millisecond, Grace: time.Second, Overdue: time.Second, Ask: 3 * time.Second,
			Pages: 10 * time.Second}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// hands are the actions of an operator on a run in the Temporal UI.
var hands = map[string]func(t testing.TB, r *rig, id string){
	"terminate": func(t testing.TB, r *rig, id string) {
		answered(t, func() error { return unlessOver(r.temporal.TerminateWorkflow(t.Context(), id, "", "by hand")) })
	},
	"cancel": func(t testing.TB, r *rig, id string) {
		answered(t, func() error { return unlessOver(r.temporal.CancelWorkflow(t.Context(), id, "")) })
	},
	"delete": func(t testing.TB, r *rig, id string) {
		answered(t, func() error {
			_, err := r.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
				Namespace: r.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}})
			return unlessOver(err)
		})
	},
	"reset": func(t testing.TB, r *rig, id string) { r.reset(t, id) },
}

// unlessOver is the error of an action on a run, and nil if the run had ended before.
func unlessOver(err error) error {
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

// answered repeats a call of Temporal, which a client gives up after 10 s, while a busy machine lets none be answered in
// time.
func answered(t testing.TB, call func() error) {
	t.Helper()
	wait.Until(t, "Temporal answers", func() bool {
		err := call()
		var late *serviceerror.DeadlineExceeded
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &late) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// reset resets the latest run of a workflow id to its first task and waits until that is done.
// The history of a payout that is being sent has no task to reset to yet.
func (r *rig) reset(t testing.TB, id string) {
	t.Helper()
	var first int64
	for iter := r.temporal.GetWorkflowHistory(t.Context(), id, "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); iter.HasNext() &&
		first == 0; {
		event, err := iter.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			first = event.GetEventId()
		}
	}
	_, err := r.temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{Namespace: r.namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}, Reason: "by hand", WorkflowTaskFinishEventId: first,
		RequestId: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
}

// moved counts the movements of a packet of one kind.
func (r *rig) moved(t testing.TB, packetID, op string) int {
	t.Helper()
	n := 0
	for _, m := range r.movements(t, packetID) {
		if m.Op == op {
			n++
		}
	}
	return n
}

// TestR3_PayoutRunEndedByHand: whatever an operator does to a payout's run, and whenever, its
// winner is paid exactly once.
func TestR3_PayoutRunEndedByHand(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.watchFast(t)
	for _, tc := range []struct {
		account string
		status  payout.Status // at the moment of the deed
		hands   []string
	}{
		{"u~confirm", payout.StatusAwaitingRecipient, []string{"terminate", "cancel", "delete", "reset"}},
		{"u~lost_reply", payout.StatusSending, []string{"terminate", "reset"}},
		{"u~lost_request", payout.StatusSending, []string{"cancel"}},
		{"u~lost_request", payout.StatusUnknown, []string{"delete", "terminate"}},
		{"u~pending", payout.StatusSending, []string{"cancel"}},
	} {
		for _, hand := range tc.hands {
			t.Run(fmt.Sprintf("%s a run that is %s to %s", hand, tc.status, tc.account), func(t *testing.T) {
				t.Parallel()
				c := r.claimOne(t, tc.account)
				// A moment that has passed is valid too: then the action meets a paid run.
				wait.Until(t, "payout is "+string(tc.status), func() bool {
					got := r.payoutOf(t, c).Status
					return got == tc.status || got == payout.StatusPaid
				})
				hands[hand](t, r, workflows.PayoutID(c.PacketID, c.UserID))
				if tc.status == payout.StatusAwaitingRecipient {
					r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), 1), nil, nil)
				}
				r.awaitPayout(t, c, payout.StatusPaid)
				if n := r.moved(t, c.PacketID, "transfer"); n != 1 {
					t.Errorf("%d transfers", n)
				}
				rec := r.awaitStatus(t, c.PacketID, packet.StatusClosed)
				r.balanced(t, rec.Packet)
			})
		}
	}
}

// occupied leaves an ended run under a workflow id, which the relay treats as the one that it
// should start.
func (r *rig) occupied(t testing.TB, id string) {
	t.Helper()
	answered(t, func() error {
		_, err := r.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "nothing")
		return err
	})
	hands["terminate"](t, r, id)
}

// TestR11_LostHandOffs: a winner, and a staged packet, without a row because the run ended before
// its first activity.
func TestR11_LostHandOffs(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.watchFast(t)
	t.Run("winner", func(t *testing.T) {
		t.Parallel()
		p := r.create(t, spec{total: 100, count: 2})
		r.awaitOpen(t, p.ID)
		r.occupied(t, workflows.PayoutID(p.ID, "u"))
		c := r.grab(t, p.ID, "u").Claim
		r.awaitPayout(t, c, payout.StatusPaid)
	})
	t.Run("winner that the drain waits for", func(t *testing.T) {
		t.Parallel()
		p := r.create(t, spec{total: 100, count: 1})
		r.awaitOpen(t, p.ID)
		r.occupied(t, workflows.PayoutID(p.ID, "u"))
		r.grab(t, p.ID, "u")
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.balanced(t, p)
	})
	t.Run("staged packet", func(t *testing.T) {
		t.Parallel()
		p := packet.Packet{ID: packet.NewID([]byte("salt"), rand.Text()), App: "demo", SenderID: "s", Currency: packet.CurrencyCNY,
			ChargeProvider: "sandbox", PayoutProvider: "sandbox",
			TotalAmount: 100, ShareCount: 1,
			Split: packet.SplitRandom, MinShare: 1, BodyHash: "h", Metadata: map[string]string{}}
		p.Commitment = packet.Commitment(packet.DeriveSeed(r.seedKey, p.ID))
		r.occupied(t, workflows.PacketID(p.ID))
		if _, err := r.pool.Create(t.Context(), p, nil, nil, time.Hour, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		r.awaitOpen(t, p.ID)
	})
}

// TestPaymentQueriedByWatch: a run hangs and makes no query; the watch does.
func TestPaymentQueriedByWatch(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	c := r.claimOne(t, "u~confirm")
	r.awaitPayout(t, c, payout.StatusAwaitingRecipient)
	id := workflows.PayoutID(c.PacketID, c.UserID)
	hands["terminate"](t, r, id)
	answered(t, func() error {
		_, err := r.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "nothing")
		return err
	})
	r.watchFast(t)
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), 1), nil, nil)
	r.awaitPayout(t, c, payout.StatusPaid)
	hands["terminate"](t, r, id)
	if n := r.moved(t, c.PacketID, "transfer"); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// TestR3_ResetOfEndedRuns: a reset of finished runs moves no money again.
func TestR3_ResetOfEndedRuns(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	p := r.create(t, spec{total: 1000, count: 5, life: packet.MinLife})
	r.awaitOpen(t, p.ID)
	c := r.grab(t, p.ID, "u").Claim
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	before := r.movements(t, p.ID)
	for _, id := range []string{workflows.PacketID(p.ID), workflows.PayoutID(p.ID, c.UserID), workflows.RefundID(p.ID, 0)} {
		wait.Until(t, id+" ended", func() bool { return r.runs(t, id) == "Completed" })
		r.reset(t, id)
		wait.Until(t, id+" ended again", func() bool { return r.runs(t, id) == "Completed" })
	}
	if after := r.movements(t, p.ID); !slices.Equal(before, after) {
		t.Errorf("movements before %v, after %v", before, after)
	}
	r.balanced(t, p)
}

// forgetPool removes everything Redis has of a packet.
func (r *rig) forgetPool(t testing.TB, id string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	keys, err := rdb.Keys(t.Context(), "hb:{*}:packet:"+id+"*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal("the packet is not in Redis", err)
	}
	if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
}
