package staff

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

const day0 = payout.Day("2026-02-17")

var noon = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)

// kinds are the breaks of a case.
type kinds = []payout.BreakKind

// booked is a paid payout of 100 fen in the ledger, with its statement line.
func booked() (*BookedOrder, payout.StatementLine) {
	id := payout.ID(payout.KindPayout, "0123456789abcdefghij", 3)
	p := payout.Payment{ID: id, Kind: payout.KindPayout, Account: "u", Amount: 100, Provider: "sandbox", Status: payout.StatusPaid, Attempt: 1}
	a := payout.Attempt{OrderNo: payout.OrderNo(id, 1), PaymentID: id, No: 1, Op: payout.OpTransfer, Account: "u",
		Booked: true}
	return &BookedOrder{Payment: p, Attempt: a, Moved: 100},
		payout.StatementLine{Ref: "1", Op: payout.OpTransfer, OrderNo: a.OrderNo, Account: "u", Amount: 100, At: noon}
}

func TestR12_EveryLineIsJudged(t *testing.T) {
	asOf := noon.Add(time.Hour)
	type line struct {
		ours   *BookedOrder
		l      payout.StatementLine
		before []payout.StatementLine
	}
	unbook := func(x *line) {
		x.ours.Moved, x.ours.Attempt.Booked = 0, false
		x.ours.Payment.Status = payout.StatusUnknown
	}
	for name, tc := range map[string]struct {
		change func(*line)
		kinds  []payout.BreakKind
		ask    bool
		flight bool
		booked money.Fen
	}{
		"agree":               {func(*line) {}, nil, false, false, 100},
		"foreign":             {func(x *line) { x.ours = nil }, kinds{payout.BreakForeignOrder}, false, false, 0},
		"of another provider": {func(x *line) { x.ours.Payment.Provider = "bank" }, kinds{payout.BreakForeignOrder}, false, false, 0},
		"another op":          {func(x *line) { x.l.Op = payout.OpRefund }, kinds{payout.BreakOpDiffers}, false, false, 0},
		"return of a charge": {func(x *line) { x.l.Op, x.ours.Attempt.Op = payout.OpReturn, payout.OpCharge },
			kinds{payout.BreakOpDiffers}, false, false, 0},
		"return of a charge, booked": {func(x *line) {
			x.l.Op, x.ours.Attempt.Op, x.ours.Returned, x.ours.Attempt.ReturnBooked = payout.OpReturn, payout.OpCharge, 100, true
		}, nil, false, false, 100},
		"twice":                     {func(x *line) { x.before = []payout.StatementLine{x.l} }, kinds{payout.BreakMovedTwice}, false, false, 0},
		"after its return":          {func(x *line) { x.before = []payout.StatementLine{{Op: payout.OpReturn}} }, nil, false, false, 100},
		"another account":           {func(x *line) { x.l.Account = "U" }, kinds{payout.BreakAccountDiffers}, false, false, 100},
		"recipient since corrected": {func(x *line) { x.ours.Payment.Account = "v" }, nil, false, false, 100},
		"no account stated":         {func(x *line) { x.l.Account = "" }, nil, false, false, 100},
		"another amount":            {func(x *line) { x.l.Amount = 101 }, kinds{payout.BreakAmountDiffers}, false, false, 100},
		"booked another amount":     {func(x *line) { x.ours.Moved = 99 }, kinds{payout.BreakAmountDiffers}, false, false, 99},
		"account and amount": {func(x *line) { x.l.Account, x.l.Amount = "v", 1 },
			kinds{payout.BreakAccountDiffers, payout.BreakAmountDiffers}, false,
			false, 100},
		"not booked": {unbook, kinds{payout.BreakNotBooked}, true, false, 0},
		"not booked, failed": {func(x *line) { unbook(x); x.ours.Payment.Status = payout.StatusFailed },
			kinds{payout.BreakNotBooked}, true, false, 0},
		"transfer is gone": {func(x *line) { x.ours.Moved = 0 }, kinds{payout.BreakNotBooked}, false, false, 0},
		"in flight, open":  {func(x *line) { unbook(x); x.l.At = asOf.Add(-InFlightAge + 1) }, nil, false, true, 0},
		"in flight, failed": {func(x *line) { unbook(x); x.ours.Payment.Status = payout.StatusFailed; x.l.At = asOf }, nil,
			true, true, 0},
		"transfer is gone, in flight": {func(x *line) { x.ours.Moved, x.l.At = 0, asOf }, nil, false, true, 0},
		"just old enough": {func(x *line) { unbook(x); x.l.At = asOf.Add(-InFlightAge) },
			kinds{payout.BreakNotBooked}, true, false, 0},
		"superseded": {func(x *line) { unbook(x); x.ours.Payment.Attempt = 2; x.ours.Payment.Status = payout.StatusPaid },
			kinds{payout.BreakSuperseded}, true, false, 0},
		"paid outside": {func(x *line) { unbook(x); x.ours.Payment.Status = payout.StatusPaidOutside },
			kinds{payout.BreakNotBooked}, true, false, 0},
		"return not booked": {func(x *line) { x.l.Op = payout.OpReturn; x.before = []payout.StatementLine{{Op: payout.OpTransfer}} },
			kinds{payout.BreakReturnNotBooked}, true, false, 0},
		"return in flight": {func(x *line) { x.l.Op, x.l.At = payout.OpReturn, asOf }, nil, true, true, 0},
		"return booked": {func(x *line) { x.l.Op, x.ours.Returned, x.ours.Attempt.ReturnBooked = payout.OpReturn, 100, true }, nil,
			false, false, 100},
		"return is gone": {func(x *line) { x.l.Op, x.ours.Attempt.ReturnBooked = payout.OpReturn, true },
			kinds{payout.BreakReturnNotBooked}, false,
			false, 0},
		"returned twice": {func(x *line) {
			x.l.Op, x.ours.Returned, x.before = payout.OpReturn, 100, []payout.StatementLine{{Op: payout.OpReturn}}
		},
			kinds{payout.BreakMovedTwice}, false, false, 0},
	} {
		var x line
		x.ours, x.l = booked()
		tc.change(&x)
		v := CompareLine("sandbox", x.l, x.before, x.ours, asOf)
		var kinds []payout.BreakKind
		for _, b := range v.Breaks {
			kinds = append(kinds, b.Kind)
			if b.OrderNo != x.l.OrderNo || b.Detail == "" {
				t.Errorf("%s: %+v", name, b)
			}
		}
		if !slices.Equal(kinds, tc.kinds) || v.Query != tc.ask || v.InFlight != tc.flight || v.Booked != tc.booked {
			t.Errorf("%s: %q, ask %v, in flight %v, booked %d", name, kinds, v.Query, v.InFlight, v.Booked)
		}
	}
}

