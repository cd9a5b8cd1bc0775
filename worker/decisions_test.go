package worker_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// twoPersons decides about a payment, and another person agrees.
func (r *rig) twoPersons(t *testing.T, id string, c payout.DecisionRequest) {
	t.Helper()
	r.agree(t, func(w staff.Write, render staff.DecisionAnswer) (staff.Answer, error) {
		return r.store.Decide(t.Context(), w, id, c, render)
	})
}

// notMoved makes two persons state that the money of a payment has not moved, past the provider's memory.
func (r *rig) notMoved(t *testing.T, p payout.Payment) {
	t.Helper()
	no := payout.OrderNo(p.ID, p.Attempt)
	_, err := r.sql(t).ExecContext(t.Context(), "UPDATE attempts SET ask_until = started_at WHERE order_no = ?", no)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.sql(t).ExecContext(t.Context(), `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('forgotten', ?, ?, ?, 'x', NOW(3), NOW(3))`, p.PacketID, p.ID, no)
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.reports().Breaks(t.Context(), staff.BreakFilter{PacketID: p.PacketID, Limit: 10})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	r.agree(t, func(w staff.Write, render staff.DecisionAnswer) (staff.Answer, error) {
		return r.store.DecideBreak(t.Context(), w, found[0].ID, payout.DecisionRequest{Kind: payout.DecisionNotMoved, Evidence: "letter"}, render)
	})
}

// agree makes one person decide, and another one approve it.
func (r *rig) agree(t *testing.T, decide func(staff.Write, staff.DecisionAnswer) (staff.Answer, error)) {
	t.Helper()
	var approval string
	w := storetest.By(t, r.store,
		staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: rand.Text(), BodyHash: "h", Reason: "r"})
	a, err := decide(w, func(d *staff.Decision, p staff.PaymentRow, err error) (int, []byte) {
		if err != nil || d.Status != payout.DecisionWaiting {
			t.Errorf("a %s payment: %+v, %v", p.Status, d, err)
			return 409, nil
		}
		approval = d.ApprovalID
		return 202, []byte("{}")
	})
	if err != nil || a.Status != 202 {
		t.Fatal(a, err)
	}
	w.Owner, w.Key = "finance2", rand.Text()
	w = storetest.By(t, r.store, w)
	a, err = r.store.AnswerApproval(t.Context(), w, approval, true, func(_ *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
		if err != nil {
			t.Error(err)
			return 409, nil
		}
		return 202, []byte("{}")
	})
	if err != nil || a.Status != 202 {
		t.Fatal(a, err)
	}
}

var cancel = payout.DecisionRequest{Kind: payout.DecisionCancel}

// liveCancelled cancels a failed payout and waits until its money is back at the
// sender. The run it returns is the one that carried the decision out.
func liveCancelled(t *testing.T, r *rig) (workflowID, status string) {
	c := r.claimOne(t, "never~frozen")
	p := r.awaitPayout(t, c, payout.StatusFailed)
	id := workflows.PayoutID(c.PacketID, c.UserID)
	wait.Until(t, "first run failed", func() bool { return r.runs(t, id) == "Failed" })
	r.twoPersons(t, p.ID, cancel)
	r.awaitPayout(t, c, payout.StatusCancelled)
	r.awaitRefund(t, c.PacketID, c.ShareIndex+1, payout.StatusPaid)
	return id, "Completed"
}

func (r *rig) awaitRefund(t *testing.T, packetID string, n int, want payout.Status) payout.Payment {
	t.Helper()
	var p payout.Payment
	wait.Until(t, "refund "+string(want), func() bool {
		var err error
		p, err = r.store.PaymentRow(t.Context(), payout.ID(payout.KindRefund, packetID, n))
		return err == nil && p.Status == want
	})
	return p
}

// TestR5_Cancel: a failed or returned payout is cancelled and refunded to the sender by one order
// of its own, whatever the state of its packet.
func TestR5_Cancel(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	for name, user := range map[string]struct {
		id   string
		from payout.Status
	}{"failed": {"broken~frozen", payout.StatusFailed}, "returned": {"bounce~returned", payout.StatusReturned}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := r.create(t, spec{total: 900, count: 3, sender: "sender of " + name})
			r.awaitOpen(t, p.ID)
			c := r.grab(t, p.ID, user.id).Claim
			bad := r.awaitPayout(t, c, user.from)
			r.twoPersons(t, bad.ID, cancel)
			r.awaitPayout(t, c, payout.StatusCancelled)
			refund := r.awaitRefund(t, p.ID, c.ShareIndex+1, payout.StatusPaid)
			if refund.Account != p.SenderID || refund.Amount != c.Amount {
				t.Errorf("%+v", refund)
			}
			rec, err := r.store.Packet(t.Context(), p.ID)
			if err != nil || rec.Stored != packet.StatusOpen || rec.RefundedAmount != c.Amount {
				t.Errorf("the packet goes on: %s, refunded %d, %v", rec.Stored, rec.RefundedAmount, err)
			}
			r.recall(t, p.ID)
			rec = r.awaitStatus(t, p.ID, packet.StatusClosed)
			if rec.RefundedAmount != p.TotalAmount {
				t.Errorf("refunded %d of %d", rec.RefundedAmount, p.TotalAmount)
			}
			refunds := 0
			for _, m := range r.movements(t, p.ID) {
				if m.Op == "refund" {
					refunds++
				}
			}
			if refunds != 2 {
				t.Errorf("%d refunds moved money", refunds)
			}
			r.balanced(t, p)
		})
	}
}

