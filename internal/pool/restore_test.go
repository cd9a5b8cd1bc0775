package pool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hongbao/internal/packet"
)

// restored is a packet as read from MySQL, with claims for its first shares.
func restored(t testing.TB, pk packet.Packet, claims int) packet.RebuildInput {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond).UTC()
	pk.CreatedAt, pk.OpensAt, pk.ExpiresAt = now, now, now.Add(time.Hour)
	r := packet.RebuildInput{Record: packet.Record{Packet: pk, Stored: packet.StatusOpen}}
	r.ClaimedCount = claims
	return r
}

// sharesOf are shares of 100 fen, the first of which are claimed, in pages.
func sharesOf(r packet.RebuildInput, page int) func(index int) ([]packet.Share, error) {
	return func(index int) (out []packet.Share, _ error) {
		for i := index + 1; i < r.ShareCount && len(out) < page; i++ {
			s := packet.Share{Index: i, Amount: 100}
			if i < r.ClaimedCount {
				s.Claim = &packet.Claim{PacketID: r.ID, UserID: fmt.Sprintf("u%d", i), ShareIndex: i, Amount: 100, ClaimedAt: r.CreatedAt}
			}
			out = append(out, s)
		}
		return out, nil
	}
}

// TestR9_RestoreLargest: a packet of a million shares is restored, page by page.
func TestR9_RestoreLargest(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ctx := t.Context()
	pk := newPacket(t, packet.MaxShares)
	lane := packet.Lane(pk.ID, p.Lanes())
	r := restored(t, pk, 400_000)
	if err := errors.Join(p.CloseFence(ctx, lane, 9), p.Restore(ctx, 9, r, sharesOf(r, 10_000))); err != nil {
		t.Fatal(err)
	}
	keys := p.keys.of(pk.ID)
	if n := p.rdb.HLen(ctx, keys.winners).Val(); n != 400_000 {
		t.Errorf("%d winners", n)
	}
	if free := freeShares(t, p, pk.ID); len(free) != 600_000 || free[0] != "400000:100" || free[len(free)-1] != "999999:100" {
		t.Errorf("%d free shares", len(free))
	}
	if err := p.OpenFence(ctx, lane, 9, 0); err != nil {
		t.Fatal(err)
	}
}

// TestR9_RestoreRefused: nothing is written or removed unless the fence is closed in the
// caller's epoch: neither by an outdated rebuild, nor after the end.
func TestR9_RestoreRefused(t *testing.T) { onEach(t, testR9RestoreRefused) }

func testR9RestoreRefused(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	pk := newPacket(t, 10)
	lane := packet.Lane(pk.ID, p.Lanes())
	r := restored(t, pk, 3)
	all := func(epoch int64) map[string]error {
		_, clear := p.ClearLane(ctx, lane, epoch, nil, nil)
		return map[string]error{
			"clear": clear, "restore": p.Restore(ctx, epoch, r, sharesOf(r, 4)),
			"tombstone": p.RestoreTombstones(ctx, lane, epoch,
				[]packet.Tombstone{{ID: pk.ID, State: packet.PoolClosed, Until: time.Now().Add(time.Hour)}}),
		}
	}
	if err := p.CloseFence(ctx, lane, 5); err != nil {
		t.Fatal(err)
	}
	for what, err := range all(5) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	before := dump(t, p, pk.ID)
	if before.Hash["state"] != "open" || len(before.Shares) != 7 || len(before.Winners) != 3 || len(before.Order) != 3 {
		t.Errorf("made: %+v", before)
	}
	refused := func(when string, epoch int64) {
		t.Helper()
		for what, err := range all(epoch) {
			if !errors.Is(err, ErrFenced) {
				t.Errorf("%s, %s: %v", what, when, err)
			}
		}
		unchanged(t, p, pk.ID, before)
	}
	refused("in an earlier epoch", 4)
	refused("in a later one", 6)
	if err := p.OpenFence(ctx, lane, 5, 0); err != nil {
		t.Fatal(err)
	}
	refused("behind an open fence", 5)
}

