package store

import (
	"encoding/json"

	"hongbao/history"
	"hongbao/payout"
)

// Add writes a packet and everything that happened to it. Packets come in the
// order of their creation. Errors: why a statement ended.
func (l *Loader) Add(p *history.Packet) error {
	if err := l.postBefore(p.CreatedAt); err != nil {
		return err
	}
	if err := l.addPacket(p); err != nil {
		return err
	}
	for _, one := range p.Payments {
		if err := l.addPayment(one); err != nil {
			return err
		}
		for _, t := range one.Postings {
			l.queue.add(p.ID, t)
		}
		l.audit = append(l.audit, one.Audit...)
	}
	return nil
}

func (l *Loader) addPacket(p *history.Packet) error {
	meta, err := json.Marshal(p.Metadata)
	if err != nil {
		return err
	}
	var code, message *string
	if p.Failure != nil {
		code, message = &p.Failure.Code, &p.Failure.Message
	}
	var remainder, claimed any
	if !p.BooksClosedAt.IsZero() {
		remainder, claimed = int64(p.Remainder), len(p.Claims)
	}
	err = l.tables["packets"].row(p.ID, p.App, p.SenderID, p.Currency, int64(p.TotalAmount), p.ShareCount, string(p.Split), int64(p.MinShare), int64(p.MaxShare),
		p.Greeting, p.GroupID, meta, p.BodyHash, p.Commitment, p.SealedSeed, string(p.Status), optString(string(p.Reason)), code, message,
		p.First.HTTPStatus, p.First.RequestID, p.CreatedAt, p.OpensAt, p.ExpiresAt, p.BooksClosedAt, remainder, p.ClosedAt, p.LastMoveAt, claimed, p.BestShare, p.LastShare)
	if err != nil {
		return err
	}
	for i, amount := range p.Shares {
		if i >= len(p.Claims) {
			err = l.tables["shares"].row(p.ID, i, int64(amount), nil, nil, nil, nil)
		} else {
			c := p.Claims[i]
			err = l.tables["shares"].row(p.ID, i, int64(amount), p.App, c.UserID, c.Nickname, c.ClaimedAt)
			if err == nil {
				err = l.tables["claims"].row(p.ID, c.UserID, i, p.App, c.ClaimedAt)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Loader) addPayment(p *history.Payment) error {
	r := newPaymentRow(p.Payment)
	err := l.tables["payments"].row(r.ID, r.Kind, r.PacketID, r.AppID, r.UserID, r.ShareIndex, r.Account, r.Amount, r.Currency, r.Remark, r.Provider, r.Status,
		p.Version, r.Attempt, r.OrderNo, p.DecidedAt, r.Deciding, r.NewNumberAgreed, r.FailureCode, r.FailureMessage, r.CreatedAt, r.UpdatedAt, p.SettledAt)
	for _, a := range p.Attempts {
		if err == nil {
			err = l.addAttempt(a)
		}
	}
	for _, e := range p.Events {
		if err == nil {
			err = l.tables["payment_events"].row(p.ID, e.At, e.Source, e.Op, e.OrderNo, e.Outcome, code(e.Code), clip(e.What, 255), e.StartedAt, e.EndedAt)
		}
	}
	for _, d := range p.Decisions {
		if err == nil {
			err = l.tables["decisions"].row(d.ID, d.PaymentID, string(d.Kind), d.Reason, d.By, d.Role, string(d.Status), optString(d.ApprovalID), d.ExpiresAt,
				optString(d.ApprovedBy), optString(d.ApproveReason), optString(d.Evidence), d.CreatedAt, d.EndedAt)
		}
	}
	return err
}

func (l *Loader) addAttempt(a payout.Attempt) error {
	r := newAttemptRow(a)
	return l.tables["attempts"].row(r.OrderNo, r.PaymentID, r.No, r.Op, r.Request, r.Sends, r.Asks, a.NotedUntil, a.OpenUntil, r.Statement, r.Refused, r.Booked,
		r.ReturnBooked, r.NextAction, a.NextAt, a.AskedAt, r.AskRequested, r.Forgotten, r.Observed, r.Code, r.Message, r.ProviderRef, r.Token, a.StartedAt, a.AskUntil, a.EndedAt)
}
