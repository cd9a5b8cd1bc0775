package e2e

import (
	"os"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"

	"hongbao/internal/failpoint"
	"hongbao/test/wait"
)

// assertNothingPending checks what belongs to no single packet: every failpoint of the steps was
// reached, no sender was charged twice, and no row, hand-off or run is pending.
func (c *crashes) assertNothingPending(t *testing.T, steps []failpoint.Step) {
	t.Helper()
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		found[e.Name()] = true
	}
	for _, s := range steps {
		for _, p := range []failpoint.Point{s.Before(), s.After()} {
			if !found[p.Reached()] {
				t.Errorf("%s was never reached: %s (%s)", p, s.Meaning, s.Path)
			}
		}
	}
	c.rowsSettled(t)
	c.chargedOnce(t)
	c.handedOver(t)
	c.runsEnded(t)
}

// rowsSettled checks that every packet and payment is final, every account of a packet that holds
// money is empty, and so is the outbox.
func (c *crashes) rowsSettled(t *testing.T) {
	t.Helper()
	db := c.mysql(t)
	for what, query := range map[string]string{
		"rows in the outbox": "SELECT COUNT(*) FROM outbox",
		"payments that are not at an end": "SELECT COUNT(*) FROM payments WHERE status NOT IN ('paid', 'paid_outside', 'cancelled') AND NOT " +
			"(kind = 'c' AND status = 'failed')",
		"packets that are not at an end": "SELECT COUNT(*) FROM packets WHERE status NOT IN ('closed', 'rejected')",
		"accounts that still hold money": "SELECT COUNT(*) FROM (SELECT packet_id, account FROM (SELECT packet_id, credit AS account, " +
			"amount FROM transfers UNION ALL SELECT packet_id, debit, -amount FROM transfers) AS moves WHERE account IN ('holding', 'owed', " +
			"'refunding', 'suspense') GROUP BY packet_id, account HAVING SUM(amount) <> 0) AS held",
		"unexpected breaks":                "SELECT COUNT(*) FROM breaks WHERE kind <> 'share_conflict'",
		"hand-offs put aside for no cause": "SELECT COUNT(*) FROM quarantine WHERE content NOT LIKE '%unreadable%'",
	} {
		left := -1
		wait.Reached(wait.Limit(), func() bool { left = count(t, db, query); return left == 0 })
		if left != 0 {
			t.Errorf("%d %s", left, what)
		}
	}
}

// chargedOnce checks that each open packet was charged once, and that no order number moved money
// twice in the same direction.
func (c *crashes) chargedOnce(t *testing.T) {
	t.Helper()
	packets := count(t, c.mysql(t), "SELECT COUNT(*) FROM packets WHERE status = 'closed'")
	charges, seen := 0, map[string]bool{}
	for _, m := range c.movements(t, "") {
		if m.str("op") == "charge" {
			charges++
		}
		key := m.str("op") + " " + m.str("order_no")
		if seen[key] {
			t.Errorf("money moved twice: %s", key)
		}
		seen[key] = true
	}
	if charges != packets {
		t.Errorf("%d charges for %d packets", charges, packets)
	}
}

// handedOver checks that no lane holds a hand-off, read or not.
func (c *crashes) handedOver(t *testing.T) {
	t.Helper()
	r := c.redis(t)
	streams, err := r.Keys(t.Context(), "hb:{*}:handoff").Result()
	if err != nil || len(streams) == 0 {
		t.Fatalf("streams: %q %v", streams, err)
	}
	for _, stream := range streams {
		wait.Until(t, stream+" is empty", func() bool {
			n, err := r.XLen(t.Context(), stream).Result()
			pending, perr := r.XPending(t.Context(), stream, "relay").Result()
			return err == nil && perr == nil && n == 0 && pending.Count == 0
		})
	}
}

// runsEnded checks that no workflow of a packet or a payment runs.
func (c *crashes) runsEnded(t *testing.T) {
	t.Helper()
	tc := c.temporal(t)
	var open []string
	ended := wait.Reached(wait.Limit(), func() bool {
		page, err := tc.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: "ExecutionStatus = 'Running' AND WorkflowType IN ('Packet', 'Payout', 'Refund')"})
		if err != nil {
			return false
		}
		open = nil
		for _, e := range page.Executions {
			open = append(open, e.Execution.WorkflowId)
		}
		return len(open) == 0
	})
	if !ended {
		t.Errorf("workflows still run: %s", strings.Join(open, " "))
	}
}
