package providertest

import (
	"bytes"
	"strings"
	"sync"
	"time"
	"unicode"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

var ops = []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund}

// orderCases are about orders that the provider understands and answers.
func orderCases() []testCase {
	return []testCase{
		{"the name and the limits can be stored and used", caseFacts},
		{"a request is the same bytes whenever it is encoded", caseEncode},
		{"a request that must not be stored is not encoded", caseEncodeRefuses},
		{"charge, transfer and refund succeed and are found", caseSucceed},
		{"a repeat of the same bytes moves nothing", caseRepeat},
		{"repeats at the same time move money once", caseRepeatAtOnce},
		{"other parameters under the same number are refused", caseConflict},
		{"a number never sent is never received", caseNeverReceived},
		{"a refusal is in both answers", caseDeclined},
		{"pending, then final", casePending},
		{"the recipient has to confirm", caseNeedsRecipient},
		{"success, then returned", caseReturned},
		{"the smallest and the largest amounts", caseAmounts},
		{"accounts are bytes", caseAccounts},
		{"many at once are not mixed up", caseConcurrent},
	}
}

func caseFacts(p *probe) {
	name := p.a.Name()
	plain := func(r rune) bool {
		return r > unicode.MaxASCII || !(unicode.IsLower(r) || unicode.IsDigit(r) || r == '_' || r == '-')
	}
	if name == "" || len(name) > 32 || strings.ContainsFunc(name, plain) {
		p.errorf("name %q: want 1 to 32 of a-z, 0-9, - and _", name)
	}
	l := p.a.Limits()
	if a := l.Adapter; a.Provider != name || a.Account == "" || len(a.Account) > 64 {
		p.errorf("it acts for %s: want provider %q, and an account of 1 to 64 bytes", a, name)
	}
	if l.LandingWindow <= 0 {
		p.errorf("landing window %v: a send without answer would count as lost at once", l.LandingWindow)
	}
	if l.LandingWindow < p.cfg.Timeout {
		p.errorf("landing window %v is shorter than a call, %v", l.LandingWindow, p.cfg.Timeout)
	}
	if l.LandingWindow > payout.LongestPause {
		p.errorf("landing window %v is longer than %v: a time that lies further ahead is taken for one of a clock ahead", l.LandingWindow,
			payout.LongestPause)
	}
	if l.Remembers-24*time.Hour < l.LandingWindow {
		p.errorf("remembers numbers for %v, a day of which is not used, landing window %v: nothing could be proved", l.Remembers, l.LandingWindow)
	}
	if week := 7 * 24 * time.Hour; l.MaxOpensAhead(week) < 24*time.Hour {
		p.errorf("refunds a charge for %v: a packet that opens on the next day and stays open for a week needs %v more after it",
			l.RefundWindow, payout.RefundMargin)
	}
}

func caseEncode(p *probe) {
	for _, op := range ops {
		in := payout.Instruction{Op: op, OrderNo: number(op), Account: "u", Amount: someAmount}
		if a, b := p.encode(in), p.encode(in); !bytes.Equal(a.Request, b.Request) || len(a.Request) == 0 {
			p.errorf("%s: encoded twice:\n%s\n%s", op, a.Request, b.Request)
		}
		other := in
		other.Amount++
		if a, b := p.encode(in), p.encode(other); bytes.Equal(a.Request, b.Request) {
			p.errorf("%s: another amount has the same bytes", op)
		}
	}
}

