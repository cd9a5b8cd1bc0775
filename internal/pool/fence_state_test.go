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
	at := func(number, seq int64, gate GateState) Epoch { return Epoch{Number: number, Seq: seq, Gate: gate} }
	halted := Epoch{Number: 2, Seq: 10, Gate: GateHalted, Reason: packet.LaneSeqBehind}
	was := memory{epoch: 2, seq: 12, made: 3}
	for _, c := range []struct {
		name string
		sight
		want   moveKind
		reason packet.LaneReason
	}{
		{"all agree", sight{recorded: true, row: open, found: at(2, 10, GateOpen)}, moveAdmit, ""},
		{"Redis is ahead", sight{recorded: true, row: open, found: at(2, 11, GateOpen)}, moveAdmit, ""},
		{"remembered too", sight{recorded: true, row: open, was: was, found: at(2, 12, GateOpen), made: 3}, moveAdmit, ""},
		{"remembered of an epoch before", sight{recorded: true, row: open, was: memory{epoch: 1, seq: 99, made: 9}, found: at(2, 10, GateOpen)},
			moveAdmit, ""},
		{"emptied", sight{recorded: true, row: open}, moveShut, packet.LaneKeyMissing},
		{"emptied, nothing seen", sight{recorded: true, row: row(1, packet.LaneOpen, 0, "")}, moveShut, packet.LaneKeyMissing},
		{"from before a rebuild", sight{recorded: true, row: open, found: at(1, 99, GateOpen)}, moveShut, packet.LaneRedisOlder},
		{"behind the books", sight{recorded: true, row: open, found: at(2, 9, GateOpen)}, moveShut, packet.LaneSeqBehind},
		{"behind what is remembered", sight{recorded: true, row: open, was: was, found: at(2, 11, GateOpen), made: 3}, moveShut,
			packet.LaneSeqBehind},
		{"others have gone on", sight{recorded: true, row: open, was: was, found: at(2, 99, GateOpen), made: 2}, moveShut, packet.LaneSeqBehind},
		{"halted by another", sight{recorded: true, row: open, found: halted}, moveShut, packet.LaneSeqBehind},
		{"halted, nobody says why", sight{recorded: true, row: open, found: at(2, 10, GateHalted)}, moveShut, packet.LaneHalted},
		{"books before a rebuild", sight{recorded: true, row: open, found: at(3, 0, GateOpen)}, moveShut, packet.LaneMySQLOlder},
		{"books and Redis before what is remembered", sight{recorded: true, row: row(4, packet.LaneOpen, 10, ""), was: memory{epoch: 5},
			found: at(4, 10, GateOpen)}, moveWait, packet.LaneMySQLOlder},
		{"the same, not opened to the end", sight{recorded: true, row: row(4, packet.LaneOpen, 10, ""), was: memory{epoch: 5},
			found: at(4, 10, GateClosed)}, moveWait, packet.LaneMySQLOlder},
		{"the same, halted", sight{recorded: true, row: row(4, packet.LaneOpen, 10, ""), was: memory{epoch: 5}, found: at(4, 10, GateHalted)},
			moveShut, packet.LaneHalted},
		{"the same, and Redis is behind the books", sight{recorded: true, row: row(4, packet.LaneOpen, 10, ""), was: memory{epoch: 5},
			found: at(4, 9, GateOpen)}, moveShut, packet.LaneSeqBehind},
		{"books alone before what is remembered", sight{recorded: true, row: row(4, packet.LaneOpen, 10, ""), was: memory{epoch: 5},
			found: at(5, 10, GateOpen)}, moveShut, packet.LaneMySQLOlder},
		{"not opened to the end", sight{recorded: true, row: open, found: at(2, 10, GateClosed)}, moveOpen, ""},
		{"made anew and not opened", sight{recorded: true, row: open, found: at(2, 0, GateClosed)}, moveShut, packet.LaneSeqBehind},

		{"shut", sight{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneKeyMissing)}, moveWait, ""},
		{"shut and halted", sight{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneSeqBehind), found: halted}, moveWait, ""},
		{"shut, not halted yet", sight{recorded: true, row: row(2, packet.LaneShut, 10, packet.LanePoolBehind), found: at(2, 10, GateOpen)},
			moveShut, packet.LanePoolBehind},
		{"shut, a rebuild has begun", sight{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneRequested), found: at(3, 0, GateOpen)},
			moveWait, ""},
		{"shut because the books are older", sight{recorded: true, row: row(2, packet.LaneShut, 10, packet.LaneMySQLOlder),
			found: at(2, 10, GateOpen)}, moveWait, ""},
		{"being rebuilt", sight{recorded: true, row: row(3, packet.LaneRebuilding, 0, packet.LaneKeyMissing), found: at(3, 0, GateClosed)},
			moveWait, ""},

		{"never there", sight{}, moveMake, ""},
		{"begun in the books", sight{recorded: true, row: row(1, packet.LaneShut, 0, packet.LaneNew)}, moveMake, ""},
		{"begun in Redis", sight{recorded: true, row: row(1, packet.LaneShut, 0, packet.LaneNew), found: at(1, 0, GateClosed)}, moveMake, ""},
		{"known to Redis alone", sight{found: at(1, 5, GateOpen)}, moveAdd, ""},
		{"known to Redis alone, rebuilt", sight{found: at(2, 5, GateOpen)}, moveAdd, packet.LaneMySQLOlder},
		{"known to Redis alone, halted", sight{found: Epoch{Number: 1, Gate: GateHalted}}, moveAdd, packet.LaneHalted},
		{"known to nobody but this process", sight{was: was}, moveAdd, packet.LaneKeyMissing},
		{"known to Redis, less than to this process", sight{was: was, found: at(2, 5, GateOpen)}, moveAdd, packet.LaneSeqBehind},
	} {
		c.known = true
		got := c.judge()
		if got.kind == moveAdd {
			got.reason = got.row(7, c.sight).Reason
		}
		if got.kind != c.want || got.reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}

	for _, c := range []struct {
		name string
		sight
		want   moveKind
		reason packet.LaneReason
	}{
		{"books away, Redis is open", sight{found: at(2, 5, GateOpen)}, moveAdmit, ""},
		{"books away, rebuilt", sight{was: was, found: at(3, 0, GateOpen)}, moveAdmit, ""},
		{"books away, nothing there", sight{}, moveWait, ""},
		{"books away, being made", sight{found: at(1, 0, GateClosed)}, moveWait, ""},
		{"books away, halted", sight{found: halted}, moveWait, ""},
		{"books away, emptied", sight{was: was}, moveShut, packet.LaneKeyMissing},
		{"books away, older", sight{was: was, found: at(1, 99, GateOpen)}, moveShut, packet.LaneRedisOlder},
		{"books away, behind", sight{was: was, found: at(2, 11, GateOpen), made: 3}, moveShut, packet.LaneSeqBehind},
		{"no books, nothing there", sight{alone: true}, moveMake, ""},
		{"no books, not made to the end", sight{alone: true, found: at(1, 0, GateClosed)}, moveMake, ""},
		{"no books, being rebuilt", sight{alone: true, found: at(2, 0, GateClosed)}, moveWait, ""},
		{"no books, emptied", sight{alone: true, was: was}, moveShut, packet.LaneKeyMissing},
		{"no books, halted", sight{alone: true, found: halted}, moveWait, ""},
	} {
		if got := c.judge(); got.kind != c.want || got.reason != c.reason {
			t.Errorf("%s: %+v, want %v %q", c.name, got, c.want, c.reason)
		}
	}
}

// TestR9_SeenCountsWhatIsMissing: how far a lane would have come, had it lost nothing.
func TestR9_SeenCountsWhatIsMissing(t *testing.T) {
	was := memory{epoch: 2, seq: 12, made: 7, grabs: 9}
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
		s := sight{known: true, recorded: true, row: c.row, was: was, found: c.found, made: c.made}
		if got, want := s.seen(4), (packet.LanePosition{Lane: 4, Epoch: c.row.Epoch, Seq: c.seq, Grabs: c.grabs}); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
