package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

// statement is a provider's statement about a store.
type statement struct {
	*storetest.Statement
	t *testing.T
	s *testStore
	c *storetest.Clock
}

func newStatement(t *testing.T) *statement {
	s, c := newStore(t)
	return &statement{storetest.NewStatement(t, s, c), t, s, c}
}

// midnight advances to a moment after the end of the store's day.
func (x *statement) midnight(after time.Duration) payout.Day {
	day := payout.DayOf(x.s.Now(), time.UTC)
	_, end := day.Span(time.UTC)
	x.c.Pass(end.Add(after).Sub(x.s.Now()))
	return day
}

// closing runs the worker's steps for days as far as possible.
func (x *statement) closing() {
	x.t.Helper()
	for more, n := true, 0; more; n++ {
		var err error
		more, err = x.s.SaveLedgerSums(x.t.Context(), time.UTC)
		must(x.t, err)
		if n > 1000 {
			x.t.Fatal("there is no end of sums")
		}
	}
	_, err := x.s.MatchDays(x.t.Context(), provider, time.UTC)
	must(x.t, err)
}

func (x *statement) close(day payout.Day) staff.DayClose {
	x.t.Helper()
	c, err := x.s.DayClose(x.t.Context(), provider, day, time.UTC)
	must(x.t, err)
	return c
}

// matched is the match with the statement of the provider of new payouts.
func matched(c staff.DayClose) *staff.StatementMatch { return c.Match.Statements[0] }

// moves carries out a pending payment, at the provider and in MySQL.
func (x *statement) moves(id string, account string, amount money.Fen) {
	x.t.Helper()
	x.Paid(begin(x.t, x.s, id), amount, account)
}

func (x *statement) packet(app string, total money.Fen, shares int) packet.Packet {
	x.t.Helper()
	p := samplePacket(total, shares)
	p.App = app
	recorded(x.t, x.s, p)
	x.moves(chargeID(p), p.SenderID, total)
	_, err := x.s.Fund(x.t.Context(), p.ID, even(p))
	must(x.t, err)
	return p
}

func sums(pairs ...int64) staff.Sum { return staff.Sum{Count: pairs[0], Amount: money.Fen(pairs[1])} }

func wantKinds(t *testing.T, what string, got map[payout.TransferKind]staff.Sum, want map[payout.TransferKind]staff.Sum) {
	t.Helper()
	for _, kind := range payout.TransferKinds {
		if got[kind] != want[kind] {
			t.Errorf("%s: %s %+v, want %+v", what, kind, got[kind], want[kind])
		}
	}
}

func wantBalances(t *testing.T, what string, got staff.Totals, want map[payout.Account]staff.Sum) {
	t.Helper()
	for _, a := range payout.Accounts {
		sum := got.Balance(a)
		if a != payout.AccountOwed && a != payout.AccountRefunding {
			sum.Count = 0
		}
		if sum != want[a] {
			t.Errorf("%s: %s %+v, want %+v", what, a, sum, want[a])
		}
	}
	if !got.Sound() {
		t.Errorf("%s: not sound", what)
	}
}

// twoDays are two ledger days, the second not over, with their statements. First day: a packet of
// 1000 fen in four shares: one paid, one failed, one in flight at midnight, one moved before
// midnight and reported after it. A packet of 300 fen has one of three shares claimed and its
// remainder refunded. A third packet, of another app, is open.
func twoDays(t *testing.T) (x *statement, first payout.Day, late payout.Order) {
	x = newStatement(t)
	p := x.packet("app", 1000, 4)
	rest := x.packet("app", 300, 3)
	x.packet("other", 500, 5)
	for share := range 4 {
		claim(t, x.s, p, share, fmt.Sprint("u", share))
	}
	claim(t, x.s, rest, 0, "u")
	x.moves(payoutID(p, 0), "u0", 250)
	fail(t, x.s, payoutID(p, 1))
	flight := begin(t, x.s, payoutID(p, 2))
	settle(t, x.s, payout.SourceSend, flight.OrderNo, payout.ObsPending)
	x.moves(payoutID(rest, 0), "u", 100)
	_, err := x.s.BeginClosing(t.Context(), rest.ID, packet.CloseRecalled)
	must(t, err)
	_, err = x.s.CloseBooks(t.Context(), rest.ID, "")
	must(t, err)
	x.moves(refundID(rest), "sender", 200)
	late = begin(t, x.s, payoutID(p, 3))
	_, end := payout.DayOf(x.s.Now(), time.UTC).Span(time.UTC)
	x.Add(late.Op, late.OrderNo, "u3", 250, end.Add(-time.Millisecond))
	first = x.midnight(time.Second)
	settle(t, x.s, payout.SourceSend, late.OrderNo, payout.ObsSucceeded)
	x.Paid(flight, 250, "u2")
	decide(t, x.s, payoutID(p, 1))
	settle(t, x.s, payout.SourceQuery, payout.OrderNo(payoutID(p, 1), 1), payout.ObsDeclined)
	x.moves(payoutID(p, 1), "u1", 250)
	return x, first, late
}

