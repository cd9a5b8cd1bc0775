package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// order is the provider's record of one order number.
type order struct {
	no     string
	ins    payout.Instruction
	raw    []byte
	kind   payout.ObservationKind // its current outcome
	then   payout.ObservationKind // its outcome from the time at; "": no change
	at     time.Time
	turned bool // refused, and executed after all
	moved  bool // the money left, returned or not
	// movedAt and backAt are the times of both movements, for the statement.
	movedAt, backAt time.Time
	first           time.Time
	// endless: it stays in progress, and the provider never forgets it.
	endless bool
	closed  bool // we ended it while it waited for its recipient or payer
	// Of a payer: pays again, has paid twice, pays a part with a coupon.
	again, twice, coupon bool
}

// landing is a request that has not reached the provider yet.
type landing struct {
	at time.Time
	o  payout.Order
	// refused: it was refused without being stored, and is executed anyway.
	refused bool
}

// bank simulates the provider: it stores order numbers and executes each once.
type bank struct {
	world   *world
	orders  map[string]*order
	numbers []string // in order of arrival
	late    []landing
	notices []string             // order numbers to notify about
	answers map[string]answer    // the last answer to a query, by order number
	queried map[string]time.Time // the last query, answered or not
	deaf    map[string]bool      // queries about the order number are never answered
	// asks counts the queries of a recovery.
	asks int
	// silent are the orders about which a recovery gets no usable answer.
	silent map[string]bool
	// mute is the time until which the provider answers nothing and accepts nothing.
	mute time.Time
	// broke is the time until which our balance covers nothing.
	broke time.Time
}

// mostAsks exceeds the number of queries of any recovery of one packet.
const mostAsks = 100_000

// answer is the last answer to a query that says something, and its time. at is the time of the last query.
type answer struct {
	at    time.Time
	kind  payout.ObservationKind
	since time.Time
}

func (b *bank) Name() string            { return simulatedProvider }
func (b *bank) Adapter() payout.Adapter { return payout.Adapter{Provider: b.Name()} }
func (b *bank) Limits() payout.Limits   { return b.world.limits }

func (b *bank) EncodeRequest(in payout.Instruction) ([]byte, error) { return json.Marshal(in) }

// Send executes an order, unless the request or the answer is lost.
func (b *bank) Send(_ context.Context, o payout.Order) (seen payout.Observation) {
	w := b.world
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	seen = payout.Observation{Source: payout.SourceSend, OrderNo: o.OrderNo, Kind: payout.ObsNoAnswer, StartedAt: now, EndedAt: now}
	how := 0
	if !w.calm && w.hit("network", 2*w.faults) {
		how = 1 + w.dice.n("how", 8)
	}
	b.advance()
	if _, drawn := b.deaf[o.OrderNo]; !drawn && w.endless && !w.calm && o.Op != payout.OpCharge {
		b.deaf[o.OrderNo] = w.hit("deaf", 10)
	}
	w.judgeSendDeadline(o.OrderNo)
	if w.db.restored() || w.db.held(payout.HoldPacket) {
		w.violated("%s was sent from a restored MySQL, or about a packet that was left to staff", o.OrderNo)
	}
	switch {
	case now.Before(b.mute):
		how = 2
	case now.Before(b.broke) && o.Op != payout.OpCharge && b.orders[o.OrderNo] == nil:
		how = 9
	}
	switch how {
	case 1, 4: // the answer is lost
		b.arrive(o, now)
	case 2: // the request is lost
	case 3, 8: // a slow request; it arrives while the send is open
		b.late = append(b.late, landing{at: now.Add(time.Duration(1+w.dice.n("late", 9999)) * time.Millisecond), o: o})
	case 5:
		seen.Kind = payout.ObsRetryAfter
	case 6:
		seen.Kind = payout.ObsNotSent
	case 7: // refused, and nothing stored under the order number
		if b.orders[o.OrderNo] == nil {
			seen.Kind, seen.Code = payout.ObsDeclined, "declined_by_rule"
			if o.Op == payout.OpCharge && w.packet.PayWithin == 0 && w.hit("and yet", 40) {
				b.late = append(b.late, landing{now.Add(b.later()), o, true})
			}
		} else {
			b.answer(&seen, b.orders[o.OrderNo])
		}
	case 9:
		seen.Kind, seen.Code = payout.ObsRetryAfter, payout.CodeLowBalance
	default:
		b.answer(&seen, b.arrive(o, now))
		if seen.Kind == payout.ObsNeedsPayer && !w.hit("no action", w.faults) {
			seen.Action = &payout.ClientAction{Type: payout.ClientSDK, ValidUntil: now.Add(2 * time.Minute)}
		}
	}
	w.note("sent %s: %s (%d)", o.OrderNo, seen.Kind, how)
	w.judge("send")
	return seen
}

