package packet

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPoolViewStatus(t *testing.T) {
	for _, tc := range []struct {
		state     PoolState
		opens     time.Duration // from now
		remaining int
		want      Status
	}{
		{PoolFunding, 0, 3, StatusFunding},
		{PoolOpening, -time.Hour, 3, StatusFunding},
		{PoolOpen, time.Millisecond, 3, StatusScheduled},
		{PoolOpen, 0, 3, StatusOpen},
		{PoolOpen, -time.Hour, 1, StatusOpen},
		{PoolOpen, -time.Hour, 0, StatusSoldOut},
		{PoolClosing, time.Hour, 3, StatusClosing},
		{PoolClosing, -time.Hour, 0, StatusClosing},
		{PoolClosed, -time.Hour, 0, StatusClosed},
		{PoolRejected, 0, 0, StatusRejected},
	} {
		v := PoolView{State: tc.state, Packet: Packet{OpensAt: noon.Add(tc.opens)}, RemainingCount: tc.remaining, Now: noon}
		if got := v.Status(); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

func TestRecordStatus(t *testing.T) {
	for _, tc := range []struct {
		stored  Status
		opens   time.Duration
		claimed int
		want    Status
	}{
		{StatusFunding, -time.Hour, 0, StatusFunding},
		{StatusRejected, -time.Hour, 0, StatusRejected},
		{StatusOpen, time.Millisecond, 0, StatusScheduled},
		{StatusOpen, 0, 0, StatusOpen},
		{StatusOpen, -time.Hour, 2, StatusOpen},
		{StatusOpen, -time.Hour, 3, StatusSoldOut},
		{StatusClosing, -time.Hour, 3, StatusClosing},
		{StatusClosed, -time.Hour, 3, StatusClosed},
	} {
		r := Record{Packet: Packet{OpensAt: noon.Add(tc.opens), ShareCount: 3}, Stored: tc.stored, Counts: Counts{ClaimedCount: tc.claimed}}
		if got := r.Status(noon); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// TestExpiredIsClosing: past expires_at nobody can grab, whether or not the flag is set yet; sold
// out stays sold out.
func TestExpiredIsClosing(t *testing.T) {
	p := Packet{OpensAt: noon.Add(-time.Hour), ExpiresAt: noon, ShareCount: 1}
	for claimed, want := range []Status{StatusClosing, StatusSoldOut} {
		v := PoolView{State: PoolOpen, Packet: p, RemainingCount: 1 - claimed, Now: noon}
		r := Record{Packet: p, Stored: StatusOpen, Counts: Counts{ClaimedCount: claimed}}
		if v.Status() != want || r.Status(noon) != want {
			t.Errorf("%d claimed: Redis says %s, MySQL %s", claimed, v.Status(), r.Status(noon))
		}
	}
}

// TestViewAndRecordAgree: Redis and MySQL report the same status of the same packet.
func TestViewAndRecordAgree(t *testing.T) {
	states := map[PoolState]Status{PoolFunding: StatusFunding, PoolRejected: StatusRejected, PoolOpen: StatusOpen, PoolClosing: StatusClosing,
		PoolClosed: StatusClosed}
	for state, stored := range states {
		for _, opens := range []time.Duration{-time.Hour, 0, time.Hour} {
			for claimed := range 4 {
				p := Packet{OpensAt: noon.Add(opens), ShareCount: 3}
				v := PoolView{State: state, Packet: p, ClaimedCount: claimed, RemainingCount: 3 - claimed, Now: noon}
				r := Record{Packet: p, Stored: stored, Counts: Counts{ClaimedCount: claimed}}
				if v.Status() != r.Status(noon) {
					t.Errorf("%s, opens in %v, %d claimed: Redis says %s, MySQL %s", state, opens, claimed, v.Status(), r.Status(noon))
				}
			}
		}
	}
}
