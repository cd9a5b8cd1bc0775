package history

import (
	"fmt"
	"strings"
	"time"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// course is what the provider makes of one order.
type course struct {
	name          string
	outcome       Outcome
	code, message string
	silent        bool // the answer to the send is lost; it has to be asked
}

// The courses that do not depend on the account.
var (
	courseOK     = course{name: "ok", outcome: OutcomeSucceeded}
	courseSilent = course{name: "silent", outcome: OutcomeSucceeded, silent: true}
	courseRule   = course{name: "rule", outcome: OutcomeDeclined, code: "declined_by_rule", message: "The provider's rules refused the order."}
	courseBack   = course{name: "back", outcome: OutcomeReturned, code: "returned", message: "The money came back."}
	courseFrozen = course{name: "frozen", outcome: OutcomeDeclined, code: "account_frozen", message: "The account is frozen."}
	courseClosed = course{name: "closed", outcome: OutcomeDeclined, code: "payee_declined", message: "The account refuses to be paid."}
)

// How often a payout takes another course than to be paid, of a thousand.
const (
	frozenAccounts = 6
	closedAccounts = 5
	ruleRefusals   = 6
	comeBacks      = 4
	lostAnswers    = 5
)

// claimer draws a user who grabs. What his account does is in its name, as with
// the sandbox provider, so that a retry from the console meets the same.
func (m *maker) claimer() string {
	user := m.user()
	switch {
	case m.in(frozenAccounts):
		return user + "~frozen"
	case m.in(closedAccounts):
		return user + "~declined"
	}
	return user
}

// courseOf draws what the provider makes of the first order to an account.
func (m *maker) courseOf(account string, kind payout.Kind) course {
	switch {
	case kind == payout.KindCharge && strings.HasSuffix(account, "~broke"):
		return course{name: "broke", outcome: OutcomeDeclined, code: "insufficient_sender_balance", message: "The sender's balance does not cover the charge."}
	case kind == payout.KindCharge && strings.HasSuffix(account, "~declined"):
		return course{name: "declined", outcome: OutcomeDeclined, code: "payer_declined", message: "The sender's account refuses to be charged."}
	case strings.HasSuffix(account, "~frozen"):
		return courseFrozen
	case strings.HasSuffix(account, "~declined"):
		return courseClosed
	case m.in(lostAnswers):
		return courseSilent
	case kind == payout.KindPayout && m.in(ruleRefusals):
		return courseRule
	case kind == payout.KindPayout && m.in(comeBacks):
		return courseBack
	}
	return courseOK
}

// newPayment is a payment as it is made, pending.
func (m *maker) newPayment(kind payout.Kind, n int, user string, amount money.Fen, at time.Time) *Payment {
	share := -1
	if kind == payout.KindPayout {
		share = n
	}
	return &Payment{Payment: payout.Payment{
		ID: payout.ID(kind, m.ID, n), Kind: kind, PacketID: m.ID, App: m.App, UserID: user, ShareIndex: share, Account: user, Amount: amount,
		Currency: m.Currency, Remark: "hongbao " + m.ID, Provider: m.Provider, Status: payout.StatusPending, CreatedAt: at, UpdatedAt: at,
	}}
}

func (m *maker) post(p *Payment, at time.Time, postings ...payout.Posting) {
	for _, one := range postings {
		p.Postings = append(p.Postings, Posting{one, at})
	}
}

// payOut books a claim and pays it; people mend what fails.
func (m *maker) payOut(c packet.Claim) error {
	at := c.ClaimedAt.Add(m.between(3*time.Millisecond, 25*time.Millisecond))
	p := m.newPayment(payout.KindPayout, c.ShareIndex, c.UserID, c.Amount, at)
	m.post(p, at, payout.NewPosting(payout.PostClaim, p.ID, p.Amount))
	m.Payments = append(m.Payments, p)
	done, err := m.run(p, m.courseOf(p.Account, p.Kind), at)
	if err != nil || p.Status == payout.StatusPaid {
		return err
	}
	return m.mend(p, done)
}

// run sends a payment's next attempt and settles it until it is at an end. It
// returns when that was.
func (m *maker) run(p *Payment, c course, at time.Time) (time.Time, error) {
	no := len(p.Attempts) + 1
	ins := payout.Instruction{Op: payout.OpOf(p.Kind), OrderNo: payout.OrderNo(p.ID, no), Account: p.Account, Amount: p.Amount, Currency: p.Currency, Remark: p.Remark}
	if p.Kind == payout.KindRefund {
		ins.ChargeOrderNo = payout.OrderNo(payout.ID(payout.KindCharge, p.PacketID, 0), 1)
	}
	request, err := m.Encode(ins)
	if err != nil {
		return at, err
	}
	if payout.Begin(p.Payment, p.Attempts, at) != payout.NumberNew {
		return at, fmt.Errorf("%s: no new number while %s", p.ID, p.Status)
	}
	a := payout.NewAttempt(p.Payment, no, request)
	if err := payout.NoteSend(&p.Payment, &a, m.Limits, at); err != nil {
		return at, err
	}
	p.Attempts = append(p.Attempts, a)
	if no > 1 || p.Kind != payout.KindPayout { // the first send of a payout is made with its row
		p.Version++
	}
	moved := at.Add(m.between(2*time.Millisecond, 6*time.Millisecond))
	order := Order{Instruction: ins, Outcome: c.outcome, Code: c.code, Message: c.message, Ref: "sbx" + m.id(16), CreatedAt: moved, UpdatedAt: moved}
	if c.outcome != OutcomeDeclined {
		order.MovedAt = moved
	}
	at = moved.Add(m.between(time.Millisecond, 4*time.Millisecond))
	switch c.outcome {
	case OutcomeDeclined:
		if err := m.observe(p, no, payout.SourceSend, payout.ObsDeclined, order, at); err != nil {
			return at, err
		}
		at = at.Add(m.between(4*time.Millisecond, 12*time.Millisecond))
		err = m.observe(p, no, payout.SourceAsk, payout.ObsDeclined, order, at)
	default:
		if at, err = m.succeed(p, no, c, &order, at); err != nil {
			return at, err
		}
	}
	p.Orders = append(p.Orders, order)
	return at, err
}

// succeed settles an order that the provider carried out.
func (m *maker) succeed(p *Payment, no int, c course, order *Order, at time.Time) (time.Time, error) {
	if c.silent {
		at = at.Add(5 * time.Second)
		if err := m.observe(p, no, payout.SourceSend, payout.ObsNoAnswer, *order, at); err != nil {
			return at, err
		}
		at = at.Add(m.between(500*time.Millisecond, 550*time.Millisecond))
		return at, m.observe(p, no, payout.SourceAsk, payout.ObsSucceeded, *order, at)
	}
	if err := m.observe(p, no, payout.SourceSend, payout.ObsSucceeded, *order, at); err != nil {
		return at, err
	}
	if c.outcome != OutcomeReturned {
		return at, nil
	}
	back := at.Add(m.between(2*time.Second, 8*time.Hour))
	if back.After(m.Until.Add(-time.Minute)) { // it has not come back yet, and never will
		order.Outcome, order.Code, order.Message = OutcomeSucceeded, "", ""
		return at, nil
	}
	order.ReturnedAt, order.UpdatedAt = back, back
	at = back.Add(m.between(5*time.Millisecond, 50*time.Millisecond))
	return at, m.observe(p, no, payout.SourceAsk, payout.ObsReturned, *order, at)
}

// observe settles one answer, or silence, of the provider.
func (m *maker) observe(p *Payment, no int, source payout.Source, kind payout.ObservationKind, order Order, at time.Time) error {
	o := payout.Observation{ID: m.id(16), Source: source, Kind: kind, OrderNo: p.Attempts[no-1].OrderNo, StartedAt: at.Add(-time.Millisecond), EndedAt: at}
	if kind != payout.ObsNoAnswer {
		o.Account, o.Amount, o.ProviderRef = p.Account, p.Amount, order.Ref
	}
	if kind == payout.ObsDeclined || kind == payout.ObsReturned {
		o.Code, o.Message = order.Code, order.Message
	}
	set, err := payout.Settle(p.Payment, p.Attempts[no-1], o, at)
	if err != nil {
		return err
	}
	if len(set.Breaks) > 0 {
		return fmt.Errorf("%s: %v", p.ID, set.Breaks)
	}
	m.moved(p, set.Payment, at)
	p.Attempts[no-1] = set.Attempt
	m.post(p, at, set.Postings...)
	p.Events = append(p.Events, payout.Event{At: at, Source: "provider", Op: string(source), OrderNo: o.OrderNo, Outcome: string(o.Kind), Code: o.Code,
		What: set.Event, StartedAt: o.StartedAt, EndedAt: o.EndedAt})
	return nil
}

// moved writes the row of a payment, as a compare-and-set does.
func (m *maker) moved(p *Payment, to payout.Payment, at time.Time) {
	switch {
	case to.Status.Open():
		p.SettledAt = time.Time{}
	case p.SettledAt.IsZero() || p.Status != to.Status:
		p.SettledAt = at
	}
	to.UpdatedAt = at
	p.Payment = to
	p.Version++
}
