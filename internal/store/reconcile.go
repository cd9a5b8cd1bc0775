package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// finding is a break that reconciliation is about to store.
type finding struct {
	payout.Break
	amount money.Fen
	// evidence is when the cause of the break was first seen. A break that staff resolved later
	// stays resolved; newer evidence reopens it.
	evidence time.Time
}

// noteFinding stores a break found by a reconciliation. Found again by the same run it changes
// nothing. A break resolved by reconciliation is reopened.
func (tx tx) noteFinding(r staff.Reconciliation, ours *staff.BookedOrder, f finding) error {
	var packetID, paymentID string
	if parts, err := payout.Parse(f.OrderNo); err == nil && ours != nil {
		packetID, paymentID = parts.PacketID, parts.PaymentID
	}
	f.OrderNo = mysql.ClipKey(f.OrderNo, 64)
	about, err := tx.breaksOfOrder(paymentID, f.Break)
	if err != nil {
		return err
	}
	if more := about.more; more.ID != 0 {
		if more.ResolvedAt != nil && more.ReconciliationID != nil && !more.ResolvedAt.Before(f.evidence) {
			return nil // staff resolved the order's break after this evidence
		}
		if more.ResolvedAt == nil {
			// raw: seen compares with the reconciliation_id that a later assignment replaces
			return tx.Exec(`UPDATE breaks SET seen = seen + IF(reconciliation_id <=> ?, 0, 1), last_seen = ?, detail = ?, provider = ?,
				amount = GREATEST(COALESCE(amount, 0), ?), reconciliation_id = ? WHERE id = ?`, r.ID, tx.now, joinDetails(more.Detail, f.Detail),
				r.Provider, int64(f.amount), r.ID, more.ID).Error
		}
	}
	err = tx.Exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, user_id, detail, provider, amount, reconciliation_id,
		created_at, last_seen)
		VALUES (?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE seen = seen + IF(reconciliation_id = VALUES(reconciliation_id), 0, 1), last_seen = VALUES(last_seen),
		detail = VALUES(detail), provider = VALUES(provider), amount = VALUES(amount), reconciliation_id = VALUES(reconciliation_id),
		resolved_at = IF(resolved_by = ? OR resolved_at < ?, NULL, resolved_at)`,
		string(f.Kind), packetID, paymentID, f.OrderNo, mysql.Clip(f.Detail, 255), r.Provider, int64(f.amount), r.ID, tx.now, tx.now,
		staff.ByReconciliation, f.evidence).Error
	if err != nil {
		return err
	}
	return tx.resolveSuperseded(about.less, f.Kind)
}

// requestQuery requests a query of an order number, like a notification; no money moves. unless
// selects attempts that need no query. why is a line of the timeline; empty: none.
func (s *Store) requestQuery(ctx context.Context, orderNo string, why payout.Event,
	unless func(tx tx, p payout.Payment, a payout.Attempt) bool) error {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return fmt.Errorf("request query of %q: %w", orderNo, err)
	}
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		p, attempts, err := tx.load(parts.PaymentID, true)
		if err != nil || parts.Attempt < 1 || parts.Attempt > len(attempts) || !attempts[parts.Attempt-1].QueryWantedAt.IsZero() ||
			unless(tx, p.Payment(), attempts[parts.Attempt-1]) {
			return err
		}
		if err := tx.Model(&mysql.AttemptRow{}).Where("order_no = ?", orderNo).
			Updates(map[string]any{"ask_wanted_at": tx.now, "next_at": tx.now}).Error; err != nil {
			return err
		}
		if why.OrderNo = orderNo; why.Event != "" {
			if err := tx.addEvent(parts.PaymentID, why); err != nil {
				return err
			}
		}
		return tx.putOutbox(parts.PaymentID, outboxQuery)
	})
}

// CompareLines compares the next lines of a day's statement after id after with MySQL: it stores
// breaks and requests queries for what queries can settle. unsettled restricts it to lines that did
// not match last time. It returns the last line seen, 0 at the end. Repeatable. Errors:
// ErrUnavailable.
func (s *Store) CompareLines(ctx context.Context, r staff.Reconciliation, after int64, unsettled bool, limit int) (int64, error) {
	q := s.read(ctx).Table("statement_lines FORCE INDEX (statement_lines_day)").
		Where("provider = ? AND day = ? AND id > ?", r.Provider, string(r.Day), after)
	if unsettled {
		q = q.Where("verdict <> ?", verdictMatched)
	}
	var rows []lineRow
	if err := q.Order("id").Limit(limit).Find(&rows).Error; err != nil {
		return 0, mysql.Classify(err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	var numbers []string
	seen := map[string]bool{}
	page := map[int64]bool{}
	for _, l := range rows {
		page[l.ID] = true
		if !seen[l.OrderNo] {
			seen[l.OrderNo] = true
			numbers = append(numbers, l.OrderNo)
		}
	}
	both, err := tx{DB: s.read(ctx)}.loadOrders(r.Provider, numbers)
	if err != nil {
		return 0, mysql.Classify(err)
	}
	var all []judged
	for _, no := range numbers {
		for _, j := range both.judge(r.Provider, no, r.StartedAt) {
			if page[j.line.ID] {
				all = append(all, j)
			}
		}
	}
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.writeJudged(r, both, all, unsettled) })
	if err != nil {
		return 0, err
	}
	for _, j := range all {
		if j.verdict.Query {
			why := payout.Event{Source: staff.ByReconciliation, Event: payout.EventOnStatement,
				Args: map[string]string{"day": string(r.Day), "op": j.line.Op}}
			if err := s.requestQuery(ctx, j.line.OrderNo, why,
				func(tx, payout.Payment, payout.Attempt) bool { return false }); err != nil {
				return 0, err
			}
		}
	}
	return rows[len(rows)-1].ID, nil
}

// writeJudged stores verdicts and breaks, and posts movements without an order. Matching lines, nearly all, take one statement. again:
// this run compared them before.
func (tx tx) writeJudged(r staff.Reconciliation, both orders, all []judged, again bool) error {
	var agree []int64
	for _, j := range all {
		if j.verdict.Post {
			if err := tx.post("", r.Provider, lineTransfer(j.line.line())); err != nil {
				return err
			}
		}
		verdict := j.text()
		if was := j.line.Verdict; again && verdict == verdictMatched && (was == verdictQueried || was == verdictRepaired) {
			verdict = verdictRepaired
		}
		if verdict == verdictMatched {
			agree = append(agree, j.line.ID)
			continue
		}
		err := tx.Model(&lineRow{}).Where("id = ?", j.line.ID).
			Updates(map[string]any{"verdict": verdict, "booked": int64(j.verdict.Booked)}).Error
		if err != nil {
			return err
		}
		for _, b := range j.verdict.Breaks {
			if err := tx.noteFinding(r, both.booked[b.OrderNo], j.finding(b)); err != nil {
				return err
			}
		}
	}
	if len(agree) == 0 {
		return nil
	}
	return tx.Model(&lineRow{}).Where("id IN ?", agree).
		Updates(map[string]any{"verdict": verdictMatched, "booked": gorm.Expr("amount")}).Error
}

// ComparePostings checks that the statements have the movements of the next transfers of a day,
// after a place. It returns days whose statement has to be read first, and stores nothing about
// their transfers. Repeatable. Errors: ErrUnavailable.
func (s *Store) ComparePostings(ctx context.Context, r staff.Reconciliation, zone *time.Location, after staff.TransferCursor,
	limit int) (staff.TransferPage, error) {
	var page staff.TransferPage
	from, to := r.Day.Span(zone)
	if r.StartedAt.Before(to) {
		to = r.StartedAt // a later run compares what comes later
	}
	if after.At.Before(from) {
		after.At = from
	}
	var posts []mysql.TransferRow
	err := s.read(ctx).Raw(`SELECT * FROM transfers FORCE INDEX (transfers_created) WHERE created_at >= ? AND created_at < ?
		AND (created_at > ? OR id > ?) AND provider = ? ORDER BY created_at, id LIMIT ?`, after.At, to, after.At, after.ID, r.Provider,
		limit).Scan(&posts).Error
	if err != nil || len(posts) == 0 {
		return page, mysql.Classify(err)
	}
	last := posts[len(posts)-1]
	page.Next = &staff.TransferCursor{At: last.CreatedAt.UTC(), ID: last.ID}
	var numbers []string
	for _, p := range posts {
		numbers = append(numbers, p.OrderNo)
	}
	t := tx{DB: s.read(ctx)}
	both, err := t.loadOrders(r.Provider, numbers)
	if err != nil {
		return page, mysql.Classify(err)
	}
	read, err := t.readDays(r.Provider, r.Day.Add(1)) // clocks differ
	if err != nil {
		return page, mysql.Classify(err)
	}
	var found []finding
	for _, row := range posts {
		p := both.movement(row)
		var lines []payout.StatementLine
		for _, l := range both.lines[row.OrderNo] {
			lines = append(lines, l.line())
		}
		j := staff.CompareTransfer(p, lines, read, zone, r.StartedAt)
		page.Unread = append(page.Unread, j.Unread...)
		if j.Break != nil {
			page.AddMissing(p.Op(), p.Amount)
			if !both.hasFinding(r.Provider, row.OrderNo, payout.BreakOpDiffers, r.StartedAt) { // that break covers the missing movement
				found = append(found, finding{Break: *j.Break, amount: p.Amount, evidence: p.At})
			}
		}
	}
	if len(found) == 0 {
		return page, nil
	}
	return page, s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		for _, f := range found {
			if err := tx.noteFinding(r, both.booked[f.OrderNo], f); err != nil {
				return err
			}
		}
		return nil
	})
}

// movement returns a transfer with its payment. Without a payment row the order number says its kind.
func (o orders) movement(row mysql.TransferRow) staff.BookedMovement {
	p := staff.BookedMovement{At: row.CreatedAt.UTC(), Transfer: payout.Transfer{Kind: payout.TransferKind(row.Kind),
		Debit:  payout.Account(row.Debit),
		Credit: payout.Account(row.Credit), Amount: money.Fen(row.Amount), OrderNo: row.OrderNo}}
	if b := o.booked[row.OrderNo]; b != nil {
		p.Payment, p.FirstSent = b.Payment, b.Attempt.StartedAt
		return p
	}
	p.Payment.Kind = payout.Kind(row.OrderNo[0])
	return p
}

// readDays returns up to when each day of a provider's statement was read, for 100 days up to last:
// longer than any provider keeps an order.
func (tx tx) readDays(provider string, last payout.Day) (func(payout.Day) time.Time, error) {
	var rows []struct {
		Day    string
		ReadAt time.Time
	}
	err := tx.Table("statements").Select("day", "read_at").Where("provider = ? AND day <= ?", provider, string(last)).Order("day DESC").
		Limit(100).Find(&rows).Error
	read := make(map[payout.Day]time.Time, len(rows))
	for _, row := range rows {
		read[payout.Day(row.Day)] = row.ReadAt.UTC()
	}
	return func(d payout.Day) time.Time { return read[d] }, err
}
