package fence

import "testing"

// TestR9_FenceDecisions: one line for each combination of MySQL, Redis and process, and the
// decision.
func TestR9_FenceDecisions(t *testing.T) {
	row := func(epoch int64, state LaneState, acked int64, reason LaneReason) LaneRow {
		return LaneRow{Epoch: epoch, State: state, AckedSeq: acked, Reason: reason}
	}
	open := row(2, LaneOpen, 10, "")
	at := func(number, seq int64, fence State) Epoch { return Epoch{Number: number, Seq: seq, Fence: fence} }
	halted := Epoch{Number: 2, Seq: 10, Fence: Halted, Reason: LaneSeqBehind}
	seen := Position{Epoch: 2, Seq: 12, Changes: 3}
	for _, c := range []struct {
		name string
		Facts
		want   Deed
		reason LaneReason
	}{
		{"all agree", Facts{Recorded: true, Row: open, Redis: at(2, 10, Open)}, DoAdmit, ""},
		{"Redis is ahead", Facts{Recorded: true, Row: open, Redis: at(2, 11, Open)}, DoAdmit, ""},
		{"as this process", Facts{Recorded: true, Row: open, Seen: seen, Redis: at(2, 12, Open), RedisChanges: 3},
			DoAdmit, ""},
		{"this process is in an earlier epoch", Facts{Recorded: true, Row: open, Seen: Position{Epoch: 1, Seq: 99, Changes: 9},
			Redis: at(2, 10, Open)},
			DoAdmit, ""},
		{"emptied", Facts{Recorded: true, Row: open}, DoHalt, LaneKeyMissing},
		{"emptied, nothing seen", Facts{Recorded: true, Row: row(1, LaneOpen, 0, "")}, DoHalt, LaneKeyMissing},
		{"from before a rebuild", Facts{Recorded: true, Row: open, Redis: at(1, 99, Open)}, DoHalt, LaneRedisOlder},
		{"behind MySQL", Facts{Recorded: true, Row: open, Redis: at(2, 9, Open)}, DoHalt, LaneSeqBehind},
		{"behind this process", Facts{Recorded: true, Row: open, Seen: seen, Redis: at(2, 11, Open), RedisChanges: 3}, DoHalt,
			LaneSeqBehind},
		{"other processes caught up", Facts{Recorded: true, Row: open, Seen: seen, Redis: at(2, 99, Open), RedisChanges: 2},
			DoHalt, LaneSeqBehind},
		{"halted by another", Facts{Recorded: true, Row: open, Redis: halted}, DoHalt, LaneSeqBehind},
		{"halted without reason", Facts{Recorded: true, Row: open, Redis: at(2, 10, Halted)}, DoHalt, LaneHalted},
		{"MySQL before a rebuild", Facts{Recorded: true, Row: open, Redis: at(3, 0, Open)}, DoHalt, LaneMySQLOlder},
		{"MySQL and Redis older than this process", Facts{Recorded: true, Row: row(4, LaneOpen, 10, ""),
			Seen:  Position{Epoch: 5},
			Redis: at(4, 10, Open)}, DoNothing, LaneMySQLOlder},
		{"the same, opening interrupted", Facts{Recorded: true, Row: row(4, LaneOpen, 10, ""), Seen: Position{Epoch: 5},
			Redis: at(4, 10, Closed)}, DoNothing, LaneMySQLOlder},
		{"the same, halted", Facts{Recorded: true, Row: row(4, LaneOpen, 10, ""), Seen: Position{Epoch: 5},
			Redis: at(4, 10, Halted)},
			DoHalt, LaneHalted},
		{"the same, Redis is behind MySQL", Facts{Recorded: true, Row: row(4, LaneOpen, 10, ""), Seen: Position{Epoch: 5},
			Redis: at(4, 9, Open)}, DoHalt, LaneSeqBehind},
		{"MySQL older than this process", Facts{Recorded: true, Row: row(4, LaneOpen, 10, ""), Seen: Position{Epoch: 5},
			Redis: at(5, 10, Open)}, DoHalt, LaneMySQLOlder},
		{"opening interrupted", Facts{Recorded: true, Row: open, Redis: at(2, 10, Closed)}, DoOpen, ""},
		{"new epoch not opened", Facts{Recorded: true, Row: open, Redis: at(2, 0, Closed)}, DoHalt, LaneSeqBehind},

		{"closed", Facts{Recorded: true, Row: row(2, LaneShut, 10, LaneKeyMissing)}, DoNothing, ""},
		{"closed and halted", Facts{Recorded: true, Row: row(2, LaneShut, 10, LaneSeqBehind), Redis: halted},
			DoNothing, ""},
		{"closed, not halted yet", Facts{Recorded: true, Row: row(2, LaneShut, 10, LanePoolBehind),
			Redis: at(2, 10, Open)},
			DoHalt, LanePoolBehind},
		{"closed, a rebuild has begun", Facts{Recorded: true, Row: row(2, LaneShut, 10, LaneRequested),
			Redis: at(3, 0, Open)},
			DoNothing, ""},
		{"closed because MySQL is older", Facts{Recorded: true, Row: row(2, LaneShut, 10, LaneMySQLOlder),
			Redis: at(2, 10, Open)}, DoNothing, ""},
		{"being rebuilt", Facts{Recorded: true, Row: row(3, LaneRebuilding, 0, LaneKeyMissing),
			Redis: at(3, 0, Closed)},
			DoNothing, ""},

		{"new", Facts{}, DoCreate, ""},
		{"begun in MySQL", Facts{Recorded: true, Row: row(1, LaneShut, 0, LaneNew)}, DoCreate, ""},
		{"begun in Redis", Facts{Recorded: true, Row: row(1, LaneShut, 0, LaneNew), Redis: at(1, 0, Closed)},
			DoCreate, ""},
		{"only in Redis", Facts{Redis: at(1, 5, Open)}, DoRecord, ""},
		{"only in Redis, rebuilt", Facts{Redis: at(2, 5, Open)}, DoRecord, LaneMySQLOlder},
		{"only in Redis, halted", Facts{Redis: Epoch{Number: 1, Fence: Halted}}, DoRecord, LaneHalted},
		{"only in this process", Facts{Seen: seen}, DoRecord, LaneKeyMissing},
		{"in Redis, behind this process", Facts{Seen: seen, Redis: at(2, 5, Open)}, DoRecord, LaneSeqBehind},
	} {
		c.MySQLRead = true
		got := Decide(c.Facts)
		if got.Do == DoRecord {
			got.Reason = c.NewRow(7).Reason
		}
		if got.Do != c.want || got.Reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}

	for _, c := range []struct {
		name string
		Facts
		want   Deed
		reason LaneReason
	}{
		{"MySQL away, Redis is open", Facts{Redis: at(2, 5, Open)}, DoAdmit, ""},
		{"MySQL away, rebuilt", Facts{Seen: seen, Redis: at(3, 0, Open)}, DoAdmit, ""},
		{"MySQL away, no data", Facts{}, DoNothing, ""},
		{"MySQL away, being created", Facts{Redis: at(1, 0, Closed)}, DoNothing, ""},
		{"MySQL away, halted", Facts{Redis: halted}, DoNothing, ""},
		{"MySQL away, emptied", Facts{Seen: seen}, DoHalt, LaneKeyMissing},
		{"MySQL away, older", Facts{Seen: seen, Redis: at(1, 99, Open)}, DoHalt, LaneRedisOlder},
		{"MySQL away, behind", Facts{Seen: seen, Redis: at(2, 11, Open), RedisChanges: 3}, DoHalt, LaneSeqBehind},
		{"no MySQL, no data", Facts{NoMySQL: true}, DoCreate, ""},
		{"no MySQL, creation interrupted", Facts{NoMySQL: true, Redis: at(1, 0, Closed)}, DoCreate, ""},
		{"no MySQL, being rebuilt", Facts{NoMySQL: true, Redis: at(2, 0, Closed)}, DoNothing, ""},
		{"no MySQL, emptied", Facts{NoMySQL: true, Seen: seen}, DoHalt, LaneKeyMissing},
		{"no MySQL, halted", Facts{NoMySQL: true, Redis: halted}, DoNothing, ""},
	} {
		if got := Decide(c.Facts); got.Do != c.want || got.Reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}
}

// TestR9_SeenPosition: the position that a lane would have without the loss.
func TestR9_SeenPosition(t *testing.T) {
	seen := Position{Epoch: 2, Seq: 12, Changes: 7, Grabs: 9}
	row := LaneRow{Epoch: 2}
	for _, c := range []struct {
		name       string
		found      Epoch
		made       int64
		row        LaneRow
		seq, grabs int64
	}{
		{"emptied", Epoch{}, 0, row, 12, 9},
		{"older", Epoch{Number: 2, Seq: 8, Grabs: 6}, 5, row, 12, 9},
		{"others have caught up", Epoch{Number: 2, Seq: 15, Grabs: 11}, 5, row, 17, 13},
		{"no own change is missing", Epoch{Number: 2, Seq: 11, Grabs: 8}, 7, row, 12, 9},
		{"rebuilt since", Epoch{Number: 3}, 0, LaneRow{Epoch: 3}, 0, 0},
	} {
		s := Facts{MySQLRead: true, Recorded: true, Row: c.row, Seen: seen, Redis: c.found, RedisChanges: c.made}
		if got, want := s.Acknowledged(4), (LanePosition{Lane: 4, Epoch: c.row.Epoch, Seq: c.seq, Grabs: c.grabs}); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
