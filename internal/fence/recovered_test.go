package fence

import (
	"testing"
	"time"
)

// TestR9_LanesAfterRestore: one line for each combination of MySQL, which was restored, and Redis. Found is
// the row that the recovery wants, Recovered what is stored of it.
func TestR9_LanesAfterRestore(t *testing.T) {
	for _, c := range []struct {
		name           string
		have           LaneRow
		redis          Epoch
		rebuild, lacks bool
		want           LaneRow
		moved          bool
	}{
		{"they agree", LaneRow{Epoch: 2, State: LaneOpen, AckedSeq: 5}, Epoch{Number: 2, Seq: 7, Fence: Open}, false, false,
			LaneRow{Epoch: 2, State: LaneOpen, AckedSeq: 5}, false},
		{"shut since MySQL is older", LaneRow{Epoch: 2, State: LaneShut, Reason: LaneMySQLOlder, AckedSeq: 5}, Epoch{Number: 2, Seq: 7,
			Fence: Open},
			false, false, LaneRow{Epoch: 2, State: LaneOpen, AckedSeq: 7}, true},
		{"Redis is ahead", LaneRow{Epoch: 2, State: LaneOpen, AckedSeq: 9}, Epoch{Number: 3, Seq: 7, Grabs: 4, Fence: Open}, false, false,
			LaneRow{Epoch: 3, State: LaneOpen, AckedSeq: 7, AckedGrabs: 4}, true},
		{"Redis is ahead, and halted", LaneRow{Epoch: 2, State: LaneOpen}, Epoch{Number: 3, Seq: 7, Fence: Halted}, false, false,
			LaneRow{Epoch: 3, State: LaneShut, Reason: LaneHalted, AckedSeq: 7}, true},
		{"Redis is ahead, its pools lack claims", LaneRow{Epoch: 2, State: LaneOpen}, Epoch{Number: 3, Seq: 7, Fence: Open}, false, true,
			LaneRow{Epoch: 3, State: LaneShut, Reason: LanePoolBehind, AckedSeq: 7}, true},
		{"its pools lack claims", LaneRow{Epoch: 2, State: LaneOpen, AckedSeq: 9}, Epoch{Number: 2, Seq: 7, Fence: Open}, false, true,
			LaneRow{Epoch: 2, State: LaneShut, Reason: LanePoolBehind, AckedSeq: 9}, true},
		{"Redis is older", LaneRow{Epoch: 3, State: LaneOpen, AckedSeq: 9}, Epoch{Number: 2, Seq: 7, Fence: Open}, false, true,
			LaneRow{Epoch: 3, State: LaneShut, Reason: LanePoolBehind, AckedSeq: 9}, true},
		{"staff want a rebuild", LaneRow{Epoch: 2, State: LaneOpen}, Epoch{Number: 2, Fence: Open}, true, true,
			LaneRow{Epoch: 2, State: LaneShut, Reason: LaneRequested}, true},
		{"shut before", LaneRow{Epoch: 2, State: LaneShut, Reason: LaneSeqBehind}, Epoch{Number: 2, Fence: Halted}, true, true,
			LaneRow{Epoch: 2, State: LaneShut, Reason: LaneSeqBehind}, false},
		{"being rebuilt", LaneRow{Epoch: 2, State: LaneRebuilding, Reason: LaneSeqBehind}, Epoch{Number: 2, Fence: Closed}, false, true,
			LaneRow{Epoch: 2, State: LaneRebuilding, Reason: LaneSeqBehind}, false},
		{"new", LaneRow{Epoch: 1, State: LaneShut, Reason: LaneNew}, Epoch{}, false, false,
			LaneRow{Epoch: 1, State: LaneShut, Reason: LaneNew}, false},
		{"new, its pools lack claims", LaneRow{Epoch: 1, State: LaneShut, Reason: LaneNew}, Epoch{}, false, true,
			LaneRow{Epoch: 1, State: LaneShut, Reason: LanePoolBehind}, true},
	} {
		if got, moved := Recovered(c.have, Found(0, c.have, c.redis, c.rebuild, c.lacks)); got != c.want || moved != c.moved {
			t.Errorf("%s: %+v, changed %t; want %+v, %t", c.name, got, moved, c.want, c.moved)
		}
	}
}

// TestR9_WhoMayRebuild: a lane that is open, new, or shut because MySQL is older is not rebuilt; one that
// another process rebuilds only after its lease.
func TestR9_WhoMayRebuild(t *testing.T) {
	now, lease := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC), time.Minute
	held := func(holder string, until time.Time) LaneRow {
		return LaneRow{Epoch: 2, State: LaneRebuilding, Reason: LaneKeyMissing, Holder: holder, LeaseUntil: until}
	}
	for _, c := range []struct {
		name string
		row  LaneRow
		want bool
	}{
		{"open", LaneRow{Epoch: 2, State: LaneOpen}, false},
		{"shut", LaneRow{Epoch: 2, State: LaneShut, Reason: LaneRequested}, true},
		{"new", LaneRow{Epoch: 1, State: LaneShut, Reason: LaneNew}, false},
		{"MySQL is older", LaneRow{Epoch: 2, State: LaneShut, Reason: LaneMySQLOlder}, false},
		{"held by another", held("another", now.Add(time.Second)), false},
		{"held by this process", held("me", now.Add(time.Second)), true},
		{"its lease has ended", held("another", now.Add(-time.Second)), true},
		{"its lease is from a clock ahead", held("another", now.Add(time.Hour)), true},
	} {
		if got := c.row.MayTake("me", now, lease); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
