package providertest

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// statementCases: the statement is what the ledger is compared with.
func statementCases() []testCase {
	return []testCase{
		{"the statement lists every movement once, with its amount", caseStatement},
		{"the statement lists returned payments", caseStatementReturn},
		{"a statement that breaks off is no statement", caseStatementBroken},
		{"a statement of a day without movements is empty", caseStatementEmpty},
		{"the statement of today continues where the last read ended", caseStatementGrows},
	}
}

func (p *probe) stated() StatementReader {
	s, ok := p.a.(StatementReader)
	if !ok {
		p.must(ErrUnsupported)
	}
	return s
}

// lines reads all pages of the statements from a moment until today.
func (p *probe) lines(s StatementReader, from time.Time) map[string][]payout.StatementLine {
	out := map[string][]payout.StatementLine{}
	refs := map[string]bool{}
	if named, err := time.LoadLocation(s.Zone().String()); err != nil || named == time.Local {
		p.errorf("the time zone %q has no IANA name: nothing can be scheduled in it", s.Zone())
	}
	for day := payout.DayOf(from, s.Zone()); day <= payout.DayOf(time.Now(), s.Zone()); day = day.Add(1) {
		for after := ""; ; {
			page, err := s.Statement(p.ctx, day, after)
			if err != nil {
				p.errorf("statement of %s after %q: %v", day, after, err)
				panic(errStop)
			}
			begin, end := day.Span(s.Zone())
			for _, l := range page.Lines {
				if refs[l.Ref] || l.Ref == "" {
					p.errorf("line %q is there twice", l.Ref)
				}
				refs[l.Ref] = true
				if l.At.Before(begin) || !l.At.Before(end) {
					p.errorf("line %s of %v is in the statement of %s", l.Ref, l.At, day)
				}
				if !l.Op.WithoutOrder() { // a fee names the order that it belongs to
					out[l.OrderNo] = append(out[l.OrderNo], l)
				}
			}
			if page.Next == "" {
				break
			}
			if page.Next == after {
				p.errorf("the statement never ends after %q", after)
				panic(errStop)
			}
			after = page.Next
		}
	}
	return out
}

func caseStatement(p *probe) {
	s := p.stated()
	began := time.Now()
	account, _ := p.arrange(Succeeds)
	refuses, _ := p.arrange(Declines)
	var made []payout.Order
	amounts := map[string]money.Fen{}
	for i, op := range []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund, payout.OpTransfer} {
		amount := someAmount + money.Fen(i)
		if i == 3 {
			amount = money.Max
		}
		o := p.order(op, account, amount)
		p.succeed(o, account, amount)
		p.send(o)
		made, amounts[o.OrderNo] = append(made, o), amount
	}
	refused := p.order(payout.OpTransfer, refuses, someAmount)
	p.send(refused)
	lines := p.lines(s, began)
	for _, o := range made {
		l := lines[o.OrderNo]
		if len(l) != 1 {
			p.errorf("%s %s is listed %d times", o.Op, o.OrderNo, len(l))
			continue
		}
		unnamed := l[0].Account == "" && o.Op != payout.OpTransfer // who paid may have another name at the provider
		if l[0].Op != o.Op || l[0].Account != account && !unnamed ||
			l[0].Amount != amounts[o.OrderNo] || l[0].At.Before(began.Add(-time.Second)) ||
			l[0].At.After(time.Now().Add(time.Second)) {
			p.errorf("%s of %d to %s is listed as %+v", o.Op, amounts[o.OrderNo], account, l[0])
		}
	}
	if l := lines[refused.OrderNo]; len(l) != 0 {
		p.errorf("a refused order is listed: %+v", l)
	}
}

func caseStatementReturn(p *probe) {
	s := p.stated()
	began := time.Now()
	account, _ := p.arrange(Returns)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsSucceeded, payout.ObsPending)
	p.becomes(o, payout.ObsReturned)
	l := p.lines(s, began)[o.OrderNo]
	if len(l) != 2 || l[0].Op != payout.OpTransfer || l[1].Op != payout.OpReturn || l[1].Amount != someAmount {
		p.errorf("a returned transfer is listed as %+v", l)
	}
}

func caseStatementBroken(p *probe) {
	p.stated()
	b := p.proxy()
	s := b.adapter.(StatementReader)
	account, _ := p.arrange(Succeeds)
	p.succeed(p.order(payout.OpTransfer, account, someAmount), account, someAmount)
	today := payout.DayOf(time.Now(), s.Zone())
	for what, spoil := range spoiledPages {
		b.set(spoil)
		if page, err := s.Statement(p.ctx, today, ""); err == nil {
			p.errorf("%s: taken as a statement of %d lines", what, len(page.Lines))
		}
	}
}

func caseStatementEmpty(p *probe) {
	s := p.stated()
	page, err := s.Statement(p.ctx, payout.DayOf(time.Now().AddDate(-1, 0, 0), s.Zone()), "")
	if err != nil || len(page.Lines) != 0 || page.Next != "" {
		p.errorf("a year ago: %+v, %v", page, err)
	}
}

// caseStatementGrows: a provider that lists the current day names a position behind the last line.
// A read from there returns exactly the later movements.
func caseStatementGrows(p *probe) {
	s := p.stated()
	account, _ := p.arrange(Succeeds)
	send := func() string {
		o := p.order(payout.OpTransfer, account, someAmount)
		p.succeed(o, account, someAmount)
		p.send(o)
		return o.OrderNo
	}
	send()
	for day, place := payout.DayOf(time.Now(), s.Zone()), ""; ; {
		page, err := s.Statement(p.ctx, day, place)
		if err != nil {
			p.errorf("statement of %s after %q: %v", day, place, err)
			return
		}
		if place = page.Last; page.Next != "" {
			continue
		}
		if place == "" { // the provider lists no day before its end
			return
		}
		later := send()
		page, err = s.Statement(p.ctx, day, place)
		if today := payout.DayOf(time.Now(), s.Zone()); today != day {
			day, place = today, "" // midnight has passed
			continue
		}
		if err != nil || len(page.Lines) != 1 || page.Lines[0].OrderNo != later || page.Last == place {
			p.errorf("after %q, where %s was not listed yet: %+v, %v", place, later, page, err)
		}
		return
	}
}
