package pool

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/packet"
)

const busy = 10 * time.Second

func TestCreate(t *testing.T) { onEach(t, testCreate) }

func testCreate(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()

	t.Run("OK", func(t *testing.T) {
		pk := newPacket(t, 3)
		before := time.Now().Add(-time.Second)
		got := stage(t, p, pk)
		v := got.View
		if got.Existed || !got.SameBody || v.State != packet.PoolFunding || v.RemainingCount != 3 || v.ClaimedCount != 0 || v.First != nil ||
			v.Retired {
			t.Errorf("staged %+v", got)
		}
		if v.Packet.CreatedAt.Before(before) || v.Packet.OpensAt != v.Packet.CreatedAt || v.Packet.ExpiresAt != v.Packet.OpensAt.Add(time.Hour) ||
			v.BusyUntil != v.Packet.CreatedAt.Add(busy) || v.Now != v.Packet.CreatedAt {
			t.Errorf("times of %+v", v)
		}
		want := pk
		want.CreatedAt, want.OpensAt, want.ExpiresAt = v.Packet.CreatedAt, v.Packet.OpensAt, v.Packet.ExpiresAt
		if !reflect.DeepEqual(v.Packet, want) {
			t.Errorf("packet\n got %+v\nwant %+v", v.Packet, want)
		}
		s := dump(t, p, pk.ID)
		if !s.Live || len(s.Shares) != 0 || len(s.Eligible) != 0 || len(s.HandOffs) != 1 || s.Hash["restricted"] != "0" {
			t.Errorf("state %+v", s)
		}
		if live, err := p.LivePage(ctx, packet.Lane(pk.ID, p.Lanes()), time.Time{}, 1_000_000); err != nil ||
			!slices.Contains(live, packet.LivePacket{ID: pk.ID, CreatedAt: v.Packet.CreatedAt}) {
			t.Errorf("live %v, %v", live, err)
		}
	})

	t.Run("scheduled", func(t *testing.T) {
		pk := newPacket(t, 1)
		opensAt := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		got, err := p.Create(ctx, pk, nil, &opensAt, time.Minute, busy)
		if err != nil || got.View.Packet.OpensAt != opensAt || got.View.Packet.ExpiresAt != opensAt.Add(time.Minute) {
			t.Errorf("staged %+v, %v", got, err)
		}
	})

	t.Run("guest list", func(t *testing.T) {
		pk := newPacket(t, 1)
		var guests []string
		for i := range packet.MaxEligible {
			guests = append(guests, "guest "+strconv.Itoa(i))
		}
		got := stage(t, p, pk, append(guests, guests[:7]...)...)
		if got.View.Packet.EligibleCount != packet.MaxEligible {
			t.Errorf("%d eligible", got.View.Packet.EligibleCount)
		}
		slices.Sort(guests)
		if listed, err := p.Eligible(ctx, pk.ID); err != nil || !slices.Equal(listed, guests) {
			t.Errorf("%d listed, %v", len(listed), err)
		}
	})

	t.Run("ErrPast", func(t *testing.T) {
		pk := newPacket(t, 1)
		before := dump(t, p, pk.ID)
		opensAt := time.Now().Add(-time.Hour)
		_, err := p.Create(ctx, pk, []string{"u"}, &opensAt, time.Minute, busy)
		wantErr(t, err, ErrPast)
		unchanged(t, p, pk.ID, before)
	})

	t.Run("ErrTooFar", func(t *testing.T) {
		pk := newPacket(t, 1)
		before := dump(t, p, pk.ID)
		opensAt := time.Now().Add(packet.MaxOpensAhead + time.Minute)
		_, err := p.Create(ctx, pk, []string{"u"}, &opensAt, time.Minute, busy)
		wantErr(t, err, ErrTooFar)
		unchanged(t, p, pk.ID, before)
	})

	t.Run("damaged lane", func(t *testing.T) {
		p := on.openFresh(t)
		pk := newPacket(t, 1)
		if err := p.rdb.Set(ctx, p.keys.of(pk.ID).handoff, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Create(ctx, pk, nil, nil, time.Hour, busy); err == nil {
			t.Error("no error")
		}
		if n, err := p.rdb.Exists(ctx, p.keys.of(pk.ID).packet, p.keys.of(pk.ID).live).Result(); n != 0 || err != nil {
			t.Errorf("%d keys, %v", n, err)
		}
	})
}

func TestCreateRepeated(t *testing.T) { onEach(t, testCreateRepeated) }

func testCreateRepeated(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	again := func(t *testing.T, pk packet.Packet) packet.StageResult {
		t.Helper()
		got, err := p.Create(ctx, pk, nil, nil, time.Hour, busy)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}

	t.Run("in progress", func(t *testing.T) {
		pk := newPacket(t, 1)
		first := stage(t, p, pk)
		before := dump(t, p, pk.ID)
		got := again(t, pk)
		if !got.Existed || !got.SameBody || got.View.BusyUntil != first.View.BusyUntil || !got.View.BusyUntil.After(got.View.Now) {
			t.Errorf("repeat %+v", got)
		}
		unchanged(t, p, pk.ID, before)
	})

	t.Run("other body", func(t *testing.T) {
		pk := newPacket(t, 1)
		stage(t, p, pk)
		setField(t, p, pk.ID, "busy_until", time.Now().Add(-time.Minute).UnixMilli())
		before := dump(t, p, pk.ID)
		other := pk
		other.BodyHash, other.TotalAmount = "other", 7
		got := again(t, other)
		if !got.Existed || got.SameBody || got.View.Packet.TotalAmount != pk.TotalAmount {
			t.Errorf("repeat %+v", got)
		}
		unchanged(t, p, pk.ID, before)
	})

	t.Run("the busy one is gone", func(t *testing.T) {
		pk := newPacket(t, 1)
		stage(t, p, pk)
		was := time.Now().Add(-time.Minute).Truncate(time.Millisecond).UTC()
		setField(t, p, pk.ID, "busy_until", was.UnixMilli())
		got := again(t, pk)
		if !got.Existed || !got.SameBody || !got.View.BusyUntil.Equal(was) {
			t.Errorf("first repeat %+v, want busy until %v", got, was)
		}
		third := again(t, pk)
		if want := got.View.Now.Add(busy); !third.View.BusyUntil.Equal(want) {
			t.Errorf("second repeat sees busy until %v, want %v", third.View.BusyUntil, want)
		}
		if n := len(dump(t, p, pk.ID).HandOffs); n != 1 {
			t.Errorf("%d hand-offs", n)
		}
	})

	t.Run("answered", func(t *testing.T) {
		pk := newPacket(t, 1)
		stage(t, p, pk)
		answer := packet.FirstAnswer{HTTPStatus: 201, RequestID: "r1"}
		if _, err := p.StoreFirstAnswer(ctx, pk.ID, answer); err != nil {
			t.Fatal(err)
		}
		setField(t, p, pk.ID, "busy_until", time.Now().Add(-time.Minute).UnixMilli())
		before := dump(t, p, pk.ID)
		if got := again(t, pk); !got.Existed || !got.SameBody || got.View.First == nil || *got.View.First != answer {
			t.Errorf("repeat %+v", got)
		}
		unchanged(t, p, pk.ID, before)
	})

	t.Run("tombstone", func(t *testing.T) {
		pk := newPacket(t, 1)
		retired(t, p, pk)
		before := dump(t, p, pk.ID)
		if got := again(t, pk); !got.Existed || !got.SameBody || !got.View.Retired || got.View.State != packet.PoolClosed ||
			got.View.First == nil {
			t.Errorf("repeat %+v", got)
		}
		other := pk
		other.BodyHash = "other"
		if got := again(t, other); !got.Existed || got.SameBody {
			t.Errorf("repeat with another body %+v", got)
		}
		unchanged(t, p, pk.ID, before)
	})

	t.Run("after opening", func(t *testing.T) {
		pk := newPacket(t, 2)
		openPacket(t, p, pk)
		mustGrab(t, p, pk.ID, "u")
		got := again(t, pk)
		if v := got.View; v.State != packet.PoolOpen || v.RemainingCount != 1 || v.ClaimedCount != 1 || v.ClaimedAmount != 100 {
			t.Errorf("repeat %+v", got)
		}
	})
}

// retired runs a packet of one share to its end.
func retired(t *testing.T, p *Pool, pk packet.Packet) {
	t.Helper()
	openPacket(t, p, pk)
	if _, err := p.StoreFirstAnswer(t.Context(), pk.ID, packet.FirstAnswer{HTTPStatus: 201, RequestID: "r1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ClosePool(t.Context(), pk.ID, packet.CloseRecalled); err != nil {
		t.Fatal(err)
	}
	if err := p.Retire(t.Context(), pk.ID); err != nil {
		t.Fatal(err)
	}
}

func TestAnswered(t *testing.T) { onEach(t, testAnswered) }

func testAnswered(t *testing.T, on setup) {
	p := on.open(t)
	first, second := packet.FirstAnswer{HTTPStatus: 202, RequestID: "a"}, packet.FirstAnswer{HTTPStatus: 201, RequestID: "b"}

	pk := newPacket(t, 1)
	stage(t, p, pk)
	before := dump(t, p, pk.ID)
	if got, err := p.StoreFirstAnswer(t.Context(), pk.ID, first); err != nil || got != first {
		t.Errorf("first %+v, %v", got, err)
	}
	changed(t, p, pk.ID, before, map[string]string{"first": `{"HTTPStatus":202,"RequestID":"a"}`})
	if got, err := p.StoreFirstAnswer(t.Context(), pk.ID, second); err != nil || got != first {
		t.Errorf("second %+v, %v", got, err)
	}

	missing := newPacket(t, 1)
	before = dump(t, p, missing.ID)
	_, err := p.StoreFirstAnswer(t.Context(), missing.ID, first)
	wantErr(t, err, ErrGone)
	unchanged(t, p, missing.ID, before)
}
