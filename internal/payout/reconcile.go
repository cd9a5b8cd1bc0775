package payout

import (
	"fmt"
	"time"

	"hongbao/internal/money"
)

// The breaks reconciliation finds. The first three are repaired: the provider is
// asked about the order, the machine books what it says, and the break is
// resolved when the books agree. The others are for people.
const (
	// BreakNotBooked: money moved at the provider, the books do not show it.
	BreakNotBooked BreakKind = "not_booked"
	// BreakReturnNotBooked: money came back at the provider, the books do not show it.
	BreakReturnNotBooked BreakKind = "return_not_booked"
	// BreakSuperseded: money moved under a number that a later one has taken the place of.
	BreakSuperseded BreakKind = "superseded"
	// BreakNotInStatement: booked as moved or returned, and no statement has it.
	BreakNotInStatement BreakKind = "not_in_statement"
	// BreakAmountDiffers: another amount than was requested or booked.
	BreakAmountDiffers BreakKind = "amount_differs"
	// BreakAccountDiffers: another account than was requested.
	BreakAccountDiffers BreakKind = "account_differs"
	// BreakOpDiffers: another kind of movement than was requested.
	BreakOpDiffers BreakKind = "op_differs"
	// BreakMovedTwice: the same movement more than once under one number.
	BreakMovedTwice BreakKind = "moved_twice"
	// BreakForeignOrder: the number is none of ours, or none that we have sent.
	BreakForeignOrder BreakKind = "foreign_order"
)

// StatementBreaks lists the breaks reconciliation finds.
var StatementBreaks = []BreakKind{BreakNotBooked, BreakReturnNotBooked, BreakSuperseded, BreakNotInStatement,
	BreakAmountDiffers, BreakAccountDiffers, BreakOpDiffers, BreakMovedTwice, BreakForeignOrder}

// Repairable reports whether asking the provider can settle a break.
func (k BreakKind) Repairable() bool {
	return k == BreakNotBooked || k == BreakReturnNotBooked || k == BreakSuperseded
}

// InFlightAge is how young a movement or a posting may be without its counterpart:
// an answer on its way, a step that waits for its turn, clocks that differ.
const InFlightAge = time.Minute

// Booked is our side of one order number.
type BookedOrder struct {
	Payment  Payment
	Attempt  Attempt
	Moved    money.Fen // posted as moved, whatever for
	Returned money.Fen // posted as come back
}

// Verdict is what the comparison of one line says.
type LineVerdict struct {
	// Breaks are empty when the line and the books agree, or may yet (InFlightAge).
	Breaks []Break
	// InFlightAge: not booked, and too young for a break.
	InFlight bool
	// Ask: the provider is to be asked about the order, as after a notification.
	Query bool
	// Booked is what the books have for this line.
	Booked money.Fen
}

// CompareLine compares a line of a provider's statement with the books. before are
// the lines that come before it under the same number; ours is nil when the
// number has no attempt of ours. The statement has everything up to asOf.
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

// unbooked judges a movement that the ledger does not show. known: the attempt
// says that it does, so that asking would not make anybody book it.
func (v *LineVerdict) unbooked(l StatementLine, ours *BookedOrder, known bool, asOf time.Time) {
	p, a := ours.Payment, ours.Attempt
	if l.At.After(asOf.Add(-InFlightAge)) {
		v.InFlight = true
		// An open payment is asked about anyway; of the others nobody would hear.
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

// Posted is a posting that says that money moved at a provider, or came back.
type BookedMovement struct {
	Transfer
	At      time.Time
	Payment Payment
	// FirstSent is when the order was sent first: the money moved after it.
	FirstSent time.Time
}

// Op is what a statement calls the movement, "" when the posting is none at a provider.
func (p BookedMovement) Op() Op {
	switch p.Kind {
	case PostCharge, PostPaid, PostRefunded, PostSecondSuccess:
		return OpOf(p.Payment.Kind)
	case PostReturned, PostRefundReturned, PostSecondReturned:
		return OpReturn
	}
	return ""
}

// Days are the days whose statements may have the movement: from the first send
// to the posting, and clocks may differ.
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

// maxDays bounds how many days' statements are looked at for one posting: no
// provider knows an order longer.
const maxDays = 40

// Judgement is what is to be said of a posting.
type TransferVerdict struct {
	// Break is nil when a statement has the movement, or may yet.
	Break *Break
	// Unread are the days that have to be read before anything can be said.
	Unread []Day
}

// CompareTransfer looks for a posting's movement in the statements. lines are all
// lines under its order number that were read; readAt tells up to when a day was
// read, the zero time: not at all. What is younger than asOf less InFlightAge is
// not judged yet.
func CompareTransfer(p BookedMovement, lines []StatementLine, readAt func(Day) time.Time, zone *time.Location, asOf time.Time) TransferVerdict {
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
