package pool

import (
	"testing"

	"hongbao/internal/packet"
)

// TestR9_FenceDecisions: one line for each combination of MySQL, Redis and process, and the
// decision.
func TestR9_FenceDecisions(t *testing.T) {
	row := func(epoch int64, state packet.LaneState, acked int64, reason packet.LaneReason) packet.LaneRow {
		return packet.LaneRow{Epoch: epoch, State: state, AckedSeq: acked, Reason: reason}
	}
	open := row(2, packet.LaneOpen, 10, "")
	at := func(number, seq int64, fence FenceState) Epoch { return Epoch{Number: number, Seq: seq, Fence: fence} }
	halted := Epoch{Number: 2, Seq: 10, Fence: FenceHalted, Reason: packet.LaneSeqBehind}
	seen := position{epoch: 2, seq: 12, changes: 3}
	for _, c := range []struct {
		name string
		laneSnapshot
		want   actionKind
		reason packet.LaneReason
	}{
		{"all agree", laneSnapshot{recorded: true, row: open, redis: at(2, 10, FenceOpen)}, actionAdmit, ""},
		{"Redis is ahead", laneSnapshot{recorded: true, row: open, redis: at(2, 11, FenceOpen)}, actionAdmit, ""},
		{"as this process", laneSnapshot{recorded: true, row: open, seenHere: seen, redis: at(2, 12, FenceOpen), redisChanges: 3},
			actionAdmit, ""},
		{"this process is in an earlier epoch", laneSnapshot{recorded: true, row: open, seenHere: position{epoch: 1, seq: 99, changes: 9},
			redis: at(2, 10, FenceOpen)},
			actionAdmit, ""},
		{"emptied", laneSnapshot{recorded: true, row: open}, actionHalt, packet.LaneKeyMissing},
		{"emptied, nothing seen", laneSnapshot{recorded: true, row: row(1, packet.LaneOpen, 0, "")}, actionHalt, packet.LaneKeyMissing},
		{"from before a rebuild", laneSnapshot{recorded: true, row: open, redis: at(1, 99, FenceOpen)}, actionHalt, packet.LaneRedisOlder},
		{"behind MySQL", laneSnapshot{recorded: true, row: open, redis: at(2, 9, FenceOpen)}, actionHalt, packet.LaneSeqBehind},
		{"behind this process", laneSnapshot{recorded: true, row: open, seenHere: seen, redis: at(2, 11, FenceOpen), redisChanges: 3}, actionHalt,
			packet.LaneSeqBehind},
		{"other processes caught up", laneSnapshot{recorded: true, row: open, seenHere: seen, redis: at(2, 99, FenceOpen), redisChanges: 2},
			actionHalt, packet.LaneSeqBehind},
		{"halted by another", laneSnapshot{recorded: true, row: open, redis: halted}, actionHalt, packet.LaneSeqBehind},
		{"halted without reason", laneSnapshot{recorded: true, row: open, redis: at(2, 10, FenceHalted)}, actionHalt, packet.LaneHalted},
		{"MySQL before a rebuild", laneSnapshot{recorded: true, row: open, redis: at(3, 0, FenceOpen)}, actionHalt, packet.LaneMySQLOlder},
		{"MySQL and Redis older than this process", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""),
			seenHere: position{epoch: 5},
			redis:    at(4, 10, FenceOpen)}, actionNone, packet.LaneMySQLOlder},
		{"the same, opening interrupted", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(4, 10, FenceClosed)}, actionNone, packet.LaneMySQLOlder},
		{"the same, halted", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(4, 10, FenceHalted)},
			actionHalt, packet.LaneHalted},
		{"the same, Redis is behind MySQL", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(4, 9, FenceOpen)}, actionHalt, packet.LaneSeqBehind},
		{"MySQL older than this process", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(5, 10, FenceOpen)}, actionHalt, packet.LaneMySQLOlder},
		{"opening interrupted", laneSnapshot{recorded: true, row: open, redis: at(2, 10, FenceClosed)}, actionOpen, ""},
		{"new epoch not opened", laneSnapshot{recorded: true, row: open, redis: at(2, 0, FenceClosed)}, actionHalt, packet.LaneSeqBehind},

		{"closed", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneKeyMissing)}, actionNone, ""},
		{"closed and halted", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneSeqBehind), redis: halted},
			actionNone, ""},
		{"closed, not halted yet", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LanePoolBehind),
			redis: at(2, 10, FenceOpen)},
			actionHalt, packet.LanePoolBehind},
		{"closed, a rebuild has begun", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneRequested),
			redis: at(3, 0, FenceOpen)},
			actionNone, ""},
		{"closed because MySQL is older", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneMySQLOlder),
			redis: at(2, 10, FenceOpen)}, actionNone, ""},
		{"being rebuilt", laneSnapshot{recorded: true, row: row(3, packet.LaneRebuilding, 0, packet.LaneKeyMissing),
			redis: at(3, 0, FenceClosed)},
			actionNone, ""},

		{"new", laneSnapshot{}, actionCreate, ""},
		{"begun in MySQL", laneSnapshot{recorded: true, row: row(1, packet.LaneShut, 0, packet.LaneNew)}, actionCreate, ""},
		{"begun in Redis", laneSnapshot{recorded: true, row: row(1, packet.LaneShut, 0, packet.LaneNew), redis: at(1, 0, FenceClosed)},
			actionCreate, ""},
		{"only in Redis", laneSnapshot{redis: at(1, 5, FenceOpen)}, actionRecord, ""},
		{"only in Redis, rebuilt", laneSnapshot{redis: at(2, 5, FenceOpen)}, actionRecord, packet.LaneMySQLOlder},
		{"only in Redis, halted", laneSnapshot{redis: Epoch{Number: 1, Fence: FenceHalted}}, actionRecord, packet.LaneHalted},
		{"only in this process", laneSnapshot{seenHere: seen}, actionRecord, packet.LaneKeyMissing},
		{"in Redis, behind this process", laneSnapshot{seenHere: seen, redis: at(2, 5, FenceOpen)}, actionRecord, packet.LaneSeqBehind},
	} {
		c.mysqlRead = true
		got := c.decide()
		if got.kind == actionRecord {
			got.reason = got.row(7, c.laneSnapshot).Reason
		}
		if got.kind != c.want || got.reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}

	for _, c := range []struct {
		name string
		laneSnapshot
		want   actionKind
		reason packet.LaneReason
	}{
		{"MySQL away, Redis is open", laneSnapshot{redis: at(2, 5, FenceOpen)}, actionAdmit, ""},
		{"MySQL away, rebuilt", laneSnapshot{seenHere: seen, redis: at(3, 0, FenceOpen)}, actionAdmit, ""},
		{"MySQL away, no data", laneSnapshot{}, actionNone, ""},
		{"MySQL away, being created", laneSnapshot{redis: at(1, 0, FenceClosed)}, actionNone, ""},
		{"MySQL away, halted", laneSnapshot{redis: halted}, actionNone, ""},
		{"MySQL away, emptied", laneSnapshot{seenHere: seen}, actionHalt, packet.LaneKeyMissing},
		{"MySQL away, older", laneSnapshot{seenHere: seen, redis: at(1, 99, FenceOpen)}, actionHalt, packet.LaneRedisOlder},
		{"MySQL away, behind", laneSnapshot{seenHere: seen, redis: at(2, 11, FenceOpen), redisChanges: 3}, actionHalt, packet.LaneSeqBehind},
		{"no MySQL, no data", laneSnapshot{noMySQL: true}, actionCreate, ""},
		{"no MySQL, creation interrupted", laneSnapshot{noMySQL: true, redis: at(1, 0, FenceClosed)}, actionCreate, ""},
		{"no MySQL, being rebuilt", laneSnapshot{noMySQL: true, redis: at(2, 0, FenceClosed)}, actionNone, ""},
		{"no MySQL, emptied", laneSnapshot{noMySQL: true, seenHere: seen}, actionHalt, packet.LaneKeyMissing},
		{"no MySQL, halted", laneSnapshot{noMySQL: true, redis: halted}, actionNone, ""},
	} {
		if got := c.decide(); got.kind != c.want || got.reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}
}

// TestR9_SeenPosition: the position that a lane would have without the loss.
func TestR9_SeenPosition(t *testing.T) {
	seen := position{epoch: 2, seq: 12, changes: 7, grabs: 9}
	row := packet.LaneRow{Epoch: 2}
	for _, c := range []struct {
		name       string
		found      Epoch
		made       int64
		row        packet.LaneRow
		seq, grabs int64
	}{
		{"emptied", Epoch{}, 0, row, 12, 9},
		{"older", Epoch{Number: 2, Seq: 8, Grabs: 6}, 5, row, 12, 9},
		{"others have caught up", Epoch{Number: 2, Seq: 15, Grabs: 11}, 5, row, 17, 13},
		{"no own change is missing", Epoch{Number: 2, Seq: 11, Grabs: 8}, 7, row, 12, 9},
		{"rebuilt since", Epoch{Number: 3}, 0, packet.LaneRow{Epoch: 3}, 0, 0},
	} {
		s := laneSnapshot{mysqlRead: true, recorded: true, row: c.row, seenHere: seen, redis: c.found, redisChanges: c.made}
		if got, want := s.seen(4), (packet.LanePosition{Lane: 4, Epoch: c.row.Epoch, Seq: c.seq, Grabs: c.grabs}); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
