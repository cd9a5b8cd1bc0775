package providertest

import (
	"bytes"
	"context"
	"time"

	"hongbao/internal/payout"
)

// payerCases are about charges that wait for their sender.
func payerCases() []testCase {
	return []testCase{
		{"a charge waits for its sender, and is paid", casePaid},
		{"a charge that was closed is not paid", caseClosed},
		{"a close without an answer is an error", caseCloseUnanswered},
	}
}

// waiting sends a charge by every method that needs the sender, and gives each to do.
func (p *probe) waiting(do func(payout.OrderCloser, Payer, payout.Order)) {
	closer, closes := p.a.(payout.OrderCloser)
	payer, pays := p.h.(Payer)
	found := false
	for _, m := range p.a.Limits().Methods {
		if !m.NeedsPayer {
			continue
		}
		found = true
		if !closes {
			p.errorf("method %q needs the sender, and charges cannot be closed", m.Name)
			panic(errStop)
		}
		if !pays {
			p.must(ErrUnsupported)
		}
		account, _ := p.arrange(Succeeds)
		in := payout.Instruction{Op: payout.OpCharge, OrderNo: number(payout.OpCharge), Account: account, Amount: someAmount, Method: m.Name,
			Payer: map[string]string{}, PayUntil: time.Now().Add(time.Hour).Truncate(time.Second)}
		for _, member := range m.Payer {
			in.Payer[member] = account
		}
		o := p.encode(in)
		if !bytes.Equal(o.Request, p.encode(in).Request) {
			p.errorf("%s: encoded twice: other bytes", m.Name)
		}
		sent := p.send(o)
		if p.wantKind(m.Name+" sent", sent, payout.ObsNeedsPayer) {
			p.canPay(m.Name, sent)
			do(closer, payer, o)
		}
	}
	if !found {
		p.must(ErrUnsupported)
	}
}

// canPay checks what the sender's client gets.
func (p *probe) canPay(what string, o payout.Observation) {
	a := o.Action
	if a == nil {
		p.errorf("%s: nothing to pay with", what)
		return
	}
	complete := map[payout.ClientActionType]bool{payout.ClientSDK: len(a.Parameters) > 0, payout.ClientRedirect: a.URL != "",
		payout.ClientQRCode: a.QRCode != ""}[a.Type]
	if !complete || !a.ValidUntil.After(time.Now()) {
		p.errorf("%s: action of type %q is not complete, or not valid", what, a.Type)
	}
}

func casePaid(p *probe) {
	p.waiting(func(closer payout.OrderCloser, payer Payer, o payout.Order) {
		if seen := p.query(o); p.wantKind("queried before it is paid", seen, payout.ObsNeedsPayer) && seen.Action != nil {
			p.errorf("a query makes another action: the earlier one may be void")
		}
		again := p.send(o)
		if p.wantKind("sent again", again, payout.ObsNeedsPayer) {
			p.canPay("sent again", again)
		}
		p.must(payer.Pay(o.OrderNo))
		if seen := p.becomes(o, payout.ObsSucceeded); seen.ProviderRef == "" || seen.Amount != someAmount {
			p.errorf("paid: %d fen, reference %q", seen.Amount, seen.ProviderRef)
		}
		if err := closer.CloseOrder(p.ctx, payout.OpCharge, o.OrderNo); err != nil {
			p.errorf("close of a paid charge: %v", err)
		}
		p.wantKind("paid, then closed", p.query(o), payout.ObsSucceeded)
		p.wantMoved("paid", o, 1)
	})
}

func caseClosed(p *probe) {
	p.waiting(func(closer payout.OrderCloser, payer Payer, o payout.Order) {
		for range 2 {
			if err := closer.CloseOrder(p.ctx, payout.OpCharge, o.OrderNo); err != nil {
				p.errorf("close: %v", err)
			}
		}
		p.becomes(o, payout.ObsDeclined)
		_ = payer.Pay(o.OrderNo) // refused, or not, by the provider: the money must not move
		p.wantKind("sent again", p.send(o), payout.ObsDeclined)
		p.wantKind("queried again", p.query(o), payout.ObsDeclined)
		p.wantMoved("closed", o, 0)
		if err := closer.CloseOrder(p.ctx, payout.OpCharge, number(payout.OpCharge)); err != nil {
			p.errorf("close of an unknown charge: %v", err)
		}
	})
}

func caseCloseUnanswered(p *probe) {
	p.waiting(func(closer payout.OrderCloser, _ Payer, o payout.Order) {
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		if closer.CloseOrder(ctx, payout.OpCharge, o.OrderNo) == nil {
			p.errorf("no error without an answer")
		}
		p.wantKind("queried", p.query(o), payout.ObsNeedsPayer)
	})
}
