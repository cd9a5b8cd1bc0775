package chaos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// A sender who has to pay in an app has the shortest time that the API allows, and so has the packet. Such a packet
// outlasts the run, so that a close without an effect is found.
const (
	payWithin = time.Minute
	payerLife = 10 * time.Minute
)

// Prefixes of senders who pay in an app. The payment of a late one may arrive after the close; only a notification or
// the day's statement informs of that, so that its notification is never lost.
const (
	payerPrefix     = "payer-"
	latePayerPrefix = "latepayer-"
)

var payerSuffixes = []string{"~declined", "~flaky", "~lost_reply", "~lost_request", "~pending"}

// payerRules are the faults of senders who pay in an app. They precede the drawn rules, of which the first that fires
// counts.
var payerRules = []rule{
	{Op: "charge", Kind: "notify_twice", Rate: 1, AccountPrefix: latePayerPrefix, DelayMS: 1500},
	{Op: "charge", Kind: "pay_after_close", Rate: 1, AccountPrefix: latePayerPrefix},
	{Op: "charge", Kind: "close_lost", Rate: 0.2, AccountPrefix: payerPrefix},
	{Op: "charge", Kind: "reply_without_action", Rate: 0.1, AccountPrefix: payerPrefix},
}

// rulesOf returns the rules of a provider, with those of senders who pay in an app.
func rulesOf(f fault) []rule {
	if f.target != "provider" {
		return f.rules
	}
	return slices.Concat(payerRules, f.rules)
}

// paidInApp makes the sender of some packets pay in an app: mostly soon, some near the deadline, some never. The app
// closes some packets while they wait for their payment.
func (s *script) paidInApp(d dice) {
	if !d.chance(30) {
		return
	}
	r := &s.request
	r.Funding = &wire.CreateFunding{Method: "sandbox_app", ExpiresInSeconds: int(payWithin / time.Second)}
	r.ExpiresInSeconds = int(payerLife / time.Second)
	r.SenderID = fmt.Sprintf("%s%d", pick(d, []string{payerPrefix, payerPrefix, latePayerPrefix}), s.number)
	if d.chance(20) {
		r.SenderID += pick(d, payerSuffixes)
	}
	switch n := d.IntN(100); {
	case n < 60:
		s.payAfter = d.between(500*time.Millisecond, 6*time.Second)
	case n < 80:
		s.payAfter = payWithin + d.between(-4*time.Second, 2*time.Second)
	}
	if s.recallAfter = 0; d.chance(40) {
		s.recallAfter = d.between(500*time.Millisecond, 8*time.Second)
	}
}

// payTries bounds how often a sender repeats a payment that was not answered.
const payTries = 5

// pay is a sender who pays in an app, with what the API gives to the app of the sender and nothing else. The sender has
// that from soon after the create, and may use it after the deadline.
func (l *load) pay(ctx context.Context, id string, after time.Duration) {
	began, no := time.Now(), ""
	for pause := firstNotOpen; no == ""; pause = min(2*pause, lastNotOpen) {
		if time.Since(began) > payWithin || !wait(ctx, pause) {
			return
		}
		l.call(ctx, grabPatience, func(ctx context.Context) {
			switch p, err := l.app.Packet(ctx, id); {
			case err != nil:
				l.unanswered(err, "packet %s", id)
			case p.Funding.NextAction != nil:
				no = p.Funding.NextAction.Parameters["order_no"]
			}
		})
	}
	if !wait(ctx, after-time.Since(began)) {
		return
	}
	for range payTries {
		status := 0
		l.call(ctx, grabPatience, func(ctx context.Context) {
			status, _ = l.stack.provider(ctx, http.MethodPost, "/_pay/"+no, "", nil, nil)
		})
		switch status {
		case http.StatusNoContent:
			l.answers.paid.Add(1)
			return
		case http.StatusConflict: // closed
			l.answers.paidTooLate.Add(1)
			return
		}
		if !wait(ctx, time.Second) {
			return
		}
	}
}

// recall makes the app close a packet; without an answer it may be closed or not.
func (l *load) recall(ctx context.Context, id string) {
	l.call(ctx, grabPatience, func(ctx context.Context) {
		switch p, err := l.app.ClosePacket(ctx, id); {
		case err == nil:
			l.answers.close(id, p.Status)
		case !client.IsCode(err, wire.CodeNotOpenYet):
			l.unanswered(err, "recall of packet %s", id)
		}
	})
}

// close records the answer to a close.
func (a *answers) close(packetID string, status wire.PacketStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed[packetID] = status
}

// closePaid closes the open packets whose senders pay in an app, except those that end soon or have an acknowledged
// close.
func (i *inspector) closePaid(ctx context.Context, a *answers) error {
	var open []string
	query := `SELECT id FROM packets WHERE pay_within > 0 AND status = 'open' AND expires_at > UTC_TIMESTAMP(3) + INTERVAL 10 SECOND`
	err := rows(ctx, i.db, query, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		open = append(open, id)
		return err
	})
	for _, id := range open {
		a.mu.Lock()
		_, closed := a.closed[id]
		a.mu.Unlock()
		if err != nil || closed {
			continue
		}
		p, cerr := i.app.ClosePacket(ctx, id)
		if err = cerr; err == nil {
			a.close(id, p.Status)
		}
	}
	return err
}

