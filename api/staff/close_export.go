package staff

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// closeColumns are the columns of the file of a day. Cells that do not apply are empty.
var closeColumns = []string{
	"date", "status", "section", "app_id", "name", "debit", "credit", "count", "amount", "amount_yuan", "order_no", "difference", "ours_count",
	"ours", "ours_yuan", "theirs_count", "theirs", "theirs_yuan", "booked_at", "booked_at_local", "moved_at", "moved_at_local", "breaks",
	"provider",
}

// localZone is the time zone of the columns with local times.
var localZone = time.FixedZone("UTC+8", 8*60*60)

// closeFile writes the lines of the file of a day.
type closeFile struct {
	c   staff.DayClose
	out *csv.Writer
	err error
}

func (f *closeFile) line(cells map[string]string) {
	cells["date"], cells["status"] = string(f.c.Day), string(renderCloseSummary(f.c).Status)
	record := make([]string, len(closeColumns))
	for i, name := range closeColumns {
		record[i] = cells[name]
	}
	if err := f.out.Write(record); err != nil && f.err == nil {
		f.err = err
	}
}

// fill writes an amount to its two columns.
func fill(cells map[string]string, column string, amount money.Fen) {
	cells[column], cells[column+"_yuan"] = amount.Digits(), amount.String()
}

func fillTime(cells map[string]string, column string, at time.Time) {
	if !at.IsZero() {
		cells[column], cells[column+"_local"] = wire.At(at).String(), at.In(localZone).Format("2006-01-02T15:04:05.000Z07:00")
	}
}

func (f *closeFile) balances(section, app string, totals staff.Totals) {
	for _, a := range payout.Accounts {
		balance := totals.Balance(a)
		cells := map[string]string{"section": section, "app_id": rest.Cell(app), "name": string(a)}
		fill(cells, "amount", balance.Amount)
		if n := paymentsOf(a, balance); n != nil {
			cells["count"] = strconv.FormatInt(*n, 10)
		}
		f.line(cells)
	}
}

// providers writes the account of each provider.
func (f *closeFile) providers(opening, closing staff.Totals) {
	for _, p := range renderProviders(opening, closing) {
		for _, at := range []struct {
			section string
			balance money.Fen
		}{{"provider_opening", p.Opening}, {"provider_closing", p.Closing}} {
			cells := map[string]string{"section": at.section, "provider": p.Provider, "name": string(payout.AccountProvider)}
			fill(cells, "amount", at.balance)
			f.line(cells)
		}
	}
}

// book writes the balances and movements of one app; "" is the total.
func (f *closeFile) book(app string, opening, closing staff.Totals) {
	f.balances("opening", app, opening)
	for _, m := range renderMovements(closing.Minus(opening)) {
		cells := map[string]string{"section": "movement", "app_id": rest.Cell(app), "name": m.Kind, "debit": m.Debit, "credit": m.Credit,
			"count": strconv.FormatInt(m.Count, 10)}
		fill(cells, "amount", m.Amount)
		f.line(cells)
	}
	f.balances("closing", app, closing)
}

func (f *closeFile) sides(cells map[string]string, ours, theirs staff.Sum) {
	cells["ours_count"], cells["theirs_count"] = strconv.FormatInt(ours.Count, 10), strconv.FormatInt(theirs.Count, 10)
	fill(cells, "ours", ours.Amount)
	fill(cells, "theirs", theirs.Amount)
	cells["count"] = strconv.FormatInt(theirs.Count-ours.Count, 10)
	fill(cells, "amount", theirs.Amount.Plus(-ours.Amount))
	f.line(cells)
}

func (f *closeFile) statement(t *staff.StatementMatch) {
	cells := func(section string, op payout.Op) map[string]string {
		return map[string]string{"section": section, "provider": t.Provider, "name": rest.Cell(string(op))}
	}
	for _, o := range t.Ops {
		f.sides(cells("statement", o.Op), o.Ours, o.Theirs)
	}
	for _, d := range t.Sums {
		line := cells("differences", d.Op)
		line["difference"] = string(d.Kind)
		f.sides(line, d.Ours, d.Theirs)
	}
	for _, d := range t.Differences {
		var breaks []string
		for _, b := range d.Breaks {
			breaks = append(breaks, rest.BreakPrefix+strconv.FormatInt(b.ID, 10)+" "+string(b.Kind))
		}
		line := cells("difference", d.Op)
		line["order_no"], line["difference"], line["breaks"] = rest.Cell(d.OrderNo), string(d.Kind), strings.Join(breaks, "; ")
		fillTime(line, "booked_at", d.BookedAt)
		fillTime(line, "moved_at", d.MovedAt)
		f.sides(line, countOf(d.Ours), countOf(d.Theirs))
	}
	if more := t.Count - int64(len(t.Differences)); more > 0 { // readers that sum the lines must see that some are missing
		line := cells("not_listed", "")
		line["count"] = strconv.FormatInt(more, 10)
		f.line(line)
	}
}

func countOf(amount money.Fen) staff.Sum {
	if amount == 0 {
		return staff.Sum{}
	}
	return staff.Sum{Count: 1, Amount: amount}
}

type exportCloseIn struct {
	rest.Asked
	Query struct {
		Date wire.Date `json:"date" doc:"The day." example:"2026-02-17"`
		BOM  bool      `json:"bom,omitempty" doc:"true: the file begins with a byte order mark, which Excel needs to recognize UTF-8." example:"true"`
	} `in:"query"`
}

// exportClose returns the file of a day, which is small for every day.
func (s *API) exportClose(ctx context.Context, in *exportCloseIn) (*rest.File, error) {
	date := string(in.Query.Date)
	c, err := s.readClose(ctx, date)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	if in.Query.BOM {
		buffer.WriteString(rest.ByteOrderMark)
	}
	f := &closeFile{c: c, out: csv.NewWriter(&buffer)}
	f.out.UseCRLF = true
	f.err = f.out.Write(closeColumns)
	f.book("", c.Opening, c.Closing)
	f.providers(c.Opening, c.Closing)
	for _, app := range c.Closing.Apps() {
		f.book(app, c.Opening.OfApp(app), c.Closing.OfApp(app))
	}
	if c.Match != nil {
		for _, m := range c.Match.Statements {
			f.statement(m)
		}
	}
	if f.out.Flush(); f.err == nil {
		f.err = f.out.Error()
	}
	if f.err != nil {
		return nil, fmt.Errorf("write close of %s: %w", date, f.err)
	}
	return in.SendFile("close-"+date, buffer.Bytes())
}
