package pool

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

func TestClaimsPage(t *testing.T) { onEach(t, testClaimsPage) }

func testClaimsPage(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	pk := newPacket(t, 7)
	if _, _, err := p.ClaimsPage(ctx, pk.ID, -1, 3); err == nil {
		t.Error("no packet, no error")
	} else {
		wantErr(t, err, ErrGone, ErrNotFound)
	}
	stage(t, p, pk)
	if claims, made, err := p.ClaimsPage(ctx, pk.ID, -1, 3); err != nil || len(claims) != 0 || made != 0 {
		t.Errorf("staged: %v, %d, %v", claims, made, err)
	}
	if err := p.OpenPool(ctx, pk.ID, hundreds(7), nil); err != nil {
		t.Fatal(err)
	}
	var want []packet.Claim
	for _, user := range []string{"a", "A", "a ", "é", "b"} {
		want = append(want, mustGrab(t, p, pk.ID, user).Claim)
	}
	slices.Reverse(want)
	before := dump(t, p, pk.ID)
	for _, limit := range []int{1, 2, 5, 200} {
		var got []packet.Claim
		for upTo := -1; ; {
			claims, made, err := p.ClaimsPage(ctx, pk.ID, upTo, limit)
			if err != nil || len(claims) > limit {
				t.Fatalf("%d claims of %d, %v", len(claims), limit, err)
			}
			if len(claims) == 0 {
				break
			}
			got, upTo = append(got, claims...), made-len(claims)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("in pages of %d:\n got %+v\nwant %+v", limit, got, want)
		}
	}
	if claims, made, err := p.ClaimsPage(ctx, pk.ID, 1000, 1); err != nil || made != 5 || len(claims) != 1 || claims[0].UserID != "b" {
		t.Errorf("from beyond the newest: %+v, %d, %v", claims, made, err)
	}
	unchanged(t, p, pk.ID, before)
	retireNow(t, p, pk.ID)
	_, _, err := p.ClaimsPage(ctx, pk.ID, -1, 3)
	wantErr(t, err, ErrGone)
}