// TestCloseMatchesBothSidesOfMidnight: the figures of two days are correct, and each day ends where
// the next one begins. A movement on different days is reported by its order number.
func TestCloseMatchesBothSidesOfMidnight(t *testing.T) {
	t.Parallel()
	x, first, late := twoDays(t)
	second := first.Add(1)
	x.c.Pass(2 * staff.LedgerSettled)
	x.closing()
	if c := x.close(first); !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByStatement}) || c.Match != nil ||
		c.EntriesMatch() != nil {
		t.Errorf("nothing was read: %v, %+v", c.Blockers, c.Match)
	}
	x.Reconcile(first)
	if c := x.close(first); !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByMatch}) {
		t.Errorf("read, but not matched: %v", c.Blockers)
	}
	x.closing()
	c := x.close(first)
	if len(c.Blockers) != 0 || c.FinalAt.IsZero() || c.EntriesMatch() == nil || !*c.EntriesMatch() || c.Match == nil || !c.Match.Agrees() {
		t.Fatalf("pending %v, %+v", c.Blockers, c.Match)
	}
	wantBalances(t, "opening", c.Opening, nil)
	wantKinds(t, "first day", c.Movements().ByKind(), map[payout.TransferKind]staff.Sum{payout.PostCharge: sums(3, 1800),
		payout.PostClaim: sums(5, 1100),
		payout.PostPaid:  sums(2, 350), payout.PostClose: sums(1, 200), payout.PostRefunded: sums(1, 200)})
	atMidnight := map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -1250), payout.AccountHolding: sums(0, 500),
		payout.AccountOwed: sums(3, 750)}
	wantBalances(t, "closing", c.Closing, atMidnight)
	wantBalances(t, "closing of the other app", c.Closing.OfApp("other"), map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -500),
		payout.AccountHolding: sums(0, 500)})
	if ops := matched(c).Ops; ops[0] != (staff.MatchOp{Op: payout.OpCharge, Ours: sums(3, 1800), Theirs: sums(3, 1800)}) ||
		ops[1] != (staff.MatchOp{Op: payout.OpTransfer, Ours: sums(2, 350), Theirs: sums(3, 600), Differ: sums(1, 250)}) ||
		ops[2] != (staff.MatchOp{Op: payout.OpRefund, Ours: sums(1, 200), Theirs: sums(1, 200)}) {
		t.Errorf("%+v", ops)
	}
	if d := matched(c).Differences; len(d) != 1 || d[0].Kind != staff.DifferBookedLater || d[0].OrderNo != late.OrderNo ||
		d[0].Theirs != 250 || d[0].Ours != 0 ||
		payout.DayOf(d[0].MovedAt, time.UTC) != first || payout.DayOf(d[0].BookedAt, time.UTC) != second {
		t.Errorf("%+v", d)
	}

	today := x.close(second)
	if !slices.Equal(today.Blockers, []staff.CloseBlocker{staff.BlockedByDay}) {
		t.Errorf("today waits for %v", today.Blockers)
	}
	wantBalances(t, "opening of the second day", today.Opening, atMidnight)
	wantKinds(t, "second day", today.Movements().ByKind(), map[payout.TransferKind]staff.Sum{payout.PostPaid: sums(3, 750)})

	x.Add(payout.OpTransfer, "nobody-sent-this", "stranger", 77, x.s.Now())
	x.midnight(2 * staff.LedgerSettled)
	x.Reconcile(second)
	x.closing()
	c = x.close(second)
	if !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByBreaks}) || !c.FinalAt.IsZero() || !c.Match.Agrees() ||
		c.Match.OpenBreaks() != 1 {
		t.Fatalf("pending %v, %+v", c.Blockers, c.Match)
	}
	if op := matched(c).Ops[1]; op != (staff.MatchOp{Op: payout.OpTransfer, Ours: sums(3, 750), Theirs: sums(3, 577), Differ: sums(0, -173)}) {
		t.Errorf("%+v", op)
	}
	if len(matched(c).Sums) != 2 ||
		matched(c).Sums[0] != (staff.DifferenceSum{Kind: staff.DifferMovedEarlier, Op: payout.OpTransfer, Ours: sums(1, 250)}) ||
		matched(c).Sums[1] != (staff.DifferenceSum{Kind: staff.DifferTheirs, Op: payout.OpTransfer, Theirs: sums(1, 77)}) {
		t.Errorf("%+v", matched(c).Sums)
	}
	b := matched(c).Differences[1].Breaks
	if len(b) != 1 || b[0].Kind != payout.BreakForeignOrder || !b[0].Open {
		t.Fatalf("%+v", matched(c).Differences)
	}
	_, err := x.s.ResolveBreak(t.Context(), financeWrite(t, x.s, "resolve", "h"), b[0].ID,
		func(staff.BreakRow) (int, []byte) { return 200, []byte("resolved") })
	must(t, err)
	x.closing() // too soon after the last match
	if c := x.close(second); !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByBreaks}) {
		t.Errorf("pending %v", c.Blockers)
	}
	x.c.Pass(2 * matchInterval)
	x.closing()
	if c = x.close(second); len(c.Blockers) != 0 || c.FinalAt.IsZero() || c.Match.OpenBreaks() != 0 ||
		matched(c).Differences[1].Breaks[0].Open {
		t.Errorf("pending %v, %+v", c.Blockers, c.Match)
	}
	wantBalances(t, "closing of the second day", c.Closing, map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -500),
		payout.AccountHolding: sums(0, 500)})
	checkLedger(t, x.s)
}