func caseEncodeRefuses(p *probe) {
	good := payout.Instruction{Op: payout.OpTransfer, OrderNo: number(payout.OpTransfer), Account: "u", Amount: 1, Currency: p.cfg.Currency}
	for what, change := range map[string]func(*payout.Instruction){
		"amount 0":             func(in *payout.Instruction) { in.Amount = 0 },
		"amount -1":            func(in *payout.Instruction) { in.Amount = -1 },
		"amount 2^53":          func(in *payout.Instruction) { in.Amount = money.Max + 1 },
		"unknown operation":    func(in *payout.Instruction) { in.Op = "gift" },
		"no operation":         func(in *payout.Instruction) { in.Op = "" },
		"account not in UTF-8": func(in *payout.Instruction) { in.Account = "\xff" },
	} {
		in := good
		change(&in)
		if raw, err := p.a.EncodeRequest(in); err == nil {
			p.errorf("%s is encoded: %q", what, raw)
		}
	}
}

// about checks the account and the amount in an answer.
func (p *probe) about(what string, o payout.Observation, account string, amount money.Fen) {
	if o.Account != "" && o.Account != account {
		p.errorf("%s: answer is about account %q, sent %q", what, o.Account, account)
	}
	if o.Amount != 0 && o.Amount != amount {
		p.errorf("%s: answer is about %d fen, sent %d", what, o.Amount, amount)
	}
}

// succeed sends an order that has to succeed, now or later.
func (p *probe) succeed(o payout.Order, account string, amount money.Fen) {
	sent := p.send(o)
	if p.needsPayer(o) && sent.Kind == payout.ObsNeedsPayer {
		p.pay(o, sent)
	} else if !p.wantKind(string(o.Op)+" sent", sent, payout.ObsSucceeded, payout.ObsPending) {
		panic(errStop)
	}
	p.about("sent", sent, account, amount)
	seen := p.becomes(o, payout.ObsSucceeded)
	p.about("queried", seen, account, amount)
	if seen.ProviderRef == "" {
		p.errorf("%s: success without the provider's own number", o.Op)
	}
	if seen.ID == sent.ID {
		p.errorf("%s: two observations have the same id", o.Op)
	}
}

// needsPayer reports whether an order waits for its sender.
func (p *probe) needsPayer(o payout.Order) bool {
	m, ok := p.a.Limits().Method("")
	return o.Op == payout.OpCharge && ok && m.NeedsPayer
}

// pay lets the sender pay a charge with what the answer to its send has for the client.
func (p *probe) pay(o payout.Order, sent payout.Observation) {
	if a := sent.Action; a == nil || !a.ValidUntil.After(time.Now()) || len(a.Parameters) == 0 && a.URL == "" && a.QRCode == "" {
		p.errorf("the sender could not pay with %+v", sent)
	}
	p.wantKind("queried before it is paid", p.query(o), payout.ObsNeedsPayer)
	payer, ok := p.h.(Payer)
	if !ok {
		p.must(ErrUnsupported)
	}
	p.must(payer.Pay(o.OrderNo))
}

func caseSucceed(p *probe) {
	account, _ := p.arrange(Succeeds)
	charge := p.order(payout.OpCharge, account, someAmount)
	p.succeed(charge, account, someAmount)
	p.wantMoved("charge", charge, 1)
	transfer := p.order(payout.OpTransfer, account, someAmount)
	p.succeed(transfer, account, someAmount)
	p.wantMoved("transfer", transfer, 1)
	refund := p.encode(payout.Instruction{Op: payout.OpRefund, OrderNo: number(payout.OpRefund), Account: account, Amount: someAmount,
		ChargeOrderNo: charge.OrderNo})
	p.succeed(refund, account, someAmount)
	p.wantMoved("refund", refund, 1)
}

func caseRepeat(p *probe) {
	account, _ := p.arrange(Succeeds)
	for _, op := range ops {
		o := p.order(op, account, someAmount)
		p.succeed(o, account, someAmount)
		for range 3 {
			again := p.send(o)
			kinds := []payout.ObservationKind{payout.ObsSucceeded, payout.ObsPending}
			if p.needsPayer(o) { // a paid order may be refused; a query says that it is paid
				kinds = append(kinds, payout.ObsDeclined)
			}
			p.wantKind(string(op)+" sent again", again, kinds...)
			p.about("sent again", again, account, someAmount)
		}
		p.wantMoved(string(op)+" sent four times", o, 1)
	}
}