func retireNow(t *testing.T, p *Pool, id string) {
	t.Helper()
	if _, err := p.ClosePool(t.Context(), id, packet.CloseRecalled); err != nil {
		t.Fatal(err)
	}
	if err := p.Retire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestUserClaims(t *testing.T) { onEach(t, testUserClaims) }

func testUserClaims(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	all := map[string][]packet.Claim{}
	for i := range 40 {
		pk := newPacket(t, 4)
		if i%8 == 7 {
			pk.App = "another"
		}
		openPacket(t, p, pk)
		for _, user := range []string{"a", "A", "a "} {
			all[pk.App+" "+user] = append(all[pk.App+" "+user], mustGrab(t, p, pk.ID, user).Claim)
		}
	}
	read := func(app, user string, limit int) (got []packet.Claim) {
		t.Helper()
		for after := (packet.Cursor{}); ; {
			claims, err := userClaims(ctx, p, app, user, after, limit)
			if err != nil || len(claims) > limit {
				t.Fatalf("%d claims of %d, %v", len(claims), limit, err)
			}
			if len(claims) == 0 {
				return got
			}
			got = append(got, claims...)
			last := claims[len(claims)-1]
			after = packet.Cursor{At: last.ClaimedAt, ID: last.PacketID}
		}
	}
	for _, app := range []string{"shop", "another"} {
		for _, user := range []string{"a", "A", "a "} {
			want := all[app+" "+user]
			slices.SortFunc(want, func(a, b packet.Claim) int {
				return cmp.Or(b.ClaimedAt.Compare(a.ClaimedAt), cmp.Compare(b.PacketID, a.PacketID))
			})
			for _, limit := range []int{1, 3, 100} {
				if got := read(app, user, limit); !reflect.DeepEqual(got, want) {
					t.Errorf("%s %q by %d:\n got %+v\nwant %+v", app, user, limit, got, want)
				}
			}
		}
	}
	for _, nobody := range [][2]string{{"shop", "b"}, {"shop", "aa"}, {"sho", "a"}, {"shop", ""}, {"", ""}} {
		if got := read(nobody[0], nobody[1], 10); len(got) != 0 {
			t.Errorf("%q: %+v", nobody, got)
		}
	}
	first := all["shop a"][0]
	retireNow(t, p, first.PacketID)
	if got := read("shop", "a", 10); !reflect.DeepEqual(got, all["shop a"][1:]) {
		t.Errorf("after one was retired: %d claims", len(got))
	}
}

// TestUserClaimsOfOneMoment: pages lose no claim of one user within one millisecond.
func TestUserClaimsOfOneMoment(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ctx := t.Context()
	var asks [][2]string
	for _, pk := range laneMates(t, p, 9, 1) {
		openPacket(t, p, pk)
		asks = append(asks, [2]string{pk.ID, "u"})
	}
	batch := batchOf(ctx, asks...)
	flush(p, packet.Lane(asks[0][0], p.Lanes()), batch)
	results(t, batch)
	seen := map[string]bool{}
	for after := (packet.Cursor{}); ; {
		claims, err := userClaims(ctx, p, "shop", "u", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(claims) == 0 {
			break
		}
		for _, c := range claims {
			if seen[c.PacketID] {
				t.Errorf("%s twice", c.PacketID)
			}
			seen[c.PacketID], after = true, packet.Cursor{At: c.ClaimedAt, ID: c.PacketID}
		}
	}
	if len(seen) != len(asks) {
		t.Errorf("%d of %d", len(seen), len(asks))
	}
}

func TestStaged(t *testing.T) { onEach(t, testStaged) }

func testStaged(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	var all []packet.Cursor
	for i := range 12 {
		pk := newPacket(t, 1)
		pk.SenderID = []string{"s", "S", "s "}[i%3]
		v := stage(t, p, pk).View
		all = append(all, packet.Cursor{At: v.Packet.CreatedAt, ID: pk.ID})
		if got := dump(t, p, pk.ID).Staged; len(got) != 2 ||
			got[1] != fmt.Sprintf("shop\x00%s\x00%015d\x00%s", pk.SenderID, v.Packet.CreatedAt.UnixMilli(), pk.ID) {
			t.Errorf("staged at %q", got)
		}
	}
	other := newPacket(t, 1)
	other.App = "another"
	stage(t, p, other)
	read := func(sender string, limit int) (got []packet.Cursor) {
		t.Helper()
		for after := (packet.Cursor{}); ; after = got[len(got)-1] {
			some, err := p.Staged(ctx, []string{"shop"}, sender, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(some) == 0 {
				return got
			}
			got = append(got, some...)
		}
	}
	want := slices.SortedFunc(slices.Values(all), packet.Cursor.Compare)
	for _, limit := range []int{1, 5, 100} {
		if got := read("", limit); !slices.Equal(got, want) {
			t.Errorf("by %d: %v, want %v", limit, got, want)
		}
	}
	if got := read("S", 1); len(got) != 4 || !slices.Contains(got, all[1]) {
		t.Errorf("of one sender: %v", got)
	}
	// A packet that leaves funding is in MySQL, and leaves the list.
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(p.OpenPool(ctx, all[0].ID, hundreds(1), nil))
	must(p.Reject(ctx, all[1].ID, packet.Failure{Code: "declined"}))
	retireNow(t, p, all[2].ID)
	for _, at := range all[:3] {
		if s := dump(t, p, at.ID); len(s.Staged) != 0 {
			t.Errorf("%s is still staged: %q", s.Hash["state"], s.Staged)
		}
	}
	if got := read("", 100); len(got) != len(all)-3 {
		t.Errorf("%d staged", len(got))
	}
}

func TestViews(t *testing.T) { onEach(t, testViews) }

func testViews(t *testing.T, on setup) {
	p := on.openFresh(t)
	var ids []string
	for i := range 5 {
		pk := newPacket(t, 2)
		if ids = append(ids, pk.ID); i > 0 {
			openPacket(t, p, pk)
		}
	}
	mustGrab(t, p, ids[1], "u")
	retireNow(t, p, ids[2])
	if err := p.rdb.ScriptFlush(t.Context()).Err(); err != nil { // as after a restart
		t.Fatal(err)
	}
	for range 2 {
		views, err := p.Views(t.Context(), ids)
		if err != nil || len(views) != 4 {
			t.Fatalf("%d views, %v", len(views), err)
		}
		for _, id := range ids[1:] {
			want, err := p.View(t.Context(), id)
			got := views[id]
			got.Now, want.Now = time.Time{}, time.Time{}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("view\n got %+v\nwant %+v, %v", got, want, err)
			}
		}
	}
	setField(t, p, ids[1], "claimed", "0:0:x:0:0")
	_, err := p.Views(t.Context(), ids)
	wantErr(t, err, ErrMalformed)
}

// TestBestShare: the best share in Redis is that of packet.Luckier, in batches and one by
// one, also for amounts that Lua cannot print.
func TestBestShare(t *testing.T) {
	t.Parallel()
	p := onSingle(t).open(t)
	ctx := t.Context()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		shares := make([]money.Fen, 12)
		for i := range shares {
			shares[i] = money.Fen(1 + r.Int64N(3)*int64(money.Max/30) + r.Int64N(2))
		}
		pk := newPacket(t, len(shares))
		stage(t, p, pk)
		if err := p.OpenPool(ctx, pk.ID, shares, nil); err != nil {
			t.Fatal(err)
		}
		var best *packet.Claim
		sum := money.Fen(0)
		for from := 0; from < len(shares); {
			n := min(1+r.IntN(4), len(shares)-from)
			var asks [][2]string
			for i := range n {
				asks = append(asks, [2]string{pk.ID, fmt.Sprint("u", from+i)})
			}
			batch := batchOf(ctx, asks...)
			flush(p, packet.Lane(pk.ID, p.Lanes()), batch)
			for _, g := range results(t, batch) {
				if sum += g.Claim.Amount; best == nil || packet.Luckier(g.Claim, *best) {
					best = &g.Claim
				}
			}
			from += n
			v, err := p.View(ctx, pk.ID)
			if err != nil || v.BestShare == nil || *v.BestShare != best.ShareIndex || v.ClaimedAmount != sum {
				t.Fatalf("of %v after %d: %+v, %v; want share %d, %d fen", shares, from, v, err, best.ShareIndex, sum)
			}
			if _, final := v.BestLuck(); final != (from == len(shares)) {
				t.Errorf("final %v after %d claims", final, from)
			}
		}
	}
}

// TestR7_RetireInParts: a packet with more claims than one call removes is retired in
// several calls, and is read from MySQL from the first call on.
func TestR7_RetireInParts(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ctx := t.Context()
	const users = 2*retireChunk + 5
	pk := newPacket(t, users)
	openPacket(t, p, pk)
	var asks [][2]string
	for i := range users {
		asks = append(asks, [2]string{pk.ID, fmt.Sprint("u", i)})
	}
	for part := range slices.Chunk(asks, retireChunk/4) {
		flush(p, packet.Lane(pk.ID, p.Lanes()), batchOf(ctx, part...))
	}
	other := laneMateOf(t, p, pk)
	openPacket(t, p, other)
	mustGrab(t, p, other.ID, "u1")
	if _, err := p.ClosePool(ctx, pk.ID, packet.CloseSoldOut); err != nil {
		t.Fatal(err)
	}
	if err := p.indexClaims(ctx, packet.Lane(pk.ID, p.Lanes()), ""); err != nil {
		t.Fatal(err)
	}
	k := p.keys.of(pk.ID)
	reply, err := runScript(t, p, retireScript, pk.ID, []string{k.packet, k.shares, k.winners, k.eligible, k.live, k.order, k.claimed,
		k.staged},
		pk.ID, tombstoneLife.Milliseconds(), "0", retireChunk).Slice()
	if err != nil || reply[0] != "more" {
		t.Fatalf("%v, %v", reply, err)
	}
	s := dump(t, p, pk.ID)
	if v, err := p.View(ctx, pk.ID); err != nil || !v.Retired || !s.Live || len(s.Claimed) < retireChunk/2 ||
		len(s.Claimed) > users-retireChunk/2 { // a scan is not exact
		t.Errorf("interrupted: retired %v, live %v, %d by user, %v", v.Retired, s.Live, len(s.Claimed), err)
	}
	if err := p.Retire(ctx, pk.ID); err != nil {
		t.Fatal(err)
	}
	if s := dump(t, p, pk.ID); s.Live || len(s.Order)+len(s.Claimed)+len(s.Winners) != 0 {
		t.Errorf("after it %d in order, %d by user, %d winners", len(s.Order), len(s.Claimed), len(s.Winners))
	}
	if s := dump(t, p, other.ID); len(s.Claimed) != 1 {
		t.Error("another packet lost its claims")
	}
}

// laneMateOf returns a packet of the same lane.
func laneMateOf(t *testing.T, p *Pool, pk packet.Packet) packet.Packet {
	t.Helper()
	for {
		if mate := newPacket(t, 2); packet.Lane(mate.ID, p.Lanes()) == packet.Lane(pk.ID, p.Lanes()) {
			return mate
		}
	}
}

// TestClaimsPageOfParts: pages do not depend on the calls that made the claims, wherever a
// page begins and ends.
func TestClaimsPageOfParts(t *testing.T) { onEach(t, testClaimsPageOfParts) }

func testClaimsPageOfParts(t *testing.T, on setup) {
	p := on.open(t)
	calls := []int{1, 1, 5, 2, 1, 40, 1, 3, 17, 1}
	total := 0
	for _, n := range calls {
		total += n
	}
	pk := newPacket(t, total+1)
	openPacket(t, p, pk)
	var want []string
	for _, n := range calls {
		asks := make([][2]string, n)
		for i := range asks {
			asks[i] = [2]string{pk.ID, fmt.Sprint("u", len(want))}
			want = append(want, asks[i][1])
		}
		flush(p, packet.Lane(pk.ID, p.Lanes()), batchOf(t.Context(), asks...))
	}
	for upTo := -1; upTo <= total+1; upTo++ {
		for _, limit := range []int{1, 2, 3, 7, 45, total, 200} {
			newest := min(upTo, total)
			if upTo < 0 {
				newest = total
			}
			var page []string
			for i := newest - 1; i >= 0 && len(page) < limit; i-- {
				page = append(page, want[i])
			}
			claims, made, err := p.ClaimsPage(t.Context(), pk.ID, upTo, limit)
			var got []string
			for _, c := range claims {
				got = append(got, c.UserID)
			}
			if err != nil || made != newest || !slices.Equal(got, page) {
				t.Fatalf("%d up to %d: %d, %v\n got %v\nwant %v", limit, upTo, made, err, got, page)
			}
		}
	}
}
