package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListHolds returns one page of holds.
func (s *Staff) ListHolds(ctx context.Context, f wire.HoldFilter, p Page) (*wire.List[wire.StaffHold], error) {
	return page[wire.StaffHold](ctx, s.caller, wire.PathHolds, f, p)
}

// Holds iterates over holds, newest first.
func (s *Staff) Holds(ctx context.Context, f wire.HoldFilter) iter.Seq2[*wire.StaffHold, error] {
	return each[wire.StaffHold](ctx, s.caller, wire.PathHolds, f)
}

// GetHold returns a hold and what its release lets go. An unknown id is a problem with CodeNotFound.
func (s *Staff) GetHold(ctx context.Context, id string) (*wire.HeldItem, error) {
	return get[wire.HeldItem](ctx, s.caller, wire.PathHolds+"/"+segment(id), nil)
}

// PlaceHold places a hold. An active hold of staff on the same name stays as it is.
func (s *Staff) PlaceHold(ctx context.Context, h wire.NewHold, key ...Key) (*wire.HeldItem, error) {
	return decide[wire.HeldItem](ctx, s, wire.PathHolds, h, key)
}

// ReleaseHold releases a hold, or asks for it when a second person has to release it too: then
// Hold.ReleasedAt is nil. CodeDecisionChanged: the first person was shown something else.
func (s *Staff) ReleaseHold(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.HeldItem, error) {
	return decide[wire.HeldItem](ctx, s, wire.PathHolds+"/"+segment(id)+"/release", r, key)
}

// ReleaseHolds releases many holds, at most 200 per call. What the call of another person has asked
// for is released if that person was shown the same. DryRun has no default here: false releases.
func (s *Staff) ReleaseHolds(ctx context.Context, r wire.BulkRelease, key ...Key) (*wire.BulkReleased, error) {
	return decide[wire.BulkReleased](ctx, s, wire.PathHolds+"/release", r, key)
}
