package pool

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// userClaims returns up to limit claims of a user that Redis has, after a position.
func userClaims(ctx context.Context, p *Pool, app, user string, after packet.Cursor, limit int) (claims []packet.Claim, err error) {
	for len(claims) < limit {
		places, err := p.ClaimPlaces(ctx, app, user, after, limit)
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, at := range places {
			ids = append(ids, at.ID)
		}
		held, err := p.ClaimsOf(ctx, user, ids)
		if err != nil {
			return nil, err
		}
		for _, after = range places {
			if c, ok := held[after.ID]; ok {
				claims = append(claims, c)
			}
		}
		if len(places) < limit {
			break
		}
	}
	return claims[:min(limit, len(claims))], nil
}

// claimsOf reads all claims of a user page by page.
func claimsOf(t *testing.T, p *Pool, user string) []packet.Claim {
	t.Helper()
	claims, err := userClaims(t.Context(), p, "shop", user, packet.Cursor{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestClaimIndex: neither a grab nor a read indexes a claim, and yet the next read of the user's
// claims contains it, in every process, before and after its hand-off is removed.
func TestClaimIndex(t *testing.T) { onEach(t, testClaimIndex) }

func testClaimIndex(t *testing.T, on setup) {
	p := on.openFresh(t)
	const users = 2*indexChunk + 7 // more than one call indexes
	pk := newPacket(t, users+1)
	openPacket(t, p, pk)
	lane := packet.Lane(pk.ID, p.Lanes())
	var asks [][2]string
	for i := range users {
		asks = append(asks, [2]string{pk.ID, fmt.Sprint("u", i)})
	}
	for part := range slices.Chunk(asks, 100) {
		flush(p, lane, batchOf(t.Context(), part...))
	}
	// Unreadable entries do not stop the index.
	for _, damaged := range [][]string{{"x", "y"}, {"kind", "claims"}, {"kind", "claims", pk.ID, "\xc1"},
		{"kind", "claims", pk.ID, "\x01\x02\xc0\x04\x05\x06\xa1\x90"}, // no app
		{"kind", "claims", pk.ID, packedPart(1, "x", "", []byte("\x91\xa1u"), nil, false)},
		{"kind", "claims", pk.ID, packedPart(1, "1700000000000", "", []byte("\xc1"), nil, false)}} {
		if err := p.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.keys.handoff(lane), Values: damaged}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	mustGrab(t, p, pk.ID, "last")
	if n := len(dump(t, p, pk.ID).Claimed); n != 0 {
		t.Errorf("%d claims indexed by grabs", n)
	}
	check := func(p *Pool, indexed int) {
		t.Helper()
		for _, user := range []string{"last", "u0", fmt.Sprint("u", users-1)} {
			if claims := claimsOf(t, p, user); len(claims) != 1 || claims[0].PacketID != pk.ID {
				t.Errorf("%s: %+v", user, claims)
			}
		}
		if claims := claimsOf(t, p, "nobody"); len(claims) != 0 {
			t.Errorf("%+v", claims)
		}
		if n := len(dump(t, p, pk.ID).Claimed); n != indexed {
			t.Errorf("%d claims indexed of %d", n, indexed)
		}
	}
	check(p, 0)
	h := handoffs(t, p)
	if err := h.Ack(t.Context(), lane, readAll(t, h, lane).Last); err != nil {
		t.Fatal(err)
	}
	check(p, users+1)
	check(on.open(t), users+1)
}

// TestAckIndexes: a hand-off is indexed before its removal, and removal in another order
// loses no claim.
func TestAckIndexes(t *testing.T) { onEach(t, testAckIndexes) }

func testAckIndexes(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	pk := newPacket(t, 4)
	openPacket(t, p, pk)
	lane := packet.Lane(pk.ID, p.Lanes())
	for _, user := range []string{"a", "b", "c"} {
		mustGrab(t, p, pk.ID, user)
	}
	entries := ids(readAll(t, h, lane))
	for _, some := range [][]string{{entries[3]}, {entries[1], entries[0]}, {entries[2]}} {
		if err := h.Ack(t.Context(), lane, some...); err != nil {
			t.Fatal(err)
		}
	}
	mustGrab(t, p, pk.ID, "d")
	for _, user := range []string{"a", "b", "c", "d"} {
		if claims := claimsOf(t, p, user); len(claims) != 1 {
			t.Errorf("%s: %+v", user, claims)
		}
	}
}

func TestCompareEntryIDs(t *testing.T) {
	inOrder := []string{"", "0-1", "9-0", "9-1", "10-0", "10-2", "10-10"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := compareEntryIDs(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

// TestScriptsReloadInPipeline: after Redis lost its scripts, as by a restart, calls send
// them again, singly and in a pipeline of several lanes.
func TestScriptsReloadInPipeline(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	var calls []*call
	var batches []*batch
	for range 3 {
		pk := newPacket(t, 2)
		openPacket(t, p, pk)
		b := batchOf(t.Context(), [2]string{pk.ID, "u"})
		calls = append(calls, &call{lane: p.lanes[packet.Lane(pk.ID, p.Lanes())], batches: b.batches})
		batches = append(batches, b)
	}
	if err := p.rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.serveCalls(calls)
	for _, b := range batches {
		if got := results(t, b)[0]; got.Result != packet.GrabWon {
			t.Errorf("%+v", got)
		}
	}
	if err := p.rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if claims := claimsOf(t, p, "u"); len(claims) != 3 {
		t.Errorf("%+v", claims)
	}
}

// TestClaimsInOrderOfTime: when the clock of Redis steps back, later claims of a packet keep
// later times, which best luck and the lists use.
func TestClaimsInOrderOfTime(t *testing.T) { onEach(t, testClaimsInOrderOfTime) }

func testClaimsInOrderOfTime(t *testing.T, on setup) {
	p := on.open(t)
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	mustGrab(t, p, pk.ID, "first")
	ahead := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
	setField(t, p, pk.ID, "claimed", claimedField{1, 100, 0, 100, ahead.UnixMilli()}.String())
	if got := mustGrab(t, p, pk.ID, "second"); !got.Claim.ClaimedAt.Equal(ahead) {
		t.Errorf("claimed at %v, the claim before at %v", got.Claim.ClaimedAt, ahead)
	}
}

// TestSecondPipeline: a crowd that waits during a call is sent in a second pipeline; a few
// grabs are not.
func TestSecondPipeline(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr, Timeout: patience})
	pk := newPacket(t, 2*secondPipelineGrabs)
	openPacket(t, p, pk)
	f := p.lanes[packet.Lane(pk.ID, p.Lanes())].flusher
	now := func() (pipelines, queued int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.pipelines, f.queued
	}
	answers := make(chan error, 2*secondPipelineGrabs)
	press := func(users, from int) {
		for i := range users {
			go func() {
				got, err := p.Grab(context.WithoutCancel(t.Context()), pk.ID, fmt.Sprint("u", from+i), packet.Profile{})
				if err == nil && got.Result != packet.GrabWon {
					err = fmt.Errorf("u%d: %v", from+i, got.Result)
				}
				answers <- err
			}()
		}
	}
	server.Pause(t)
	press(1, 0)
	wait.Until(t, "the first pipeline runs", func() bool { pipelines, queued := now(); return pipelines == 1 && queued == 0 })
	press(secondPipelineGrabs-1, 1)
	wait.Until(t, "all wait", func() bool { _, queued := now(); return queued == secondPipelineGrabs-1 })
	if running, _ := now(); running != 1 {
		t.Errorf("%d pipelines for few", running)
	}
	press(1, secondPipelineGrabs)
	wait.Until(t, "the second pipeline runs too", func() bool { pipelines, queued := now(); return pipelines == maxPipelines && queued == 0 })
	press(secondPipelineGrabs-1, secondPipelineGrabs+1)
	wait.Until(t, "the rest waits", func() bool { _, queued := now(); return queued == secondPipelineGrabs-1 })
	server.Resume(t)
	for range 2 * secondPipelineGrabs {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	wait.Until(t, "no pipeline runs", func() bool { pipelines, queued := now(); return pipelines == 0 && queued == 0 })
}