func TestR12_EveryPostingIsLookedFor(t *testing.T) {
	from, to := day0.Span(time.UTC)
	late := to.Add(6 * time.Hour)
	whole := func(d payout.Day) time.Time { _, end := d.Span(time.UTC); return end.Add(6 * time.Hour) }
	posted := func(kind payout.TransferKind, at, sent time.Time) BookedMovement {
		ours, _ := booked()
		return BookedMovement{Transfer: payout.NewTransfer(kind, ours.Attempt.OrderNo, 100), At: at, Payment: ours.Payment, FirstSent: sent}
	}
	transfer, back := payout.StatementLine{Op: payout.OpTransfer}, payout.StatementLine{Op: payout.OpReturn}
	for name, tc := range map[string]struct {
		p      BookedMovement
		lines  []payout.StatementLine
		readAt func(payout.Day) time.Time
		asOf   time.Time
		unread []payout.Day
		found  bool
	}{
		"there":                   {posted(payout.PostPaid, noon, noon), []payout.StatementLine{transfer}, whole, late, nil, false},
		"missing":                 {posted(payout.PostPaid, noon, noon), nil, whole, late, nil, true},
		"a return is no transfer": {posted(payout.PostPaid, noon, noon), []payout.StatementLine{back}, whole, late, nil, true},
		"return there":            {posted(payout.PostReturned, noon, noon), []payout.StatementLine{transfer, back}, whole, late, nil, false},
		"return missing":          {posted(payout.PostReturned, noon, noon), []payout.StatementLine{transfer}, whole, late, nil, true},
		"second success":          {posted(payout.PostSecondSuccess, noon, noon), nil, whole, late, nil, true},
		"a claim moves nothing":   {posted(payout.PostClaim, noon, noon), nil, whole, late, nil, false},
		"outside":                 {posted(payout.PostPaidOutside, noon, noon), nil, whole, late, nil, false},
		"in flight":               {posted(payout.PostPaid, noon, noon), nil, whole, noon.Add(InFlightAge - 1), nil, false},
		"not in flight any more": {posted(payout.PostPaid, noon, noon), nil, func(payout.Day) time.Time { return noon.Add(InFlightAge) },
			noon.Add(InFlightAge), nil,
			true},
		"read before it": {posted(payout.PostPaid, noon, noon), nil, func(payout.Day) time.Time { return noon }, late, []payout.Day{day0}, false},
		"sent before midnight": {posted(payout.PostPaid, from.Add(5*time.Minute), from.Add(-time.Second)), nil, func(d payout.Day) time.Time {
			if d == day0 {
				return whole(d)
			}
			return time.Time{}
		}, late, []payout.Day{"2026-02-16"}, false},
		"right after midnight": {posted(payout.PostPaid, from.Add(time.Second), from.Add(time.Second)), nil, func(d payout.Day) time.Time {
			if d == day0 {
				return whole(d)
			}
			return time.Time{}
		}, late, []payout.Day{"2026-02-16"}, false},
		"right before midnight": {posted(payout.PostPaid, to.Add(-time.Second), noon), nil, func(d payout.Day) time.Time {
			if d == day0 {
				return whole(d)
			}
			return time.Time{}
		}, late, []payout.Day{"2026-02-18"}, false},
		"next day read long enough": {posted(payout.PostPaid, to.Add(-time.Second), noon), nil, func(d payout.Day) time.Time {
			return to.Add(InFlightAge)
		}, late, nil, true},
		"weeks later": {posted(payout.PostPaid, noon, noon.AddDate(0, 0, -2)), nil, func(payout.Day) time.Time { return time.Time{} }, late,
			[]payout.Day{"2026-02-15", "2026-02-16", day0}, false},
		"sent after it was booked, says the clock": {posted(payout.PostPaid, noon, noon.AddDate(0, 0, 2)), nil, whole, late, nil, true},
		"sent years ago": {posted(payout.PostPaid, noon, time.Time{}), nil, whole, late, nil, true},
	} {
		j := CompareTransfer(tc.p, tc.lines, tc.readAt, time.UTC, tc.asOf)
		if !slices.Equal(j.Unread, tc.unread) || (j.Break != nil) != tc.found || tc.found &&
			(j.Break.Kind != payout.BreakNotInStatement || j.Break.OrderNo != tc.p.OrderNo) {
			t.Errorf("%s: %+v", name, j)
		}
	}
	if days := posted(payout.PostPaid, noon, noon.AddDate(-1, 0, 0)).Days(time.UTC); len(days) != maxDays {
		t.Errorf("%d days", len(days))
	}
}

