package pool

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

func TestHandOffs(t *testing.T) { onEach(t, testHandOffs) }

func testHandOffs(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	mates := laneMates(t, p, 2, 2)
	a, b := mates[0], mates[1]
	lane := packet.Lane(a.ID, p.Lanes())
	stagedA := stage(t, p, a, "x", "y", "z")
	if err := p.OpenPool(t.Context(), a.ID, hundreds(2), nil); err != nil {
		t.Fatal(err)
	}
	openPacket(t, p, b)
	batch := batchOf(t.Context(), [2]string{a.ID, "x"}, [2]string{b.ID, "x"}, [2]string{a.ID, "y"})
	flush(p, lane, batch)
	grabbed := results(t, batch)
	last := epochOf(t, p, lane)
	if _, err := p.Recall(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}

	got := readAll(t, h, lane)
	if len(got.Undecodable) != 0 || len(got.HandOffs) != 5 {
		t.Fatalf("read %+v", got)
	}
	if c := got.HandOffs[0].Created; c == nil || !reflect.DeepEqual(*c, stagedA.View.Packet) {
		t.Errorf("created\n got %+v\nwant %+v", c, stagedA.View.Packet)
	}
	if c := got.HandOffs[1].Created; c == nil || c.ID != b.ID {
		t.Errorf("created %+v", c)
	}
	if g, want := got.HandOffs[2], []packet.Claim{wonAt(grabbed[0].Claim, last.Number, last.Seq-2),
		wonAt(grabbed[2].Claim, last.Number, last.Seq-1)}; !reflect.DeepEqual(g.Claims, want) || !slices.Equal(g.SoldOut, []string{a.ID}) {
		t.Errorf("claims %+v\nwant %+v", g, want)
	}
	if g, want := got.HandOffs[3], []packet.Claim{wonAt(grabbed[1].Claim, last.Number, last.Seq)}; !reflect.DeepEqual(g.Claims, want) ||
		len(g.SoldOut) != 0 {
		t.Errorf("claims %+v\nwant %+v", g, want)
	}
	for i, want := range []string{"", "", "shop", "shop", ""} {
		if app := got.HandOffs[i].App; app != want {
			t.Errorf("hand-off %d is of app %q, want %q", i, app, want)
		}
	}
	if r := got.HandOffs[4]; r.Recalled != b.ID {
		t.Errorf("recalled %+v", r)
	}

	n, oldest, err := h.Depth(t.Context(), lane)
	if err != nil || n != 4 || time.Since(oldest).Abs() > time.Minute {
		t.Errorf("depth %d since %v, %v", n, oldest, err)
	}
	if err := h.Ack(t.Context(), lane, ids(got)...); err != nil {
		t.Fatal(err)
	}
	if err := h.Ack(t.Context(), lane, ids(got)...); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := h.Ack(t.Context(), lane); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if n, oldest, err := h.Depth(t.Context(), lane); n != 0 || !oldest.IsZero() || err != nil || pendingOf(t, h, lane, "reader") != 0 {
		t.Errorf("after acknowledging: %d, %v, %v", n, oldest, err)
	}
}

func TestReadBadEntries(t *testing.T) { onEach(t, testReadBadEntries) }

