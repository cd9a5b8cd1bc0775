package payout

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
)

const day0 = Day("2026-02-17")

var noon = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)

func TestDay(t *testing.T) {
	shanghai := time.FixedZone("CST", 8*3600)
	for text, fine := range map[string]bool{"2026-02-17": true, "2024-02-29": true, "2026-02-29": false, "2026-2-17": false, "": false,
		"17.02.2026": false,
		"1999-12-31": false, "2000-01-01": true, "9998-12-31": true, "9999-12-31": false, "2026-02-17T00:00:00Z": false, " 2026-02-17": false} {
		if d, err := ParseDay(text); (err == nil) != fine || fine && string(d) != text {
			t.Errorf("%q: %q, %v", text, d, err)
		}
	}
	from, to := day0.Span(shanghai)
	if !from.Equal(time.Date(2026, 2, 16, 16, 0, 0, 0, time.UTC)) || to.Sub(from) != 24*time.Hour {
		t.Errorf("%v to %v", from, to)
	}
	for at, want := range map[time.Time]Day{from: day0, from.Add(-1): "2026-02-16", to.Add(-1): day0, to: "2026-02-18"} {
		if got := DayOf(at, shanghai); got != want {
			t.Errorf("%v is of %s, want %s", at, got, want)
		}
	}
	if got := Day("2026-02-28").Add(1); got != "2026-03-01" {
		t.Error(got)
	}
	if got := Day("2026-03-01").Add(-1); got != "2026-02-28" {
		t.Error(got)
	}
}

// booked is a paid payout of 100 fen in the ledger, with its statement line.
func booked() (*BookedOrder, StatementLine) {
	id := ID(KindPayout, "0123456789abcdefghij", 3)
	p := Payment{ID: id, Kind: KindPayout, Account: "u", Amount: 100, Provider: "sandbox", Status: StatusPaid, Attempt: 1}
	a := Attempt{OrderNo: OrderNo(id, 1), PaymentID: id, No: 1, Op: OpTransfer, Booked: true}
	return &BookedOrder{Payment: p, Attempt: a, Moved: 100},
		StatementLine{Ref: "1", Op: OpTransfer, OrderNo: a.OrderNo, Account: "u", Amount: 100, At: noon}
}

