package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// packetFound reads what the statements have of a packet and compares the counts and both sums.
func (x *statement) packetFound(step string, p packet.Packet, want staff.PacketStatement) staff.PacketStatement {
	x.t.Helper()
	got, err := x.s.PacketStatement(x.t.Context(), provider, p.ID)
	must(x.t, err)
	if got.Stated != want.Stated || got.Booked != want.Booked || got.Lines != want.Lines || got.Missing != want.Missing ||
		got.Differing != want.Differing {
		x.t.Errorf("%s: %+v, want %+v", step, got, want)
	}
	return got
}

// TestPacketStatement: the statements cover a packet when each of its movements at the provider has a line, and agree
// when the lines have the same amounts and nothing else.
func TestPacketStatement(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p, _ := x.packet("app", 1000, 4), x.packet("app", 500, 1)
	for share := range 4 {
		claim(t, x.s, p, share, fmt.Sprint("u", share))
	}
	x.moves(payoutID(p, 0), "u0", 250)
	booked := payout.ProviderTotals{Charged: 1000, Transferred: 250}
	none := x.packetFound("nothing read", p, staff.PacketStatement{Booked: booked, Missing: 2, Differing: 2})
	if none.Covers() || none.Agrees() || none.Day != "" || none.BookedAt.IsZero() {
		t.Errorf("nothing read: %+v", none)
	}

	r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	all := x.packetFound("all", p, staff.PacketStatement{Stated: booked, Booked: booked, Lines: 2})
	if !all.Covers() || !all.Agrees() || all.Day != r.Day || !all.Until(time.UTC).Equal(r.StartedAt) {
		t.Errorf("all, read before the end of the day: %+v", all)
	}

	x.moves(payoutID(p, 1), "u1", 250)
	booked.Transferred = 500
	part := x.packetFound("part", p, staff.PacketStatement{Stated: payout.ProviderTotals{Charged: 1000, Transferred: 250}, Booked: booked,
		Lines: 2, Missing: 1, Differing: 1})
	if part.Covers() || part.Agrees() || !part.BookedAt.After(none.BookedAt) {
		t.Errorf("part: %+v", part)
	}

	x.moves(payoutID(p, 2), "u2", 249)
	first := x.midnight(time.Hour)
	x.Reconcile(first)
	booked.Transferred = 750
	other := x.packetFound("another amount", p, staff.PacketStatement{Stated: payout.ProviderTotals{Charged: 1000, Transferred: 749},
		Booked: booked, Lines: 4, Differing: 1})
	if _, end := first.Span(time.UTC); !other.Covers() || other.Agrees() || !other.Until(time.UTC).Equal(end) {
		t.Errorf("another amount, read after the end of the day: %+v", other)
	}
}

