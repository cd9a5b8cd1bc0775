package pool

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestR9_KeepStaleClaim: a stale claim becomes a claim without a share. Its user gets it for ever, its share
// and the counters stay, and a claim that the user has won since stays.
func TestR9_KeepStaleClaim(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ctx := t.Context()
	pk := newPacket(t, 3)
	openPacket(t, p, pk)
	version, open := p.ClaimsVersion(pk.ID)
	if !open {
		t.Fatal("the fence is closed")
	}
	stale := packet.Claim{PacketID: pk.ID, UserID: "lost", ShareIndex: 0, Amount: 100, ClaimedAt: time.Now(),
		Profile: packet.Profile{Recipient: "r"}}
	keep := func(c packet.Claim, want packet.StaleResult, share int) {
		t.Helper()
		known, result, err := p.KeepStaleClaim(ctx, c)
		if err != nil || result != want || known.ShareIndex != share {
			t.Errorf("kept %+v: %s %+v, %v, want %s", c, result, known, err, want)
		}
	}
	for range 2 {
		keep(stale, packet.StaleKept, 0)
	}
	other := stale
	other.ShareIndex = 2
	keep(other, packet.StaleOther, 0)
	for range 2 {
		g, err := p.Grab(ctx, pk.ID, "lost", packet.Profile{})
		if err != nil || g.Result != packet.GrabReplayed || g.Claim.ShareIndex != 0 || g.Claim.Amount != 100 || g.Claim.Profile.Recipient != "r" {
			t.Errorf("grabbed again: %+v, %v", g, err)
		}
	}
	for i, user := range []string{"a", "b", "c"} { // every share, that of the stale claim too
		g, err := p.Grab(ctx, pk.ID, user, packet.Profile{})
		if err != nil || g.Result != packet.GrabWon || g.Claim.ShareIndex != i {
			t.Errorf("%s: %+v, %v", user, g, err)
		}
	}
	won := stale
	won.UserID = "a"
	keep(won, packet.StaleRepeated, 0)
	won.UserID = "b"
	keep(won, packet.StaleOther, 1)
	view, err := p.View(ctx, pk.ID)
	if err != nil || view.ClaimedCount != 3 || view.ClaimedAmount != 300 || view.RemainingCount != 0 || view.KeptCount != 1 {
		t.Errorf("%+v, %v", view, err)
	}
	wait.Until(t, "the process knows of it", func() bool { now, open := p.ClaimsVersion(pk.ID); return open && now != version })
	if _, err := p.ClosePool(ctx, pk.ID, packet.CloseSoldOut); err != nil {
		t.Fatal(err)
	}
	if err := p.Retire(ctx, pk.ID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{pk.ID, newPacket(t, 1).ID, "none"} {
		stale.PacketID = id
		keep(stale, packet.StaleGone, 0)
	}
}
