package providertest

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"hongbao/internal/payout"
)

// notificationCases: a notification only causes a query, and only a genuine one does.
func notificationCases() []testCase {
	return []testCase{
		{"a genuine notification names its event and order", caseGenuine},
		{"a notification that was sent twice is the same event", caseReplayed},
		{"a notification that was changed, or is not the provider's, is refused", caseForged},
		{"a notification that is too old or too new is refused", caseStale},
	}
}

// delivered returns a genuine notification and the adapter that verifies it.
func (p *probe) delivered() (NotificationVerifier, payout.Order, http.Header, []byte) {
	n, ok := p.a.(NotificationVerifier)
	if !ok {
		p.must(ErrUnsupported)
	}
	account, _ := p.arrange(StaysPending)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.wantKind("sent", p.send(o), payout.ObsSucceeded, payout.ObsPending)
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Within)
	defer cancel()
	header, body, err := p.h.Delivered(ctx, o.OrderNo)
	p.must(err)
	return n, o, header, body
}

func caseGenuine(p *probe) {
	n, o, header, body := p.delivered()
	event, orderNo, err := n.VerifyNotification(header, body)
	if err != nil || orderNo != o.OrderNo || event == "" {
		p.errorf("event %q of order %q, %v: want order %q", event, orderNo, err, o.OrderNo)
	}
}

func caseReplayed(p *probe) {
	n, _, header, body := p.delivered()
	first, _, err := n.VerifyNotification(header, body)
	p.must(err)
	again, _, err := n.VerifyNotification(header, body)
	if err != nil || again != first {
		p.errorf("delivered again it is event %q, %v: was %q", again, err, first)
	}
	later, err := p.h.Sign(true, first, time.Now(), body)
	p.must(err)
	if again, _, err := n.VerifyNotification(later, body); err != nil || again != first {
		p.errorf("signed again later it is event %q, %v: was %q", again, err, first)
	}
}

// refuses checks that a notification is refused.
func (p *probe) refuses(what string, n NotificationVerifier, header http.Header, body []byte) {
	if event, orderNo, err := n.VerifyNotification(header, body); err == nil || event != "" || orderNo != "" {
		p.errorf("%s: taken as event %q of order %q, error %v", what, event, orderNo, err)
	}
}

func caseForged(p *probe) {
	n, _, header, body := p.delivered()
	event, orderNo, err := n.VerifyNotification(header, body)
	p.must(err)
	if other := bytes.Replace(body, []byte(orderNo), []byte(number(payout.OpTransfer)), 1); !bytes.Equal(other, body) { // not encrypted
		p.refuses("another order", n, header, other)
	}
	p.refuses("one space more", n, header, append(bytes.Clone(body), ' '))
	p.refuses("cut off", n, header, body[:len(body)-1])
	p.refuses("empty body", n, header, nil)
	p.refuses("no headers", n, http.Header{}, body)
	for name := range header {
		without := header.Clone()
		without.Del(name)
		if _, _, err := n.VerifyNotification(without, body); err != nil {
			continue // a signed header
		}
		changed := header.Clone()
		changed.Set(name, "x")
		if e, o, err := n.VerifyNotification(changed, body); err == nil && (e != event || o != orderNo) {
			p.errorf("header %s is not needed, but changes the event to %q of %q", name, e, o)
		}
	}
	forged, err := p.h.Sign(false, event, time.Now(), body)
	p.must(err)
	p.refuses("signed with another secret", n, forged, body)
	other, err := p.h.Sign(true, "evt_other", time.Now(), body)
	p.must(err)
	if e, _, err := n.VerifyNotification(other, body); err == nil && e != event {
		p.errorf("its event id is taken from outside the signed body: %q, was %q", e, event)
	}
	for what, wrong := range map[string][]byte{"text": []byte("hello"), "null": []byte("null"), "no members": []byte("{}"),
		"not UTF-8": []byte("{\"\xff\":1}")} {
		signed, err := p.h.Sign(true, event, time.Now(), wrong)
		p.must(err)
		p.refuses("genuine "+what, n, signed, wrong)
	}
}

// caseStale: half an hour is too old or too new for every known scheme.
func caseStale(p *probe) {
	n, _, header, body := p.delivered()
	event, _, err := n.VerifyNotification(header, body)
	p.must(err)
	for what, at := range map[string]time.Time{"old": time.Now().Add(-30 * time.Minute), "of the future": time.Now().Add(30 * time.Minute)} {
		signed, err := p.h.Sign(true, event, at, body)
		p.must(err)
		p.refuses(what, n, signed, body)
	}
}
