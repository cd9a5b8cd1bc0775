package pool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// TestGrabOutcomes has one line for each outcome, in the order of precedence. Each packet
// has every fault of the lines below it as well.
func TestGrabOutcomes(t *testing.T) { onEach(t, testGrabOutcomes) }

func testGrabOutcomes(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	const user = "user"
	opensAt := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()

	missing := func(packet.Packet) {}
	staged := func(pk packet.Packet) { stage(t, p, pk, "another user") }
	opened := func(pk packet.Packet) { openPacket(t, p, pk, "another user") }
	claimed := func(pk packet.Packet) {
		openPacket(t, p, pk)
		mustGrab(t, p, pk.ID, user)
	}
	set := func(field string, value any) func(packet.Packet) {
		return func(pk packet.Packet) { setField(t, p, pk.ID, field, value) }
	}
	state := func(s packet.PoolState) func(packet.Packet) { return set("state", string(s)) }
	future := set("opens_at", opensAt.UnixMilli())
	expired := set("expires_at", time.Now().Add(-time.Minute).UnixMilli())
	invited := func(pk packet.Packet) {
		if err := p.rdb.SAdd(ctx, p.keys.of(pk.ID).eligible, user).Err(); err != nil {
			t.Fatal(err)
		}
	}
	soldOut := func(pk packet.Packet) {
		set("claimed", "2:200:0:100:1")(pk)
		if err := p.rdb.Del(ctx, p.keys.of(pk.ID).shares).Err(); err != nil {
			t.Fatal(err)
		}
	}
	broken := func(pk packet.Packet) {
		must(t, p.rdb.Set(ctx, p.keys.of(pk.ID).shares, packedHundreds(1), 0).Err())
	}
	longer := func(pk packet.Packet) { must(t, p.rdb.Append(ctx, p.keys.of(pk.ID).shares, "\x00").Err()) }
	first := func(index int, amount money.Fen) func(packet.Packet) {
		return func(pk packet.Packet) {
			must(t, p.rdb.SetRange(ctx, p.keys.of(pk.ID).shares, 0, string(packet.AppendShare(nil, index, amount))).Err())
		}
	}
	retire := func(pk packet.Packet) {
		if err := p.Retire(ctx, pk.ID); err != nil {
			t.Fatal(err)
		}
	}

	type steps = []func(packet.Packet)
	for _, c := range []struct {
		name string
		make steps
		want packet.GrabResult
	}{
		{"no packet", steps{missing}, packet.GrabNotFound},

		{"winner, open", steps{claimed}, packet.GrabReplayed},
		{"winner, funding", steps{claimed, state(packet.PoolFunding)}, packet.GrabReplayed},
		{"winner, opening", steps{claimed, state(packet.PoolOpening)}, packet.GrabReplayed},
		{"winner, closing", steps{claimed, state(packet.PoolClosing)}, packet.GrabReplayed},
		{"winner, rejected", steps{claimed, state(packet.PoolRejected)}, packet.GrabReplayed},
		{"winner, not open yet, not invited, sold out, expired", steps{claimed, future, set("restricted", 1), soldOut, expired},
			packet.GrabReplayed},

		{"retired", steps{opened, state(packet.PoolClosing), retire}, packet.GrabRetired},
		{"rejected and retired", steps{staged, state(packet.PoolRejected), retire}, packet.GrabRetired},

		{"funding", steps{staged, future, expired}, packet.GrabNotOpenYet},
		{"opening", steps{opened, state(packet.PoolOpening), future, expired}, packet.GrabNotOpenYet},
		{"scheduled, not invited, sold out, expired", steps{opened, future, soldOut, expired}, packet.GrabNotOpenYet},
		{"recalled before it opens", steps{opened, future, state(packet.PoolClosing)}, packet.GrabNotOpenYet},

		{"not invited, sold out, expired", steps{opened, soldOut, expired}, packet.GrabNotEligible},
		{"not invited, closing", steps{opened, state(packet.PoolClosing)}, packet.GrabNotEligible},

		{"sold out", steps{opened, invited, soldOut}, packet.GrabSoldOut},
		{"sold out, expired", steps{opened, invited, soldOut, expired}, packet.GrabSoldOut},
		{"sold out, closing", steps{opened, invited, soldOut, state(packet.PoolClosing)}, packet.GrabSoldOut},

		{"expired", steps{opened, invited, expired}, packet.GrabExpired},
		{"closing", steps{opened, invited, state(packet.PoolClosing)}, packet.GrabExpired},
		{"rejected", steps{staged, invited, state(packet.PoolRejected)}, packet.GrabExpired},

		{"a share is missing", steps{opened, invited, broken}, packet.GrabUnavailable},
		{"no counter", steps{opened, invited, set("claimed", "x:0:0:0:0")}, packet.GrabUnavailable},
		{"another counter", steps{opened, invited, set("share_count", "3")}, packet.GrabUnavailable},
		{"no shares", steps{opened, invited, func(pk packet.Packet) { must(t, p.rdb.Del(ctx, p.keys.of(pk.ID).shares).Err()) }},
			packet.GrabUnavailable},
		{"a byte too many", steps{opened, invited, longer}, packet.GrabUnavailable},
		{"a share of nothing", steps{opened, invited, first(0, 0)}, packet.GrabUnavailable},
		{"a share outside the packet", steps{opened, invited, first(2, 100)}, packet.GrabUnavailable},
		{"claims without a best one", steps{opened, invited, set("claimed", "1:100:0:0:1")}, packet.GrabUnavailable},
		{"no expiry", steps{opened, invited, set("expires_at", "")}, packet.GrabUnavailable},

		{"invited", steps{opened, invited}, packet.GrabWon},
	} {
		t.Run(c.name, func(t *testing.T) {
			pk := newPacket(t, 2)
			for _, step := range c.make {
				step(pk)
			}
			before := dump(t, p, pk.ID)
			got, err := p.Grab(ctx, pk.ID, user, packet.Profile{Recipient: "again"})
			if c.want == packet.GrabUnavailable {
				wantErr(t, err, ErrInconsistent, ErrUnavailable)
			} else if err != nil {
				t.Fatal(err)
			}
			if got.Result != c.want {
				t.Errorf("%v, want %v", got.Result, c.want)
			}
			switch got.Result {
			case packet.GrabWon:
				return // its effects: TestGrabWon
			case packet.GrabReplayed:
				if got.Claim.Amount != 100 || got.Claim.ShareIndex != 0 || got.Claim.UserID != user || got.Claim.Recipient != "" {
					t.Errorf("claim %+v", got.Claim)
				}
			default:
				if !reflect.DeepEqual(got.Claim, packet.Claim{}) {
					t.Errorf("claim %+v", got.Claim)
				}
			}
			wantOpens := time.Time{}
			if c.want == packet.GrabNotOpenYet && before.Hash["state"] != "funding" && before.Hash["state"] != "opening" {
				wantOpens = opensAt
			}
			if got.OpensAt != wantOpens {
				t.Errorf("opens at %v, want %v", got.OpensAt, wantOpens)
			}
			unchanged(t, p, pk.ID, before)
		})
	}
}