// Query returns the outcome of an order.
func (b *bank) Query(_ context.Context, _ payout.Op, no string) (seen payout.Observation) {
	w := b.world
	w.mu.Lock()
	defer w.mu.Unlock()
	b.advance()
	if b.asks++; w.recovering && b.asks > mostAsks {
		panic("the recovery queries " + no + " without end")
	}
	now := w.now()
	b.queried[no] = now
	seen = payout.Observation{Source: payout.SourceQuery, OrderNo: no, Kind: payout.ObsNeverReceived, StartedAt: now, EndedAt: now}
	o := b.orders[no]
	if now.Before(b.mute) {
		seen.Kind = payout.ObsNoAnswer
	} else if w.recovering && b.silent[no] {
		seen.Kind = payout.ObsNoAnswer // ten times, then the recovery reports it
		return seen
	} else if !w.recovering && b.deaf[no] {
		seen.Kind = payout.ObsNoAnswer
	} else if o != nil && b.forgot(o) {
		w.reached["queried after the provider forgot it"]++
	} else if !w.calm && !w.recovering && w.hit("ask", w.faults) {
		seen.Kind = []payout.ObservationKind{payout.ObsNoAnswer, payout.ObsRetryAfter}[w.dice.n("silence", 2)]
	} else if o != nil {
		b.answer(&seen, o)
	}
	switch seen.Kind {
	case payout.ObsNoAnswer, payout.ObsRetryAfter:
	default:
		last := b.answers[no]
		if last.at = now; seen.Kind != payout.ObsNeverReceived || last.kind == "" || !w.db.pastMemory(no) {
			last.kind, last.since = seen.Kind, now // "never received" from when it may have forgotten the order is no answer
		}
		b.answers[no] = last
	}
	w.note("asked %s: %s", no, seen.Kind)
	return seen
}

func (b *bank) answer(seen *payout.Observation, o *order) {
	seen.Kind, seen.ProviderRef, seen.Account, seen.Amount = o.kind, o.ref(), o.ins.Account, o.ins.Amount
	if o.coupon && o.kind == payout.ObsSucceeded {
		seen.Code = payout.FailureCouponNotAllowed
	}
	if o.kind == payout.ObsDeclined {
		seen.Code = "payee_declined"
		if o.closed {
			seen.Code = "transfer_cancelled"
		}
	}
}

// forgot reports whether the provider has forgotten an order. It would execute the order again.
func (b *bank) forgot(o *order) bool { return b.forgotAt(o, b.world.now()) }

func (b *bank) forgotAt(o *order, at time.Time) bool {
	return !o.endless && !at.Before(o.first.Add(b.world.limits.Remembers))
}

// hopeless reports whether no query will give the outcome of an order number.
func (b *bank) hopeless(no string) bool {
	return b.deaf[no] || b.orders[no] != nil && b.orders[no].endless
}

// arrive executes an order once, whatever happens to the answer.
func (b *bank) arrive(sent payout.Order, at time.Time) *order {
	w := b.world
	if o := b.orders[sent.OrderNo]; o != nil {
		if !bytes.Equal(o.raw, sent.Request) {
			w.violated("order %s was sent with a different request", o.no)
		}
		if b.forgotAt(o, at) {
			w.violated("order %s was sent again after the provider had forgotten it", o.no)
		}
		if o.kind == payout.ObsNeedsPayer {
			w.reached["client data renewed"]++
		}
		return o
	}
	o := &order{first: at, no: sent.OrderNo, raw: slices.Clone(sent.Request), kind: payout.ObsSucceeded}
	if err := json.Unmarshal(sent.Request, &o.ins); err != nil || o.ins.OrderNo != o.no {
		w.violated("request of %s: %v, about %q", o.no, err, o.ins.OrderNo)
	}
	b.orders[o.no], b.numbers = o, append(b.numbers, o.no)
	w.judgeNewAttempt(o.no)
	b.fate(o)
	b.moves(o)
	return o
}

// later draws the delay until the provider acts by itself.
func (b *bank) later() time.Duration {
	d := []time.Duration{time.Second, time.Minute, 10 * time.Minute, 3 * time.Hour}
	if b.world.briefly {
		d = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	}
	return d[b.world.dice.n("when", len(d))]
}

