package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

// TestR9_StaleClaims: a claim is stale when its lane was rebuilt since and is open: then BeginClaim
// refuses it. Behind a shut fence it is not.
func TestR9_StaleClaims(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	s.lanes = 64
	p := funded(t, s, 1000, 10)
	lane := packet.Lane(p.ID, s.lanes)
	must(t, s.AddPoolLanes(ctx, []fence.LaneRow{{Lane: (lane + 1) % 64, Epoch: 9, State: fence.LaneOpen}}))
	for i, c := range []struct {
		name  string
		lane  int64 // its epoch; 0: never used
		shut  bool
		epoch int64 // of the claim
		late  bool
	}{
		{"no lane", 0, false, 1, false},
		{"never rebuilt", 1, false, 1, false},
		{"never rebuilt, not known", 1, false, 0, false},
		{"of this epoch", 3, false, 3, false},
		{"of the one before", 3, false, 2, true},
		{"not known", 3, false, 0, true},
		{"shut", 3, true, 2, false},
	} {
		must(t, s.db.Gorm.Exec("DELETE FROM pool_lanes WHERE lane = ?", lane).Error)
		if c.lane > 0 {
			row := fence.LaneRow{Lane: lane, Epoch: c.lane, State: fence.LaneOpen}
			if c.shut {
				row.State, row.Reason = fence.LaneShut, fence.LanePoolBehind
			}
			must(t, s.AddPoolLanes(ctx, []fence.LaneRow{row}))
		}
		won := claimOf(p, i, "u"+c.name)
		if won.Epoch = c.epoch; c.epoch > 0 {
			won.Seq = 1
		}
		if late, err := s.IsStaleClaim(ctx, won); err != nil || late != c.late {
			t.Errorf("%s: late %t, %v", c.name, late, err)
		}
		_, err := s.BeginClaim(ctx, won, limits, encode)
		if errors.Is(err, packet.ErrStaleClaim) != c.late || err != nil && !c.late {
			t.Errorf("%s: %v", c.name, err)
		}
		if have, err := s.RecordedUsers(ctx, p.ID, []string{won.UserID}); err != nil || have[won.UserID] == c.late {
			t.Errorf("%s: recorded %v, %v", c.name, have, err)
		}
		if _, err := s.RecordClaim(ctx, won); err != nil {
			t.Errorf("%s: recorded after a check of the pool: %v", c.name, err)
		}
		if again, err := s.BeginClaim(ctx, won, limits, encode); err != nil || again.Order != nil {
			t.Errorf("%s: again %+v, %v", c.name, again, err)
		}
	}
	must(t, s.db.Gorm.Exec("UPDATE pool_lanes SET state = 'open', reason = NULL, shut_at = NULL WHERE lane = ?", lane).Error)
	nowhere := claimOf(p, 0, "u")
	nowhere.ShareIndex = 10
	if late, err := s.IsStaleClaim(ctx, nowhere); err != nil || late {
		t.Errorf("a share that there is not: late %t, %v", late, err)
	}
}

// TestR9_ClaimsDoNotLockLane: claims read the row of their lane without locking it or waiting for
// it: seen positions are written every second.
func TestR9_ClaimsDoNotLockLane(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	s.lanes = 64
	p := funded(t, s, 200, 2)
	lane := packet.Lane(p.ID, s.lanes)
	must(t, s.AddPoolLanes(t.Context(), []fence.LaneRow{{Lane: lane, Epoch: 1, State: fence.LaneOpen}}))
	held := s.db.Gorm.Begin()
	defer held.Rollback()
	must(t, held.Exec("UPDATE pool_lanes SET seen = 1 WHERE lane = ?", lane).Error)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.BeginClaim(ctx, claimOf(p, 0, "u"), limits, encode); err != nil {
		t.Errorf("a claim waits for the row of its lane: %v", err)
	}
}
