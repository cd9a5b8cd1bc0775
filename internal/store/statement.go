package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// Results of comparing a statement line.
const (
	verdictMatched  = "matched"
	verdictInFlight = "in_flight"
	verdictQueried  = "asked"    // in flight; a query is requested
	verdictRepaired = "repaired" // matches after a query
)

type lineRow struct {
	ID        int64
	Ref       string
	Op        string
	OrderNo   string
	Account   string
	Amount    int64
	MovedAt   time.Time
	CreatedAt time.Time
	Verdict   string
}

func (lineRow) TableName() string { return "statement_lines" }

func (r lineRow) line() payout.StatementLine {
	return payout.StatementLine{Ref: r.Ref, Op: payout.Op(r.Op), OrderNo: r.OrderNo, Account: r.Account, Amount: money.Fen(r.Amount),
		At: r.MovedAt.UTC()}
}

var errLineRef = errors.New("statement line has no usable reference")

// SaveStatement stores a part of a day's statement as the adapter read it. The last reading of a
// line counts. Repeatable. Errors: payout.ErrWrongProvider, ErrUnavailable.
func (s *Store) SaveStatement(ctx context.Context, runID string, by payout.Adapter, day payout.Day, lines []payout.StatementLine) error {
	if len(lines) == 0 {
		return nil
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString(`INSERT INTO statement_lines (provider, ref, day, op, order_no, fee_of, account, amount, moved_at, created_at,
		reconciliation_id) VALUES `)
	args := make([]any, 0, 11*len(lines))
	for i, l := range lines {
		if l.Ref == "" || len(l.Ref) > 64 {
			return fmt.Errorf("%w: %d bytes", errLineRef, len(l.Ref))
		}
		if i > 0 {
			text.WriteString(", ")
		}
		var feeOf any
		if l.Op.WithoutOrder() {
			if _, err := payout.Parse(l.OrderNo); err == nil && l.Op.Fee() {
				feeOf = l.OrderNo
			}
			l.OrderNo = payout.LineID(by.Provider, l.Ref)
		}
		text.WriteString("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
		args = append(args, by.Provider, l.Ref, string(day), mysql.ClipCode(string(l.Op)), mysql.ClipKey(l.OrderNo, 64), feeOf,
			mysql.ClipKey(l.Account, 255), int64(l.Amount), l.At.UTC(), now, runID)
	}
	text.WriteString(` ON DUPLICATE KEY UPDATE
		created_at = IF(op <> VALUES(op) OR order_no <> VALUES(order_no) OR account <> VALUES(account)
			OR amount <> VALUES(amount), VALUES(created_at), created_at),
		day = VALUES(day), op = VALUES(op), order_no = VALUES(order_no), fee_of = VALUES(fee_of), account = VALUES(account),
		amount = VALUES(amount), moved_at = VALUES(moved_at), reconciliation_id = VALUES(reconciliation_id)`)
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if err := tx.statementOf(runID, by); err != nil {
			return err
		}
		return tx.Exec(text.String(), args...).Error // raw: ON DUPLICATE KEY UPDATE with conditions
	})
}

// statementOf refuses a statement of another provider or account than those of the reconciliation
// and the installation.
func (tx tx) statementOf(runID string, by payout.Adapter) error {
	var provider string
	if err := tx.Model(&mysql.ReconciliationRow{}).Where("id = ?", runID).Pluck("provider", &provider).Error; err != nil {
		return err
	}
	if provider != "" && provider != by.Provider {
		return fmt.Errorf("reconciliation %s: statement of provider %q, not %s: %w", runID, provider, by, payout.ErrWrongProvider)
	}
	return tx.checkAdapter(by)
}

