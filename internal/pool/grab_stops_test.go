package pool

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// TestGrabStops: an operator revokes a right, or damages a key, while grabs are made. A call may then stop
// between two writes. No share is given twice, every answered claim stays, and a repeated grab returns the
// claim that Redis has.
func TestGrabStops(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	admin := root(t, server, stacktest.Lock{})
	type harm struct {
		do   func(t *testing.T, k packetKeys)
		undo func(t *testing.T, k packetKeys)
	}
	harms := map[string]harm{}
	grant := func(t *testing.T, _ packetKeys) { do(t, admin, setUser(ourSecret, rulesOf(rights))...) }
	for _, right := range []string{"sadd", "pexpireat", "hset", "xadd", "rpush", "getrange"} {
		harms["without the right to "+right] = harm{
			func(t *testing.T, _ packetKeys) { do(t, admin, "ACL", "SETUSER", ourUser, "-"+right) }, grant}
	}
	for name, key := range map[string]func(packetKeys) string{
		"packet": func(k packetKeys) string { return k.packet }, "shares": func(k packetKeys) string { return k.shares },
		"winners": func(k packetKeys) string { return k.winners }, "order": func(k packetKeys) string { return k.order },
		"hand-offs": func(k packetKeys) string { return k.handoff }, "wins": func(k packetKeys) string { return k.wins },
	} {
		harms["another type of "+name] = harm{
			func(t *testing.T, k packetKeys) {
				must(t, admin.Rename(t.Context(), key(k), key(k)+":aside").Err())
				must(t, admin.ZAdd(t.Context(), key(k), redis.Z{Member: "x"}).Err())
			},
			func(t *testing.T, k packetKeys) { must(t, admin.Rename(t.Context(), key(k)+":aside", key(k)).Err()) }}
	}
	for name, h := range harms {
		t.Run(name, func(t *testing.T) {
			grant(t, packetKeys{})
			p := openAt(t, Config{Addr: server.Addr, Access: ours(stacktest.Lock{})})
			pk := newPacket(t, 10)
			campaign := newPacket(t, 1).ID
			pk.ID, pk.OneWin = packet.NewCampaignPacketID(campaign, []byte(t.Name()), "1"), true
			openPacket(t, p, pk)
			answered := map[string]int{"first": mustGrab(t, p, pk.ID, "first").Claim.ShareIndex}
			h.do(t, p.keys.of(pk.ID))
			for i := range 3 {
				user := fmt.Sprintf("u%d", i)
				if got, err := p.Grab(t.Context(), pk.ID, user, packet.Profile{}); err == nil {
					t.Errorf("%s: %v", user, got.Result)
				}
			}
			h.undo(t, p.keys.of(pk.ID))
			for i := range 5 {
				user := fmt.Sprintf("u%d", i)
				if got := mustGrab(t, p, pk.ID, user); got.Result == packet.GrabWon || got.Result == packet.GrabReplayed {
					answered[user] = got.Claim.ShareIndex
				} else if !got.WonBefore || i > 2 { // of a call that stopped after it noted the win in the campaign
					t.Errorf("%s: %v", user, got.Result)
				}
			}
			claims, err := p.Claims(t.Context(), pk.ID)
			must(t, err)
			holders := map[int]string{}
			for _, c := range claims {
				if other, is := holders[c.ShareIndex]; is {
					t.Errorf("%s and %s have share %d", other, c.UserID, c.ShareIndex)
				}
				holders[c.ShareIndex] = c.UserID
			}
			for user, share := range answered {
				if holders[share] != user {
					t.Errorf("%s was given share %d, which %q has", user, share, holders[share])
				}
			}
			if len(claims) != len(answered) {
				t.Errorf("%d claims, %d answered", len(claims), len(answered))
			}
		})
	}
}
