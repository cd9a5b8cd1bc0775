package pool

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/packet"
)

func TestView(t *testing.T) { onEach(t, testView) }

func testView(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	pk := newPacket(t, 2)
	_, err := p.View(ctx, pk.ID)
	wantErr(t, err, ErrNotFound)
	_, err = p.View(ctx, "no id")
	wantErr(t, err, ErrNotFound)

	check := func(want packet.Status, remaining, claimed int) {
		t.Helper()
		v, err := p.View(ctx, pk.ID)
		if err != nil {
			t.Fatal(err)
		}
		if v.Status() != want || v.RemainingCount != remaining || v.ClaimedCount != claimed || time.Since(v.Now).Abs() > time.Minute {
			t.Errorf("view %+v, want %s with %d remaining", v, want, remaining)
		}
	}
	stage(t, p, pk)
	check(packet.StatusFunding, 2, 0)
	if err := p.OpenPool(ctx, pk.ID, hundreds(2), nil); err != nil {
		t.Fatal(err)
	}
	check(packet.StatusOpen, 2, 0)
	now := time.Now()
	setField(t, p, pk.ID, "opens_at", now.Add(time.Hour).UnixMilli())
	check(packet.StatusScheduled, 2, 0)
	setField(t, p, pk.ID, "opens_at", now.Add(-time.Minute).UnixMilli())
	mustGrab(t, p, pk.ID, "u")
	check(packet.StatusOpen, 1, 1)
	mustGrab(t, p, pk.ID, "v")
	check(packet.StatusSoldOut, 0, 2)
	if _, err := p.ClosePool(ctx, pk.ID, packet.CloseSoldOut); err != nil {
		t.Fatal(err)
	}
	check(packet.StatusClosing, 0, 2)

	for field, value := range map[string]string{"packet": "{", "claimed": "0:x:0:0:0", "opens_at": "", "first": "x", "failure": "["} {
		bad := newPacket(t, 1)
		stage(t, p, bad)
		setField(t, p, bad.ID, field, value)
		_, err := p.View(ctx, bad.ID)
		wantErr(t, err, ErrMalformed)
	}
	other := newPacket(t, 1)
	stage(t, p, other)
	setField(t, p, other.ID, "packet", `{"id":"`+pk.ID+`"}`)
	_, err = p.View(ctx, other.ID)
	wantErr(t, err, ErrMalformed)
}

func TestClaims(t *testing.T) { onEach(t, testClaims) }

func testClaims(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	const users = 3 * scanCount
	pk := newPacket(t, users+1)
	if c, err := p.Claims(ctx, pk.ID); err != nil || len(c) != 0 {
		t.Errorf("claims of no packet: %v, %v", c, err)
	}
	_, err := p.ClaimedCount(ctx, pk.ID)
	wantErr(t, err, ErrNotFound)
	openPacket(t, p, pk)
	var asks [][2]string
	for i := range users {
		asks = append(asks, [2]string{pk.ID, strconv.Itoa(i)})
	}
	for chunk := range slices.Chunk(asks, maxBatch) {
		b := batchOf(ctx, chunk...)
		flush(p, packet.Lane(pk.ID, p.Lanes()), b)
		results(t, b)
	}
	claims, err := p.Claims(ctx, pk.ID)
	if err != nil || len(claims) != users {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	for i, c := range claims {
		if c.ShareIndex != i || c.UserID != strconv.Itoa(i) || c.PacketID != pk.ID {
			t.Fatalf("claim %d: %+v", i, c)
		}
	}
	if n, err := p.ClaimedCount(ctx, pk.ID); n != users || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	if n, err := p.WinnersCount(ctx, pk.ID); n != users || err != nil {
		t.Errorf("%d winners, %v", n, err)
	}
	if _, ok, err := p.Claim(ctx, pk.ID, "nobody"); ok || err != nil {
		t.Errorf("claim of nobody: %v, %v", ok, err)
	}
	if c, ok, err := p.Claim(ctx, pk.ID, "7"); !ok || err != nil || c.ShareIndex != 7 {
		t.Errorf("claim %+v, %v, %v", c, ok, err)
	}

	if err := p.rdb.HSet(ctx, p.keys.of(pk.ID).winners, "bad", "x").Err(); err != nil {
		t.Fatal(err)
	}
	_, _, err = p.Claim(ctx, pk.ID, "bad")
	wantErr(t, err, packet.ErrBadClaim)
	_, err = p.Claims(ctx, pk.ID)
	wantErr(t, err, packet.ErrBadClaim)
	_, err = p.Grab(ctx, pk.ID, "bad", packet.Profile{})
	wantErr(t, err, packet.ErrBadClaim)
}

func TestLive(t *testing.T) { onEach(t, testLive) }

func testLive(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	mates := laneMates(t, p, 300, 1)
	lane := packet.Lane(mates[0].ID, p.Lanes())
	var want []packet.LivePacket
	for _, pk := range mates {
		want = append(want, packet.LivePacket{ID: pk.ID, CreatedAt: stage(t, p, pk).View.Packet.CreatedAt})
	}
	got, err := p.LivePage(ctx, lane, time.Time{}, 1000)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d live, %v", len(got), err)
	}
	if !slices.IsSortedFunc(got, func(a, b packet.LivePacket) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		t.Error("not in order")
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%v is missing", w)
		}
	}
	if page, err := p.LivePage(ctx, lane, want[len(want)-1].CreatedAt.Add(time.Hour), 100); err != nil || len(page) != 0 {
		t.Errorf("after the last one %v, %v", page, err)
	}
	if page, err := p.LivePage(ctx, lane, got[len(got)-1].CreatedAt, 1); err != nil || len(page) != 1 ||
		!page[0].CreatedAt.Equal(got[len(got)-1].CreatedAt) {
		t.Errorf("from the last one %v, %v", page, err)
	}
	if other, err := p.LivePage(ctx, (lane+1)%p.Lanes(), time.Time{}, 100); err != nil || len(other) != 0 {
		t.Errorf("other lane %v, %v", other, err)
	}
	for _, bad := range []int{-1, p.Lanes()} {
		if _, err := p.LivePage(ctx, bad, time.Time{}, 100); err == nil {
			t.Errorf("lane %d: no error", bad)
		}
	}
	if list, err := p.Eligible(ctx, mates[0].ID); err != nil || len(list) != 0 {
		t.Errorf("eligible %v, %v", list, err)
	}
}
