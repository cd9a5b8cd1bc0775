package report

import (
	"testing"

	"hongbao/internal/money"
)

// TestActivityAbove64Bits: sums of minutes saturate visibly when more was booked than 64 bits hold.
func TestActivityAbove64Bits(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	tamper(t, s.db.SQL, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at)
		SELECT 'k', 'claim', 'holding', 'owed', 9007199254740991, CONCAT('p', seq), CONCAT('p', seq, ':claim'), NOW(3) FROM seq_1_to_1100`)
	minutes, err := s.Activity(t.Context())
	must(t, err)
	var count int64
	for _, m := range minutes {
		if count += m.Grabs.Count; m.Grabs.Amount != money.Saturated && m.Grabs.Amount != money.Fen(m.Grabs.Count)*money.Max {
			t.Errorf("%+v", m)
		}
	}
	if count != 1100 {
		t.Errorf("%d grabs", count)
	}
}
