package pool

import (
	"fmt"
	"slices"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

func TestR7_OpenPool(t *testing.T) { onEach(t, testR7_OpenPool) }

func testR7_OpenPool(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()

	t.Run("in chunks", func(t *testing.T) {
		pk := newPacket(t, 2*openChunk+1)
		stage(t, p, pk)
		var progress []int
		shares := hundreds(pk.ShareCount)
		shares[0], shares[1] = 99, 101
		if err := p.OpenPool(ctx, pk.ID, shares, func(n int) { progress = append(progress, n) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(progress, []int{openChunk, 2 * openChunk}) {
			t.Errorf("progress %v", progress)
		}
		s := dump(t, p, pk.ID)
		if s.Hash["state"] != "open" || len(s.Shares) != pk.ShareCount || s.Shares[0] != "0:99" || s.Shares[1] != "1:101" ||
			s.Shares[2*openChunk] != fmt.Sprintf("%d:100", 2*openChunk) {
			t.Errorf("state %s, %d shares, first %q", s.Hash["state"], len(s.Shares), s.Shares[:2])
		}
	})

	t.Run("goes on where the shares end", func(t *testing.T) {
		pk := newPacket(t, 4)
		stage(t, p, pk)
		if err := runScript(t, p, openScript, pk.ID, []string{p.keys.of(pk.ID).packet, p.keys.of(pk.ID).shares, p.keys.of(pk.ID).staged}, 0,
			packedHundreds(3)).Err(); err != nil {
			t.Fatal(err)
		}
		if s := dump(t, p, pk.ID); s.Hash["state"] != "opening" {
			t.Fatalf("state %s", s.Hash["state"])
		}
		if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabNotOpenYet {
			t.Errorf("grab while opening: %v", g.Result)
		}
		if err := p.OpenPool(ctx, pk.ID, hundreds(4), nil); err != nil {
			t.Fatal(err)
		}
		if s := dump(t, p, pk.ID); s.Hash["state"] != "open" ||
			!slices.Equal(s.Shares, []string{"0:100", "1:100", "2:100", "3:100"}) {
			t.Errorf("after %+v", s)
		}
	})

	t.Run("several loaders", func(t *testing.T) {
		pk := newPacket(t, 3*openChunk)
		stage(t, p, pk)
		errs := make(chan error)
		for range 4 {
			go func() { errs <- p.OpenPool(ctx, pk.ID, hundreds(pk.ShareCount), nil) }()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		s := dump(t, p, pk.ID)
		for i, share := range s.Shares {
			if share != fmt.Sprintf("%d:100", i) {
				t.Fatalf("share %d is %q", i, share)
			}
		}
		if len(s.Shares) != pk.ShareCount {
			t.Errorf("%d shares", len(s.Shares))
		}
	})

	t.Run("later states answer done", func(t *testing.T) {
		pk := newPacket(t, 2)
		openPacket(t, p, pk)
		mustGrab(t, p, pk.ID, "u")
		steps := []func() error{
			func() error { return nil },
			func() error { _, err := p.ClosePool(ctx, pk.ID, packet.CloseRecalled); return err },
			func() error { return p.Retire(ctx, pk.ID) },
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			before := dump(t, p, pk.ID)
			if err := p.OpenPool(ctx, pk.ID, hundreds(2), nil); err != nil {
				t.Errorf("step %d: %v", i, err)
			}
			unchanged(t, p, pk.ID, before)
		}
	})

	t.Run("ErrGone", func(t *testing.T) {
		pk := newPacket(t, 1)
		before := dump(t, p, pk.ID)
		wantErr(t, p.OpenPool(ctx, pk.ID, hundreds(1), nil), ErrGone)
		wantErr(t, p.OpenPool(ctx, "no id", hundreds(1), nil), ErrGone)
		unchanged(t, p, pk.ID, before)
	})

	for name, shares := range map[string][]money.Fen{"too many": hundreds(4), "too few": hundreds(2), "none": nil} {
		t.Run(name, func(t *testing.T) {
			pk := newPacket(t, 3)
			stage(t, p, pk)
			wantErr(t, p.OpenPool(ctx, pk.ID, shares, nil), ErrMalformed)
			if s := dump(t, p, pk.ID); s.Hash["state"] == "open" {
				t.Error("opened")
			}
		})
	}
	for name, bad := range map[string]money.Fen{"zero": 0, "negative": -1, "above 2^53-1": money.Max + 1} {
		t.Run(name, func(t *testing.T) {
			pk := newPacket(t, 1)
			stage(t, p, pk)
			before := dump(t, p, pk.ID)
			if err := p.OpenPool(ctx, pk.ID, []money.Fen{bad}, nil); err == nil {
				t.Error("no error")
			}
			unchanged(t, p, pk.ID, before)
		})
	}
}

func TestReject(t *testing.T) { onEach(t, testReject) }

func testReject(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	failure := packet.Failure{Code: "declined", Message: "no money"}

	t.Run("OK and repeated", func(t *testing.T) {
		pk := newPacket(t, 1)
		stage(t, p, pk)
		before := dump(t, p, pk.ID)
		if err := p.Reject(ctx, pk.ID, failure); err != nil {
			t.Fatal(err)
		}
		after := changed(t, p, pk.ID, before, map[string]string{"state": "rejected", "failure": `{"code":"declined","message":"no money"}`})
		if err := p.Reject(ctx, pk.ID, packet.Failure{Code: "other"}); err != nil {
			t.Error(err)
		}
		unchanged(t, p, pk.ID, after)
		v, err := p.View(ctx, pk.ID)
		if err != nil || v.Status() != packet.StatusRejected || v.Failure == nil || *v.Failure != failure {
			t.Errorf("view %+v, %v", v, err)
		}
		if err := p.Retire(ctx, pk.ID); err != nil {
			t.Fatal(err)
		}
		if err := p.Reject(ctx, pk.ID, failure); err != nil {
			t.Errorf("after retiring: %v", err)
		}
	})
	t.Run("ErrState", func(t *testing.T) {
		pk := newPacket(t, 1)
		openPacket(t, p, pk)
		before := dump(t, p, pk.ID)
		wantErr(t, p.Reject(ctx, pk.ID, failure), ErrState)
		unchanged(t, p, pk.ID, before)
	})
	t.Run("ErrGone", func(t *testing.T) {
		wantErr(t, p.Reject(ctx, newPacket(t, 1).ID, failure), ErrGone)
	})
}

// TestShareMemory: a share of the largest packet takes at most 12 bytes in Redis.
func TestShareMemory(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	pk := newPacket(t, packet.MaxShares)
	stage(t, p, pk)
	must(t, p.OpenPool(t.Context(), pk.ID, hundreds(pk.ShareCount), nil))
	used, err := p.rdb.MemoryUsage(t.Context(), p.keys.of(pk.ID).shares).Result()
	must(t, err)
	if used > 12*packet.MaxShares {
		t.Errorf("%d bytes for %d shares", used, packet.MaxShares)
	}
}