func caseRepeatAtOnce(p *probe) {
	account, _ := p.arrange(Succeeds)
	o := p.order(payout.OpTransfer, account, someAmount)
	seen := make([]payout.Observation, 8)
	var all sync.WaitGroup
	for i := range seen {
		all.Go(func() { seen[i] = p.a.Send(p.ctx, o) })
	}
	all.Wait()
	for _, s := range seen {
		// "In progress" is an answer too; a refusal is not.
		if s.Kind == payout.ObsDeclined || s.Kind == payout.ObsNeverReceived || s.Kind == payout.ObsReturned {
			p.errorf("one of eight at once: %s (%s)", s.Kind, s.Code)
		}
	}
	p.becomes(o, payout.ObsSucceeded)
	p.wantMoved("eight sends at once", o, 1)
}

func caseConflict(p *probe) {
	account, _ := p.arrange(Succeeds)
	other, _ := p.arrange(Succeeds)
	first := p.order(payout.OpTransfer, account, someAmount)
	p.succeed(first, account, someAmount)
	for what, in := range map[string]payout.Instruction{
		"another amount":  {Account: account, Amount: someAmount + 1},
		"another account": {Account: other, Amount: someAmount},
	} {
		in.Op, in.OrderNo = first.Op, first.OrderNo
		p.wantKind(what, p.send(p.encode(in)), payout.ObsDeclined, payout.ObsNoAnswer)
	}
	seen := p.query(first)
	p.wantKind("queried after it", seen, payout.ObsSucceeded)
	p.about("queried after it", seen, account, someAmount)
	p.wantMoved("three different sends", first, 1)
}

func caseNeverReceived(p *probe) {
	for _, op := range ops {
		o := payout.Order{Op: op, OrderNo: number(op)}
		seen := p.query(o)
		p.wantKind("query of a new number", seen, payout.ObsNeverReceived)
		if seen.Account != "" || seen.Amount != 0 {
			p.errorf("an unknown order has account %q and amount %d", seen.Account, seen.Amount)
		}
	}
}

func caseDeclined(p *probe) {
	account, _ := p.arrange(Declines)
	o := p.order(payout.OpTransfer, account, someAmount)
	sent := p.send(o)
	p.wantKind("sent", sent, payout.ObsDeclined)
	seen := p.query(o)
	p.wantKind("queried", seen, payout.ObsDeclined)
	if sent.Code == "" || seen.Code != sent.Code {
		p.errorf("the refusal is %q when sent and %q when queried: want one code", sent.Code, seen.Code)
	}
	p.wantKind("sent again", p.send(o), payout.ObsDeclined)
	p.wantMoved("refused", o, 0)
}

func casePending(p *probe) {
	account, _ := p.arrange(StaysPending)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsPending)
	p.becomes(o, payout.ObsSucceeded)
	p.wantKind("sent again when it is final", p.send(o), payout.ObsSucceeded)
	p.wantMoved("pending, then final", o, 1)
}

func caseNeedsRecipient(p *probe) {
	account, _ := p.arrange(NeedsRecipient)
	o := p.order(payout.OpTransfer, account, someAmount)
	for what, seen := range map[string]payout.Observation{"sent": p.send(o), "queried": p.query(o)} {
		p.wantConfirm(what, seen)
	}
	p.wantConfirm("sent again", p.send(o)) // a lost answer is obtained again so
	if closer, ok := p.a.(payout.OrderCloser); ok {
		for what, no := range map[string]string{"that waits": o.OrderNo, "that is unknown": number(payout.OpTransfer)} {
			if err := closer.CloseOrder(p.ctx, payout.OpTransfer, no); err != nil {
				p.errorf("close of a transfer %s: %v", what, err)
			}
		}
		if seen := p.query(o); seen.Kind != payout.ObsDeclined { // a provider need not be able to end it
			p.wantConfirm("closed in vain", seen)
		}
	}
	p.wantMoved("not confirmed", o, 0)
}

