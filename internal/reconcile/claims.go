package reconcile

import (
	"context"
	"slices"

	"hongbao/internal/packet"
)

// batch is the number of claims that one query of MySQL compares.
const batch = 500

// Store is the part of MySQL that knows which claims are recorded.
type Store interface {
	RecordedClaims(ctx context.Context, packetID string, claims []packet.Claim) (packet.Recorded, error)
}

// Fenced reads claims of pools whose lanes lack nothing: behind a closed fence it fails. Watch and drain
// accept no other reader.
type Fenced struct {
	Pools interface {
		EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error
	}
}

// Unfenced reads whatever Redis has. Only a rebuild and a recovery use it, because they do not take what
// it lacks for absent.
type Unfenced struct {
	Pools interface {
		EachClaimUnfenced(ctx context.Context, id string, visit func([]packet.Claim) error) error
	}
}

// Claims reads the claims of a packet's pool in pages: Fenced or Unfenced.
type Claims interface {
	each(ctx context.Context, id string, visit func([]packet.Claim) error) error
}

func (f Fenced) each(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	return f.Pools.EachClaim(ctx, id, visit)
}

func (u Unfenced) each(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	return u.Pools.EachClaimUnfenced(ctx, id, visit)
}

// Unrecorded calls do with the repairs of the claims of a pool that MySQL lacks, in batches. Errors: those
// of from, of the store and of do, which end it.
func Unrecorded(ctx context.Context, from Claims, store Store, mode Mode, id string, do func([]Repair) error) error {
	return from.each(ctx, id, func(claims []packet.Claim) error { return DiffClaims(ctx, store, mode, id, claims, do) })
}

// DiffClaims does the same for claims that were just read.
func DiffClaims(ctx context.Context, store Store, mode Mode, id string, claims []packet.Claim, do func([]Repair) error) error {
	for some := range slices.Chunk(claims, batch) {
		recorded, err := store.RecordedClaims(ctx, id, some)
		if err != nil {
			return err
		}
		repairs := Diff(Facts{PacketID: id, First: ClaimsFirst, Mode: mode, Claims: some, Recorded: recorded})
		if len(repairs) == 0 {
			continue
		}
		if err := do(repairs); err != nil {
			return err
		}
	}
	return nil
}

// Lacking returns the repairs of a pool that lacks users. users have a claim in MySQL, with or without a
// share, and were read before the pool. Errors: those of from.
func Lacking(ctx context.Context, from Claims, mode Mode, id string, users []string) ([]Repair, error) {
	facts := Facts{PacketID: id, First: RecordedFirst, Mode: mode}
	known := make(map[string]bool, len(users))
	for _, user := range users {
		known[user] = true
		facts.Recorded.Claims = append(facts.Recorded.Claims, packet.RecordedClaim{UserID: user})
	}
	err := from.each(ctx, id, func(some []packet.Claim) error {
		for _, c := range some {
			if known[c.UserID] { // claims of other users may be many
				facts.Claims = append(facts.Claims, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return Diff(facts), nil
}