func testReadBadEntries(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	pk := newPacket(t, 2)
	shares := func(amounts ...money.Fen) string {
		var packed []byte
		for i, a := range amounts {
			packed = packet.AppendShare(packed, i, a)
		}
		return string(packed)
	}
	type part struct {
		at, shares, users, profiles string
	}
	good := part{at: "1700000000000", shares: shares(5), users: "\x91\xa1u", profiles: "\x80"}
	claims := func(change func(*part)) map[string]string {
		c := good
		change(&c)
		return map[string]string{"kind": "claims", pk.ID: packedPart(7, c.at, c.shares, []byte(c.users), []byte(c.profiles), false)}
	}
	users := func(s string) map[string]string { return claims(func(c *part) { c.users = s }) }
	profiles := func(s string) map[string]string { return claims(func(c *part) { c.profiles = s }) }
	other := newPacket(t, 1).ID
	whole, second := []string{pk.ID}, []string{"claim:" + pk.ID + ":v"}
	goodClaim := packet.Claim{PacketID: pk.ID, UserID: "u", Amount: 5, ClaimedAt: time.UnixMilli(1700000000000).UTC(), Epoch: 3, Seq: 7}
	for _, c := range []struct {
		name   string
		values map[string]string
		bad    []string // fields
		err    error
	}{
		{"no kind", map[string]string{"x": "y"}, []string{"x"}, ErrMalformed},
		{"other kind", map[string]string{"kind": "party"}, []string{"kind"}, ErrMalformed},
		{"created without packet", map[string]string{"kind": "created"}, []string{"kind"}, ErrMalformed},
		{"created with another packet", map[string]string{"kind": "created", "packet": `{"id":"x"}`}, []string{"kind", "packet"}, ErrMalformed},
		{"created without times", map[string]string{"kind": "created", "packet": `{"id":"` + pk.ID + `"}`, "created_at": "1"},
			[]string{"created_at", "kind", "packet"}, ErrMalformed},
		{"recalled nothing", map[string]string{"kind": "recalled"}, []string{"kind"}, ErrMalformed},
		{"no claims", map[string]string{"kind": "claims"}, []string{"kind"}, ErrMalformed},
		{"claims of no packet", map[string]string{"kind": "claims", "x": packedPart(7, good.at, good.shares, []byte(good.users), nil, false)},
			[]string{"x"}, ErrMalformed},
		{"a part that is no MessagePack", map[string]string{"kind": "claims", pk.ID: "\xc1"}, whole, ErrMalformed},
		{"a part cut off", map[string]string{"kind": "claims", pk.ID: users("\x91\xa1u")[pk.ID][:30]}, whole, ErrMalformed},
		{"a byte too many", map[string]string{"kind": "claims", pk.ID: users("\x91\xa1u")[pk.ID] + "x"}, whole, ErrMalformed},
		{"users that are no list", users("u"), whole, ErrMalformed},
		{"users cut off", users("\x92\xa1u"), whole, ErrMalformed},
		{"more users than shares", users("\x92\xa1u\xa1v"), whole, ErrMalformed},
		{"more users than a call can have", users("\xdd\xff\xff\xff\xff"), whole, ErrMalformed},
		{"profiles that are no map", profiles("u"), whole, ErrMalformed},
		{"a profile that is no text", profiles("\x81\x01\x01"), whole, ErrMalformed},
		{"a profile without position", profiles("\x81\xa1x\xa1y"), whole, ErrMalformed},
		{"a share of nothing", claims(func(c *part) { c.shares, c.users = shares(5, 0), "\x92\xa1u\xa1v" }), second, packet.ErrBadClaim},
		{"a profile that is no JSON", claims(func(c *part) {
			c.shares, c.users, c.profiles = shares(5, 1), "\x92\xa1u\xa1v", "\x81\x02\xa1{"
		}), second, packet.ErrBadClaim},
		{"a bad part next to a good one", map[string]string{"kind": "claims", pk.ID: users(good.users)[pk.ID],
			other: "\xc1"}, []string{other}, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(values map[string]string) Batch {
				t.Helper()
				var flat []string
				for k, v := range values {
					flat = append(flat, k, v)
				}
				if err := p.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.keys.handoff(7), Values: flat}).Err(); err != nil {
					t.Fatal(err)
				}
				return readAll(t, h, 7)
			}
			check := func(b Batch, handOffs int) {
				t.Helper()
				if len(b.Undecodable) != 1 || len(b.HandOffs) != handOffs || b.Empty() {
					t.Fatalf("read %+v", b)
				}
				bad := b.Undecodable[0]
				var fields []string
				for k := range bad.Values {
					fields = append(fields, k)
				}
				slices.Sort(fields)
				if !slices.Equal(fields, c.bad) || bad.Lane != 7 || bad.EntryID != b.Last {
					t.Errorf("bad %+v, want the fields %v", bad, c.bad)
				}
				wantErr(t, bad.Err, c.err)
			}
			b := read(c.values)
			if errors.Is(c.err, ErrMalformed) && c.values[other] == "" {
				check(b, 0)
				return
			}
			check(b, 1) // other claims of the entry are decoded
			if !reflect.DeepEqual(b.HandOffs[0].Claims, []packet.Claim{goodClaim}) || b.HandOffs[0].EntryID != b.Undecodable[0].EntryID {
				t.Errorf("good part %+v", b.HandOffs[0])
			}
		})
	}
}

// TestHandOffNamesWinners: the hand-off of a call with all kinds of outcomes names the
// winners only, each with their profile.
func TestHandOffNamesWinners(t *testing.T) { onEach(t, testHandOffNamesWinners) }

func testHandOffNamesWinners(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	pk := newPacket(t, 3)
	stage(t, p, pk, "a", "b", "c", "d")
	if err := p.OpenPool(t.Context(), pk.ID, hundreds(3), nil); err != nil {
		t.Fatal(err)
	}
	lane := packet.Lane(pk.ID, p.Lanes())
	mustGrab(t, p, pk.ID, "a")
	readAll(t, h, lane)
	batch := batchOf(t.Context(), [2]string{pk.ID, "a"}, [2]string{pk.ID, "stranger"}, [2]string{pk.ID, "b"}, [2]string{pk.ID, "c"},
		[2]string{pk.ID, "d"})
	for i := range batch.batches[0].grabs {
		if g := &batch.batches[0].grabs[i]; g.user != "c" { // a user without a profile
			g.profile = packet.Profile{Recipient: "wallet of " + g.user}
			g.encoded = `{"recipient":"` + g.profile.Recipient + `"}`
		}
	}
	flush(p, lane, batch)
	got := results(t, batch)
	for i, want := range []packet.GrabResult{packet.GrabReplayed, packet.GrabNotEligible, packet.GrabWon, packet.GrabWon, packet.GrabSoldOut} {
		if got[i].Result != want {
			t.Errorf("grab %d: %v, want %v", i, got[i].Result, want)
		}
	}
	read := readAll(t, h, lane)
	last := epochOf(t, p, lane)
	if len(read.HandOffs) != 1 || len(read.Undecodable) != 0 ||
		!reflect.DeepEqual(read.HandOffs[0].Claims, []packet.Claim{wonAt(got[2].Claim, last.Number, last.Seq-1),
			wonAt(got[3].Claim, last.Number, last.Seq)}) ||
		!slices.Equal(read.HandOffs[0].SoldOut, []string{pk.ID}) {
		t.Errorf("handed over %+v\nanswered %+v", read, got)
	}
	if a := got[2].Claim.Account(); a != "wallet of b" {
		t.Errorf("b is paid at %q", a)
	}
}
