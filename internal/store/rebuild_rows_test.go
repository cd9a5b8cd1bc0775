package store

import (
	"fmt"
	"testing"
	"time"

	"hongbao/internal/packet"
)

// TestR9_CountClaimsAfterSeq: the claims of a lane after a seq are counted, of small packets that
// share a page and of one larger than a page; not those of other lanes, other epochs, or before that
// seq.
func TestR9_CountClaimsAfterSeq(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	const lanes, lane = 8, 3
	in, other := packet.LanePrefixes(lane, lanes), packet.LanePrefixes(lane+1, lanes)
	add := func(id string, n int, epoch int64) {
		t.Helper()
		const digits = "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT " +
			"7 UNION SELECT 8 UNION SELECT 9)"
		_, err := s.db.SQL.ExecContext(ctx, fmt.Sprintf(`INSERT INTO claims (packet_id, user_id, kind, share_index, amount, payment_id, app_id,
			claimed_at, epoch, seq)
			SELECT ?, CONCAT('u', n), 'share', n, 1, CONCAT('p', ?, LPAD(n MOD 10000, 4, '0')), 'app', '2026-01-01', ?, n + 1 FROM (SELECT a.d +
				10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n
			FROM %s a, %s b, %s c, %s e, %s f) AS numbers WHERE n < ?`,
			digits, digits, digits, digits, digits), id, id, epoch, n)
		must(t, err)
	}
	id := func(prefix string, n int) string { return fmt.Sprintf("%s%018d", prefix, n) }
	for n := range 7 { // adjacent, on two pages
		add(id(in[0], n), 9_000, 2)
	}
	add(id(in[0], 8), countPage+5_000, 2)
	add(id(in[0], 9), 100, 2)
	add(id(in[5], 0), 100, 2)
	add(id(in[5], 1), 100, 1)
	add(id(other[0], 0), 100, 2)
	for _, tc := range []struct{ epoch, seq, want int64 }{
		{2, 0, 7*9_000 + countPage + 5_000 + 200}, {2, 40, 7*8_960 + countPage + 4_960 + 120}, {2, countPage, 5_000}, {1, 90, 10}, {3, 0, 0},
	} {
		began := time.Now()
		got, err := s.CountClaimsAfterSeq(ctx, lane, lanes, tc.epoch, tc.seq)
		if err != nil || got != tc.want {
			t.Errorf("behind seq %d of epoch %d: %d, %v, want %d", tc.seq, tc.epoch, got, err, tc.want)
		}
		t.Logf("%d claims of the lane read in %v", 7*9_000+countPage+5_300, time.Since(began))
	}
}
