package worker_test

import (
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	tlog "go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
	"hongbao/workflows"
)

var updateHistories = flag.Bool("update-histories", false, "write the histories of TestRecordHistories into workflows/testdata")

const (
	historiesDir = "../workflows/testdata"
	maxHistory   = 150 << 10 // bytes of one recorded history
)

// TestRecordHistories runs every kind of run on the real parts and replays what the server
// recorded. With -update-histories the histories are also stored, for the replay test of package
// workflows.
func TestRecordHistories(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	for name, live := range map[string]func(t *testing.T, r *rig) (workflowID, status string){
		"packet_sold_out": liveSoldOut,
		"packet_expired":  func(t *testing.T, r *rig) (string, string) { return workflows.PacketID(liveExpired(t, r)), "Completed" },
		"refund_paid": func(t *testing.T, r *rig) (string, string) {
			return workflows.RefundID(liveExpired(t, r), 0), "Completed"
		},
		"packet_recalled":        liveRecalled,
		"packet_large":           liveLarge,
		"packet_rejected":        liveRejected,
		"packet_unopened":        liveUnopened,
		"packet_charge_unknown":  liveChargeUnknown,
		"payout_paid":            payoutOf("u", payout.StatusPaid, "Completed"),
		"payout_declined":        payoutOf("u~declined", payout.StatusFailed, "Failed"),
		"payout_lost_reply":      payoutOf("u~lost_reply", payout.StatusPaid, "Completed"),
		"payout_lost_request":    payoutOf("u~lost_request", payout.StatusPaid, "Completed"),
		"payout_pending":         payoutOf("u~pending", payout.StatusPaid, "Completed"),
		"payout_returned":        payoutOf("u~returned", payout.StatusReturned, "Failed"),
		"payout_needs_recipient": liveConfirm,
		"payout_finance_retry":   liveFinanceRetry,
		"payout_cancelled":       liveCancelled,
		"charge_asked":           liveChargeAsked,
		"reconcile_done":         liveReconciled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, status := live(t, r)
			wait.Until(t, id+" is "+status, func() bool { return r.runs(t, id) == status })
			h := r.history(t, id)
			recorded(t, name, h)
		})
	}
}

func liveSoldOut(t *testing.T, r *rig) (string, string) {
	p := r.create(t, spec{total: 300, count: 3})
	r.awaitOpen(t, p.ID)
	for _, user := range []string{"a", "b", "c"} {
		r.grab(t, p.ID, user)
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	return workflows.PacketID(p.ID), "Completed"
}

// liveExpired lets a packet expire with a remainder.
func liveExpired(t *testing.T, r *rig) (packetID string) {
	p := r.create(t, spec{total: 1000, count: 5, life: packet.MinLife})
	r.awaitOpen(t, p.ID)
	r.grab(t, p.ID, "u")
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	return p.ID
}

func liveRecalled(t *testing.T, r *rig) (string, string) {
	p := r.create(t, spec{total: 1000, count: 5})
	r.awaitOpen(t, p.ID)
	r.grab(t, p.ID, "u")
	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	return workflows.PacketID(p.ID), "Completed"
}

// liveLarge runs a packet with too many shares for combined steps, which is opened and closed
// with single steps.
func liveLarge(t *testing.T, r *rig) (string, string) {
	p := r.create(t, spec{total: 2 * activities.CombinedMaxShares, count: activities.CombinedMaxShares + 1})
	r.awaitOpen(t, p.ID)
	r.grab(t, p.ID, "u")
	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	return workflows.PacketID(p.ID), "Completed"
}

func liveRejected(t *testing.T, r *rig) (string, string) {
	p := r.create(t, spec{total: 100, count: 2, sender: "poor~broke"})
	r.awaitStatus(t, p.ID, packet.StatusRejected)
	return workflows.PacketID(p.ID), "Completed"
}

// liveUnopened loses the pool between charge and opening: the sender is refunded (rule R2), also
// if the last error of OpenPool is not a timeout.
func liveUnopened(t *testing.T, r *rig) (string, string) {
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	p := r.create(t, spec{total: 1000, count: 5, life: packet.MinLife, sender: "s~pending"})
	keys, err := rdb.Keys(t.Context(), "hb:{*}:packet:"+p.ID+"*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal("the packet is not in Redis", err)
	}
	if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
	if rec.Reason != packet.CloseUnopened || rec.RefundedAmount != p.TotalAmount {
		t.Errorf("closed by %q, refunded %d", rec.Reason, rec.RefundedAmount)
	}
	r.balanced(t, p)
	return workflows.PacketID(p.ID), "Completed"
}

func liveChargeUnknown(t *testing.T, r *rig) (string, string) {
	p := r.create(t, spec{total: 100, count: 1, sender: "s~lost_reply"})
	r.awaitOpen(t, p.ID)
	r.grab(t, p.ID, "u")
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	return workflows.PacketID(p.ID), "Completed"
}

// payoutOf runs a payout to the account user.
func payoutOf(user string, want payout.Status, run string) func(*testing.T, *rig) (string, string) {
	return func(t *testing.T, r *rig) (string, string) {
		c := r.claimOne(t, user)
		r.awaitPayout(t, c, want)
		return workflows.PayoutID(c.PacketID, user), run
	}
}

// claimOne grabs the only share of a new packet.
func (r *rig) claimOne(t *testing.T, user string) packet.Claim {
	t.Helper()
	p := r.create(t, spec{total: 100, count: 1})
	r.awaitOpen(t, p.ID)
	return r.grab(t, p.ID, user).Claim
}

func liveConfirm(t *testing.T, r *rig) (string, string) {
	c := r.claimOne(t, "slow~confirm")
	r.awaitPayout(t, c, payout.StatusAwaitingRecipient)
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), 1), nil, nil)
	r.awaitPayout(t, c, payout.StatusPaid)
	return workflows.PayoutID(c.PacketID, c.UserID), "Completed"
}

