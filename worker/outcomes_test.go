package worker_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestProviderOutcomes runs every kind of account through the whole path: calls at the provider,
// end of the payout, money moved, state of the run.
func TestProviderOutcomes(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	for _, tc := range []struct {
		account string
		status  payout.Status
		moved   int // movements under the payout's numbers
		run     string
		code    string
	}{
		{"plain", payout.StatusPaid, 1, "Completed", ""},
		{"x~declined", payout.StatusFailed, 0, "Failed", "payee_declined"},
		{"x~frozen", payout.StatusFailed, 0, "Failed", "account_frozen"},
		{"x~flaky", payout.StatusPaid, 1, "Completed", ""},
		{"x~lost_reply", payout.StatusPaid, 1, "Completed", ""},
		{"x~lost_request", payout.StatusPaid, 1, "Completed", ""},
		{"x~pending", payout.StatusPaid, 1, "Completed", ""},
		{"x~returned", payout.StatusReturned, 2, "Failed", "returned"},
	} {
		t.Run(tc.account, func(t *testing.T) {
			t.Parallel()
			p := r.create(t, spec{total: 100, count: 1})
			r.awaitOpen(t, p.ID)
			c := r.grab(t, p.ID, tc.account).Claim
			paid := r.awaitPayout(t, c, tc.status)
			code := ""
			if paid.Failure != nil {
				code = paid.Failure.Code
			}
			if code != tc.code {
				t.Errorf("failure code %q, want %q", code, tc.code)
			}
			wait.Until(t, "run is "+tc.run, func() bool {
				return r.runs(t, workflows.PayoutID(p.ID, tc.account)) == tc.run
			})
			r.awaitStatus(t, p.ID, packet.StatusClosed)
			if n := len(r.movements(t, p.ID)) - 1; n != tc.moved {
				t.Errorf("%d movements, want %d", n, tc.moved)
			}
			r.balanced(t, p)
		})
	}
}

