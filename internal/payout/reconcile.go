package payout

import (
	"fmt"
	"time"

	"hongbao/internal/money"
)

// The breaks that reconciliation finds. Repairable ones are repaired: the provider is queried, the
// answer is settled, and the break is resolved when both sides agree. The others are for staff.
const (
	// BreakNotBooked: money moved at the provider and is not in the ledger.
	BreakNotBooked BreakKind = "not_booked"
	// BreakReturnNotBooked: money was returned at the provider and the return is not in the ledger.
	BreakReturnNotBooked BreakKind = "return_not_booked"
	// BreakSuperseded: money moved under a superseded order number.
	BreakSuperseded BreakKind = "superseded"
	// BreakNotInStatement: booked as moved or returned, and in no statement.
	BreakNotInStatement BreakKind = "not_in_statement"
	// BreakAmountDiffers: another amount than was requested or booked.
	BreakAmountDiffers BreakKind = "amount_differs"
	// BreakAccountDiffers: another account than was requested.
	BreakAccountDiffers BreakKind = "account_differs"
	// BreakOpDiffers: another kind of movement than was requested.
	BreakOpDiffers BreakKind = "op_differs"
	// BreakMovedTwice: the same movement more than once under one number.
	BreakMovedTwice BreakKind = "moved_twice"
	// BreakForeignOrder: the order number is none of ours, or was never sent.
	BreakForeignOrder BreakKind = "foreign_order"
)

// StatementBreaks lists the breaks that reconciliation finds.
var StatementBreaks = []BreakKind{BreakNotBooked, BreakReturnNotBooked, BreakSuperseded, BreakNotInStatement,
	BreakAmountDiffers, BreakAccountDiffers, BreakOpDiffers, BreakMovedTwice, BreakForeignOrder}

// Repairable reports whether a query of the provider can settle a break.
func (k BreakKind) Repairable() bool {
	return k == BreakNotBooked || k == BreakReturnNotBooked || k == BreakSuperseded
}

// InFlightAge is how young a movement or a transfer may be without its counterpart: answers in
// transit, deferred steps, clock differences.
const InFlightAge = time.Minute

// BookedOrder is our side of one order number.
type BookedOrder struct {
	Payment  Payment
	Attempt  Attempt
	Moved    money.Fen // booked as moved, for any purpose
	Returned money.Fen // booked as returned
}

// LineVerdict is the result of comparing one statement line.
type LineVerdict struct {
	// Breaks are empty when line and ledger agree, or may yet agree (InFlight).
	Breaks []Break
	// InFlight: not booked, and too young for a break.
	InFlight bool
	// Query: the provider is to be queried about the order, as after a notification.
	Query bool
	// Booked is the amount in the ledger for this line.
	Booked money.Fen
}

// CompareLine compares a line of a provider's statement with the ledger. before are the earlier
// lines of the same order number; ours is nil when the number has no attempt of ours. The statement
// is complete up to asOf.
func CompareLine(provider string, l StatementLine, before []StatementLine, ours *BookedOrder, asOf time.Time) LineVerdict {
	var v LineVerdict
	add := func(kind BreakKind, format string, args ...any) {
		v.Breaks = append(v.Breaks, Break{Kind: kind, OrderNo: l.OrderNo, Detail: fmt.Sprintf(format, args...)})
	}
	if ours == nil || ours.Payment.Provider != provider {
		add(BreakForeignOrder, "%s of %d fen, account %q: no order of ours", l.Op, l.Amount, l.Account)
		return v
	}
	if l.Op != ours.Attempt.Op && (l.Op != OpReturn || ours.Attempt.Op == OpCharge) {
		add(BreakOpDiffers, "statement says %s, requested was %s; booked are %d fen", l.Op, ours.Attempt.Op, ours.Moved)
		return v
	}
	for _, other := range before {
		if other.Op == l.Op {
			add(BreakMovedTwice, "%s of %d fen again, first at %s", l.Op, l.Amount, other.At.UTC().Format(time.RFC3339))
			return v
		}
	}
	if l.Account != ours.Payment.Account {
		add(BreakAccountDiffers, "statement says account %q, requested was %q", l.Account, ours.Payment.Account)
	}
	if l.Amount != ours.Payment.Amount {
		add(BreakAmountDiffers, "statement says %d fen, requested were %d", l.Amount, ours.Payment.Amount)
	}
	v.Booked = ours.Moved
	known := ours.Attempt.Booked
	if l.Op == OpReturn {
		v.Booked, known = ours.Returned, ours.Attempt.ReturnBooked
	}
	switch {
	case v.Booked == 0:
		v.unbooked(l, ours, known, asOf)
	case v.Booked != ours.Payment.Amount:
		add(BreakAmountDiffers, "booked are %d fen, requested were %d", v.Booked, ours.Payment.Amount)
	}
	return v
}