// TestGrabOutcomesAreListedInOrder: the header of grab.lua lists the outcomes in the order
// of packet.GrabResult.
func TestGrabOutcomesAreListedInOrder(t *testing.T) {
	source, err := scriptFiles.ReadFile("grab.lua")
	if err != nil {
		t.Fatal(err)
	}
	_, listed, _ := strings.Cut(string(source), "Outcomes in")
	listed, _, _ = strings.Cut(listed, "\n\n")
	var names []string
	for r := packet.GrabNotFound; r <= packet.GrabWon; r++ {
		names = append(names, r.String())
	}
	names = append(names, packet.GrabUnavailable.String())
	at := 0
	for _, name := range names {
		i := regexp.MustCompile(`\b` + name + `\b`).FindStringIndex(listed[at:])
		if i == nil {
			t.Fatalf("%s is missing in the header, or out of order", name)
		}
		at += i[1]
	}
}

func TestGrabWon(t *testing.T) { onEach(t, testGrabWon) }

func testGrabWon(t *testing.T, on setup) {
	p := on.open(t)
	pk := newPacket(t, 2)
	stage(t, p, pk)
	if err := p.OpenPool(t.Context(), pk.ID, []money.Fen{70, 130}, nil); err != nil {
		t.Fatal(err)
	}
	before := dump(t, p, pk.ID)
	nick := `小明 "x": \ {`
	profile := packet.Profile{Nickname: &nick, Recipient: "wallet"}
	got, err := p.Grab(t.Context(), pk.ID, "first", profile)
	if err != nil {
		t.Fatal(err)
	}
	want := packet.Claim{PacketID: pk.ID, UserID: "first", ShareIndex: 0, Amount: 70, ClaimedAt: got.Claim.ClaimedAt, Profile: profile}
	if got.Result != packet.GrabWon || !reflect.DeepEqual(got.Claim, want) || time.Since(want.ClaimedAt).Abs() > time.Minute {
		t.Errorf("grabbed %+v, want %+v", got, want)
	}
	at := strconv.FormatInt(want.ClaimedAt.UnixMilli(), 10)
	after := changed(t, p, pk.ID, before, map[string]string{"claimed": "1:70:0:70:" + at})
	if len(after.Claimed) != 0 {
		t.Errorf("a grab indexed its claim: %q", after.Claimed)
	}
	if err := p.indexClaims(t.Context(), packet.Lane(pk.ID, p.Lanes()), ""); err != nil {
		t.Fatal(err)
	}
	after = dump(t, p, pk.ID)
	place := fmt.Sprintf("shop\x00first\x00%015d\x00%s", want.ClaimedAt.UnixMilli(), pk.ID)
	if !slices.Equal(after.Order, []string{"first"}) || !slices.Equal(after.Claimed, []string{place}) {
		t.Errorf("order %q, claims by user %q", after.Order, after.Claimed)
	}
	record := after.Winners["first"]
	decoded, err := packet.DecodeClaim(pk.ID, "first", record)
	if err != nil || !reflect.DeepEqual(decoded, want) || !regexp.MustCompile("^0:70:"+at+`:[A-Z0-9]{8}:\{`).MatchString(record) {
		t.Errorf("record %q", record)
	}
	if !slices.Equal(after.Shares, []string{"1:130"}) || len(after.Winners) != 1 {
		t.Errorf("shares %v, winners %v", after.Shares, after.Winners)
	}
	encoded, err := json.Marshal(profile)
	if err != nil {
		t.Fatal(err)
	}
	part := claimsPart{epoch: 1, seq: epochOf(t, p, packet.Lane(pk.ID, p.Lanes())).Seq, app: "shop", at: at,
		shares: string(packet.AppendShare(nil, 0, 70)), users: []string{"first"}, profiles: map[int]string{1: string(encoded)}}
	handedOff := func(entry []string) claimsPart {
		t.Helper()
		if len(entry) != 2 || !slices.Contains(entry, "kind=claims") {
			t.Fatalf("entry %q", entry)
		}
		id, value, _ := strings.Cut(entry[slices.IndexFunc(entry, func(f string) bool { return f != "kind=claims" })], "=")
		got, err := decodePart(id, value)
		must(t, err)
		return got
	}
	if len(after.HandOffs) != 2 || !reflect.DeepEqual(handedOff(after.HandOffs[1]), part) {
		t.Errorf("hand-offs %q, want %+v", after.HandOffs, part)
	}

	last := mustGrab(t, p, pk.ID, "second")
	if last.Result != packet.GrabWon || last.Claim.ShareIndex != 1 || last.Claim.Amount != 130 {
		t.Errorf("last share: %+v", last)
	}
	after = changed(t, p, pk.ID, after, map[string]string{
		"claimed": fmt.Sprintf("2:200:1:130:%d", last.Claim.ClaimedAt.UnixMilli())})
	if !slices.Equal(after.Order, []string{"first", "second"}) || len(after.Claimed) != 1 {
		t.Errorf("order %q, claims by user %q", after.Order, after.Claimed)
	}
	if len(after.Shares) != 0 || len(after.HandOffs) != 3 || !handedOff(after.HandOffs[2]).last {
		t.Errorf("after the last share %+v", after)
	}
}