func TestR12_EveryLineIsJudged(t *testing.T) {
	asOf := noon.Add(time.Hour)
	type line struct {
		ours   *BookedOrder
		l      StatementLine
		before []StatementLine
	}
	unbook := func(x *line) {
		x.ours.Moved, x.ours.Attempt.Booked = 0, false
		x.ours.Payment.Status = StatusUnknown
	}
	for name, tc := range map[string]struct {
		change func(*line)
		kinds  []BreakKind
		ask    bool
		flight bool
		booked money.Fen
	}{
		"agree":                 {func(*line) {}, nil, false, false, 100},
		"foreign":               {func(x *line) { x.ours = nil }, []BreakKind{BreakForeignOrder}, false, false, 0},
		"of another provider":   {func(x *line) { x.ours.Payment.Provider = "bank" }, []BreakKind{BreakForeignOrder}, false, false, 0},
		"another op":            {func(x *line) { x.l.Op = OpRefund }, []BreakKind{BreakOpDiffers}, false, false, 0},
		"return of a charge":    {func(x *line) { x.l.Op, x.ours.Attempt.Op = OpReturn, OpCharge }, []BreakKind{BreakOpDiffers}, false, false, 0},
		"twice":                 {func(x *line) { x.before = []StatementLine{x.l} }, []BreakKind{BreakMovedTwice}, false, false, 0},
		"after its return":      {func(x *line) { x.before = []StatementLine{{Op: OpReturn}} }, nil, false, false, 100},
		"another account":       {func(x *line) { x.l.Account = "U" }, []BreakKind{BreakAccountDiffers}, false, false, 100},
		"another amount":        {func(x *line) { x.l.Amount = 101 }, []BreakKind{BreakAmountDiffers}, false, false, 100},
		"booked another amount": {func(x *line) { x.ours.Moved = 99 }, []BreakKind{BreakAmountDiffers}, false, false, 99},
		"account and amount": {func(x *line) { x.l.Account, x.l.Amount = "v", 1 }, []BreakKind{BreakAccountDiffers, BreakAmountDiffers}, false,
			false, 100},
		"not booked":         {unbook, []BreakKind{BreakNotBooked}, true, false, 0},
		"not booked, failed": {func(x *line) { unbook(x); x.ours.Payment.Status = StatusFailed }, []BreakKind{BreakNotBooked}, true, false, 0},
		"posting is gone":    {func(x *line) { x.ours.Moved = 0 }, []BreakKind{BreakNotBooked}, false, false, 0},
		"in flight, open":    {func(x *line) { unbook(x); x.l.At = asOf.Add(-InFlightAge + 1) }, nil, false, true, 0},
		"in flight, failed": {func(x *line) { unbook(x); x.ours.Payment.Status = StatusFailed; x.l.At = asOf }, nil,
			true, true, 0},
		"posting is gone, in flight": {func(x *line) { x.ours.Moved, x.l.At = 0, asOf }, nil, false, true, 0},
		"just old enough":            {func(x *line) { unbook(x); x.l.At = asOf.Add(-InFlightAge) }, []BreakKind{BreakNotBooked}, true, false, 0},
		"superseded": {func(x *line) { unbook(x); x.ours.Payment.Attempt = 2; x.ours.Payment.Status = StatusPaid },
			[]BreakKind{BreakSuperseded}, true, false, 0},
		"paid outside": {func(x *line) { unbook(x); x.ours.Payment.Status = StatusPaidOutside }, []BreakKind{BreakNotBooked}, true, false, 0},
		"return not booked": {func(x *line) { x.l.Op = OpReturn; x.before = []StatementLine{{Op: OpTransfer}} },
			[]BreakKind{BreakReturnNotBooked}, true, false, 0},
		"return in flight": {func(x *line) { x.l.Op, x.l.At = OpReturn, asOf }, nil, true, true, 0},
		"return booked": {func(x *line) { x.l.Op, x.ours.Returned, x.ours.Attempt.ReturnBooked = OpReturn, 100, true }, nil,
			false, false, 100},
		"return is gone": {func(x *line) { x.l.Op, x.ours.Attempt.ReturnBooked = OpReturn, true }, []BreakKind{BreakReturnNotBooked}, false,
			false, 0},
		"returned twice": {func(x *line) { x.l.Op, x.ours.Returned, x.before = OpReturn, 100, []StatementLine{{Op: OpReturn}} },
			[]BreakKind{BreakMovedTwice}, false, false, 0},
	} {
		var x line
		x.ours, x.l = booked()
		tc.change(&x)
		v := CompareLine("sandbox", x.l, x.before, x.ours, asOf)
		var kinds []BreakKind
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
	whole := func(d Day) time.Time { _, end := d.Span(time.UTC); return end.Add(6 * time.Hour) }
	posted := func(kind TransferKind, at, sent time.Time) BookedMovement {
		ours, _ := booked()
		return BookedMovement{Transfer: NewTransfer(kind, ours.Attempt.OrderNo, 100), At: at, Payment: ours.Payment, FirstSent: sent}
	}
	transfer, back := StatementLine{Op: OpTransfer}, StatementLine{Op: OpReturn}
	for name, tc := range map[string]struct {
		p      BookedMovement
		lines  []StatementLine
		readAt func(Day) time.Time
		asOf   time.Time
		unread []Day
		found  bool
	}{
		"there":                   {posted(PostPaid, noon, noon), []StatementLine{transfer}, whole, late, nil, false},
		"missing":                 {posted(PostPaid, noon, noon), nil, whole, late, nil, true},
		"a return is no transfer": {posted(PostPaid, noon, noon), []StatementLine{back}, whole, late, nil, true},
		"return there":            {posted(PostReturned, noon, noon), []StatementLine{transfer, back}, whole, late, nil, false},
		"return missing":          {posted(PostReturned, noon, noon), []StatementLine{transfer}, whole, late, nil, true},
		"second success":          {posted(PostSecondSuccess, noon, noon), nil, whole, late, nil, true},
		"a claim moves nothing":   {posted(PostClaim, noon, noon), nil, whole, late, nil, false},
		"outside":                 {posted(PostPaidOutside, noon, noon), nil, whole, late, nil, false},
		"in flight":               {posted(PostPaid, noon, noon), nil, whole, noon.Add(InFlightAge - 1), nil, false},
		"not in flight any more": {posted(PostPaid, noon, noon), nil, func(Day) time.Time { return noon.Add(InFlightAge) },
			noon.Add(InFlightAge), nil,
			true},
		"read before it": {posted(PostPaid, noon, noon), nil, func(Day) time.Time { return noon }, late, []Day{day0}, false},
		"sent before midnight": {posted(PostPaid, from.Add(5*time.Minute), from.Add(-time.Second)), nil, func(d Day) time.Time {
			if d == day0 {
				return whole(d)
			}
			return time.Time{}
		}, late, []Day{"2026-02-16"}, false},
		"right after midnight": {posted(PostPaid, from.Add(time.Second), from.Add(time.Second)), nil, func(d Day) time.Time {
			if d == day0 {
				return whole(d)
			}
			return time.Time{}
		}, late, []Day{"2026-02-16"}, false},
		"right before midnight": {posted(PostPaid, to.Add(-time.Second), noon), nil, func(d Day) time.Time {
			if d == day0 {
				return whole(d)
			}
			return time.Time{}
		}, late, []Day{"2026-02-18"}, false},
		"next day read long enough": {posted(PostPaid, to.Add(-time.Second), noon), nil, func(d Day) time.Time {
			return to.Add(InFlightAge)
		}, late, nil, true},
		"weeks later": {posted(PostPaid, noon, noon.AddDate(0, 0, -2)), nil, func(Day) time.Time { return time.Time{} }, late,
			[]Day{"2026-02-15", "2026-02-16", day0}, false},
		"sent after it was booked, says the clock": {posted(PostPaid, noon, noon.AddDate(0, 0, 2)), nil, whole, late, nil, true},
		"sent years ago": {posted(PostPaid, noon, time.Time{}), nil, whole, late, nil, true},
	} {
		j := CompareTransfer(tc.p, tc.lines, tc.readAt, time.UTC, tc.asOf)
		if !slices.Equal(j.Unread, tc.unread) || (j.Break != nil) != tc.found || tc.found &&
			(j.Break.Kind != BreakNotInStatement || j.Break.OrderNo != tc.p.OrderNo) {
			t.Errorf("%s: %+v", name, j)
		}
	}
	if days := posted(PostPaid, noon, noon.AddDate(-1, 0, 0)).Days(time.UTC); len(days) != maxDays {
		t.Errorf("%d days", len(days))
	}
}

func TestRepairableBreaks(t *testing.T) {
	var got []BreakKind
	for _, kind := range StatementBreaks {
		if kind.Repairable() {
			got = append(got, kind)
		}
	}
	if !slices.Equal(got, []BreakKind{BreakNotBooked, BreakReturnNotBooked, BreakSuperseded}) || BreakMismatch.Repairable() {
		t.Errorf("%q", got)
	}
	if slices.Contains(StatementBreaks, "") || len(slices.Compact(slices.Sorted(slices.Values(StatementBreaks)))) != 9 {
		t.Errorf("%q", StatementBreaks)
	}
}

// FuzzParseDay: a parsed day formats to the same text and has its hours.
func FuzzParseDay(f *testing.F) {
	for _, seed := range []string{"2026-02-17", "2000-02-29", "1999-12-31", "9998-12-31", "9999-12-31", "2026-2-17", "+026-02-17", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		day, err := ParseDay(text)
		if err != nil {
			if !errors.Is(err, ErrBadDay) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		from, to := day.Span(time.UTC)
		if to.Year() > 9999 {
			t.Fatalf("%q ends at %v, which no database can write", text, to)
		}
		if DayOf(from, time.UTC) != day || to.Sub(from) != 24*time.Hour || from.Format(time.DateOnly) != text {
			t.Fatalf("%q is %s, from %v to %v", text, day, from, to)
		}
	})
}