func TestRepairableBreaks(t *testing.T) {
	var got []payout.BreakKind
	for _, kind := range payout.StatementBreaks {
		if kind.Repairable() {
			got = append(got, kind)
		}
	}
	if !slices.Equal(got, kinds{payout.BreakNotBooked, payout.BreakReturnNotBooked, payout.BreakSuperseded}) ||
		payout.BreakMismatch.Repairable() {
		t.Errorf("%q", got)
	}
	if slices.Contains(payout.StatementBreaks, "") || len(slices.Compact(slices.Sorted(slices.Values(payout.StatementBreaks)))) != 9 {
		t.Errorf("%q", payout.StatementBreaks)
	}
}

// FuzzParseDay: a parsed day formats to the same text and has its hours.
func FuzzParseDay(f *testing.F) {
	for _, seed := range []string{"2026-02-17", "2000-02-29", "1999-12-31", "9998-12-31", "9999-12-31", "2026-2-17", "+026-02-17", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		day, err := payout.ParseDay(text)
		if err != nil {
			if !errors.Is(err, payout.ErrBadDay) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		from, to := day.Span(time.UTC)
		if to.Year() > 9999 {
			t.Fatalf("%q ends at %v, which no database can write", text, to)
		}
		if payout.DayOf(from, time.UTC) != day || to.Sub(from) != 24*time.Hour || from.Format(time.DateOnly) != text {
			t.Fatalf("%q is %s, from %v to %v", text, day, from, to)
		}
	})
}
