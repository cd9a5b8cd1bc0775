package activities

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/packet"
	"hongbao/internal/reconcile"
)

// ClaimRecords is the part of MySQL that knows and records claims.
type ClaimRecords interface {
	ClaimStore
	reconcile.Store
}

// RepairClaim records an acknowledged claim that MySQL lacks: by a run, unless one is open or the claim is
// a share conflict. The open run may be of the user's other claim, which waits for staff; once that is
// recorded, this one needs no run. A claim whose start Temporal rejects is recorded without a run, and the
// watch starts one once Temporal accepts it. It reports whether it did anything. Repeatable.
func RepairClaim(ctx context.Context, s Starter, records ClaimRecords, r reconcile.Repair, app string) (done bool, err error) {
	if r.Mode != reconcile.Normal {
		return false, fmt.Errorf("repair claim of packet %s: mode %q is a recovery's", r.Claim.PacketID, r.Mode)
	}
	if r.Kind == reconcile.Start {
		started, err := s.RestartPayout(ctx, r.Claim, app)
		switch {
		case TemporalRefuses(err):
		case err != nil || started:
			return started, err
		default:
			if other, err := hasOnlyAnother(ctx, records, r); err != nil || !other {
				return false, err
			}
		}
	}
	_, err = RecordClaimOrConflict(ctx, records, r.Claim)
	return err == nil, err
}

// hasOnlyAnother reports whether MySQL has by now another claim of the user and not this one.
func hasOnlyAnother(ctx context.Context, records ClaimRecords, r reconcile.Repair) (bool, error) {
	facts := reconcile.Facts{First: reconcile.ClaimsFirst, Mode: r.Mode, PacketID: r.Claim.PacketID, Claims: []packet.Claim{r.Claim}}
	var err error
	facts.Recorded, err = records.RecordedClaims(ctx, facts.PacketID, facts.Claims)
	return err == nil && len(facts.Recorded.Claims) > 0 && len(reconcile.Diff(facts)) > 0, err
}

// StoreUnavailable reports whether an error of a repair implies that the next one fails too.
func StoreUnavailable(err error) bool {
	return TemporalUnavailable(err) || errors.Is(err, packet.ErrUnavailable)
}