// payerEnds counts the ends of the packets whose senders pay in an app.
func (b *snapshot) payerEnds() map[string]int {
	n := map[string]int{}
	for id, p := range b.packets {
		if !p.payer {
			continue
		}
		end := p.status + " " + p.why
		if charge := b.payments["c"+id+"0000"]; p.status == "rejected" && charge != nil && charge.status == "paid" {
			end += ", paid late"
		}
		n[end]++
	}
	return n
}

// closes checks that every acknowledged close ended its packet. One that precedes the payment keeps the packet from
// opening.
func (j *judgement) closes() {
	for id, answered := range j.answers.closed {
		p := j.snapshot.packets[id]
		switch {
		case p == nil: // a lost packet, which creates reports
		case answered == wire.PacketFunding && (len(p.claims) > 0 || p.status == "open" || p.status == "closed" && p.why != "unopened"):
			j.wrong("packet %s was closed before it was paid; it is %s %s with %d claims", id, p.status, p.why, len(p.claims))
		case p.status == "open" || p.status == "funding" || p.payer && p.why == "expired":
			j.open("packet %s is %s %s, and its close was acknowledged", id, p.status, p.why)
		}
	}
}

// rejected checks that a rejected packet has no claims and no money. A sender who paid in an app after the close is
// refunded in full.
func (j *judgement) rejected(p *packetRow, refund *paymentRow) {
	charged := len(j.moved["c"+p.id+"0000"]) > 0
	switch {
	case len(p.claims) > 0 || charged && !p.payer:
		j.wrong("packet %s is rejected, and %d fen were charged, %d users have claims", p.id, p.total, len(p.claims))
	case charged && refund == nil:
		j.open("packet %s is rejected, and the payment of %d fen after its close is not refunded", p.id, p.total)
	case refund != nil && (!charged || refund.amount != p.total || refund.account != p.sender):
		j.wrong("packet %s is rejected, charged: %v; the refund is %d of %d fen to %q", p.id, charged, refund.amount, p.total, refund.account)
	}
}

// paidLate is a packet that was rejected unpaid; its sender paid after the close, and is refunded.
func paidLate() (*snapshot, *answers, map[string]verdict) {
	b, a, v := healthy()
	delete(a.claims, somePacket)
	p := b.packets[somePacket]
	p.status, p.payer, p.why, p.claims, p.remainder.Valid = "rejected", true, "funding_expired", map[string]*shareRow{}, false
	b.payments = map[string]*paymentRow{someCharge: b.payments[someCharge], someRefund: b.payments[someRefund]}
	b.payments[someRefund].amount = 100
	b.movements = []movement{{1, "charge", someCharge + "01", "boss", 100}, {2, "refund", someRefund + "01", "boss", 100}}
	b.postings = []transferRow{{somePacket, "charge", "provider", "holding", 100}, {somePacket, "close", "holding", "refunding", 100},
		{somePacket, "refunded", "refunding", "provider", 100}}
	return b, a, v
}

// TestJudgeSeesPayers: a payment after the close is refunded in full, and an unpaid packet is rejected.
func TestJudgeSeesPayers(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(b *snapshot, v map[string]verdict)
		sees  string // "": nothing
	}{
		"refunded in full": {func(*snapshot, map[string]verdict) {}, ""},
		"not paid": {func(b *snapshot, v map[string]verdict) {
			delete(b.payments, someRefund)
			b.payments[someCharge].status, b.movements, b.postings = "failed", nil, nil
			v[someCharge+"01"] = verdict{"declined", "order_closed"}
		}, ""},
		"called failed without a close": {func(b *snapshot, v map[string]verdict) {
			delete(b.payments, someRefund)
			b.payments[someCharge].status, b.movements, b.postings = "failed", nil, nil
			v[someCharge+"01"] = verdict{Status: "awaiting_payment"}
		}, "called failed"},
		"still waits":      {func(b *snapshot, _ map[string]verdict) { b.payments[someCharge].status = "awaiting_payer" }, "still awaiting"},
		"not noticed":      {func(b *snapshot, _ map[string]verdict) { b.payments[someCharge].status = "failed" }, "moved after its close"},
		"not refunded":     {func(b *snapshot, _ map[string]verdict) { delete(b.payments, someRefund) }, "is not refunded"},
		"refunded in part": {func(b *snapshot, _ map[string]verdict) { b.payments[someRefund].amount = 99 }, "the refund is 99 of 100 fen"},
		"of another kind":  {func(b *snapshot, _ map[string]verdict) { b.packets[somePacket].payer = false }, "is rejected, and 100 fen"},
	} {
		b, a, v := paidLate()
		tc.spoil(b, v)
		j := judge(b, a, v)
		seen := slices.ContainsFunc(j.violations, func(v violation) bool { return tc.sees != "" && strings.Contains(v.what, tc.sees) })
		if seen != (tc.sees != "") || tc.sees == "" && len(j.violations) > 0 {
			t.Errorf("%s: %v", name, j.violations)
		}
	}
}