// wantConfirm checks that the recipient can confirm with an answer. A query need not have the client data.
func (p *probe) wantConfirm(what string, seen payout.Observation) {
	if !p.wantKind(what, seen, payout.ObsNeedsRecipient) || seen.Action == nil && seen.Source == payout.SourceQuery {
		return
	}
	if a := seen.Action; a == nil || len(a.Parameters) == 0 || !a.ValidUntil.After(time.Now()) {
		p.errorf("%s: the recipient could not confirm with %+v", what, a)
	}
}

func caseReturned(p *probe) {
	account, _ := p.arrange(Returns)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsSucceeded, payout.ObsPending)
	seen := p.becomes(o, payout.ObsReturned)
	p.about("returned", seen, account, someAmount)
	p.wantMoved("returned", o, 1)
}

func caseAmounts(p *probe) {
	least, most := max(p.a.Limits().MinPayout, 1), p.a.Limits().MaxPayout
	if most == 0 {
		most = money.Max
	}
	for _, amount := range []money.Fen{least, most - 1, most} {
		account, _ := p.arrange(Succeeds)
		o := p.order(payout.OpTransfer, account, amount)
		p.succeed(o, account, amount)
		if seen := p.query(o); seen.Amount != amount {
			p.errorf("%d fen are found as %d", amount, seen.Amount)
		}
	}
}

// strangeAccounts are different accounts that careless code confuses or changes.
var strangeAccounts = []string{"Alice", "alice", "alice ", " alice", "é", "e\u0301", "李雷", "🧧", "a/b", "a%2Fb", "a+b", "a&b=c", `a"b\`,
	"<a>", "a\u2028b", "007", "1e5", "null", "true"}

func caseAccounts(p *probe) {
	account, _ := p.arrange(Succeeds)
	if _, err := p.a.EncodeRequest(payout.Instruction{Op: payout.OpTransfer, OrderNo: number(payout.OpTransfer), Account: account, Amount: 1,
		Currency: p.cfg.Currency}); err != nil {
		p.must(err)
	}
	found := map[string]string{}
	for _, account := range strangeAccounts {
		o := p.order(payout.OpTransfer, account, someAmount)
		p.wantKind("sent to "+account, p.send(o), payout.ObsSucceeded, payout.ObsPending)
		seen := p.becomes(o, payout.ObsSucceeded)
		if seen.Account != account {
			p.errorf("sent to %q, found as %q", account, seen.Account)
		}
		if was, twice := found[seen.Account]; twice {
			p.errorf("%q and %q are one account", was, account)
		}
		found[seen.Account] = account
	}
}

func caseConcurrent(p *probe) {
	account, _ := p.arrange(Succeeds)
	orders := make([]payout.Order, 32)
	for i := range orders {
		orders[i] = p.order(payout.OpTransfer, account, someAmount+money.Fen(i))
	}
	sent, seen := make([]payout.Observation, len(orders)), make([]payout.Observation, len(orders))
	var all sync.WaitGroup
	for i, o := range orders {
		all.Go(func() {
			sent[i] = p.a.Send(p.ctx, o)
			seen[i] = p.a.Query(p.ctx, o.Op, o.OrderNo)
		})
	}
	all.Wait()
	ids := map[string]bool{}
	for i, o := range orders {
		for _, s := range []payout.Observation{p.wellFormed(sent[i], payout.SourceSend, o.OrderNo),
			p.wellFormed(seen[i], payout.SourceQuery, o.OrderNo)} {
			p.wantKind("one of many", s, payout.ObsSucceeded, payout.ObsPending)
			p.about("one of many", s, account, someAmount+money.Fen(i))
			if ids[s.ID] {
				p.errorf("two observations have the id %q", s.ID)
			}
			ids[s.ID] = true
		}
	}
}