// TestFinalDayStaysAsItIs: whatever is posted, read and found later.
func TestFinalDayStaysAsItIs(t *testing.T) {
	t.Parallel()
	x, first, _ := twoDays(t)
	x.c.Pass(2 * staff.LedgerSettled)
	x.Reconcile(first)
	x.closing()
	text := func() []byte {
		c := x.close(first)
		if c.FinalAt.IsZero() || len(c.Blockers) != 0 {
			t.Fatalf("pending %v", c.Blockers)
		}
		b, err := json.Marshal(c)
		must(t, err)
		return b
	}
	before := text()
	x.Add(payout.OpTransfer, "nobody-sent-this", "stranger", 77, x.Lines[first][0].At)
	x.Lines[first] = slices.DeleteFunc(x.Lines[first], func(l payout.StatementLine) bool { return l.Op == payout.OpRefund })
	slices.SortFunc(x.Lines[first], func(a, b payout.StatementLine) int { return a.At.Compare(b.At) })
	x.c.Pass(time.Hour)
	if r := x.Reconcile(first); r.Breaks != 2 {
		t.Errorf("the statement was changed, and %d breaks", r.Breaks)
	}
	x.packet("app", 4000, 4)
	x.midnight(2 * staff.LedgerSettled)
	x.Reconcile(first.Add(1))
	x.closing()
	if after := text(); !bytes.Equal(before, after) {
		t.Errorf("%s\n%s", before, after)
	}
}

// TestCloseSeesEntriesThatAreMissing: a day whose transfers do not add up to the difference of its
// balances does not become final.
func TestCloseSeesEntriesThatAreMissing(t *testing.T) {
	t.Parallel()
	x, first, _ := twoDays(t)
	x.c.Pass(2 * staff.LedgerSettled)
	x.closing()
	// Deleted after the sums were stored, on both sides.
	gone := x.Lines[first][slices.IndexFunc(x.Lines[first], func(l payout.StatementLine) bool { return l.Op == payout.OpRefund })]
	x.Lines[first] = slices.DeleteFunc(x.Lines[first], func(l payout.StatementLine) bool { return l.Ref == gone.Ref })
	must(t, x.s.db.Gorm.Exec("DROP TRIGGER transfers_no_delete").Error)
	must(t, x.s.db.Gorm.Exec("DELETE FROM transfers WHERE order_no = ? AND kind = 'refunded'", gone.OrderNo).Error)
	x.Reconcile(first)
	x.closing()
	c := x.close(first)
	if !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByEntries}) || c.EntriesMatch() == nil || *c.EntriesMatch() ||
		!c.FinalAt.IsZero() {
		t.Errorf("pending %v", c.Blockers)
	}
}