// TestR4_NotMoved: the recipient never confirms. Two persons state that no money has moved: the waiting run
// is woken, queries once more and ends the payout as failed, and its run too.
func TestR4_NotMoved(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	c := r.claimOne(t, "never~confirm")
	p := r.awaitPayout(t, c, payout.StatusAwaitingRecipient)
	r.notMoved(t, p)
	p = r.awaitPayout(t, c, payout.StatusFailed)
	if p.Failure.Code != payout.FailureNotMoved || p.OpenDecision != "" || !p.NeedsSecondPerson {
		t.Errorf("%+v", p)
	}
	open := false
	left, err := r.reports().Breaks(t.Context(), staff.BreakFilter{PacketID: c.PacketID, Resolved: &open, Limit: 10})
	if err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	wait.Until(t, "the run failed", func() bool { return r.runs(t, workflows.PayoutID(c.PacketID, c.UserID)) == "Failed" })
}

// TestRefusedRefunds: the sender's account refuses refunds. The provider's rules are global, so
// this test has a rig of its own.
func TestRefusedRefunds(t *testing.T) {
	t.Parallel()
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns)
	refuse := func(refuse bool) {
		rules := []map[string]any{}
		if refuse {
			rules = append(rules, map[string]any{"op": "refund", "kind": "decline", "rate": 1})
		}
		r.call(t, http.MethodPut, "/_faults", map[string]any{"rules": rules}, nil)
	}
	t.Run("finance retries a cancel's refund", func(t *testing.T) {
		c := r.claimOne(t, "gone~declined")
		bad := r.awaitPayout(t, c, payout.StatusFailed)
		refuse(true)
		r.twoPersons(t, bad.ID, cancel)
		refund := r.awaitRefund(t, c.PacketID, c.ShareIndex+1, payout.StatusFailed)
		refuse(false)
		r.twoPersons(t, refund.ID, payout.DecisionRequest{Kind: payout.DecisionRetry}) // an approval amount of 0: always two
		if refund = r.awaitRefund(t, c.PacketID, c.ShareIndex+1, payout.StatusPaid); refund.Attempt != 2 {
			t.Errorf("%+v", refund)
		}
		b, err := r.store.Balances(t.Context(), c.PacketID)
		if err != nil || b.ByAccount[payout.AccountRefunding] != 0 || b.ByAccount[payout.AccountOwed] != 0 {
			t.Errorf("%v, %v", b.ByAccount, err)
		}
	})
	t.Run("a remainder paid by other means closes its packet", func(t *testing.T) {
		p := r.create(t, spec{total: 600, count: 3, sender: "closed account"})
		r.awaitOpen(t, p.ID)
		refuse(true)
		r.recall(t, p.ID)
		refund := r.awaitRefund(t, p.ID, 0, payout.StatusFailed)
		r.twoPersons(t, refund.ID, payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "slip"})
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		wait.Until(t, "pool retired", func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		})
	})
}

// TestR5_ConcurrentDecisions: of two concurrent decisions the second is refused, and one takes
// effect.
func TestR5_ConcurrentDecisions(t *testing.T) {
	r := sharedRig(t)
	c := r.claimOne(t, "race~frozen")
	bad := r.awaitPayout(t, c, payout.StatusFailed)
	type result struct {
		kind    payout.DecisionKind
		refused error
		err     error
	}
	results := make(chan result)
	for i, kind := range []payout.DecisionKind{payout.DecisionRetry, payout.DecisionCancel, payout.DecisionRetry, payout.DecisionMarkPaid} {
		go func() {
			out := result{kind: kind}
			w := storetest.By(t, r.store, staff.Write{Owner: "finance" + strings.Repeat("i", i), Role: "finance", Route: "POST /x", Key: rand.Text(),
				BodyHash: "h",
				Reason:   "r"})
			_, out.err = r.store.Decide(t.Context(), w, bad.ID, payout.DecisionRequest{Kind: kind, ApproveFrom: 100_000, Evidence: "e"},
				func(_ *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
					out.refused = err
					return 202, []byte("{}")
				})
			results <- out
		}()
	}
	decided := 0
	for range 4 {
		got := <-results
		if got.err != nil {
			t.Error(got.err)
		}
		if got.refused == nil {
			decided++
		}
	}
	if decided != 1 {
		t.Errorf("%d decisions about one failure", decided)
	}
}
