package client

import (
	"context"

	"hongbao/wire"
)

const shareConflicts = "/v1/staff/share-conflicts"

// HonourShareConflicts honours many share conflicts with the money of the house, at most 200 per call.
// The first person's call asks; what another person has asked for is decided. DryRun has no default
// here: false decides.
func (s *Staff) HonourShareConflicts(ctx context.Context, r wire.BulkConflictDecision, key ...Key) (*wire.BulkConflictsDecided, error) {
	return decide[wire.BulkConflictsDecided](ctx, s, shareConflicts+"/honour", r, key)
}

// VoidShareConflicts is HonourShareConflicts for ending them without a payment.
func (s *Staff) VoidShareConflicts(ctx context.Context, r wire.BulkConflictDecision, key ...Key) (*wire.BulkConflictsDecided, error) {
	return decide[wire.BulkConflictsDecided](ctx, s, shareConflicts+"/void", r, key)
}
