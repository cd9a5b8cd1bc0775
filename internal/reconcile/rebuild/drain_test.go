package rebuild

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

// slowRows are rows that record one more claim at every check, up to a number.
type slowRows struct {
	Rows
	recorded, most int
}

func (s *slowRows) RecordedClaims(_ context.Context, _ string, claims []packet.Claim) (out packet.Recorded, _ error) {
	s.recorded = min(s.recorded+1, s.most)
	for _, c := range claims {
		if c.ShareIndex < s.recorded {
			out.Claims = append(out.Claims, packet.RecordedClaim{UserID: c.UserID, ShareIndex: c.ShareIndex})
		}
	}
	return out, nil
}

// TestR9_RebuildIsPatient: a rebuild waits while claims are recorded, also if all together take
// longer than its timeout for one. It does not wait without limit for claims that are not
// recorded.
func TestR9_RebuildIsPatient(t *testing.T) {
	const looks = 50
	patience := 10 * rebuildLook
	for _, most := range []int{looks, looks / 2} {
		synctest.Test(t, func(t *testing.T) {
			rows, began := &slowRows{most: most}, time.Now()
			missing := map[claimed]int{}
			for i := range looks {
				missing[claimed{"p", fmt.Sprint("u", i)}] = i
			}
			r := New(Config{Rows: rows, Pace: Intervals{Patience: patience}, Lanes: 1, Logger: slog.New(slog.DiscardHandler)})
			if err := r.awaitRecorded(t.Context(), fence.Rebuild{}, missing, nil); err != nil {
				t.Fatal(err)
			}
			if rows.recorded != most {
				t.Errorf("%d of %d claims that are being recorded were waited for", rows.recorded, most)
			}
			if took, want := time.Since(began), time.Duration(most)*rebuildLook+patience; took > want {
				t.Errorf("%d claims were waited for %v, want %v at most", looks, took, want)
			}
		})
	}
}
