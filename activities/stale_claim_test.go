package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// latePool is a pool that may have been rebuilt without a claim.
type latePool struct {
	rows    *rows
	known   bool
	retired bool
	viewErr error
	err     error
}

func (*latePool) Lanes() int { return 64 }

func (p *latePool) Claim(_ context.Context, _, user string) (packet.Claim, bool, error) {
	p.rows.did = append(p.rows.did, "ask for "+user)
	return packet.Claim{ShareIndex: 9}, p.known, p.err
}

func (p *latePool) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{Retired: p.retired}, p.viewErr
}

func (p *latePool) HaltLane(_ context.Context, lane int, reason packet.LaneReason) error {
	p.rows.did = append(p.rows.did, fmt.Sprintf("shut lane %d: %s", lane, reason))
	return nil
}

// lateRows are rows whose lane was rebuilt since the claim.
type lateRows struct {
	*rows
	late bool
}

func (r *lateRows) IsStaleClaim(context.Context, packet.Claim) (bool, error) {
	r.did = append(r.did, "late?")
	return r.late, nil
}

// TestR9_StaleClaimRebuildsItsLane: a claim from before the last rebuild of its lane is recorded,
// or becomes a share conflict, only if a repeated grab returns it. A lane that lacks it is
// fenced.
func TestR9_StaleClaimRebuildsItsLane(t *testing.T) {
	c := packet.Claim{PacketID: strings.Repeat("0", packet.IDLen), UserID: "u", ShareIndex: 1, Amount: 5}
	lane := packet.Lane(c.PacketID, 64)
	for _, tc := range []struct {
		name string
		late bool
		pool latePool
		did  string // none of them: not booked
		want error
	}{
		{"not late", false, latePool{}, "late?, book", nil},
		{"known", true, latePool{known: true}, "late?, ask for u, book", nil},
		{"retired", true, latePool{retired: true}, "late?, ask for u, book", nil},
		{"gone", true, latePool{viewErr: packet.ErrNotFound}, "late?, ask for u, book", nil},
		{"unknown", true, latePool{}, fmt.Sprintf("late?, ask for u, shut lane %d: pool_behind", lane), packet.ErrStaleClaim},
		{"Redis away", true, latePool{err: packet.ErrUnavailable}, "late?, ask for u", packet.ErrUnavailable},
		{"Redis away then", true, latePool{viewErr: packet.ErrUnavailable}, "late?, ask for u", packet.ErrUnavailable},
	} {
		for _, way := range []string{"RecordClaim", "payLater"} {
			t.Run(tc.name+"/"+way, func(t *testing.T) {
				r, pool := &lateRows{&rows{}, tc.late}, tc.pool
				pool.rows = r.rows
				steps := &Payments{Store: r, Provider: &wire{}, Pools: &pool}
				env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
				env.RegisterActivity(steps.RecordClaim)
				env.RegisterActivityWithOptions(func(ctx context.Context, c packet.Claim) (Outcome, error) {
					return steps.recordOnly(ctx, c, payout.NotDeferred, 0)
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