func TestGrabInvalidPacketID(t *testing.T) { onEach(t, testGrabInvalidPacketID) }

func testGrabInvalidPacketID(t *testing.T, on setup) {
	p := on.open(t)
	for _, id := range []string{"", "short", strings.Repeat("z", packet.IDLen), strings.Repeat("0", 200)} {
		if g := mustGrab(t, p, id, "u"); g.Result != packet.GrabNotFound {
			t.Errorf("%q: %v", id, g.Result)
		}
	}
}

// strangeUsers are user ids that all differ in bytes.
var strangeUsers = []string{
	"a", "A", "a ", " a", "á", "a\u0301", "用户", ":", "::", "a:b", `"`, `'`, `\`, "kind", "claim:x", "last:x", "{l07}", "0",
	"-1", "1e3", "nil", "%s", "\u202e", strings.Repeat("x", 64), strings.Repeat("x", 63) + "y", strings.Repeat("é", 32),
}

func TestGrabStrangeUserIDs(t *testing.T) { onEach(t, testGrabStrangeUserIDs) }

func testGrabStrangeUserIDs(t *testing.T, on setup) {
	p := on.openFresh(t)
	pk := newPacket(t, len(strangeUsers))
	stage(t, p, pk, strangeUsers...)
	if err := p.OpenPool(t.Context(), pk.ID, hundreds(pk.ShareCount), nil); err != nil {
		t.Fatal(err)
	}
	for i, user := range strangeUsers {
		if g := mustGrab(t, p, pk.ID, user); g.Result != packet.GrabWon || g.Claim.UserID != user || g.Claim.ShareIndex != i {
			t.Errorf("%q: %+v", user, g)
		}
	}
	for i, user := range strangeUsers {
		if g := mustGrab(t, p, pk.ID, user); g.Result != packet.GrabReplayed || g.Claim.UserID != user || g.Claim.ShareIndex != i {
			t.Errorf("%q again: %+v", user, g)
		}
		if c, ok, err := p.Claim(t.Context(), pk.ID, user); err != nil || !ok || c.ShareIndex != i {
			t.Errorf("claim of %q: %+v %v %v", user, c, ok, err)
		}
	}
	h := handoffs(t, p)
	b := readAll(t, h, packet.Lane(pk.ID, p.Lanes()))
	var users []string
	for _, handOff := range b.HandOffs {
		for _, c := range handOff.Claims {
			users = append(users, c.UserID)
		}
	}
	if len(b.Undecodable) > 0 || !slices.Equal(users, strangeUsers) {
		t.Errorf("handed off %q, bad %v", users, b.Undecodable)
	}
	claims, err := p.Claims(t.Context(), pk.ID)
	if err != nil || len(claims) != len(strangeUsers) {
		t.Errorf("%d claims, %v", len(claims), err)
	}
	for i, c := range claims {
		if c.UserID != strangeUsers[i] {
			t.Errorf("claim %d of %q, want %q", i, c.UserID, strangeUsers[i])
		}
	}
	if n, err := p.WinnersCount(t.Context(), pk.ID); err != nil || n != len(strangeUsers) {
		t.Errorf("%d winners, %v", n, err)
	}
}

// TestR8LargeAmounts: Lua prints 14 digits, and yet no digit of an amount is lost (R8).
func TestR8LargeAmounts(t *testing.T) { onEach(t, testR8LargeAmounts) }

func testR8LargeAmounts(t *testing.T, on setup) {
	p := on.open(t)
	for _, shares := range [][]money.Fen{
		{money.Max},
		{money.Max - 1, 1},
		{1, money.Max - 3, 2},
		{4503599627370495, 4503599627370496},
		{123456789012345, 234567890123456, 99999999999999},
	} {
		pk := newPacket(t, len(shares))
		var sum money.Fen
		for _, s := range shares {
			var err error
			if sum, err = sum.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		pk.TotalAmount = sum
		stage(t, p, pk)
		if err := p.OpenPool(t.Context(), pk.ID, shares, nil); err != nil {
			t.Fatal(err)
		}
		for i, share := range shares {
			if g := mustGrab(t, p, pk.ID, strconv.Itoa(i)); g.Result != packet.GrabWon || g.Claim.Amount != share {
				t.Errorf("share %d of %v: %v %d", i, shares, g.Result, g.Claim.Amount)
			}
		}
		v, err := p.View(t.Context(), pk.ID)
		if err != nil || v.ClaimedAmount != sum || v.Packet.TotalAmount != sum {
			t.Errorf("view of %v: %+v, %v", shares, v, err)
		}
		r, err := p.ClosePool(t.Context(), pk.ID, packet.CloseSoldOut)
		if err != nil || r.ClaimedAmount != sum || r.ClaimedCount != len(shares) {
			t.Errorf("remainder of %v: %+v, %v", shares, r, err)
		}
	}
}
