package report

import (
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// TestApprovalsBehindExpired: expired decisions keep their rows. However many there are, waiting
// decisions are counted and found without reading them.
func TestApprovalsBehindExpired(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 200, 2)
	for i, user := range []string{"u0", "u1"} {
		claim(t, s, p, i, user)
		fail(t, s, payoutID(p, i))
	}
	proposed(t, s, payoutID(p, 0), payout.DecisionRequest{Kind: payout.DecisionCancel})
	must(t, s.read(ctx).Exec(`INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at,
		preview_hash, created_at)
		SELECT CONCAT('d', n.seq), d.payment_id, d.kind, d.reason, d.decided_by, d.role, d.status, CONCAT('a', n.seq), d.expires_at,
		d.preview_hash, d.created_at
		FROM decisions d JOIN seq_1_to_10001 n`).Error)
	c.Pass(mysql.ApprovalLife + time.Second)
	now := proposed(t, s, payoutID(p, 1), payout.DecisionRequest{Kind: payout.DecisionCancel})
	waiting := staff.ApprovalFilter{Status: payout.DecisionWaiting, NotBy: "another", Limit: 10}
	sum, err := s.ApprovalTotal(ctx, waiting)
	must(t, err)
	if sum.Count != 1 || sum.Amount != 100 || sum.AtLeast {
		t.Errorf("%+v", sum)
	}
	list, err := s.Approvals(ctx, waiting)
	must(t, err)
	if len(list) != 1 || list[0].Decision.ApprovalID != now {
		t.Errorf("%+v", list)
	}
	all, err := s.waitingDecisions(ctx)
	must(t, err)
	if all.N != 1 {
		t.Errorf("%+v", all)
	}
}
