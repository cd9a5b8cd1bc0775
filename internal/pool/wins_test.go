package pool

import (
	"errors"
	"testing"
	"time"

	"hongbao/internal/packet"
)

func TestOneWin(t *testing.T) { onEach(t, testOneWin) }

// testOneWin: a winner of a packet of a campaign wins in no other one, also within one call
// for two of them, and keeps the claim.
func testOneWin(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	campaign := newPacket(t, 1).ID
	day := func(name string, shares int, eligible ...string) packet.Packet {
		pk := newPacket(t, shares)
		pk.ID, pk.OneWin = packet.NewCampaignPacketID(campaign, []byte(t.Name()), name), true
		openPacket(t, p, pk, eligible...)
		return pk
	}
	is := func(why string, got packet.GrabAnswer, want packet.GrabResult, before bool) {
		t.Helper()
		if got.Result != want || got.WonBefore != before {
			t.Errorf("%s: %v, won before %v; want %v, %v", why, got.Result, got.WonBefore, want, before)
		}
	}
	first, second, third := day("1", 3), day("2", 2), day("3", 2, "a", "c", "d")
	won := mustGrab(t, p, first.ID, "a")
	is("the first", won, packet.GrabWon, false)
	is("another packet", mustGrab(t, p, second.ID, "a"), packet.GrabNotEligible, true)
	is("one with a list", mustGrab(t, p, third.ID, "a"), packet.GrabNotEligible, true)
	is("not on the list", mustGrab(t, p, third.ID, "x"), packet.GrabNotEligible, false)
	again := mustGrab(t, p, first.ID, "a")
	is("again", again, packet.GrabReplayed, false)
	if again.Claim.Amount != won.Claim.Amount {
		t.Errorf("got %d, then %d", won.Claim.Amount, again.Claim.Amount)
	}

	lane := packet.Lane(campaign, p.Lanes())
	batch := batchOf(ctx, [2]string{first.ID, "b"}, [2]string{second.ID, "b"}, [2]string{second.ID, "c"}, [2]string{third.ID, "c"},
		[2]string{third.ID, "d"})
	flush(p, lane, batch)
	got := results(t, batch)
	is("b in the first of a call", got[0], packet.GrabWon, false)
	is("b in the second of a call", got[1], packet.GrabNotEligible, true)
	is("c in the second of a call", got[2], packet.GrabWon, false)
	is("c in the third of a call", got[3], packet.GrabNotEligible, true)
	is("d", got[4], packet.GrabWon, false)

	mustGrab(t, p, first.ID, "last")
	is("sold out comes first", mustGrab(t, p, first.ID, "d"), packet.GrabSoldOut, false)
	other := newPacket(t, 1)
	openPacket(t, p, other)
	is("a packet of no such campaign", mustGrab(t, p, other.ID, "a"), packet.GrabWon, false)

	keys := p.keys.of(second.ID)
	until := p.rdb.HGet(ctx, keys.packet, "expires_at").Val()
	if ends := p.rdb.PExpireTime(ctx, keys.wins).Val(); ends <= packet.WinsKept {
		t.Errorf("the wins go at %v, the packet expires at %s", ends, until)
	}
	// A rebuild of the lane.
	must(t, p.rdb.Del(ctx, keys.wins).Err())
	is("after a loss", mustGrab(t, p, third.ID, "b"), packet.GrabNotEligible, false) // not on the guest list
	if err := p.RestoreWins(ctx, 1, campaign, []string{"a", "b"}, time.Now().Add(time.Hour)); !errors.Is(err, ErrFenced) {
		t.Errorf("behind an open fence: %v", err)
	}
	must(t, p.CloseFence(ctx, lane, 9))
	must(t, p.RestoreWins(ctx, 9, campaign, []string{"a", "b"}, time.Now().Add(time.Hour)))
	if members := p.rdb.SMembers(ctx, keys.wins).Val(); len(members) != 2 {
		t.Errorf("restored %v", members)
	}
}

// TestOneWinRestored: a packet restored from its row keeps the rule of its campaign.
func TestOneWinRestored(t *testing.T) {
	t.Parallel()
	r := packet.RebuildInput{Record: packet.Record{Packet: newPacket(t, 2), Stored: packet.StatusOpen}}
	r.OneWin, r.ExpiresAt = true, time.UnixMilli(1_000)
	fields, err := packetFields(r, claimedField{})
	must(t, err)
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "wins_until" && fields[i+1] == 1_000+packet.WinsKept.Milliseconds() {
			return
		}
	}
	t.Errorf("%v", fields)
}
