package pool

import (
	"testing"

	"hongbao/internal/packet"
)

// TestR9_EverySightIsJudged: one line for each thing that can be known of a lane, and
// what follows from it.
func TestR9_EverySightIsJudged(t *testing.T) {
	row := func(epoch int64, state packet.LaneState, seen int64, reason packet.LaneReason) packet.LaneRow {
		return packet.LaneRow{Epoch: epoch, State: state, AckedSeq: seen, Reason: reason}
	}
	open := row(2, packet.LaneOpen, 10, "")
	at := func(number, seq int64, gate FenceState) Epoch { return Epoch{Number: number, Seq: seq, Fence: gate} }
	halted := Epoch{Number: 2, Seq: 10, Fence: FenceHalted, Reason: packet.LaneSeqBehind}
	was := position{epoch: 2, seq: 12, changes: 3}
	for _, c := range []struct {
		name string
		laneSnapshot
		want   actionKind
		reason packet.LaneReason
	}{
		{"all agree", laneSnapshot{recorded: true, row: open, redis: at(2, 10, FenceOpen)}, actionAdmit, ""},
		{"Redis is ahead", laneSnapshot{recorded: true, row: open, redis: at(2, 11, FenceOpen)}, actionAdmit, ""},
		{"remembered too", laneSnapshot{recorded: true, row: open, seenHere: was, redis: at(2, 12, FenceOpen), redisChanges: 3}, actionAdmit, ""},
		{"remembered of an epoch before", laneSnapshot{recorded: true, row: open, seenHere: position{epoch: 1, seq: 99, changes: 9}, redis: at(2, 10, FenceOpen)},
			actionAdmit, ""},
		{"emptied", laneSnapshot{recorded: true, row: open}, actionHalt, packet.LaneKeyMissing},
		{"emptied, nothing seen", laneSnapshot{recorded: true, row: row(1, packet.LaneOpen, 0, "")}, actionHalt, packet.LaneKeyMissing},
		{"from before a rebuild", laneSnapshot{recorded: true, row: open, redis: at(1, 99, FenceOpen)}, actionHalt, packet.LaneRedisOlder},
		{"behind the books", laneSnapshot{recorded: true, row: open, redis: at(2, 9, FenceOpen)}, actionHalt, packet.LaneSeqBehind},
		{"behind what is remembered", laneSnapshot{recorded: true, row: open, seenHere: was, redis: at(2, 11, FenceOpen), redisChanges: 3}, actionHalt,
			packet.LaneSeqBehind},
		{"others have gone on", laneSnapshot{recorded: true, row: open, seenHere: was, redis: at(2, 99, FenceOpen), redisChanges: 2}, actionHalt, packet.LaneSeqBehind},
		{"halted by another", laneSnapshot{recorded: true, row: open, redis: halted}, actionHalt, packet.LaneSeqBehind},
		{"halted, nobody says why", laneSnapshot{recorded: true, row: open, redis: at(2, 10, FenceHalted)}, actionHalt, packet.LaneHalted},
		{"books before a rebuild", laneSnapshot{recorded: true, row: open, redis: at(3, 0, FenceOpen)}, actionHalt, packet.LaneMySQLOlder},
		{"books and Redis before what is remembered", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(4, 10, FenceOpen)}, actionNone, packet.LaneMySQLOlder},
		{"the same, not opened to the end", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(4, 10, FenceClosed)}, actionNone, packet.LaneMySQLOlder},
		{"the same, halted", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5}, redis: at(4, 10, FenceHalted)},
			actionHalt, packet.LaneHalted},
		{"the same, and Redis is behind the books", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(4, 9, FenceOpen)}, actionHalt, packet.LaneSeqBehind},
		{"books alone before what is remembered", laneSnapshot{recorded: true, row: row(4, packet.LaneOpen, 10, ""), seenHere: position{epoch: 5},
			redis: at(5, 10, FenceOpen)}, actionHalt, packet.LaneMySQLOlder},
		{"not opened to the end", laneSnapshot{recorded: true, row: open, redis: at(2, 10, FenceClosed)}, actionOpen, ""},
		{"made anew and not opened", laneSnapshot{recorded: true, row: open, redis: at(2, 0, FenceClosed)}, actionHalt, packet.LaneSeqBehind},

		{"shut", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneKeyMissing)}, actionNone, ""},
		{"shut and halted", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneSeqBehind), redis: halted}, actionNone, ""},
		{"shut, not halted yet", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LanePoolBehind), redis: at(2, 10, FenceOpen)},
			actionHalt, packet.LanePoolBehind},
		{"shut, a rebuild has begun", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneRequested), redis: at(3, 0, FenceOpen)},
			actionNone, ""},
		{"shut because the books are older", laneSnapshot{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneMySQLOlder),
			redis: at(2, 10, FenceOpen)}, actionNone, ""},
		{"being rebuilt", laneSnapshot{recorded: true, row: row(3, packet.LaneRebuilding, 0, packet.LaneKeyMissing), redis: at(3, 0, FenceClosed)},
			actionNone, ""},

		{"never there", laneSnapshot{}, actionCreate, ""},
		{"begun in the books", laneSnapshot{recorded: true, row: row(1, packet.LaneShut, 0, packet.LaneNew)}, actionCreate, ""},
		{"begun in Redis", laneSnapshot{recorded: true, row: row(1, packet.LaneShut, 0, packet.LaneNew), redis: at(1, 0, FenceClosed)}, actionCreate, ""},
		{"known to Redis alone", laneSnapshot{redis: at(1, 5, FenceOpen)}, actionRecord, ""},
		{"known to Redis alone, rebuilt", laneSnapshot{redis: at(2, 5, FenceOpen)}, actionRecord, packet.LaneMySQLOlder},
		{"known to Redis alone, halted", laneSnapshot{redis: Epoch{Number: 1, Fence: FenceHalted}}, actionRecord, packet.LaneHalted},
		{"known to nobody but this process", laneSnapshot{seenHere: was}, actionRecord, packet.LaneKeyMissing},
		{"known to Redis, less than to this process", laneSnapshot{seenHere: was, redis: at(2, 5, FenceOpen)}, actionRecord, packet.LaneSeqBehind},
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
		{"books away, Redis is open", laneSnapshot{redis: at(2, 5, FenceOpen)}, actionAdmit, ""},
		{"books away, rebuilt", laneSnapshot{seenHere: was, redis: at(3, 0, FenceOpen)}, actionAdmit, ""},
		{"books away, nothing there", laneSnapshot{}, actionNone, ""},
		{"books away, being made", laneSnapshot{redis: at(1, 0, FenceClosed)}, actionNone, ""},
		{"books away, halted", laneSnapshot{redis: halted}, actionNone, ""},
		{"books away, emptied", laneSnapshot{seenHere: was}, actionHalt, packet.LaneKeyMissing},
		{"books away, older", laneSnapshot{seenHere: was, redis: at(1, 99, FenceOpen)}, actionHalt, packet.LaneRedisOlder},
		{"books away, behind", laneSnapshot{seenHere: was, redis: at(2, 11, FenceOpen), redisChanges: 3}, actionHalt, packet.LaneSeqBehind},
		{"no books, nothing there", laneSnapshot{noMySQL: true}, actionCreate, ""},
		{"no books, not made to the end", laneSnapshot{noMySQL: true, redis: at(1, 0, FenceClosed)}, actionCreate, ""},
		{"no books, being rebuilt", laneSnapshot{noMySQL: true, redis: at(2, 0, FenceClosed)}, actionNone, ""},
		{"no books, emptied", laneSnapshot{noMySQL: true, seenHere: was}, actionHalt, packet.LaneKeyMissing},
		{"no books, halted", laneSnapshot{noMySQL: true, redis: halted}, actionNone, ""},
	} {
		if got := c.decide(); got.kind != c.want || got.reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}
}

// TestR9_SeenCountsWhatIsMissing: how far a lane would have come, had it lost nothing.
func TestR9_SeenCountsWhatIsMissing(t *testing.T) {
	was := position{epoch: 2, seq: 12, changes: 7, grabs: 9}
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
		{"nothing of ours is missing", Epoch{Number: 2, Seq: 11, Grabs: 8}, 7, row, 12, 9},
		{"rebuilt meanwhile", Epoch{Number: 3}, 0, packet.LaneRow{Epoch: 3}, 0, 0},
	} {
		s := laneSnapshot{mysqlRead: true, recorded: true, row: c.row, seenHere: was, redis: c.found, redisChanges: c.made}
		if got, want := s.seen(4), (packet.LanePosition{Lane: 4, Epoch: c.row.Epoch, Seq: c.seq, Grabs: c.grabs}); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
