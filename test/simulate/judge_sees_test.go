package simulate

import (
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// ordinaryDice draws the ordinary case each time: nothing goes wrong.
type ordinaryDice struct{}

func (ordinaryDice) n(string, int) int { return 0 }

// lived returns an ordinary lifetime at its end: one share of one fen, claimed by user0 and paid.
func lived(t *testing.T) *model {
	m := newModel(ordinaryDice{})
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

// hold places a hold on the provider and runs the judge.
func (m *model) hold() {
	m.db.place(payout.Hold{Scope: payout.HoldProvider, Name: simulatedProvider, Kind: payout.HoldStaff})
	m.judge("hold")
}

// decided adds a mark-paid decision that was executed at a time.
func (m *model) decided(w *row, by, agreed string, at time.Time) {
	m.db.decisions = append(m.db.decisions,
		&decision{at: at, Decision: staff.Decision{PaymentID: w.ID, Kind: payout.DecisionMarkPaid, By: by,
			ApprovedBy: agreed, ExpiresAt: m.clock.Add(approvalLife), Status: payout.DecisionCarriedOut}})
}

// addShareConflict acknowledges to a second user the share that another user has, and records the
// share conflict with an amount in fen.
func (m *model) addShareConflict(w *row, amount money.Fen) {
	c := packet.Claim{PacketID: m.packet.ID, UserID: "second", ShareIndex: w.ShareIndex, Amount: 1, ClaimedAt: m.clock}
	m.acknowledged = append(m.acknowledged, c)
	_ = m.take(func() error { _, err := m.payments.RecordClaim(ctx, c); return err })
	m.db.shareConflicts[0].claim.Amount = amount
}

// TestJudgeSees checks that each check of the judge can fail: an ordinary lifetime is spoiled, and
// the check reports it.
func TestJudgeSees(t *testing.T) {
	const no = 0
	for name, tc := range map[string]struct {
		spoil func(m *model, won *row)
		want  string
	}{
		"a fen is gone":        {func(m *model, _ *row) { m.db.balance[payout.AccountHolding]-- }, "but its parts are"},
		"a posting is missing": {func(m *model, _ *row) { m.db.byKind[payout.PostPaid] = 0 }, "but its parts are"},
		"posted twice": {func(m *model, w *row) { m.db.post(payout.NewTransfer(payout.PostClaim, w.ID, w.Amount)) },
			"posted twice"},
		"a row differs":         {func(_ *model, w *row) { w.Status = payout.StatusCancelled; w.attempts[no].Booked = false }, "the verifier"},
		"owed by the row alone": {func(_ *model, w *row) { w.Status = payout.StatusUnknown }, "the rows sum to owed"},
		"failed, and it was paid": {func(_ *model, w *row) { w.Status, w.Failure = payout.StatusFailed, payout.NewFailure("", "") },
			"has failed, and the provider reports"},
		"booked, and never moved": {func(m *model, w *row) { m.bank.orders[w.attempts[no].OrderNo].moved = false }, "and never moved"},
		"another amount moved":    {func(m *model, w *row) { m.bank.orders[w.attempts[no].OrderNo].ins.Amount++ }, "MySQL does not"},
		"paid, and returned at the provider": {func(m *model, w *row) { m.bank.orders[w.attempts[no].OrderNo].kind = payout.ObsReturned },
			"the provider holds"},
		"paid here and outside":             {func(_ *model, w *row) { w.Status = payout.StatusPaidOutside }, "were paid out for"},
		"a winner without payout":           {func(m *model, w *row) { w.UserID = "another" }, "won 1 fen, and the row is"},
		"suspense without a break":          {func(m *model, _ *row) { m.db.balance[payout.AccountSuspense] = -1 }, "in suspense and no break"},
		"the packet is not closed":          {func(m *model, _ *row) { m.db.rec.Stored = packet.StatusClosing }, "the packet is closing"},
		"a claim that was not acknowledged": {func(m *model, _ *row) { m.acknowledged = nil }, "without an acknowledged claim"},
		"not on the list":                   {func(m *model, _ *row) { m.guests = map[string]bool{"another": true} }, "not on the list"},
		"sent while held":                   {func(m *model, w *row) { m.hold(); w.attempts[no].Sends++ }, "while it was held"},
		"a refund of a returned charge is sent": {func(m *model, _ *row) {
			m.db.rows[m.db.chargeID()].Status = payout.StatusReturned
			refund := payout.Payment{ID: payout.ID(payout.KindRefund, m.packet.ID, 0), Kind: payout.KindRefund, Status: payout.StatusPending}
			m.db.insert(refund, payout.NewAttempt(refund, 1, nil))
			m.judge("hold")
			m.db.rows[refund.ID].attempts[0].Sends++
		}, "while it was held"},
		"approved by its author": {func(m *model, w *row) { m.decided(w, "anna", "anna", m.clock) }, "approved by \"anna\""},
		"approved by no person":  {func(m *model, w *row) { m.decided(w, "anna", "", m.clock) }, "approved by \"\""},
		"approved too late": {func(m *model, w *row) { m.decided(w, "anna", "ben", m.clock.Add(approvalLife)) },
			"after it expired"},
		"retried by one person after a withdrawn cancel": {func(m *model, w *row) {
			m.decided(w, "anna", "ben", m.clock)
			m.decided(w, "cora", "", m.clock)
			cancel, retry := m.db.decisions[0], m.db.decisions[1]
			cancel.Kind, cancel.Status, retry.Kind = payout.DecisionCancel, payout.DecisionWithdrawn, payout.DecisionRetry
		}, "retry of"},
		"deciding without a decision": {func(_ *model, w *row) { w.OpenDecision = payout.DecisionCancel }, "is deciding"},
		"a share conflict is forgotten": {func(m *model, w *row) {
			m.addShareConflict(w, 1)
			m.db.shareConflicts = nil
		}, "won 1 fen, and the row is"},
		"a share conflict of another amount": {func(m *model, w *row) { m.addShareConflict(w, 2) }, "over 2 fen has payment"},
		"a share conflict paid, not honoured": {func(m *model, w *row) {
			m.addShareConflict(w, 1)
			m.db.post(payout.NewTransfer(payout.PostPaid, payout.OrderNo(m.db.shareConflicts[0].payment, 1), 1))
		}, "the house honoured 0"},
		"a share conflict paid with the packet's money": {func(m *model, w *row) {
			m.addShareConflict(w, 1)
			m.db.post(payout.NewTransfer(payout.PostClaim, m.db.shareConflicts[0].payment, 1))
		}, "the rows of share conflicts owe 0, the ledger 1"},
		"sent when the provider forgets": {func(m *model, w *row) {
			m.clock = w.attempts[no].QueryUntil.Add(time.Minute)
			m.judgeSendDeadline(w.attempts[no].OrderNo)
		}, "is about to forget it"},
		"executed twice": {func(m *model, w *row) {
			m.clock = m.clock.Add(m.limits.Remembers)
			m.bank.arrive(*orderOf(w.attempts[no]), m.clock)
		}, "had forgotten it"},
		"a new number without approval": {func(m *model, w *row) {
			w.attempts = append(w.attempts, payout.NewAttempt(w.Payment, 2, w.attempts[no].Request))
			m.bank.answers[w.attempts[no].OrderNo] = answer{w.attempts[no].QueryUntil, payout.ObsNeverReceived, w.attempts[no].QueryUntil}
			m.judgeNewAttempt(w.attempts[1].OrderNo)
		}, "no two persons approved it"},
		"cancelled in progress": {func(m *model, w *row) {
			m.bank.answers[w.attempts[no].OrderNo] = answer{m.clock, payout.ObsPending, m.clock}
			w.OpenDecision = payout.DecisionCancel
			m.judgeCarriedOut(w)
		}, "and the provider's last answer was pending for"},
		"not moved in progress": {func(m *model, w *row) {
			m.bank.answers[w.attempts[no].OrderNo] = answer{m.clock, payout.ObsPending, m.clock}
			w.OpenDecision = payout.DecisionNotMoved
			m.clock = w.attempts[no].QueryUntil.Add(-time.Second)
			m.judgeCarriedOut(w)
		}, "was stated not to have moved"},
		"a new number after another answer than was shown": {func(m *model, w *row) {
			m.gaveUp[w.attempts[no].OrderNo], m.db.heard[w.attempts[no].OrderNo] = payout.ObsNoAnswer, payout.ObsPending
			w.attempts = append(w.attempts, payout.NewAttempt(w.Payment, 2, w.attempts[no].Request))
			m.judgeConsents(w)
		}, "two persons were shown no_answer"},
		"a decision about a charge": {func(m *model, w *row) {
			m.decided(m.db.rows[payout.ID(payout.KindCharge, m.packet.ID, 0)], "anna", "ben", m.clock)
		}, "of the charge by"},
		"sent while an earlier number is pending": {func(m *model, w *row) {
			m.db.heard[w.attempts[no].OrderNo], w.attempts[no].Booked = payout.ObsPending, false
			w.attempts = append(w.attempts, payout.NewAttempt(w.Payment, 2, w.attempts[no].Request))
			m.judgeInFlight(w)
		}, "the provider reports pending for"},
		"forgotten, and no break": {func(m *model, w *row) {
			m.clock = m.clock.Add(m.limits.Remembers)
			m.bank.orders[w.attempts[no].OrderNo].kind = payout.ObsReturned
		}, "its return false"},
		"paid by a second number": {func(m *model, w *row) {
			second := payout.NewAttempt(w.Payment, 2, w.attempts[no].Request)
			w.attempts = append(w.attempts, second)
			o := *m.bank.orders[w.attempts[no].OrderNo]
			o.no = second.OrderNo
			m.bank.orders[o.no], m.bank.numbers = &o, append(m.bank.numbers, o.no)
			m.judgeNewAttempt(o.no)
		}, "was not queried since the decision"},
	} {
		t.Run(name, func(t *testing.T) {
			m := lived(t)
			tc.spoil(m, m.db.rows[payout.ID(payout.KindPayout, m.packet.ID, 0)])
			m.end()
			if got := strings.Join(m.wrong, "\n"); !strings.Contains(got, tc.want) {
				t.Errorf("not seen: want %q, got %q", tc.want, got)
			}
		})
	}
}
