package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// stalePool is a pool that was rebuilt without a claim.
type stalePool struct {
	ClaimPools
	rows   *rows
	result packet.StaleResult
	err    error
}

func (p *stalePool) KeepStaleClaim(_ context.Context, c packet.Claim) (packet.Claim, packet.StaleResult, error) {
	p.rows.did = append(p.rows.did, "keep "+c.UserID)
	return packet.Claim{ShareIndex: 9}, p.result, p.err
}

// staleRows are rows whose lane was rebuilt since the claim.
type staleRows struct {
	*rows
	stale bool
}

func (r *staleRows) IsStaleClaim(context.Context, packet.Claim) (bool, error) {
	r.did = append(r.did, "stale?")
	return r.stale, nil
}

func (r *staleRows) RecordShareConflict(_ context.Context, _ packet.Claim, detail string) (payout.State, error) {
	r.did = append(r.did, "conflict: "+detail)
	return payout.State{PaymentID: "h"}, nil
}

// TestR9_StaleClaimIsConflict: a claim from before the last rebuild of its lane is kept in the pool
// first, then recorded as a share conflict. Nothing is recorded while Redis is away. It is recorded like
// any other when the user has won the same share again, or the pool is gone.
func TestR9_StaleClaimIsConflict(t *testing.T) {
	c := packet.Claim{PacketID: strings.Repeat("0", packet.IDLen), UserID: "u", ShareIndex: 1, Amount: 5}
	const conflict = "stale?, keep u, conflict: the lane was rebuilt without the claim"
	for _, tc := range []struct {
		name  string
		stale bool
		pool  stalePool
		did   string
		want  error
	}{
		{"not stale", false, stalePool{}, "stale?, book", nil},
		{"kept", true, stalePool{result: packet.StaleKept}, conflict, nil},
		{"grabbed again", true, stalePool{result: packet.StaleOther}, conflict + "; the user has another claim: share 9", nil},
		{"same share again", true, stalePool{result: packet.StaleRepeated}, "stale?, keep u, book", nil},
		{"gone", true, stalePool{result: packet.StaleGone}, "stale?, keep u, book", nil},
		{"Redis away", true, stalePool{err: packet.ErrUnavailable}, "stale?, keep u", packet.ErrUnavailable},
	} {
		for _, way := range []string{"RecordClaim", "payLater"} {
			t.Run(tc.name+"/"+way, func(t *testing.T) {
				r, pool := &staleRows{&rows{}, tc.stale}, tc.pool
				pool.rows = r.rows
				steps := &Payments{Store: r, Providers: payout.OnlyProvider(&wire{}), Pools: &pool}
				env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
				env.RegisterActivity(steps.RecordClaim)
				env.RegisterActivityWithOptions(func(ctx context.Context, c packet.Claim) (Outcome, error) {
					return steps.recordOnly(ctx, c, payout.DeferredHeld, time.Minute)
				}, activity.RegisterOptions{Name: "payLater"})
				_, err := env.ExecuteActivity(way, c)
				var typed *temporal.ApplicationError
				if (err == nil) != (tc.want == nil) || err != nil &&
					(!errors.As(err, &typed) || typed.NonRetryable() || typed.Type() != TypeUnavailable) {
					t.Errorf("%v, want %v, retried", err, tc.want)
				}
				if want := strings.Split(tc.did, ", "); !slices.Equal(r.did, want) {
					t.Errorf("did %q, want %q", r.did, want)
				}
			})
		}
	}
}
