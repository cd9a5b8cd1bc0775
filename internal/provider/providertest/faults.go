package providertest

import (
	"context"
	"time"

	"hongbao/internal/payout"
)

// troubleCases are about a provider that does not carry out, or does not answer, a request.
func troubleCases() []testCase {
	return []testCase{
		{"low balance stores nothing and passes", func(p *probe) { p.refusedForNow(LowBalance, payout.CodeLowBalance) }},
		{"a rate limit stores nothing and passes", func(p *probe) { p.refusedForNow(RateLimited, payout.CodeRateLimited) }},
		{"no answer, nothing stored", func(p *probe) { p.lost(SilentBefore, payout.ObsNoAnswer, false) }},
		{"no answer, money moved", func(p *probe) { p.lost(SilentAfter, payout.ObsNoAnswer, true) }},
		{"a server error, nothing stored", func(p *probe) { p.lost(ErrorBefore, payout.ObsNoAnswer, false) }},
		{"a server error, money moved", func(p *probe) { p.lost(ErrorAfter, payout.ObsNoAnswer, true) }},
		{"a server error, lands later", caseLandsLater},
		{"a query without answer says nothing", func(p *probe) { p.unanswered(QuerySilent, payout.ObsNoAnswer) }},
		{"a query with a server error says nothing", func(p *probe) { p.unanswered(QueryError, payout.ObsNoAnswer) }},
		{"a query that is rate limited says nothing", func(p *probe) { p.unanswered(QueryLimited, payout.ObsRetryAfter) }},
		{"not found yet, sent again, found", caseNotFoundYet},
		{"a context that has ended sends nothing", caseCancelled},
		{"a context that ends in mid-call leaves the outcome open", caseCancelledMidCall},
	}
}

// refusedForNow: a documented temporary refusal. Nothing is stored under the number, and the same
// bytes are paid later.
func (p *probe) refusedForNow(s Situation, code string) {
	account, end := p.arrange(s)
	o := p.order(payout.OpTransfer, account, someAmount)
	sent := p.send(o)
	if p.wantKind("sent", sent, payout.ObsRetryAfter) && (sent.Code != code || sent.RetryAfter <= 0 || sent.RetryAfter > payout.LongestPause) {
		p.errorf("refused as %q, to be tried again after %v: want code %q and a pause", sent.Code, sent.RetryAfter, code)
	}
	p.wantKind("queried", p.query(o), payout.ObsNeverReceived)
	p.wantMoved("refused for now", o, 0)
	end()
	p.succeed(o, account, someAmount)
	p.wantMoved("sent again", o, 1)
}

// lost: a send has no usable answer. Its outcome is queried, and the same bytes are sent again.
func (p *probe) lost(s Situation, want payout.ObservationKind, moved bool) {
	account, end := p.arrange(s)
	o := p.order(payout.OpTransfer, account, someAmount)
	began := time.Now()
	p.wantKind("sent", p.send(o), want)
	if took := time.Since(began); took > p.cfg.Timeout+p.cfg.Within {
		p.errorf("a call took %v, it may take %v", took, p.cfg.Timeout)
	}
	end()
	queried, times := payout.ObsNeverReceived, 0
	if moved {
		queried, times = payout.ObsSucceeded, 1
	}
	if moved {
		p.becomes(o, queried)
	} else {
		p.wantKind("queried", p.query(o), queried)
	}
	p.wantMoved("queried", o, times)
	p.succeed(o, account, someAmount)
	p.wantMoved("sent again", o, 1)
}

// caseLandsLater: after an error the request takes effect. Until then a query finds nothing, and
// whenever the same bytes are sent again the money moves once. An answer that reads as final would
// make the machine give the number up before.
func caseLandsLater(p *probe) {
	account, end := p.arrange(ErrorLate)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsNoAnswer)
	p.wantKind("queried", p.query(o), payout.ObsNeverReceived, payout.ObsPending, payout.ObsSucceeded)
	p.becomes(o, payout.ObsSucceeded)
	p.wantMoved("landed", o, 1)
	end()
	p.succeed(o, account, someAmount)
	p.wantMoved("sent again", o, 1)
}

// unanswered: a query without an answer is neither success nor "never received".
func (p *probe) unanswered(s Situation, want payout.ObservationKind) {
	account, end := p.arrange(s)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsSucceeded, payout.ObsPending)
	p.wantKind("queried", p.query(o), want)
	end()
	p.becomes(o, payout.ObsSucceeded)
}

func caseNotFoundYet(p *probe) {
	account, end := p.arrange(NotFoundYet)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsSucceeded, payout.ObsPending)
	p.wantKind("queried", p.query(o), payout.ObsNeverReceived)
	p.wantKind("sent again", p.send(o), payout.ObsSucceeded, payout.ObsPending)
	end()
	p.becomes(o, payout.ObsSucceeded)
	p.wantMoved("sent twice", o, 1)
}

func caseCancelled(p *probe) {
	account, _ := p.arrange(Succeeds)
	o := p.order(payout.OpTransfer, account, someAmount)
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	p.wantKind("sent", p.wellFormed(p.a.Send(ctx, o), payout.SourceSend, o.OrderNo), payout.ObsNotSent, payout.ObsNoAnswer)
	p.wantKind("queried", p.wellFormed(p.a.Query(ctx, o.Op, o.OrderNo), payout.SourceQuery, o.OrderNo), payout.ObsNotSent, payout.ObsNoAnswer)
	p.wantKind("queried properly", p.query(o), payout.ObsNeverReceived)
}

func caseCancelledMidCall(p *probe) {
	account, _ := p.arrange(SilentAfter)
	o := p.order(payout.OpTransfer, account, someAmount)
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Timeout/4)
	defer cancel()
	began := time.Now()
	p.wantKind("sent", p.wellFormed(p.a.Send(ctx, o), payout.SourceSend, o.OrderNo), payout.ObsNoAnswer)
	if took := time.Since(began); took >= p.cfg.Timeout {
		p.errorf("the call went on for %v after its context ended", took-p.cfg.Timeout/4)
	}
	p.becomes(o, payout.ObsSucceeded)
	p.wantMoved("cancelled in mid-call", o, 1)
}
