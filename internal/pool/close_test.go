package pool

import (
	"reflect"
	"testing"
	"time"

	"hongbao/internal/packet"
)

func TestRecall(t *testing.T) { onEach(t, testRecall) }

func testRecall(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()

	t.Run("open", func(t *testing.T) {
		pk := newPacket(t, 2)
		openPacket(t, p, pk)
		mustGrab(t, p, pk.ID, "u")
		before := dump(t, p, pk.ID)
		v, err := p.Recall(ctx, pk.ID)
		if err != nil || v.Status() != packet.StatusClosing || v.Reason != packet.CloseRecalled || v.RemainingCount != 1 {
			t.Errorf("view %+v, %v", v, err)
		}
		after := changed(t, p, pk.ID, before, map[string]string{"state": "closing", "reason": "recalled"})
		want := []string{"kind=recalled", "packet_id=" + pk.ID}
		if n := len(after.HandOffs); n != len(before.HandOffs)+1 || !reflect.DeepEqual(after.HandOffs[n-1], want) {
			t.Errorf("hand-offs %v", after.HandOffs)
		}
		if _, err := p.Recall(ctx, pk.ID); err != nil {
			t.Errorf("repeat: %v", err)
		}
		unchanged(t, p, pk.ID, after)
		if g := mustGrab(t, p, pk.ID, "v"); g.Result != packet.GrabExpired {
			t.Errorf("grab after recall: %v", g.Result)
		}
	})

	t.Run("scheduled", func(t *testing.T) {
		pk := newPacket(t, 1)
		openPacket(t, p, pk)
		setField(t, p, pk.ID, "opens_at", time.Now().Add(time.Hour).UnixMilli())
		if v, err := p.Recall(ctx, pk.ID); err != nil || v.Status() != packet.StatusClosing {
			t.Errorf("view %+v, %v", v, err)
		}
	})

	for _, c := range []struct {
		name string
		make func(pk packet.Packet)
		err  error
		want packet.Status
	}{
		{"funding", func(pk packet.Packet) { stage(t, p, pk) }, ErrNotOpenYet, packet.StatusFunding},
		{"opening", func(pk packet.Packet) { stage(t, p, pk); setField(t, p, pk.ID, "state", "opening") }, ErrNotOpenYet, packet.StatusFunding},
		{"sold out", func(pk packet.Packet) { openPacket(t, p, pk); mustGrab(t, p, pk.ID, "u") }, nil, packet.StatusSoldOut},
		{"rejected", func(pk packet.Packet) { stage(t, p, pk); setField(t, p, pk.ID, "state", "rejected") }, nil, packet.StatusRejected},
		{"retired", func(pk packet.Packet) { retired(t, p, pk) }, nil, packet.StatusClosed},
		{"missing", func(packet.Packet) {}, ErrNotFound, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pk := newPacket(t, 1)
			c.make(pk)
			before := dump(t, p, pk.ID)
			v, err := p.Recall(ctx, pk.ID)
			if c.err != nil {
				wantErr(t, err, c.err)
			} else if err != nil {
				t.Error(err)
			}
			if c.want != "" && v.Status() != c.want {
				t.Errorf("status %s, want %s", v.Status(), c.want)
			}
			unchanged(t, p, pk.ID, before)
		})
	}
}

func TestClosePool(t *testing.T) { onEach(t, testClosePool) }

