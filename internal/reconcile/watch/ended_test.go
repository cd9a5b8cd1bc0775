package watch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

const endedPacket = "00000000000000000000"

// endedWinners is a packet with two winners, of which MySQL has one. The run of each was terminated.
type endedWinners struct {
	Store
	Pools
	Runs
	started  []string
	repaired []string
	gone     bool // the pool
}

func (e *endedWinners) TerminatedRuns(context.Context, time.Time, int) ([]EndedRun, error) {
	return []EndedRun{{"payout/" + endedPacket + "/recorded", "1"}, {"payout/" + endedPacket + "/lost", "2"},
		{"payout/" + endedPacket + "/stranger", "3"}, {"payout/none/lost", "4"}}, nil
}

func (e *endedWinners) PayoutOf(_ context.Context, _, user string) (payout.Payment, error) {
	if user == "recorded" {
		return payout.Payment{Status: payout.StatusPaid}, nil
	}
	return payout.Payment{}, fmt.Errorf("payout: %w", packet.ErrNotFound)
}

func (e *endedWinners) View(context.Context, string) (packet.PoolView, error) {
	if e.gone {
		return packet.PoolView{}, fmt.Errorf("pool: %w", packet.ErrNotFound)
	}
	return packet.PoolView{Packet: packet.Packet{App: "app"}}, nil
}

func (e *endedWinners) Claim(_ context.Context, id, user string) (packet.Claim, bool, error) {
	return packet.Claim{PacketID: id, UserID: user}, user != "stranger", nil
}

func (e *endedWinners) RecordedClaims(context.Context, string, []packet.Claim) (out packet.Recorded, _ error) {
	return out, nil
}

func (e *endedWinners) RestartPayout(_ context.Context, c packet.Claim, app string) (bool, error) {
	e.started = append(e.started, c.UserID+" of "+app)
	return true, nil
}

func (e *endedWinners) CountRepair(_ context.Context, kind, subject string) error {
	e.repaired = append(e.repaired, kind+" "+subject)
	return nil
}

// TestR11_EndedBeforeRecorded: the payout of a winner whose run was terminated before it recorded the claim
// is started at the next look at terminated runs, once, and only while the pool has the claim.
func TestR11_EndedBeforeRecorded(t *testing.T) {
	for _, gone := range []bool{false, true} {
		e := &endedWinners{gone: gone}
		w := New(Config{Store: e, Pools: e, Runs: e, Lanes: 1, Logger: slog.New(slog.DiscardHandler)})
		for range 2 {
			if err := w.watchEnded(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var started, repaired []string
		if !gone {
			started, repaired = []string{"lost of app"}, []string{"winner_without_payout " + endedPacket + "/lost"}
		}
		if !slices.Equal(e.started, started) || !slices.Equal(e.repaired, repaired) {
			t.Errorf("pool gone %t: started %q, repaired %q", gone, e.started, e.repaired)
		}
	}
}
