package staff

import (
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// InFlightAge is how young a movement or a transfer may be without its counterpart: answers in
// transit, deferred steps, clock differences.
const InFlightAge = time.Minute

// BookedOrder is our side of one order number.
type BookedOrder struct {
	Payment  payout.Payment
	Attempt  payout.Attempt
	Moved    money.Fen // booked as moved, for any purpose
	Returned money.Fen // booked as returned
}

// LineVerdict is the result of comparing one statement line.
type LineVerdict struct {
	// Breaks are empty when line and ledger agree, or may yet agree (InFlight).
	Breaks []payout.Break
	// InFlight: not booked, and too young for a break.
	InFlight bool
	// Query: the provider is to be queried about the order, as after a notification.
	Query bool
	// Booked is the amount in the ledger for this line.
	Booked money.Fen
	// Post: the line belongs to no order, and its transfer is to be posted.
	Post bool
}

// CompareWithoutOrder compares a line without an order with the amount that the ledger has for it; 0: none
// yet. The statement is where such a movement is known from, so it is posted as the line says.
func CompareWithoutOrder(l payout.StatementLine, booked money.Fen) LineVerdict {
	switch booked {
	case 0:
		return LineVerdict{Booked: l.Amount, Post: true}
	case l.Amount:
		return LineVerdict{Booked: booked}
	}
	return LineVerdict{Booked: booked, Breaks: []payout.Break{{Kind: payout.BreakAmountDiffers, OrderNo: l.OrderNo,
		Detail: fmt.Sprintf("%s %s: statement says %d fen, booked are %d", l.Op, l.Ref, l.Amount, booked)}}}
}

// CompareLine compares a line of a provider's statement with the ledger. before are the earlier
// lines of the same order number; ours is nil when the number has no attempt of ours. The statement
// is complete up to asOf.
func CompareLine(provider string, l payout.StatementLine, before []payout.StatementLine, ours *BookedOrder, asOf time.Time) LineVerdict {
	var v LineVerdict
	add := func(kind payout.BreakKind, format string, args ...any) {
		v.Breaks = append(v.Breaks, payout.Break{Kind: kind, OrderNo: l.OrderNo, Detail: fmt.Sprintf(format, args...)})
	}
	if ours == nil || ours.Payment.Provider != provider {
		add(payout.BreakForeignOrder, "%s of %d fen, account %q: no order of ours", l.Op, l.Amount, l.Account)
		return v
	}
	if l.Op == payout.OpReturn && ours.Attempt.Op == payout.OpCharge && ours.Returned == 0 {
		// A query that reports it records the return. After one that does not, staff decide about the loss.
		add(payout.BreakOpDiffers, "%d fen of the charge of %d fen went back to its sender at %s, by no refund of ours; line %s",
			l.Amount, ours.Payment.Amount, l.At.UTC().Format(time.RFC3339), l.Ref)
		return v
	}
	if l.Op != ours.Attempt.Op && l.Op != payout.OpReturn {
		add(payout.BreakOpDiffers, "statement says %s, requested was %s; booked are %d fen", l.Op, ours.Attempt.Op, ours.Moved)
		return v
	}
	for _, other := range before {
		if other.Op == l.Op {
			add(payout.BreakMovedTwice, "%s of %d fen again, first at %s", l.Op, l.Amount, other.At.UTC().Format(time.RFC3339))
			return v
		}
	}
	if l.Account != "" && l.Account != ours.Attempt.Account { // not every statement names it
		add(payout.BreakAccountDiffers, "statement says account %q, requested was %q", l.Account, ours.Attempt.Account)
	}
	if l.Amount != ours.Payment.Amount {
		add(payout.BreakAmountDiffers, "statement says %d fen, requested were %d", l.Amount, ours.Payment.Amount)
	}
	v.Booked = ours.Moved
	known := ours.Attempt.Booked
	if l.Op == payout.OpReturn {
		v.Booked, known = ours.Returned, ours.Attempt.ReturnBooked
	}
	switch {
	case v.Booked == 0:
		v.unbooked(l, ours, known, asOf)
	case v.Booked != ours.Payment.Amount:
		add(payout.BreakAmountDiffers, "booked are %d fen, requested were %d", v.Booked, ours.Payment.Amount)
	}
	return v
}

// unbooked judges a movement that is not in the ledger. known: the attempt claims to be booked, so
// that a query would not lead to booking it.
func (v *LineVerdict) unbooked(l payout.StatementLine, ours *BookedOrder, known bool, asOf time.Time) {
	p, a := ours.Payment, ours.Attempt
	if l.At.After(asOf.Add(-InFlightAge)) {
		v.InFlight = true
		// An open payment is queried anyway; news about the others would be missed.
		v.Query = !p.Status.Open() && !known
		return
	}
	kind := payout.BreakNotBooked
	switch {
	case l.Op == payout.OpReturn:
		kind = payout.BreakReturnNotBooked
	case a.No != p.Attempt && p.Status != payout.StatusPending && p.Status != payout.StatusFailed:
		kind = payout.BreakSuperseded
	}
	v.Query = !known
	v.Breaks = append(v.Breaks, payout.Break{Kind: kind, OrderNo: l.OrderNo,
		Detail: fmt.Sprintf("%s of %d fen at %s; the payment is %s", l.Op, l.Amount, l.At.UTC().Format(time.RFC3339), p.Status)})
}

// BookedMovement is a ledger transfer for money that moved at a provider, or was returned.
type BookedMovement struct {
	payout.Transfer
	At      time.Time
	Payment payout.Payment
	// FirstSent is the first send of the order: the money moved after it.
	FirstSent time.Time
}

// Op is the operation that a statement lists for the movement; "": no movement at a provider.
func (p BookedMovement) Op() payout.Op {
	return p.Kind.Op(p.Payment.Kind)
}

// Days are the days whose statements may list the movement: from the first send to the booking,
// with a margin for clock differences.
func (p BookedMovement) Days(zone *time.Location) []payout.Day {
	first := p.FirstSent
	if first.IsZero() || first.After(p.At) {
		first = p.At
	}
	last := payout.DayOf(p.At.Add(InFlightAge), zone)
	var days []payout.Day
	for d := payout.DayOf(first.Add(-InFlightAge), zone); d <= last && len(days) < maxDays; d = d.Add(1) {
		days = append(days, d)
	}
	return days
}

// maxDays bounds the statements that are searched for one transfer: no provider knows an order
// longer.
const maxDays = 40

// TransferVerdict is the result of comparing one transfer with the statements.
type TransferVerdict struct {
	// Break is nil when a statement lists the movement, or may yet list it.
	Break *payout.Break
	// Unread are the days that have to be read before a verdict is possible.
	Unread []payout.Day
}

// CompareTransfer looks for the movement of a transfer in the statements. lines are all read lines
// of its order number; readAt returns the time up to which a day was read, zero: not read. A
// transfer younger than asOf less InFlightAge is not judged yet.
func CompareTransfer(p BookedMovement, lines []payout.StatementLine, readAt func(payout.Day) time.Time, zone *time.Location,
	asOf time.Time) TransferVerdict {
	op := p.Op()
	if op == "" || p.At.After(asOf.Add(-InFlightAge)) {
		return TransferVerdict{}
	}
	for _, l := range lines {
		if l.Op == op {
			return TransferVerdict{}
		}
	}
	var j TransferVerdict
	for _, d := range p.Days(zone) {
		_, until := d.Span(zone)
		if end := p.At.Add(InFlightAge); end.Before(until) {
			until = end
		}
		if readAt(d).Before(until) {
			j.Unread = append(j.Unread, d)
		}
	}
	if len(j.Unread) == 0 {
		j.Break = &payout.Break{Kind: payout.BreakNotInStatement, OrderNo: p.OrderNo,
			Detail: fmt.Sprintf("%d fen booked as %s at %s; no statement has a %s", p.Amount, p.Kind, p.At.UTC().Format(time.RFC3339), op)}
	}
	return j
}