// unbooked judges a movement that is not in the ledger. known: the attempt claims to be booked, so
// that a query would not lead to booking it.
func (v *LineVerdict) unbooked(l StatementLine, ours *BookedOrder, known bool, asOf time.Time) {
	p, a := ours.Payment, ours.Attempt
	if l.At.After(asOf.Add(-InFlightAge)) {
		v.InFlight = true
		// An open payment is queried anyway; news about the others would be missed.
		v.Query = !p.Status.Open() && !known
		return
	}
	kind := BreakNotBooked
	switch {
	case l.Op == OpReturn:
		kind = BreakReturnNotBooked
	case a.No != p.Attempt && p.Status != StatusPending && p.Status != StatusFailed:
		kind = BreakSuperseded
	}
	v.Query = !known
	v.Breaks = append(v.Breaks, Break{Kind: kind, OrderNo: l.OrderNo,
		Detail: fmt.Sprintf("%s of %d fen at %s; the payment is %s", l.Op, l.Amount, l.At.UTC().Format(time.RFC3339), p.Status)})
}

// BookedMovement is a ledger transfer for money that moved at a provider, or was returned.
type BookedMovement struct {
	Transfer
	At      time.Time
	Payment Payment
	// FirstSent is the first send of the order: the money moved after it.
	FirstSent time.Time
}

// Op is the operation that a statement lists for the movement; "": no movement at a provider.
func (p BookedMovement) Op() Op {
	switch p.Kind {
	case PostCharge, PostPaid, PostRefunded, PostSecondSuccess:
		return OpOf(p.Payment.Kind)
	case PostReturned, PostRefundReturned, PostSecondReturned, PostChargeReturned:
		return OpReturn
	}
	return ""
}

// Days are the days whose statements may list the movement: from the first send to the booking,
// with a margin for clock differences.
func (p BookedMovement) Days(zone *time.Location) []Day {
	first := p.FirstSent
	if first.IsZero() || first.After(p.At) {
		first = p.At
	}
	last := DayOf(p.At.Add(InFlightAge), zone)
	var days []Day
	for d := DayOf(first.Add(-InFlightAge), zone); d <= last && len(days) < maxDays; d = d.Add(1) {
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
	Break *Break
	// Unread are the days that have to be read before a verdict is possible.
	Unread []Day
}

// CompareTransfer looks for the movement of a transfer in the statements. lines are all read lines
// of its order number; readAt returns the time up to which a day was read, zero: not read. A
// transfer younger than asOf less InFlightAge is not judged yet.
func CompareTransfer(p BookedMovement, lines []StatementLine, readAt func(Day) time.Time, zone *time.Location,
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
		j.Break = &Break{Kind: BreakNotInStatement, OrderNo: p.OrderNo,
			Detail: fmt.Sprintf("%d fen booked as %s at %s; no statement has a %s", p.Amount, p.Kind, p.At.UTC().Format(time.RFC3339), op)}
	}
	return j
}
