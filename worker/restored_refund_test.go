package worker_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR13_RefundedUnderANewNumber: after the backup a packet was recalled, its remainder
// refused under the first number and refunded under the second, and then a claim turned up
// that Redis had lost (rule R10). The recovery closes the books as they were closed, with
// all of it refunded, and gives nobody a share of it.
func TestR13_RefundedUnderANewNumber(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2})
	old.awaitOpen(t, p.ID)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	rules := func(rules ...map[string]any) {
		old.call(t, http.MethodPut, "/_faults", map[string]any{"rules": append([]map[string]any{}, rules...)}, nil)
	}
	rules(map[string]any{"op": "refund", "kind": "decline", "rate": 1})
	if _, err := old.pool.Recall(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	refused := old.awaitRefund(t, p.ID, 0, payout.StatusFailed)
	rules()
	old.twoPersons(t, refused.ID, payout.Command{Kind: payout.DecisionRetry})
	if paid := old.awaitRefund(t, p.ID, 0, payout.StatusPaid); paid.Attempt != 2 {
		t.Fatalf("%+v", paid)
	}
	old.awaitStatus(t, p.ID, packet.StatusClosed)
	var share int64
	if err := old.sql(t).QueryRowContext(t.Context(), "SELECT amount FROM shares WHERE packet_id = ? AND share_index = 0",
		p.ID).Scan(&share); err != nil {
		t.Fatal(err)
	}
	late := packet.Claim{PacketID: p.ID, UserID: "late", Amount: money.Fen(share), ClaimedAt: time.Now().UTC().Truncate(time.Millisecond)}
	if err := old.starter.StartPayout(t.Context(), late, "demo"); err != nil {
		t.Fatal(err)
	}
	promised := func(r *rig) bool {
		told, err := r.store.Claim(t.Context(), p.ID, late.UserID)
		return err == nil && told.PayoutStatus == string(payout.StatusFailed) && told.PayoutID[0] == 'h'
	}
	wait.Until(t, "the late claim is a promise", func() bool { return promised(old) })
	old.awaitBeat(t, until)
	stop()
	want := old.movements(t, p.ID)

	r := old.restored(t, dsn)
	w, _ := r.startWorker(t)
	wait.Until(t, "restored books are noticed, worker ready", func() bool {
		return w.Ready() && errors.Is(r.store.BooksBelieved(t.Context()), payout.ErrBooksRestored)
	})
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || told.Closed != 1 || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	r.watchFast(t)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	if refund := r.awaitRefund(t, p.ID, 0, payout.StatusPaid); refund.Attempt != 2 || refund.Amount != p.TotalAmount {
		t.Errorf("%+v", refund)
	}
	if !promised(r) {
		c, err := r.store.Claim(t.Context(), p.ID, late.UserID)
		t.Errorf("the late claim: %+v, %v", c, err)
	}
	if got := r.movements(t, p.ID); !slices.Equal(got, want) {
		t.Errorf("moved:\n%v\nwas\n%v", got, want)
	}
	r.verified(t)
}

// TestR13_LateBesideThePaid: after the backup one share was grabbed and paid, the packet
// recalled, the rest refunded, and then a claim turned up that Redis had lost (rule R10).
// Temporal knows both claims, and the provider the one that was booked: with it alone the
// refund is what the books leave. So the other one is a promise, as it was, and nothing is
// left to people.
func TestR13_LateBesideThePaid(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2})
	old.awaitOpen(t, p.ID)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	old.paid(t, p, "early")
	if _, err := old.pool.Recall(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	back := old.awaitRefund(t, p.ID, 0, payout.StatusPaid)
	old.awaitStatus(t, p.ID, packet.StatusClosed)
	late := packet.Claim{PacketID: p.ID, UserID: "late", ShareIndex: 1, Amount: back.Amount,
		ClaimedAt: time.Now().UTC().Truncate(time.Millisecond)}
	if err := old.starter.StartPayout(t.Context(), late, "demo"); err != nil {
		t.Fatal(err)
	}
	promised := func(r *rig) bool {
		told, err := r.store.Claim(t.Context(), p.ID, late.UserID)
		return err == nil && told.PayoutStatus == string(payout.StatusFailed) && told.PayoutID[0] == 'h'
	}
	wait.Until(t, "the late claim is a promise", func() bool { return promised(old) })
	old.awaitBeat(t, until)
	stop()
	want := old.movements(t, p.ID)

	r := old.restored(t, dsn)
	w, _ := r.startWorker(t)
	wait.Until(t, "restored books are noticed, worker ready", func() bool {
		return w.Ready() && errors.Is(r.store.BooksBelieved(t.Context()), payout.ErrBooksRestored)
	})
	// A run of it that goes on meanwhile does not take the share.
	if _, err := r.starter.RestartPayout(t.Context(), late, "demo"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "its run is refused, and tries again", func() bool {
		d, err := r.temporal.DescribeWorkflowExecution(t.Context(), workflows.PayoutID(p.ID, late.UserID), "")
		if err != nil {
			return false
		}
		pending := d.GetPendingActivities()
		return len(pending) == 1 && pending[0].GetAttempt() > 1 &&
			pending[0].GetLastFailure().GetApplicationFailureInfo().GetType() == activities.TypeUnavailable
	})
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || told.Closed != 1 || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	r.watchFast(t)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	if refund := r.awaitRefund(t, p.ID, 0, payout.StatusPaid); refund.Attempt != 1 || refund.Amount != back.Amount {
		t.Errorf("%+v", refund)
	}
	r.paidOnce(t, p, "early")
	if !promised(r) {
		c, err := r.store.Claim(t.Context(), p.ID, late.UserID)
		t.Errorf("the late claim: %+v, %v", c, err)
	}
	if got := r.movements(t, p.ID); !slices.Equal(got, want) {
		t.Errorf("moved:\n%v\nwas\n%v", got, want)
	}
	r.verified(t)
}
