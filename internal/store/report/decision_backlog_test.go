package report

import (
	"fmt"
	"testing"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestDecisionsDue: counts and amounts of what waits for staff equal those of the lists and metrics.
// Share conflicts count as failed payouts.
func TestDecisionsDue(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 800, 8)
	for i := range 5 {
		claim(t, s, p, i, fmt.Sprint("u", i))
		fail(t, s, payoutID(p, i))
		c.Pass(time.Second)
	}
	other := claimOf(p, 1, "another")
	_, err := s.RecordShareConflict(ctx, other, "claimed by another")
	must(t, err)
	proposed(t, s, payoutID(p, 2), payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Second)

	due, err := s.DecisionBacklogs(ctx)
	must(t, err)
	seen := map[string]staff.DecisionBacklog{}
	for _, d := range due {
		seen[string(d.Reason)+" "+string(d.Break)] = d
		if (d.Count == 0) != d.Oldest.IsZero() || d.AtLeast {
			t.Errorf("%+v", d)
		}
	}
	open := false
	for reason, list := range map[string]func() (staff.Sum, error){
		"payout_failed ": func() (staff.Sum, error) {
			sum, _, err := s.PaymentSum(ctx, staff.PaymentFilter{Kind: payout.KindPayout, IncludeHonours: true, Status: payout.StatusFailed})
			return sum, err
		},
		"payout_returned ": func() (staff.Sum, error) { return staff.Sum{}, nil },
		"refund_failed ":   func() (staff.Sum, error) { return staff.Sum{}, nil },
		"refund_returned ": func() (staff.Sum, error) { return staff.Sum{}, nil },
		"approval ": func() (staff.Sum, error) {
			total, err := s.ApprovalTotal(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting})
			return total.Sum, err
		},
		"break share_conflict": func() (staff.Sum, error) {
			total, err := s.BreakTotal(ctx, staff.BreakFilter{Kind: payout.BreakShareConflict, Resolved: &open})
			return total.Sum, err
		},
	} {
		want, err := list()
		must(t, err)
		got, found := seen[reason]
		if !found || got.Sum != want {
			t.Errorf("%s: %+v, its list says %+v", reason, got, want)
		}
	}
	if got := seen["payout_failed "]; got.Count < 5 {
		t.Errorf("%+v: the share conflict is not among them", got)
	}
	v := storetest.NewSnapshot()
	must(t, NewHealthReader(s.Source).Read(ctx, v))
	shown := map[string]observe.DecisionBacklog{}
	for _, d := range v.Decisions {
		shown[d.Reason+" "+d.Kind] = d
	}
	for reason, d := range seen {
		if m := shown[reason]; m.Waiting != d.Count || m.Fen != int64(d.Amount) || !m.Oldest.Equal(d.Oldest) {
			t.Errorf("%s: the metrics say %+v, not %+v", reason, m, d)
		}
	}
	if len(shown) != len(seen) {
		t.Errorf("%v, not %v", shown, seen)
	}
}