func testClosePool(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	stagedOnly := func(pk packet.Packet) { stage(t, p, pk) }
	oneOfTwo := func(pk packet.Packet) { openPacket(t, p, pk); mustGrab(t, p, pk.ID, "u") }
	all := func(pk packet.Packet) { oneOfTwo(pk); mustGrab(t, p, pk.ID, "v") }
	late := func(make func(packet.Packet)) func(packet.Packet) {
		return func(pk packet.Packet) { make(pk); expire(t, p, pk.ID) }
	}
	half := packet.PoolCloseResult{ClaimedCount: 1, ClaimedAmount: 100}
	full := packet.PoolCloseResult{ClaimedCount: 2, ClaimedAmount: 200}
	for _, c := range []struct {
		name   string
		make   func(packet.Packet)
		reason packet.CloseReason
		wait   bool
		want   packet.PoolCloseResult
		first  packet.CloseReason
	}{
		{"open, expired", late(oneOfTwo), packet.CloseExpired, false, half, packet.CloseExpired},
		{"open, not expired", oneOfTwo, packet.CloseExpired, true, half, ""},
		{"sold out before it expires", all, packet.CloseExpired, false, full, packet.CloseExpired},
		{"sold out", all, packet.CloseSoldOut, false, full, packet.CloseSoldOut},
		{"not sold out", oneOfTwo, packet.CloseSoldOut, true, half, ""},
		{"not sold out, but expired", late(oneOfTwo), packet.CloseSoldOut, false, half, packet.CloseExpired},
		{"recalled", oneOfTwo, packet.CloseRecalled, false, half, packet.CloseRecalled},
		{"unopened", stagedOnly, packet.CloseUnopened, false, packet.PoolCloseResult{}, packet.CloseUnopened},
		{"funding, expired", late(stagedOnly), packet.CloseExpired, false, packet.PoolCloseResult{}, packet.CloseUnopened},
		{"funding, not expired", stagedOnly, packet.CloseExpired, false, packet.PoolCloseResult{}, packet.CloseUnopened},
		{"open, to be closed unopened", oneOfTwo, packet.CloseUnopened, true, half, ""},
		{"open, to be closed unopened, expired", late(oneOfTwo), packet.CloseUnopened, false, half, packet.CloseExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			pk := newPacket(t, 2)
			c.make(pk)
			before := dump(t, p, pk.ID)
			got, err := p.ClosePool(ctx, pk.ID, c.reason)
			if err != nil {
				t.Fatal(err)
			}
			if (got.NotYet > 0) != c.wait || got.NotYet > time.Hour {
				t.Errorf("not yet: %v", got.NotYet)
			}
			got.NotYet = 0
			want := c.want
			want.Reason = c.first
			if got != want {
				t.Errorf("remainder %+v, want %+v", got, want)
			}
			if c.wait {
				unchanged(t, p, pk.ID, before)
				return
			}
			after := changed(t, p, pk.ID, before, map[string]string{"state": "closing", "reason": string(c.first)})
			for _, reason := range []packet.CloseReason{packet.CloseRecalled, packet.CloseExpired} {
				if again, err := p.ClosePool(ctx, pk.ID, reason); err != nil || again != got {
					t.Errorf("repeat %+v, %v; first %+v", again, err, got)
				}
			}
			unchanged(t, p, pk.ID, after)
		})
	}

	t.Run("while loading", func(t *testing.T) {
		pk := newPacket(t, 2)
		stage(t, p, pk)
		k := p.keys.of(pk.ID)
		if err := runScript(t, p, openScript, pk.ID, []string{k.packet, k.shares, k.staged}, 0, packedHundreds(1)).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.ClosePool(ctx, pk.ID, packet.CloseUnopened); err != nil {
			t.Fatal(err)
		}
		if s := dump(t, p, pk.ID); s.Hash["state"] != "closing" || len(s.Shares) != 0 {
			t.Errorf("state %+v", s)
		}
		before := dump(t, p, pk.ID)
		if err := p.OpenPool(ctx, pk.ID, hundreds(2), nil); err != nil {
			t.Errorf("a stale loader: %v", err)
		}
		unchanged(t, p, pk.ID, before)
		if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabExpired {
			t.Errorf("grab: %v", g.Result)
		}
	})
	t.Run("gone", func(t *testing.T) {
		pk := newPacket(t, 1)
		retired(t, p, pk)
		before := dump(t, p, pk.ID)
		for _, id := range []string{pk.ID, newPacket(t, 1).ID, "no id"} {
			if r, err := p.ClosePool(ctx, id, packet.CloseExpired); err != nil || r != (packet.PoolCloseResult{Gone: true}) {
				t.Errorf("%s: %+v, %v", id, r, err)
			}
		}
		unchanged(t, p, pk.ID, before)
	})
	t.Run("rejected", func(t *testing.T) {
		pk := newPacket(t, 1)
		stage(t, p, pk)
		if err := p.Reject(ctx, pk.ID, packet.Failure{Code: "declined"}); err != nil {
			t.Fatal(err)
		}
		before := dump(t, p, pk.ID)
		_, err := p.ClosePool(ctx, pk.ID, packet.CloseUnopened)
		wantErr(t, err, ErrState)
		unchanged(t, p, pk.ID, before)
	})
}