// TestR9_RestoreTorn: inconsistent rows make no pool.
func TestR9_RestoreTorn(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ctx := t.Context()
	pk := newPacket(t, 10)
	lane := packet.Lane(pk.ID, p.Lanes())
	if err := p.CloseFence(ctx, lane, 5); err != nil {
		t.Fatal(err)
	}
	r := restored(t, pk, 3)
	late := r
	late.ClaimedCount = 4 // recorded after the packet row was read
	if err := p.Restore(ctx, 5, r, sharesOf(late, 4)); !errors.Is(err, ErrTorn) {
		t.Errorf("one claim more: %v", err)
	}
	if state := dump(t, p, pk.ID); len(state.Hash) > 0 {
		t.Errorf("a pool that cannot be right has its key: %v", state.Hash)
	}
	if err := p.Restore(ctx, 5, r, sharesOf(r, 4)); err != nil {
		t.Errorf("again: %v", err)
	}
	if state := dump(t, p, pk.ID); len(state.Shares) != 7 || len(state.Winners) != 3 {
		t.Errorf("again: %+v", state)
	}
}

// TestR9_RestoreKeepsTheShare: a share conflict does not replace a claim with a share.
func TestR9_RestoreKeepsTheShare(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ctx := t.Context()
	pk := newPacket(t, 10)
	lane := packet.Lane(pk.ID, p.Lanes())
	r := restored(t, pk, 3)
	r.ShareConflicts = []packet.Claim{
		{PacketID: pk.ID, UserID: "u1", ShareIndex: 7, Amount: 700, ClaimedAt: r.CreatedAt},
		{PacketID: pk.ID, UserID: "conflict", ShareIndex: 8, Amount: 800, ClaimedAt: r.CreatedAt},
	}
	if err := errors.Join(p.CloseFence(ctx, lane, 5), p.Restore(ctx, 5, r, sharesOf(r, 2))); err != nil {
		t.Fatal(err)
	}
	winners := dump(t, p, pk.ID).Winners
	for user, want := range map[string]int{"u0": 0, "u1": 1, "u2": 2, "conflict": 8} {
		if c, err := packet.DecodeClaim(pk.ID, user, winners[user]); err != nil || c.ShareIndex != want {
			t.Errorf("%s has %+v, %v, want share %d", user, c, err, want)
		}
	}
}

// TestR9_RejectedIsKept: the tombstone of a rejected packet replaces its pool at once, and
// stays when the pools of the lane are removed.
func TestR9_RejectedIsKept(t *testing.T) { onEach(t, testR9RejectedIsKept) }

func testR9RejectedIsKept(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	pk := newPacket(t, 10)
	lane := packet.Lane(pk.ID, p.Lanes())
	if _, err := p.Create(ctx, pk, []string{"guest"}, nil, time.Hour, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Reject(ctx, pk.ID, packet.Failure{Code: "payer_declined"}), p.CloseFence(ctx, lane, 5)); err != nil {
		t.Fatal(err)
	}
	before := dump(t, p, pk.ID)
	stones := []packet.Tombstone{{ID: pk.ID, App: pk.App, BodyHash: "h", State: packet.PoolRejected, Until: time.Now().Add(time.Hour)}}
	if err := p.ReplaceByTombstones(ctx, lane, 4, stones); !errors.Is(err, ErrFenced) {
		t.Errorf("in an earlier epoch: %v", err)
	}
	unchanged(t, p, pk.ID, before)
	for range 2 { // a takeover repeats it
		if err := p.ReplaceByTombstones(ctx, lane, 5, stones); err != nil {
			t.Fatal(err)
		}
		if _, err := p.ClearLane(ctx, lane, 5, map[string]bool{pk.ID: true}, nil); err != nil {
			t.Fatal(err)
		}
		after := dump(t, p, pk.ID)
		if after.Hash["retired"] != "1" || after.Hash["state"] != "rejected" || after.Hash["packet"] != "" || len(after.Eligible) > 0 ||
			after.Live {
			t.Errorf("%+v", after)
		}
		if life := p.rdb.PTTL(ctx, p.keys.of(pk.ID).packet).Val(); life <= 0 || life > time.Hour {
			t.Errorf("the tombstone goes in %v", life)
		}
	}
}
