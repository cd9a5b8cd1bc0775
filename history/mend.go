package history

import (
	"encoding/json"
	"fmt"
	"time"

	"hongbao/payout"
)

// What people do about failures, of a thousand, and how long they take.
const (
	looksAt    = 850 // the rest waits for ever
	approves   = 940 // the rest is rejected by the second person, and stays
	looksAfter = 9 * time.Hour
	agreesIn   = 40 * time.Minute
)

var (
	retryReasons  = []string{"Account was unfrozen, user confirmed.", "Provider says it is solved.", "收款人已更换账户状态", "Second try after the rule was lifted.", "工单 48213：用户已处理"}
	cancelReasons = []string{"User asked to send it back.", "账户已注销，退回发送人", "No other account known."}
	paidReasons   = []string{"Paid by bank transfer.", "线下转账，见凭证"}
	agreeReasons  = []string{"Checked against the ticket.", "同意", "Seen the receipt."}
)

// mend is what people do about a payout that failed or came back: mostly they look
// at it within a day, and what is not over by Until still waits.
func (m *maker) mend(p *Payment, since time.Time) error {
	if !m.in(looksAt) {
		return nil
	}
	kind := payout.DecisionRetry
	switch {
	case p.Failure.Code == courseClosed.code || m.in(100):
		kind = pick(m.chance, []payout.DecisionKind{payout.DecisionCancel, payout.DecisionCancel, payout.DecisionMarkPaid})
	case p.Failure.Code == courseBack.code && m.in(300):
		kind = payout.DecisionCancel
	}
	at := since.Add(time.Minute + m.about(looksAfter))
	d, agreed := m.decide(p, kind, at)
	if d == nil || agreed.IsZero() {
		return nil
	}
	status := p.Status
	row := p.Payment
	effect, err := payout.Decide(&row, p.Attempts, kind, d.ApprovalID != "", agreed)
	if err != nil {
		return err
	}
	m.moved(p, row, agreed)
	m.post(p, agreed, effect.Postings...)
	d.Status = effect.Status
	if d.Status == payout.DecisionCarriedOut {
		d.EndedAt = agreed
	}
	m.noteDecision(p, d, status)
	at, err = m.askAll(p, agreed)
	if err != nil {
		return err
	}
	switch kind {
	case payout.DecisionRetry:
		again := courseOK
		if m.in(80) {
			again = courseRule
		}
		_, err = m.run(p, again, at.Add(time.Millisecond))
	case payout.DecisionCancel:
		err = m.cancel(p, d, at.Add(m.between(5*time.Millisecond, 30*time.Millisecond)))
	}
	return err
}

// decide makes a decision and, where it needs one, has a second person look at it.
// It returns since when it counts; zero: never. d is nil when there was no time for it.
func (m *maker) decide(p *Payment, kind payout.DecisionKind, at time.Time) (d *payout.Decision, agreed time.Time) {
	c := payout.Command{Kind: kind, ApproveFrom: m.ApproveFrom}
	second := payout.NeedsSecond(p.Payment, p.Attempts, c, at)
	agreed = at
	if second {
		agreed = at.Add(time.Minute + m.about(agreesIn))
	}
	if agreed.After(m.Until.Add(-time.Minute)) || agreed.Sub(at) > 20*time.Hour {
		return nil, time.Time{}
	}
	first := m.IntN(len(m.Staff))
	p.Decisions = append(p.Decisions, payout.Decision{ID: "d" + m.id(12), PaymentID: p.ID, Kind: kind, By: m.Staff[first], Role: "finance", CreatedAt: at})
	d = &p.Decisions[len(p.Decisions)-1]
	switch kind {
	case payout.DecisionRetry:
		d.Reason = pick(m.chance, retryReasons)
	case payout.DecisionMarkPaid:
		d.Reason, d.Evidence = pick(m.chance, paidReasons), "receipt "+m.id(6)
	default:
		d.Reason = pick(m.chance, cancelReasons)
	}
	if !second {
		return d, agreed
	}
	d.ApprovalID, d.ExpiresAt, d.Status = "a"+m.id(12), at.Add(24*time.Hour), payout.DecisionWaiting
	m.noteStep(p, string(kind), d.By, "finance", d.Reason, at, p.Status, d)
	d.ApprovedBy, d.ApproveReason = m.Staff[(first+1+m.IntN(len(m.Staff)-1))%len(m.Staff)], pick(m.chance, agreeReasons)
	if m.in(approves) {
		return d, agreed
	}
	d.Status, d.EndedAt, d.ApproveReason = payout.DecisionRejected, agreed, "Not enough to go by."
	m.noteStep(p, "reject_"+string(kind), d.ApprovedBy, "finance", d.ApproveReason, agreed, p.Status, d)
	return d, time.Time{}
}

// noteDecision notes the step by which a decision began to count.
func (m *maker) noteDecision(p *Payment, d *payout.Decision, before payout.Status) {
	if d.ApprovalID == "" {
		m.noteStep(p, string(d.Kind), d.By, "finance", d.Reason, d.CreatedAt, before, d)
		return
	}
	m.noteStep(p, "approve_"+string(d.Kind), d.ApprovedBy, "finance", d.ApproveReason, p.UpdatedAt, before, d)
}

// noteStep adds timeline and audit of one person's step.
func (m *maker) noteStep(p *Payment, action, by, role, reason string, at time.Time, before payout.Status, d *payout.Decision) {
	p.Events = append(p.Events, payout.Event{At: at, Source: "finance", Outcome: string(d.Status), What: fmt.Sprintf("%s by %s: %s", action, by, reason)})
	after := map[string]string{"status": string(p.Status), "decision": d.ID, "decision_status": string(d.Status)}
	if d.Evidence != "" {
		after["evidence"] = d.Evidence
	}
	p.Audit = append(p.Audit, payout.AuditEntry{At: at, Actor: by, Role: role, Action: action, Subject: p.ID, Reason: reason,
		Before: text(map[string]string{"status": string(before)}), After: text(after)})
}

// text is a map as JSON; maps of strings always have one.
func text(of map[string]string) string {
	raw, _ := json.Marshal(of)
	return string(raw)
}

// askAll asks about every number, as every decision does before money moves.
func (m *maker) askAll(p *Payment, at time.Time) (time.Time, error) {
	for i := range p.Attempts {
		at = at.Add(m.between(5*time.Millisecond, 30*time.Millisecond))
		kind := payout.ObsDeclined
		if p.Orders[i].Outcome == OutcomeReturned {
			kind = payout.ObsReturned
		}
		if err := m.observe(p, i+1, payout.SourceAsk, kind, p.Orders[i], at); err != nil {
			return at, err
		}
	}
	return at, nil
}

// cancel sends the money back to the sender.
func (m *maker) cancel(p *Payment, d *payout.Decision, at time.Time) error {
	row := p.Payment
	effect, ok, err := payout.CarryOut(&row, p.Attempts, at)
	if err != nil || !ok {
		return fmt.Errorf("%s: cancel not carried out: %w", p.ID, err)
	}
	before := p.Status
	m.moved(p, row, at)
	m.post(p, at, effect.Postings...)
	d.Status, d.EndedAt = effect.Status, at
	m.noteStep(p, string(d.Kind)+"_"+string(d.Status), "worker", "system", "every order number was asked about", at, before, &payout.Decision{ID: d.ID, Status: d.Status})
	refund := &Payment{Payment: payout.CancelRefund(p.Payment, m.SenderID, at)}
	m.late = append(m.late, refund)
	_, err = m.run(refund, courseOK, at.Add(m.between(5*time.Millisecond, 30*time.Millisecond)))
	return err
}
