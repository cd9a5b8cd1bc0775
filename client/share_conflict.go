package client

import (
	"context"

	"hongbao/wire"
)

// HonourShareConflicts honours many share conflicts with the money of the house, at most 200 per call.
// The first person's call asks; what another person has asked for is decided. DryRun has no default
// here: false decides.
func (s *Staff) HonourShareConflicts(ctx context.Context, r wire.BulkConflictDecision, key ...Key) (*wire.BulkConflictsDecided, error) {
	return decide[wire.BulkConflictsDecided](ctx, s, wire.PathShareConflicts+"/honour", r, key)
}

// VoidShareConflicts is HonourShareConflicts for ending them without a payment.
func (s *Staff) VoidShareConflicts(ctx context.Context, r wire.BulkConflictDecision, key ...Key) (*wire.BulkConflictsDecided, error) {
	return decide[wire.BulkConflictsDecided](ctx, s, wire.PathShareConflicts+"/void", r, key)
}
