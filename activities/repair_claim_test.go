package activities

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.temporal.io/api/serviceerror"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
)

// claimBooks is a MySQL with some claims, beside a Temporal that starts runs or does not.
type claimBooks struct {
	has      []packet.RecordedClaim
	taken    bool // RecordClaim finds the share or the user taken
	open     bool // a run of the user is open
	refuses  bool // Temporal rejects the start
	recorded []string
}

func (b *claimBooks) RestartPayout(context.Context, packet.Claim, string) (bool, error) {
	if b.refuses {
		return false, serviceerror.NewInvalidArgument("too long")
	}
	return !b.open, nil
}

func (b *claimBooks) RecordedClaims(context.Context, string, []packet.Claim) (packet.Recorded, error) {
	return packet.Recorded{Claims: b.has}, nil
}

func (b *claimBooks) RecordClaim(_ context.Context, c packet.Claim) (payout.State, error) {
	if b.taken {
		return payout.State{}, packet.ErrConflict
	}
	b.recorded = append(b.recorded, "claim of "+c.UserID)
	return payout.State{}, nil
}

func (b *claimBooks) RecordShareConflict(_ context.Context, c packet.Claim, _ string) (payout.State, error) {
	b.recorded = append(b.recorded, "conflict of "+c.UserID)
	return payout.State{}, nil
}

// TestR11_RepairClaim: a claim gets a run, or is recorded where a run would not record it, and a repair of
// a recovery is refused.
func TestR11_RepairClaim(t *testing.T) {
	c := packet.Claim{PacketID: "p", UserID: "ann", ShareIndex: 1}
	other := []packet.RecordedClaim{{UserID: "ann", ShareIndex: 0}}
	for _, tc := range []struct {
		name     string
		kind     reconcile.Kind
		mode     reconcile.Mode
		books    claimBooks
		done     bool
		recorded []string
		fails    bool
	}{
		{"started", reconcile.Start, reconcile.Normal, claimBooks{}, true, nil, false},
		{"its run is open", reconcile.Start, reconcile.Normal, claimBooks{open: true}, false, nil, false},
		{"its run has recorded it", reconcile.Start, reconcile.Normal,
			claimBooks{open: true, has: []packet.RecordedClaim{{UserID: "ann", ShareIndex: 1}}}, false, nil, false},
		{"the user's other share has the run", reconcile.Start, reconcile.Normal, claimBooks{open: true, has: other, taken: true}, true,
			[]string{"conflict of ann"}, false},
		{"Temporal refuses", reconcile.Start, reconcile.Normal, claimBooks{refuses: true}, true, []string{"claim of ann"}, false},
		{"a conflict needs no run", reconcile.Conflict, reconcile.Normal, claimBooks{has: other, taken: true}, true,
			[]string{"conflict of ann"}, false},
		{"of a recovery", reconcile.Record, reconcile.Recovering, claimBooks{}, false, nil, true},
	} {
		done, err := RepairClaim(t.Context(), &tc.books, &tc.books, reconcile.Repair{Kind: tc.kind, Mode: tc.mode, Claim: c}, "app")
		if done != tc.done || (err != nil) != tc.fails || !slices.Equal(tc.books.recorded, tc.recorded) {
			t.Errorf("%s: %t, %v, recorded %q", tc.name, done, err, tc.books.recorded)
		}
	}
	away := &awayStarter{}
	repair := reconcile.Repair{Kind: reconcile.Start, Mode: reconcile.Normal, Claim: c}
	if _, err := RepairClaim(t.Context(), away, &claimBooks{}, repair, ""); !StoreUnavailable(err) {
		t.Errorf("Temporal is away: %v", err)
	}
	if StoreUnavailable(errors.New("other")) || !StoreUnavailable(packet.ErrUnavailable) {
		t.Error("what implies that the next repair fails too")
	}
}

// awayStarter is a Temporal that does not answer.
type awayStarter struct{}

func (awayStarter) RestartPayout(context.Context, packet.Claim, string) (bool, error) {
	return false, serviceerror.NewUnavailable("away")
}
