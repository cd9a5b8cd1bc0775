package activities

import (
	"context"
	"slices"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"hongbao/packet"
)

// lostHandOffs is a packet whose pool has winners that no hand-off has told of:
// they are recorded only when somebody starts their payouts.
type lostHandOffs struct {
	Books
	Pool
	winners  []packet.Claim
	recorded map[string]bool
	started  []string
}

func (l *lostHandOffs) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{ClaimedCount: len(l.winners)}, nil
}

func (l *lostHandOffs) Claims(context.Context, string) ([]packet.Claim, error) { return l.winners, nil }

func (l *lostHandOffs) AccountedFor(context.Context, string) (int, error) {
	return len(l.recorded), nil
}

func (l *lostHandOffs) Recorded(context.Context, string, []string) (map[string]bool, error) {
	return l.recorded, nil
}

func (l *lostHandOffs) RestartPayout(_ context.Context, c packet.Claim, app string) (bool, error) {
	l.started = append(l.started, c.UserID+" of "+app)
	l.recorded[c.UserID] = true
	return true, nil
}

// TestR11_DrainStartsWhatIsMissing: the drain does not end before every winner is
// recorded, and starts the payouts of those nobody else has started.
func TestR11_DrainStartsWhatIsMissing(t *testing.T) {
	l := &lostHandOffs{recorded: map[string]bool{"ann": true},
		winners: []packet.Claim{{PacketID: "p", UserID: "ann"}, {PacketID: "p", UserID: "bob"}, {PacketID: "p", UserID: "eve"}}}
	steps := &Packets{Books: l, Pool: l, Starter: l}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(steps.Drain)
	if _, err := env.ExecuteActivity(steps.Drain, packet.Packet{ID: "p", App: "app"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"bob of app", "eve of app"}; !slices.Equal(l.started, want) {
		t.Errorf("started %q, want %q", l.started, want)
	}
}