// TestR8_EveryUserIsPaid: ids are bytes; whatever is allowed in them is paid,
// under a workflow of its own.
func TestR8_EveryUserIsPaid(t *testing.T) {
	r := sharedRig(t)
	users := []string{"a", "A", "a ", " a", "大伟", "🧧", "é", "e\u0301", "a/b", "a%2Fb", `"'\`, "payout/x", strings.Repeat("龍", 21)}
	p := r.create(t, spec{total: 10_000, count: len(users), sender: "发红包人"})
	r.awaitOpen(t, p.ID)
	var claims []packet.Claim
	for _, u := range users {
		g := r.grab(t, p.ID, u)
		if g.Result != packet.GrabWon {
			t.Fatalf("grab of %q: %s", u, g.Result)
		}
		claims = append(claims, g.Claim)
	}
	for _, c := range claims {
		r.awaitPayout(t, c, payout.StatusPaid)
		wait.Until(t, "run of "+c.UserID, func() bool { return r.runs(t, workflows.PayoutID(p.ID, c.UserID)) == "Completed" })
	}
	paid := map[string]int{}
	for _, m := range r.movements(t, p.ID) {
		if m.Op == "transfer" {
			paid[m.Account]++
		}
	}
	for _, u := range users {
		if paid[u] != 1 {
			t.Errorf("%q was paid %d times", u, paid[u])
		}
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}

func TestAwaitingRecipient(t *testing.T) {
	r := sharedRig(t)
	p := r.create(t, spec{total: 100, count: 1})
	r.awaitOpen(t, p.ID)
	c := r.grab(t, p.ID, "y~confirm").Claim
	waiting := r.awaitPayout(t, c, payout.StatusAwaitingRecipient)
	if action := r.awaitRecipientAction(t, waiting); action.Parameters["confirm_token"] == "" || !action.ValidUntil.After(time.Now()) {
		t.Errorf("%+v", action)
	}
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(payout.ID(payout.KindPayout, p.ID, 0), 1), nil, nil)
	r.awaitPayout(t, c, payout.StatusPaid)
	if sealed, err := r.reports().RecipientAction(t.Context(), waiting.ID); err != nil || sealed != nil {
		t.Errorf("kept after the end: %d bytes, %v", len(sealed), err)
	}
	r.balanced(t, p)
}

// awaitRecipientAction waits until a payout has what its recipient needs in order to confirm.
func (r *rig) awaitRecipientAction(t *testing.T, p payout.Payment) (action payout.ClientAction) {
	t.Helper()
	wait.Until(t, "client data of the recipient", func() bool {
		sealed, err := r.reports().RecipientAction(t.Context(), p.ID)
		if err != nil || len(sealed) == 0 {
			return false
		}
		plain, err := packet.Open(r.seedKey, p.PacketID, sealed)
		if err != nil {
			t.Fatal(err)
		}
		return json.Unmarshal(plain, &action) == nil
	})
	return action
}

func TestRejectedPacket(t *testing.T) {
	r := sharedRig(t)
	p := r.create(t, spec{total: 100, count: 2, sender: "poor~broke"})
	rec := r.awaitStatus(t, p.ID, packet.StatusRejected)
	if rec.Failure == nil || rec.Failure.Code != "insufficient_sender_balance" {
		t.Errorf("failure %+v", rec.Failure)
	}
	wait.Until(t, "pool says rejected", func() bool {
		v, err := r.pool.View(t.Context(), p.ID)
		return err == nil && v.State == packet.PoolRejected && v.Failure != nil
	})
	if g := r.grab(t, p.ID, "u"); g.Result != packet.GrabExpired {
		t.Errorf("grab of a rejected packet: %s", g.Result)
	}
	if m := r.movements(t, p.ID); len(m) != 0 {
		t.Errorf("money moved: %v", m)
	}
}

// TestRefundOfRemainder: exactly the remainder is refunded within 5 s of expiry.
func TestRefundOfRemainder(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	for _, sender := range []string{"s", "s~lost_reply", "s~pending", "s~flaky"} {
		t.Run(sender, func(t *testing.T) {
			t.Parallel()
			p := r.create(t, spec{total: 1000, count: 5, life: 10 * time.Second, sender: sender})
			r.awaitOpen(t, p.ID)
			won := r.grab(t, p.ID, "u").Claim
			rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
			if rec.RefundedAmount != 1000-won.Amount || rec.Reason != packet.CloseExpired {
				t.Errorf("refunded %d after %d was claimed (%s)", rec.RefundedAmount, won.Amount, rec.Reason)
			}
			if late := rec.ClosedAt.Sub(p.ExpiresAt); late > wait.Bound(5*time.Second) && !strings.Contains(sender, "~") {
				t.Errorf("closed %v after expiry", late)
			}
			r.balanced(t, p)
			if v, err := r.pool.View(t.Context(), p.ID); err != nil || !v.Retired {
				t.Errorf("pool not retired: %+v %v", v, err)
			}
		})
	}
}

func TestRecall(t *testing.T) {
	r := sharedRig(t)
	p := r.create(t, spec{total: 1000, count: 5})
	r.awaitOpen(t, p.ID)
	won := r.grab(t, p.ID, "u").Claim
	r.recall(t, p.ID)
	if g := r.grab(t, p.ID, "late"); g.Result != packet.GrabExpired {
		t.Errorf("grab after recall: %s", g.Result)
	}
	rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
	if rec.Reason != packet.CloseRecalled || rec.RefundedAmount != 1000-won.Amount {
		t.Errorf("%s, refunded %d", rec.Reason, rec.RefundedAmount)
	}
	r.balanced(t, p)
}

// TestFinanceRetry: a decision retries a failed payout in a new run of the same workflow id. The
// retry uses a new order number, after a query of the old one.
func TestR5_FinanceRetryAfterConfirmedFailure(t *testing.T) {
	r := sharedRig(t)
	p := r.create(t, spec{total: 500, count: 1})
	r.awaitOpen(t, p.ID)
	c := r.grab(t, p.ID, "ice~frozen").Claim
	failed := r.awaitPayout(t, c, payout.StatusFailed)
	r.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape("ice~frozen"), nil, nil)
	w := storetest.By(t, r.store, staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: failed.ID, BodyHash: "h",
		Reason: "unfrozen"})
	answer, err := r.store.Decide(t.Context(), w, failed.ID, payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: 100000},
		func(d *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
			if err != nil || d.Status != payout.DecisionCarriedOut {
				t.Errorf("decision %+v, %v", d, err)
			}
			return 202, []byte("{}")
		})
	if err != nil || answer.Status != 202 {
		t.Fatal(answer, err)
	}
	r.awaitPayout(t, c, payout.StatusPaid)
	d, err := r.reports().Payment(t.Context(), failed.ID)
	if err != nil || len(d.Attempts) != 2 || d.Attempts[0].Statement != payout.ObsDeclined {
		t.Errorf("attempts %+v, %v", d.Attempts, err)
	}
	var moved []movement
	for _, m := range r.movements(t, p.ID) {
		if m.Op == "transfer" {
			moved = append(moved, m)
		}
	}
	if len(moved) != 1 || moved[0].OrderNo != payout.OrderNo(failed.ID, 2) {
		t.Errorf("transfers %v", moved)
	}
	r.balanced(t, p)
}
