package rebuild

import (
	"context"
	"errors"
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
			if err := r.awaitRecorded(t.Context(), fence.Rebuild{}, missing, nil, nil); err != nil {
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

// TestR11_FailedStartIsRetried: a payout whose start failed is started again soon, while the rebuild waits for it. One that
// never starts does not hold the rebuild up for longer than any other claim.
func TestR11_FailedStartIsRetried(t *testing.T) {
	patience := 10 * startRetry
	for failures, want := range map[int]time.Duration{2: 4 * startRetry, 1 << 30: patience + startRetry} {
		synctest.Test(t, func(t *testing.T) {
			rows, began, tries := &slowRows{most: 1}, time.Now(), 0
			start := func(context.Context) error {
				if tries++; tries <= failures {
					return errors.New("a store refuses")
				}
				return nil
			}
			c := claimed{"p", "u"}
			unrecorded := &recordedOnceStarted{slowRows: rows, started: func() bool { return tries > failures }}
			r := New(Config{Rows: unrecorded, Pace: Intervals{Patience: patience}, Lanes: 1, Logger: slog.New(slog.DiscardHandler)})
			err := r.awaitRecorded(t.Context(), fence.Rebuild{}, map[claimed]int{c: 0}, nil, map[claimed]payoutStart{c: start})
			if took := time.Since(began); err != nil || took > want || tries < 3 {
				t.Errorf("%d failures: %d starts in %v, want at most %v; %v", failures, tries, took, want, err)
			}
		})
	}
}

// recordedOnceStarted records a claim once its payout was started.
type recordedOnceStarted struct {
	*slowRows
	started func() bool
}

func (s *recordedOnceStarted) RecordedClaims(ctx context.Context, id string, claims []packet.Claim) (packet.Recorded, error) {
	if !s.started() {
		return packet.Recorded{}, nil
	}
	return s.slowRows.RecordedClaims(ctx, id, claims)
}