// TestCloseNeedsABreakForEachDifference: a difference without a break keeps the day from becoming
// final.
func TestCloseNeedsABreakForEachDifference(t *testing.T) {
	t.Parallel()
	x, first, _ := twoDays(t)
	x.c.Pass(2 * staff.LedgerSettled)
	x.Add(payout.OpTransfer, "nobody-sent-this", "stranger", 77, x.Lines[first][0].At)
	x.Reconcile(first)
	must(t, x.s.db.Gorm.Exec("DELETE FROM breaks").Error)
	x.closing()
	c := x.close(first)
	if !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByUnexplained}) || matched(c).Unexplained != 1 {
		t.Errorf("pending %v, %+v", c.Blockers, c.Match)
	}
}

// TestLedgerAtAnyMoment: the balances at a moment are those of all transfers before it, whatever
// sums are stored, in every time zone.
func TestLedgerAtAnyMoment(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	begun := x.s.Now()
	for range 4 {
		p := x.packet("app", 100, 2)
		claim(t, x.s, p, 0, "u")
		x.c.Pass(7 * time.Hour)
		x.moves(payoutID(p, 0), "u", 50)
		x.c.Pass(11*time.Minute + 7*time.Second)
	}
	check := func(what string) {
		t.Helper()
		for at := begun; at.Before(x.s.Now()); at = at.Add(97*time.Minute + 3*time.Second) {
			want := staff.Totals{}
			var rows []mysql.TransferRow
			must(t, x.s.db.Gorm.Raw("SELECT * FROM transfers WHERE created_at < ?", at).Scan(&rows).Error)
			for _, r := range rows {
				key := staff.TotalsKey{App: "app", Kind: payout.TransferKind(r.Kind), Payment: payout.Kind(r.OrderNo[0]),
					Provider: mysql.OrEmpty(r.Provider)}
				want[key] = want[key].Plus(sums(1, r.Amount))
			}
			got, err := x.s.LedgerSumsAt(t.Context(), at)
			must(t, err)
			if diff := got.Minus(want); len(diff) != 0 {
				t.Errorf("%s, %s: %v", what, at, diff)
			}
		}
	}
	check("nothing kept")
	half := time.FixedZone("half", 5*3600+1800)
	for {
		more, err := x.s.SaveLedgerSums(t.Context(), half)
		must(t, err)
		if !more {
			break
		}
	}
	check("sums kept")
	_, end := payout.DayOf(begun, half).Span(half)
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM ledger_closes WHERE closed_to = ?", end); n != 1 {
		t.Errorf("%d sums stored at the end of a day, %s", n, end)
	}
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM ledger_closes"); n < 8 {
		t.Errorf("%d sums stored", n)
	}
}

// TestClosesAtOnce: two workers store the same sums.
func TestClosesAtOnce(t *testing.T) {
	t.Parallel()
	x, first, _ := twoDays(t)
	x.c.Pass(2 * staff.LedgerSettled)
	x.Reconcile(first)
	for _, err := range together(4, func(int) error {
		for {
			if more, err := x.s.SaveLedgerSums(t.Context(), time.UTC); err != nil || !more {
				return err
			}
		}
	}) {
		must(t, err)
	}
	for _, err := range together(4, func(int) error { _, err := x.s.MatchDays(t.Context(), provider, time.UTC); return err }) {
		must(t, err)
	}
	if c := x.close(first); len(c.Blockers) != 0 {
		t.Errorf("pending %v", c.Blockers)
	}
}