// SealStatement marks a day's statement as read completely: it covers movements up to readAt, when
// its run began. Lines of an earlier reading that this one lacks are deleted. Lines of a concurrent
// run of the same day stay: they are as recent. Errors: payout.ErrWrongProvider, ErrUnavailable.
func (s *Store) SealStatement(ctx context.Context, runID string, by payout.Adapter, day payout.Day, readAt time.Time) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if err := tx.statementOf(runID, by); err != nil {
			return err
		}
		err := tx.Where(`provider = ? AND day = ? AND reconciliation_id <> ? AND reconciliation_id NOT IN
			(SELECT id FROM reconciliations WHERE active OR ended_at > ?)`,
			by.Provider, string(day), runID, readAt.Add(time.Millisecond).UTC()).Delete(&lineRow{}).Error
		if err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO statements (provider, day, read_at, reconciliation_id) VALUES (?, ?, ?, ?)
			ON DUPLICATE KEY UPDATE read_at = VALUES(read_at), reconciliation_id = VALUES(reconciliation_id)`,
			by.Provider, string(day), readAt.UTC(), runID).Error
	})
}

// orders is what MySQL and the statements have of some order numbers.
type orders struct {
	booked map[string]*staff.BookedOrder
	byLine map[string]money.Fen // amounts of transfers without an order, by reference
	lines  map[string][]lineRow // in order of arrival
}

// loadOrders reads both sides of some order numbers.
func (tx tx) loadOrders(provider string, numbers []string) (orders, error) {
	o := orders{booked: map[string]*staff.BookedOrder{}, byLine: map[string]money.Fen{}, lines: map[string][]lineRow{}}
	var ids, ours, lineIDs []string
	for _, no := range numbers {
		if payout.IsLineID(no) {
			lineIDs = append(lineIDs, no)
		}
		if parts, err := payout.Parse(no); err == nil && parts.Attempt > 0 {
			ids, ours = append(ids, parts.PaymentID), append(ours, no)
		}
	}
	if len(ours) > 0 {
		if err := tx.loadBooked(&o, ids, ours); err != nil {
			return o, err
		}
	}
	if len(lineIDs) > 0 {
		var posts []mysql.TransferRow
		if err := tx.Where("order_no IN ?", lineIDs).Find(&posts).Error; err != nil {
			return o, err
		}
		for _, post := range posts {
			o.byLine[post.Reference] = money.Fen(post.Amount)
		}
	}
	if len(numbers) == 0 {
		return o, nil
	}
	var lines []lineRow
	err := tx.Where("provider = ? AND order_no IN ?", provider, numbers).Order("moved_at, id").Find(&lines).Error
	for _, l := range lines {
		o.lines[l.OrderNo] = append(o.lines[l.OrderNo], l)
	}
	return o, err
}

func (tx tx) loadBooked(o *orders, ids, numbers []string) error {
	var payments []mysql.PaymentRow
	if err := tx.Where("id IN ?", ids).Find(&payments).Error; err != nil {
		return err
	}
	byID := make(map[string]payout.Payment, len(payments))
	for _, p := range payments {
		byID[p.ID] = p.Payment()
	}
	var attempts []mysql.AttemptRow
	if err := tx.Where("order_no IN ?", numbers).Find(&attempts).Error; err != nil {
		return err
	}
	for _, a := range attempts {
		if p, ok := byID[a.PaymentID]; ok {
			o.booked[a.OrderNo] = &staff.BookedOrder{Payment: p, Attempt: a.Attempt()}
		}
	}
	var posts []mysql.TransferRow
	if err := tx.Where("order_no IN ?", numbers).Find(&posts).Error; err != nil {
		return err
	}
	for _, post := range posts {
		b := o.booked[post.OrderNo]
		if b == nil {
			continue
		}
		switch (staff.BookedMovement{Transfer: payout.Transfer{Kind: payout.TransferKind(post.Kind)}, Payment: b.Payment}).Op() {
		case "":
		case payout.OpReturn:
			b.Returned += money.Fen(post.Amount)
		default:
			b.Moved += money.Fen(post.Amount)
		}
	}
	return nil
}

// lineTransfer is the transfer of a movement without an order.
func lineTransfer(l payout.StatementLine) payout.Transfer {
	return payout.NewTransfer(payout.TransferKind(l.Op), l.OrderNo, l.Amount)
}

// judged is a statement line with its verdict.
type judged struct {
	line    lineRow
	verdict staff.LineVerdict
	// same are all lines of the order number with the same break, this one included.
	same map[payout.BreakKind]staff.Sum
}

// judge compares all lines of one order number with MySQL.
func (o orders) judge(provider, orderNo string, asOf time.Time) []judged {
	var before []payout.StatementLine
	var out []judged
	same := map[payout.BreakKind]staff.Sum{}
	for _, row := range o.lines[orderNo] {
		l := row.line()
		var v staff.LineVerdict
		if l.Op.WithoutOrder() {
			v = staff.CompareWithoutOrder(l, o.byLine[lineTransfer(l).Reference()])
		} else {
			v = staff.CompareLine(provider, l, before, o.booked[orderNo], asOf)
		}
		out = append(out, judged{row, v, same})
		before = append(before, l)
		for _, b := range v.Breaks {
			sum := same[b.Kind]
			same[b.Kind] = sum.Plus(staff.Sum{Count: 1, Amount: l.Amount})
		}
	}
	return out
}

// finding returns the break of a line. Lines of an order number with the same break share it: it has
// all of them, whichever is stored last.
func (j judged) finding(b payout.Break) finding {
	all := j.same[b.Kind]
	if all.Count > 1 {
		b.Detail = fmt.Sprintf("%d lines, %d fen in total; one: %s", all.Count, all.Amount, b.Detail)
	}
	return finding{Break: b, amount: all.Amount, evidence: j.line.CreatedAt}
}

func (j judged) text() string {
	switch {
	case len(j.verdict.Breaks) > 0:
		return mysql.VerdictBreak
	case j.verdict.InFlight && j.verdict.Query:
		return verdictQueried
	case j.verdict.InFlight:
		return verdictInFlight
	}
	return verdictMatched
}