// fate draws the outcome of a new order.
func (b *bank) fate(o *order) {
	w := b.world
	if o.payer() {
		b.awaitPayer(o)
		return
	}
	later := func(now, then payout.ObservationKind) { o.kind, o.then, o.at = now, then, w.now().Add(b.later()) }
	charge := o.ins.Op == payout.OpCharge
	if w.calm || charge && w.dice.n("charged", 2) == 0 { // without a charge nothing else happens
		return
	}
	if w.endless && !charge && w.hit("endless", 15) {
		o.kind, o.endless = []payout.ObservationKind{payout.ObsPending, payout.ObsNeedsRecipient}[w.dice.n("says", 2)], true
		return
	}
	if w.endless && !charge && w.hit("outlasts", 15) { // it moves when the provider has forgotten it
		o.kind, o.then, o.at = payout.ObsPending, payout.ObsSucceeded, w.now().Add(w.limits.Remembers+time.Hour)
		return
	}
	switch w.dice.n("fate", 12) {
	case 6:
		if o.kind = payout.ObsDeclined; charge && w.hit("turns", 60) {
			later(payout.ObsDeclined, payout.ObsSucceeded)
		}
	case 7:
		later(payout.ObsPending, payout.ObsSucceeded)
	case 8:
		later(payout.ObsPending, payout.ObsDeclined)
	case 9:
		if !charge {
			later(payout.ObsNeedsRecipient, []payout.ObservationKind{payout.ObsSucceeded, payout.ObsDeclined}[w.dice.n("confirms", 2)])
		}
	case 10:
		later(payout.ObsSucceeded, payout.ObsReturned)
	case 11:
		if w.hit("turns", 60) { // refused, then executed or pending after all
			into := []payout.ObservationKind{payout.ObsSucceeded, payout.ObsPending, payout.ObsNeedsRecipient}
			later(payout.ObsDeclined, into[w.dice.n("into", len(into))])
		} else {
			o.kind = payout.ObsDeclined
		}
	}
}

func (b *bank) moves(o *order) {
	switch {
	case o.kind == payout.ObsSucceeded && !o.moved:
		o.moved, o.movedAt = true, b.world.now()
	case o.kind == payout.ObsReturned && o.backAt.IsZero():
		o.backAt = b.world.now()
	}
}

// advance applies the effects of the time that has passed. The lock is held.
func (b *bank) advance() {
	w, now := b.world, b.world.now()
	for len(b.late) > 0 {
		i := 0
		for j := range b.late {
			if b.late[j].at.Before(b.late[i].at) {
				i = j
			}
		}
		l := b.late[i]
		if l.at.After(now) {
			break
		}
		b.late = slices.Delete(b.late, i, i+1)
		w.note("landed late: %s", l.o.OrderNo)
		fresh := b.orders[l.o.OrderNo] == nil
		if o := b.arrive(l.o, l.at); l.refused && fresh {
			if o.turned = true; !w.hit("notice lost", 20) {
				b.notices = append(b.notices, o.no)
			}
		}
	}
	for _, no := range b.numbers {
		o := b.orders[no]
		if o.then == "" || o.at.After(now) {
			continue
		}
		o.turned = o.turned || o.kind == payout.ObsDeclined
		was := o.kind
		o.kind, o.then = o.then, ""
		if o.kind == payout.ObsPending || o.kind == payout.ObsNeedsRecipient {
			o.then, o.at = []payout.ObservationKind{payout.ObsSucceeded, payout.ObsDeclined}[w.dice.n("ends", 2)], now.Add(b.later())
			if o.turned {
				w.reached["pending after a refusal"]++
			}
		}
		if o.payer() && o.kind == payout.ObsSucceeded {
			b.paid(o, was)
		}
		b.moves(o)
		w.note("the provider: %s is %s", no, o.kind)
		if !w.hit("notice lost", 20) {
			b.notices = append(b.notices, no)
		}
	}
}

// net returns the amount in fen that an order has moved and that was not returned.
func (o *order) net() money.Fen {
	if o.kind == payout.ObsSucceeded {
		return o.ins.Amount
	}
	return 0
}

// next returns when the provider acts by itself; zero: never.
func (b *bank) next() (at time.Time) {
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, l := range b.late {
		earlier(l.at)
	}
	for _, no := range b.numbers {
		if o := b.orders[no]; o.then != "" {
			earlier(o.at)
		}
	}
	return at
}