// liveFinanceRetry returns the second run, which the decision started.
func liveFinanceRetry(t *testing.T, r *rig) (string, string) {
	const user = "thaw~frozen"
	c := r.claimOne(t, user)
	failed := r.awaitPayout(t, c, payout.StatusFailed)
	wait.Until(t, "first run failed", func() bool { return r.runs(t, workflows.PayoutID(c.PacketID, user)) == "Failed" })
	r.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape(user), nil, nil)
	w := storetest.By(t, r.store, staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: failed.ID, BodyHash: "h",
		Reason: "unfrozen"})
	if _, err := r.store.Decide(t.Context(), w, failed.ID, payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: 100000},
		func(*staff.Decision, staff.PaymentRow, error) (int, []byte) {
			return 202, []byte("{}")
		}); err != nil {
		t.Fatal(err)
	}
	r.awaitPayout(t, c, payout.StatusPaid)
	return workflows.PayoutID(c.PacketID, user), "Completed"
}

// liveChargeAsked queries a charge whose packet's run has ended, in a run of its own.
func liveChargeAsked(t *testing.T, r *rig) (string, string) {
	p := r.create(t, spec{total: 100, count: 2, sender: "poor~broke"})
	r.awaitStatus(t, p.ID, packet.StatusRejected)
	wait.Until(t, "the packet's run is over", func() bool { return r.runs(t, workflows.PacketID(p.ID)) == "Completed" })
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	w := storetest.By(t, r.store, staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: charge, BodyHash: "h",
		Reason: "the sender says it was taken"})
	if _, err := r.store.Decide(t.Context(), w, charge, payout.DecisionRequest{Kind: payout.DecisionQuery},
		func(*staff.Decision, staff.PaymentRow, error) (int, []byte) {
			return 202, []byte("{}")
		}); err != nil {
		t.Fatal(err)
	}
	return workflows.ChargeID(p.ID), "Completed"
}

func liveReconciled(t *testing.T, r *rig) (string, string) {
	day := today().Add(-20)
	if one := r.reconcileDay(t, day); one.Status != staff.ReconciliationDone {
		t.Errorf("%+v", one)
	}
	return workflows.ReconcileID("sandbox", day), "Completed"
}

// history reads the latest run of a workflow id.
func (r *rig) history(t *testing.T, workflowID string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	all := enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
	for iter := r.temporal.GetWorkflowHistory(t.Context(), workflowID, "", false, all); iter.HasNext(); {
		event, err := iter.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, event)
	}
	return h
}

func replay(t *testing.T, h *historypb.History) {
	t.Helper()
	replayer := sdk.NewWorkflowReplayer()
	for name, fn := range map[string]any{workflows.PacketWorkflow: workflows.Packet, workflows.PayoutWorkflow: workflows.Payout,
		workflows.RefundWorkflow: workflows.Refund, workflows.ChargeWorkflow: workflows.Charge,
		workflows.ReconcileWorkflow: workflows.Reconcile, workflows.DailyReconcileWorkflow: workflows.DailyReconcile,
		workflows.CampaignWorkflow: workflows.Campaign} {
		replayer.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name})
	}
	if err := replayer.ReplayWorkflowHistory(tlog.NewStructuredLogger(slog.New(slog.DiscardHandler)), h); err != nil {
		t.Errorf("what the server recorded does not replay: %v", err)
	}
}

// recorded replays a history and, when that is asked for, keeps it.
func recorded(t *testing.T, name string, h *historypb.History) {
	t.Helper()
	replay(t, h)
	if *updateHistories {
		keep(t, filepath.Join(historiesDir, name+".json"), h)
	}
}

// keep writes a history as `temporal workflow show --output json` does, without machine names.
func keep(t *testing.T, path string, h *historypb.History) {
	t.Helper()
	raw := must(temporalproto.CustomJSONMarshalOptions{}.Marshal(h))(t)
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	scrub(tree)
	out := append(must(json.MarshalIndent(tree, "", " "))(t), '\n')
	if len(out) > maxHistory {
		t.Errorf("history of %d bytes is too long to keep", len(out))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

func scrub(node any) {
	switch n := node.(type) {
	case map[string]any:
		delete(n, "identity")
		if n["kind"] == "TASK_QUEUE_KIND_STICKY" {
			n["name"] = "sticky"
		}
		for _, v := range n {
			scrub(v)
		}
	case []any:
		for _, v := range n {
			scrub(v)
		}
	}
}