// TestClosesAreListed: every day since the first transfer, newest first, page by page.
func TestClosesAreListed(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	if none, err := x.s.DayCloses(t.Context(), provider, time.UTC, "", 10); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	_, err := x.s.DayClose(t.Context(), provider, payout.DayOf(x.s.Now(), time.UTC), time.UTC)
	wantErr(t, err, ErrNotFound)
	x.packet("app", 100, 1)
	first := x.midnight(time.Hour)
	x.c.Pass(3 * 24 * time.Hour)
	x.packet("app", 200, 1)
	x.closing()
	list, err := x.s.DayCloses(t.Context(), provider, time.UTC, "", 3)
	must(t, err)
	rest, err := x.s.DayCloses(t.Context(), provider, time.UTC, list[2].Day, 3)
	must(t, err)
	list = append(list, rest...)
	for i, c := range list {
		want := map[int]staff.Sum{0: sums(1, 200), 4: sums(1, 100)}[i]
		if c.Day != first.Add(4-i) || c.Movements().ByKind()[payout.PostCharge] != want {
			t.Errorf("%d: %s %+v", i, c.Day, c.Movements())
		}
	}
	if len(list) != 5 {
		t.Errorf("%d days", len(list))
	}
	for _, day := range []payout.Day{first.Add(-1), first.Add(5)} {
		_, err := x.s.DayClose(t.Context(), provider, day, time.UTC)
		wantErr(t, err, ErrNotFound)
	}
}

// TestClosesReadIndexes explains the statements of closes on full tables.
func TestClosesReadIndexes(t *testing.T) {
	t.Parallel()
	s, c, raw := newStoreAt(t, stacktest.MariaDB(t))
	x := &statement{storetest.NewStatement(t, s, c), t, s, c}
	x.packet("app", 100, 1)
	at := x.s.Now()
	_, err := raw.ExecContext(t.Context(), `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at,
		provider)
		SELECT LPAD(seq, 20, '0'), 'charge', 'provider', 'holding', 5, CONCAT('c', LPAD(seq, 20, '0'), '000001'), CONCAT('c', LPAD(seq, 20, '0'),
		'000001:charge'),
		? + INTERVAL seq SECOND, 'sandbox' FROM seq_1_to_20000;
		INSERT INTO statement_lines (provider, ref, day, op, order_no, account, amount, moved_at, created_at, reconciliation_id)
		SELECT 'sandbox', CONCAT('f', seq), DATE(? + INTERVAL seq SECOND), 'charge', CONCAT('c', LPAD(seq, 20, '0'), '000001'), 'a', 5,
		? + INTERVAL seq SECOND, ?, 'r' FROM seq_1_to_20000;
		INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		SELECT 'mismatch', 'p', CONCAT('c', LPAD(seq, 20, '0'), '0000'), CONCAT('c', LPAD(seq, 20, '0'), '000001'), '', ?, ? FROM seq_1_to_3000;
		INSERT INTO reconciliations (id, provider, day, status, requested_by, reason, created_at, started_at, ended_at, due_at)
		SELECT CONCAT('f', seq), IF(seq = 0, 'sandbox', 'other'), DATE(? - INTERVAL seq DAY), 'done', 't', '', ?, ?, ?, ? FROM seq_0_to_3000;
		INSERT INTO ledger_closes (closed_to, totals, created_at) SELECT ? - INTERVAL seq HOUR, '[]', ? FROM seq_100_to_3000;
		ANALYZE TABLE transfers, statement_lines, breaks, reconciliations, ledger_closes`, at, at, at, at, at, at, at, at, at, at, at, at, at)
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	day := x.midnight(2 * staff.LedgerSettled)
	from := len(rec.Texts)
	x.closing()
	x.close(day)
	_, err = s.DayCloses(t.Context(), provider, time.UTC, "", 20)
	must(t, err)
	_, err = s.LedgerSumsAt(t.Context(), at.Add(time.Hour))
	must(t, err)
	if c := x.close(day); c.Match == nil || matched(c).ReconciliationID != "f0" || c.Movements().Entries() < 10000 {
		t.Errorf("%+v", c.Match)
	}
	explained := 0
	for _, text := range rec.Texts[from:] {
		if !strings.HasPrefix(text, "INSERT") {
			explain(t, raw, text)
			explained++
		}
	}
	if explained < 100 {
		t.Errorf("only %d statements were explained", explained)
	}
}
