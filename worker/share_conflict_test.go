package worker_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// conflictCase is a packet of three shares of one fen with a share conflict of one user.
type conflictCase struct {
	*rig
	p     packet.Packet
	claim packet.Claim
	id    string // of the promise's payment
}

// lostGrab creates a share conflict as a restored Redis does: MySQL has a claim that Redis lost,
// so the next user wins the same share.
func lostGrab(t *testing.T, r *rig, user string) conflictCase {
	t.Helper()
	c := conflictCase{rig: r, p: r.create(t, spec{total: 3, count: 3})}
	r.awaitOpen(t, c.p.ID)
	lost := packet.Claim{PacketID: c.p.ID, UserID: "lost", Amount: 1, ClaimedAt: time.Now().UTC()}
	if _, err := r.store.RecordClaim(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	answered(t, func() error { _, err := r.starter.StartPayout(t.Context(), lost, "demo"); return err })
	c.claim = r.grab(t, c.p.ID, user).Claim
	if c.claim.ShareIndex != 0 || c.claim.Amount != 1 {
		t.Fatalf("%s was promised %+v", user, c.claim)
	}
	r.awaitPayout(t, lost, payout.StatusPaid)
	c.failed(t, payout.FailureShareConflict)
	return c
}

// await waits until the conflict's payment has a status. The acknowledged claim does not change.
func (c *conflictCase) await(t *testing.T, want payout.Status) payout.Payment {
	t.Helper()
	var p payout.Payment
	wait.Until(t, "the promise is "+string(want), func() bool {
		claim, err := c.store.Claim(t.Context(), c.p.ID, c.claim.UserID)
		if err != nil || claim.PayoutStatus != string(want) {
			return false
		}
		if claim.Amount != c.claim.Amount || claim.ShareIndex != c.claim.ShareIndex || claim.PayoutID[0] != 'h' {
			t.Fatalf("claim %+v", claim)
		}
		p, err = c.store.PaymentRow(t.Context(), claim.PayoutID)
		return err == nil && p.Status == want
	})
	c.id = p.ID
	return p
}

// failed waits until the conflict has failed, and its run with the same code.
func (c *conflictCase) failed(t *testing.T, code string) {
	t.Helper()
	if p := c.await(t, payout.StatusFailed); p.Failure.Code != code {
		t.Errorf("failed with %+v", p.Failure)
	}
	c.ended(t, "Failed")
	err := c.temporal.GetWorkflow(t.Context(), c.run(t), "").Get(t.Context(), nil)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != code {
		t.Errorf("the run ended with %v", err)
	}
}

func (c *conflictCase) ended(t *testing.T, status string) {
	t.Helper()
	wait.Until(t, "the run is "+status, func() bool { return c.runs(t, c.run(t)) == status })
}

// run is the workflow of the conflict: until staff decide it is the claim's.
func (c *conflictCase) run(t *testing.T) string {
	t.Helper()
	id := workflows.HonourID(c.p.ID, must(payout.Parse(c.id))(t).Number)
	if _, err := c.temporal.DescribeWorkflowExecution(t.Context(), id, ""); err == nil {
		return id
	}
	return workflows.PayoutID(c.p.ID, c.claim.UserID)
}

// moved returns what the provider moved for the conflict, and how often.
func (c *conflictCase) moved(t *testing.T) (n int, sum money.Fen) {
	t.Helper()
	for _, m := range c.movements(t, c.p.ID) {
		if m.OrderNo[0] == 'h' {
			n, sum = n+1, sum+m.Amount
		}
	}
	return n, sum
}

// conserved closes the packet and checks that its own money matches its total, at the provider
// too. The house must have paid the right sum.
func (c *conflictCase) conserved(t *testing.T, house money.Fen) {
	t.Helper()
	c.recall(t, c.p.ID)
	c.awaitStatus(t, c.p.ID, packet.StatusClosed)
	c.balanced(t, c.p)
	b, err := c.store.Balances(t.Context(), c.p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := -b.ByAccount[payout.AccountHouse]; got != house || b.Imbalanced() || b.ByAccount[payout.AccountOwed] != 0 {
		t.Errorf("the house gave %d, want %d: %+v", got, house, b)
	}
}

var small = payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: money.Max} // below the approval amount

// TestR10_ShareConflicts: a claim that cannot be recorded fails visibly and ends as two persons decide;
// the packet's own money is the same in each case.
func TestR10_ShareConflicts(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	t.Run("honoured, by runs at once, paid once", func(t *testing.T) {
		t.Parallel()
		c := lostGrab(t, r, "late")
		if n, _ := c.moved(t); n != 0 {
			t.Errorf("%d movements before anybody decided", n)
		}
		c.twoPersons(t, c.id, small)
		var starts sync.WaitGroup
		for range 4 { // beside the outbox: the relay's and the watch's way of starting it
			starts.Go(func() {
				if _, err := r.starter.RestartPayout(t.Context(), c.claim, "demo"); err != nil {
					t.Error(err)
				}
				p := payout.Payment{ID: c.id, Kind: payout.KindHonour, PacketID: c.p.ID, UserID: c.claim.UserID, Status: payout.StatusPending}
				if _, err := r.starter.Run(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		c.await(t, payout.StatusPaid)
		c.ended(t, "Completed")
		claims := func() bool { return c.runs(t, workflows.PayoutID(c.p.ID, c.claim.UserID)) == "Completed" }
		wait.Until(t, "the claim's run, too, is at its end", claims)
		if again, err := r.starter.RestartPayout(t.Context(), c.claim, "demo"); err != nil || !again {
			t.Errorf("again %t, %v", again, err)
		}
		wait.Until(t, "and so is the one that began again", claims)
		if n, sum := c.moved(t); n != 1 || sum != 1 {
			t.Errorf("%d movements of %d fen", n, sum)
		}
		c.conserved(t, 1)
	})
	t.Run("honoured, refused, given up", func(t *testing.T) {
		t.Parallel()
		c := lostGrab(t, r, "late~declined")
		c.twoPersons(t, c.id, small)
		wait.Until(t, "sent, and refused", func() bool {
			p, err := r.store.PaymentRow(t.Context(), c.id)
			return err == nil && p.Attempt == 1 && p.Status == payout.StatusFailed
		})
		c.failed(t, "payee_declined")
		c.twoPersons(t, c.id, cancel)
		c.await(t, payout.StatusCancelled)
		c.ended(t, "Completed")
		c.conserved(t, 0)
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		c := lostGrab(t, r, "late")
		c.twoPersons(t, c.id, cancel)
		c.await(t, payout.StatusCancelled)
		c.ended(t, "Completed")
		if n, _ := c.moved(t); n != 0 {
			t.Errorf("%d movements", n)
		}
		c.conserved(t, 0)
	})
	t.Run("books closed, paid by other means", func(t *testing.T) {
		t.Parallel()
		c := conflictCase{rig: r, p: r.create(t, spec{total: 3, count: 3})}
		r.awaitOpen(t, c.p.ID)
		r.recall(t, c.p.ID)
		r.awaitStatus(t, c.p.ID, packet.StatusClosed)
		c.claim = packet.Claim{PacketID: c.p.ID, UserID: "too late", ShareIndex: 1, Amount: 1, ClaimedAt: time.Now().UTC()}
		answered(t, func() error { _, err := r.starter.StartPayout(t.Context(), c.claim, "demo"); return err })
		c.failed(t, payout.FailureShareConflict)
		c.twoPersons(t, c.id, payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "slip"})
		c.await(t, payout.StatusPaidOutside)
		c.conserved(t, 1)
	})
}