// TestPacketStatementCountsWhatIsStated: a return that the ledger does not have is no agreement; a part of a statement, a
// foreign packet's line and an honoured share conflict do not count.
func TestPacketStatementCountsWhatIsStated(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p := x.packet("app", 300, 3)
	claim(t, x.s, p, 0, "u0")
	x.moves(payoutID(p, 0), "u0", 100)
	today := payout.DayOf(x.s.Now(), time.UTC)
	booked := payout.ProviderTotals{Charged: 300, Transferred: 100}
	must(t, x.s.SaveStatement(t.Context(), "r", adapter, today, x.Lines[today]))
	x.packetFound("read in part", p, staff.PacketStatement{Booked: booked, Missing: 2, Differing: 2})

	honour := payout.OrderNo(payout.ID(payout.KindHonour, p.ID, 7), 1)
	x.Add(payout.OpTransfer, honour, "u9", 40, x.s.Now())
	tamper(t, x.s.db.SQL, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
		SELECT packet_id, 'paid', 'owed', 'provider', 40, '`+honour+`', '`+honour+`:paid', created_at, provider FROM transfers LIMIT 1`)
	x.Reconcile(today)
	x.packetFound("honoured", p, staff.PacketStatement{Stated: booked, Booked: booked, Lines: 2})
	if other, err := x.s.PacketStatement(t.Context(), "other", p.ID); err != nil || other != (staff.PacketStatement{}) {
		t.Errorf("at another provider: %+v, %v", other, err)
	}

	x.Add(payout.OpReturn, payout.OrderNo(payoutID(p, 0), 1), "u0", 100, x.s.Now())
	x.Reconcile(today)
	stated := booked
	stated.Returned = 100
	returned := x.packetFound("returned", p, staff.PacketStatement{Stated: stated, Booked: booked, Lines: 3, Differing: 1})
	if !returned.Covers() || returned.Agrees() {
		t.Errorf("returned, and not in the ledger: %+v", returned)
	}
	o := observation(payout.SourceQuery, payout.OrderNo(payoutID(p, 0), 1), payout.ObsReturned)
	_, err := x.s.Settle(t.Context(), o, o.OrderNo)
	must(t, err)
	if got := x.packetFound("booked", p, staff.PacketStatement{Stated: stated, Booked: stated, Lines: 3}); !got.Agrees() {
		t.Errorf("returned, and in the ledger: %+v", got)
	}
}

// TestPacketFees: the fees of a packet are those of its orders that the ledger has, less returned ones. Reading a line again
// changes nothing.
func TestPacketFees(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p, other := x.packet("app", 1000, 4), x.packet("app", 500, 1)
	today := payout.DayOf(x.s.Now(), time.UTC)
	fees := func(step string, want money.Fen) {
		t.Helper()
		if got, err := x.s.PacketFees(t.Context(), provider, p.ID); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", step, got, err, want)
		}
	}
	charge, foreign := payout.OrderNo(chargeID(p), 1), payout.OrderNo(chargeID(other), 1)
	x.Add(payout.OpFee, charge, "", 6, x.s.Now())
	x.Add(payout.OpFee, foreign, "", 3, x.s.Now())
	x.Add(payout.OpFee, "not ours", "", 2, x.s.Now())
	x.Add(payout.OpTopUp, charge, "", 100, x.s.Now())
	fees("nothing read", 0)
	x.Reconcile(today)
	fees("charged", 6)
	x.Add(payout.OpFeeReturned, payout.OrderNo(payout.ID(payout.KindRefund, p.ID, 0), 1), "", 2, x.s.Now())
	x.Reconcile(today)
	fees("returned in part", 4)
	x.Reconcile(today)
	fees("read again", 4)
	if got, err := x.s.PacketFees(t.Context(), "other", p.ID); err != nil || got != 0 {
		t.Errorf("at another provider: %d, %v", got, err)
	}
}

// TestPacketStatementReadsOnePacket: the cost of a packet does not grow with the statements.
func TestPacketStatementReadsOnePacket(t *testing.T) {
	t.Parallel()
	s, c, raw := newStoreAt(t, stacktest.MariaDB(t))
	x := &statement{storetest.NewStatement(t, s, c), t, s, c}
	p := x.packet("app", 100, 1)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	at := x.s.Now()
	_, err := raw.ExecContext(t.Context(), `INSERT INTO statement_lines (provider, ref, day, op, order_no, account, amount, moved_at,
		created_at, reconciliation_id)
		SELECT 'sandbox', CONCAT('f', seq), DATE(?), 'charge', CONCAT('c', LPAD(seq, 20, '0'), '000001'), 'a', 5, ?, ?, 'r' FROM seq_1_to_20000;
		INSERT INTO statements (provider, day, read_at, reconciliation_id)
		SELECT 'sandbox', DATE(? - INTERVAL seq DAY), ?, 'r' FROM seq_1_to_2000;
		ANALYZE TABLE transfers, statement_lines, statements`, at, at, at, at, at)
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	x.packetFound("all", p, staff.PacketStatement{Stated: payout.ProviderTotals{Charged: 100}, Booked: payout.ProviderTotals{Charged: 100},
		Lines: 1})
	read := 0
	for _, text := range rec.Texts {
		if strings.HasPrefix(text, "SELECT") {
			readsAtMost(t, raw, text, 40)
			read++
		}
	}
	if read != 2 {
		t.Errorf("%d statements", read)
	}
}
