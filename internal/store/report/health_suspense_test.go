package report

import (
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestHealthSuspense: money that moved twice is reported by every process, whatever was posted
// since, until it was returned or written off, or its break is resolved: money returned by other
// means is never posted. A return after the write-off counts, too.
func TestHealthSuspense(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	old := NewHealthReader(s.Source)
	reported := func(want int64) {
		t.Helper()
		for _, r := range []*HealthReader{old, NewHealthReader(s.Source)} {
			v := storetest.NewSnapshot()
			if must(t, r.Read(t.Context(), v)); v.Suspense != want || v.Imbalanced != 0 {
				t.Errorf("%d fen moved twice, want %d; %d packets out of balance", v.Suspense, want, v.Imbalanced)
			}
		}
	}
	twice := func() (orderNo string) {
		id := owing(t, s)
		fail(t, s, id)
		decide(t, s, id)
		settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsDeclined)
		pay(t, s, id)
		settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsSucceeded)
		return payout.OrderNo(id, 1)
	}
	reported(0)
	first, second := twice(), twice()
	reported(200)
	for range healthPackets + 1 {
		funded(t, s, 100, 1)
	}
	reported(200)
	settle(t, s, payout.SourceQuery, first, payout.ObsReturned)
	reported(100)
	tamper(t, s.db.SQL, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at)
		SELECT packet_id, 'written_off', 'house', 'suspense', amount, order_no, CONCAT(order_no, ':written_off'), NOW(3)
		FROM transfers WHERE kind = 'second_success' AND order_no = '`+second+`'`)
	reported(0)
	settle(t, s, payout.SourceQuery, second, payout.ObsReturned)
	reported(100)
	w := by(t, s, staff.Write{Owner: "f", Role: "finance", Route: "r", BodyHash: "h", Key: "k",
		Reason: "the recipient has paid it back by bank"})
	id := storetest.Query[int64](t, s, "SELECT id FROM breaks WHERE kind = ? AND order_no = ?", string(payout.BreakSecondSuccess), second)
	_, err := s.ResolveBreak(t.Context(), w, id, func(staff.BreakRow) (int, []byte) { return 200, []byte("{}") })
	must(t, err)
	reported(0)
}
