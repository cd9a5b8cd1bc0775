package report

import (
	"slices"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestLateRefunds: late are unfinished refunds that were due, by the end of their packet, and
// nothing else.
func TestLateRefunds(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	now := c.Now()
	closing := func(expires time.Time) string {
		t.Helper()
		p := samplePacket(1000, 4)
		p.ExpiresAt = expires.UTC().Truncate(time.Millisecond)
		p.CreatedAt, p.OpensAt = p.ExpiresAt.Add(-24*time.Hour), p.ExpiresAt.Add(-24*time.Hour)
		open(t, s, p)
		_, err := s.BeginClosing(ctx, p.ID, packet.CloseRecalled)
		must(t, err)
		_, err = s.CloseBooks(ctx, p.ID, "")
		must(t, err)
		return refundID(p)
	}
	cancelled := func(expires time.Time) string { // late since its cancel, not since its packet's end
		t.Helper()
		p := samplePacket(1000, 4)
		p.ExpiresAt = expires.UTC().Truncate(time.Millisecond)
		p.CreatedAt, p.OpensAt = p.ExpiresAt.Add(-24*time.Hour), p.ExpiresAt.Add(-24*time.Hour)
		open(t, s, p)
		claim(t, s, p, 0, "u")
		fail(t, s, payoutID(p, 0))
		agreed(t, s, payoutID(p, 0), payout.DecisionRequest{Kind: payout.DecisionCancel})
		c.Pass(time.Second)
		declineQueries(t, s, payoutID(p, 0))
		_, err := s.CarryOut(ctx, payoutID(p, 0))
		must(t, err)
		return payout.ID(payout.KindRefund, p.ID, 1)
	}
	past, ahead := now.Add(-time.Hour), now.Add(time.Hour)
	expired, recalled, failed, refunded, cancel := closing(past), closing(ahead), closing(past), closing(past), cancelled(past)
	fail(t, s, failed)
	pay(t, s, refunded)
	check := func(what string, by time.Time, status payout.Status, want ...string) {
		t.Helper()
		f := staff.PaymentFilter{Kind: payout.KindRefund, LateBefore: by, Status: status, Limit: 10}
		rows, err := s.Payments(ctx, f)
		must(t, err)
		var got []string
		for _, r := range rows {
			got = append(got, r.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		sum, more, err := s.PaymentSum(ctx, f)
		if err != nil || more || sum.Count != int64(len(want)) {
			t.Errorf("%s: counted %+v, %v", what, sum, err)
		}
	}
	check("their packets were over long ago", now.Add(-30*time.Minute), "", expired, failed)
	check("of these the failed one", now.Add(-30*time.Minute), payout.StatusFailed, failed)
	check("nothing was due so long ago", now.Add(-2*time.Hour), "")
	check("all that were made", c.Now(), "", expired, failed, recalled, cancel)
	o, err := s.Overview(ctx)
	must(t, err)
	if o.LateRefunds.Count != 2 || o.LateRefunds.Oldest.IsZero() {
		t.Errorf("overview: %+v", o.LateRefunds)
	}
	c.Pass(payout.RefundLateAfter)
	if o, err = s.Overview(ctx); err != nil || o.LateRefunds.Count != 4 {
		t.Errorf("overview later: %+v, %v", o.LateRefunds, err)
	}
}