func TestR7_Retire(t *testing.T) { onEach(t, testR7_Retire) }

func testR7_Retire(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()

	t.Run("closing", func(t *testing.T) {
		pk := newPacket(t, 2)
		openPacket(t, p, pk, "u", "v")
		mustGrab(t, p, pk.ID, "u")
		if _, err := p.StoreFirstAnswer(ctx, pk.ID, packet.FirstAnswer{HTTPStatus: 201, RequestID: "r"}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Recall(ctx, pk.ID); err != nil {
			t.Fatal(err)
		}
		handOffs := dump(t, p, pk.ID).HandOffs
		if err := p.Retire(ctx, pk.ID); err != nil {
			t.Fatal(err)
		}
		after := dump(t, p, pk.ID)
		want := state{
			Hash: map[string]string{"retired": "1", "state": "closed", "body_hash": pk.BodyHash, "app": "shop",
				"first": `{"HTTPStatus":201,"RequestID":"r"}`},
			Shares: []string{}, Winners: map[string]string{}, Eligible: []string{}, Order: []string{}, HandOffs: handOffs,
		}
		if !reflect.DeepEqual(after, want) {
			t.Errorf("after  %+v\nwant %+v", after, want)
		}
		life, err := p.rdb.PTTL(ctx, p.keys.of(pk.ID).packet).Result()
		if err != nil || life > tombstoneLife || life < tombstoneLife-time.Minute {
			t.Errorf("tombstone expires in %v, %v", life, err)
		}
		if err := p.Retire(ctx, pk.ID); err != nil {
			t.Errorf("repeat: %v", err)
		}
		unchanged(t, p, pk.ID, after)
		v, err := p.View(ctx, pk.ID)
		if err != nil || !v.Retired || v.Status() != packet.StatusClosed || v.Packet.BodyHash != pk.BodyHash || v.Packet.ID != pk.ID {
			t.Errorf("view %+v, %v", v, err)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		pk := newPacket(t, 1)
		stage(t, p, pk)
		if err := p.Reject(ctx, pk.ID, packet.Failure{Code: "declined"}); err != nil {
			t.Fatal(err)
		}
		if err := p.Retire(ctx, pk.ID); err != nil {
			t.Fatal(err)
		}
		if v, err := p.View(ctx, pk.ID); err != nil || !v.Retired || v.Status() != packet.StatusRejected || v.First != nil {
			t.Errorf("view %+v, %v", v, err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		pk := newPacket(t, 1)
		before := dump(t, p, pk.ID)
		if err := p.Retire(ctx, pk.ID); err != nil {
			t.Error(err)
		}
		unchanged(t, p, pk.ID, before)
	})
	for _, s := range []packet.PoolState{packet.PoolFunding, packet.PoolOpening} {
		t.Run("staged again: "+string(s), func(t *testing.T) {
			pk := newPacket(t, 2)
			stage(t, p, pk, "u", "v")
			if s == packet.PoolOpening {
				setField(t, p, pk.ID, "state", string(s))
			}
			handOffs := dump(t, p, pk.ID).HandOffs
			if err := p.Retire(ctx, pk.ID); err != nil {
				t.Fatal(err)
			}
			want := state{
				Hash:   map[string]string{"retired": "1", "state": "closed", "body_hash": pk.BodyHash, "app": "shop"},
				Shares: []string{}, Winners: map[string]string{}, Eligible: []string{}, Order: []string{}, HandOffs: handOffs,
			}
			if after := dump(t, p, pk.ID); !reflect.DeepEqual(after, want) {
				t.Errorf("after  %+v\nwant %+v", after, want)
			}
			if err := p.OpenPool(ctx, pk.ID, hundreds(2), nil); err != nil {
				t.Errorf("a stale opening: %v", err)
			}
			if got, err := p.Grab(ctx, pk.ID, "u", packet.Profile{}); err != nil || got.Result != packet.GrabRetired {
				t.Errorf("grab %+v, %v", got, err)
			}
		})
	}
	t.Run("ErrState open", func(t *testing.T) {
		pk := newPacket(t, 1)
		openPacket(t, p, pk)
		before := dump(t, p, pk.ID)
		wantErr(t, p.Retire(ctx, pk.ID), ErrState)
		unchanged(t, p, pk.ID, before)
	})
}
