package simulate

import (
	"strings"
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
)

// ordinary is the dice of a lifetime in which nothing goes wrong.
type ordinary struct{}

func (ordinary) n(string, int) int { return 0 }

// lived is an ordinary lifetime at its end: one share of a fen, won by user0 and paid.
func lived(t *testing.T) *model {
	m := newModel(ordinary{})
	for m.pool.state != packet.PoolOpen {
		m.ready()[0]()
	}
	m.pool.grab(user(0))
	m.live(0)
	if len(m.wrong) > 0 {
		t.Fatalf("an ordinary lifetime: %q\n%s", m.wrong, strings.Join(m.story, "\n"))
	}
	m.pass(time.Hour)
	return m
}

// TestJudgeSees: each check can fail. A lifetime that was in order is spoiled, and
// the check that is for it says so.
func TestJudgeSees(t *testing.T) {
	const no = 0
	for name, tc := range map[string]struct {
		spoil func(m *model, won *row)
		want  string
	}{
		"a fen is gone":            {func(m *model, _ *row) { m.books.balance[payout.AccountHolding]-- }, "but its parts are"},
		"a posting is missing":     {func(m *model, _ *row) { m.books.byKind[payout.PostPaid] = 0 }, "but its parts are"},
		"posted twice":             {func(m *model, w *row) { m.books.post(payout.NewPosting(payout.PostClaim, w.ID, w.Amount)) }, "posted twice"},
		"a row says otherwise":     {func(_ *model, w *row) { w.Status = payout.StatusCancelled; w.attempts[no].Booked = false }, "the verifier"},
		"owed by the row alone":    {func(_ *model, w *row) { w.Status = payout.StatusUnknown }, "the rows say owed"},
		"failed, and it was paid":  {func(_ *model, w *row) { w.Status, w.Failure = payout.StatusFailed, payout.NewFailure("", "") }, "has failed, and the provider says"},
		"booked, and never moved":  {func(m *model, w *row) { m.bank.orders[w.attempts[no].OrderNo].moved = false }, "and never moved"},
		"another amount moved":     {func(m *model, w *row) { m.bank.orders[w.attempts[no].OrderNo].ins.Amount++ }, "the books do not"},
		"paid, and came back":      {func(m *model, w *row) { m.bank.orders[w.attempts[no].OrderNo].kind = payout.ObsReturned }, "the provider holds"},
		"paid here and outside":    {func(_ *model, w *row) { w.Status = payout.StatusPaidOutside }, "were given for"},
		"a winner without payout":  {func(m *model, w *row) { w.UserID = "somebody else" }, "won 1 fen, and the row says"},
		"suspense without a break": {func(m *model, _ *row) { m.books.balance[payout.AccountSuspense] = -1 }, "in suspense and no break"},
		"the packet is not closed": {func(m *model, _ *row) { m.books.rec.Stored = packet.StatusClosing }, "the packet is closing"},
		"a claim nobody won":       {func(m *model, _ *row) { m.pool.claimed = 0 }, "booked as claimed"},
		"paid by a second number": {func(m *model, w *row) {
			second := payout.NewAttempt(w.Payment, 2, w.attempts[no].Request)
			w.attempts = append(w.attempts, second)
			o := *m.bank.orders[w.attempts[no].OrderNo]
			o.no = second.OrderNo
			m.bank.orders[o.no], m.bank.numbers = &o, append(m.bank.numbers, o.no)
			m.judgeNewNumber(o.no)
		}, "was not asked about since the decision"},
	} {
		t.Run(name, func(t *testing.T) {
			m := lived(t)
			tc.spoil(m, m.books.rows[payout.ID(payout.KindPayout, m.packet.ID, 0)])
			m.end()
			if got := strings.Join(m.wrong, "\n"); !strings.Contains(got, tc.want) {
				t.Errorf("not seen: want %q, got %q", tc.want, got)
			}
		})
	}
}
