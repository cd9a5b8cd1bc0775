package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// retainedBatch is the number of rows that one transaction reads.
const retainedBatch = 500

// repeatedFor is how long a staff write may be repeated after its packet has ended.
const repeatedFor = 7 * 24 * time.Hour

// atEnd selects payments that are final since before a time. Failed and returned ones wait for
// staff, except charges: nothing more happens to them.
const atEnd = "COALESCE((p.status IN ('paid', 'paid_outside', 'cancelled') OR p.kind = 'c' AND p.status IN ('failed', 'returned')) " +
	"AND p.settled_at < @before, FALSE)"

// noneOrEnded is atEnd, or without a payment.
const noneOrEnded = "(p.id IS NULL OR " + atEnd + ")"

// retained describes how old rows of a table are read and removed.
type retained struct {
	from   string   // the table as b, its index and joins
	id, at string   // row number ("" without one) and age
	key    []string // columns of the primary key
	gone   string   // rows that may be removed, age apart
}

// retainedTables are the tables of staff.Retentions.
var retainedTables = map[staff.RetainedTable]retained{
	staff.RetainedNotifications: {key: []string{"provider", "event_id"}, at: "received_at", gone: noneOrEnded,
		from: "notifications b FORCE INDEX (notifications_received) LEFT JOIN attempts a ON a.order_no = b.order_no " +
			"LEFT JOIN payments p ON p.id = a.payment_id"},
	staff.RetainedEvents: {key: []string{"id"}, id: "id", at: "at", gone: atEnd,
		from: "payment_events b FORCE INDEX (PRIMARY) LEFT JOIN payments p ON p.id = b.payment_id"},
	staff.RetainedLines: {key: []string{"id"}, id: "id", at: "created_at",
		gone: noneOrEnded + " AND NOT EXISTS (SELECT 1 FROM breaks k FORCE INDEX (breaks_subject) WHERE k.payment_id = COALESCE(p.id, '') " +
			"AND k.order_no = b.order_no AND k.resolved_at IS NULL)",
		from: "statement_lines b FORCE INDEX (PRIMARY) LEFT JOIN attempts a ON a.order_no = b.order_no " +
			"LEFT JOIN payments p ON p.id = a.payment_id"},
	staff.RetainedStaffIdempotency: {key: []string{"owner", "route", "idem_key"}, at: "created_at", gone: "TRUE",
		from: "staff_idempotency b FORCE INDEX (staff_idempotency_created)"},
	staff.RetainedDecisions: {key: []string{"id"}, at: "created_at",
		gone: atEnd + " AND b.status <> 'open' AND COALESCE(b.ended_at, b.expires_at) < @before",
		from: "decisions b FORCE INDEX (decisions_created) LEFT JOIN payments p ON p.id = b.payment_id"},
	staff.RetainedBreaks: {key: []string{"id"}, at: "resolved_at", gone: noneOrEnded,
		from: "breaks b FORCE INDEX (breaks_open) LEFT JOIN payments p ON p.id = b.payment_id"},
	staff.RetainedQuarantine: {key: []string{"lane", "entry_id"}, at: "created_at", gone: "TRUE",
		from: "quarantine b FORCE INDEX (quarantine_created)"},
}

type retentionRow struct {
	Name    string
	Removed int64
}

func (retentionRow) TableName() string { return "retention" }

// retainedRow is a candidate for removal.
type retainedRow struct {
	ID         int64
	K1, K2, K3 []byte
	At         time.Time
	Gone       bool
}

// TakeRetentionTurn takes the next turn of removing old rows of a table; no other turn begins for
// every. ok is false when none is due. Errors: ErrUnavailable.
func (s *Store) TakeRetentionTurn(ctx context.Context, table staff.RetainedTable, every time.Duration) (ok bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		var known int64 // select first: INSERT IGNORE of an existing row locks it, and two workers would deadlock
		if err := tx.Model(&retentionRow{}).Where("name = ?", string(table)).Count(&known).Error; err != nil {
			return err
		}
		if known == 0 {
			if err := tx.Exec("INSERT IGNORE INTO retention (name, due_at) VALUES (?, ?)", string(table), tx.now).Error; err != nil {
				return err
			}
		}
		res := tx.Exec("UPDATE retention SET due_at = ? WHERE name = ? AND "+isDue, tx.now.Add(every), string(table), tx.now,
			tx.now.Add(longestTurn))
		ok = res.RowsAffected == 1
		return res.Error
	})
	return ok, err
}

// RemoveOld reads the next rows of a table after a place, oldest first, and removes those older than
// keep whose subject is final. more: old rows remain after next. Errors: payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) RemoveOld(ctx context.Context, table staff.RetainedTable, keep time.Duration, after staff.RetentionCursor) (
	removed int64, next staff.RetentionCursor, more bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		removed, next, more = 0, after, false
		if err := tx.allow(payout.ActionMaintain, holdNames{}); err != nil { // statuses in a restored MySQL may be wrong
			return err
		}
		before := tx.now.Add(-keep)
		rows, err := tx.oldest(retainedTables[table], before, after)
		if err != nil {
			return err
		}
		if table == staff.RetainedStaffIdempotency {
			if err := tx.keepRepeatable(rows); err != nil {
				return err
			}
		}
		more = len(rows) == retainedBatch
		var gone []retainedRow
		for _, r := range rows {
			switch {
			case !r.At.Before(before): // rows in the order of their numbers: later ones are younger
				more = false
			case r.Gone:
				gone = append(gone, r)
				continue
			}
			next = placeAfter(next, r)
		}
		if removed, err = tx.remove(table, gone); err != nil || removed == 0 {
			return err
		}
		return tx.Model(&retentionRow{}).Where("name = ?", string(table)).Update("removed", gorm.Expr("removed + ?", removed)).Error
	})
	return removed, next, more, err
}

// oldest reads the next rows after a place.
func (tx tx) oldest(t retained, before time.Time, after staff.RetentionCursor) (rows []retainedRow, err error) {
	columns := "b." + t.at + " AS at, " + t.gone + " AS gone"
	for i, name := range t.key {
		columns += fmt.Sprintf(", b.%s AS k%d", name, i+1)
	}
	from := after.At
	if from.IsZero() {
		from = everBefore
	}
	rest := " FROM " + t.from + " WHERE b." + t.at + " >= @at AND b." + t.at + " < @before ORDER BY b." + t.at + " LIMIT @batch OFFSET @kept"
	if t.id != "" {
		columns += ", b." + t.id + " AS id"
		rest = " FROM " + t.from + " WHERE b." + t.id + " > @id ORDER BY b." + t.id + " LIMIT @batch"
	}
	// raw: t.from names the index
	err = tx.Raw("SELECT "+columns+rest, map[string]any{"id": after.ID, "at": from.UTC(), "before": before, "batch": retainedBatch,
		"kept": after.Kept}).Scan(&rows).Error
	return rows, err
}

// placeAfter is the place after a row that stays.
func placeAfter(p staff.RetentionCursor, r retainedRow) staff.RetentionCursor {
	if !r.At.Equal(p.At) {
		p.At, p.Kept = r.At.UTC(), 0
	}
	p.Kept++
	p.ID = r.ID
	return p
}

// remove deletes rows by primary key.
func (tx tx) remove(table staff.RetainedTable, rows []retainedRow) (int64, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	key := retainedTables[table].key
	one := "(" + strings.Join(key, " = ? AND ") + " = ?)"
	args := make([]any, 0, len(rows)*len(key))
	for _, r := range rows {
		for _, value := range [][]byte{r.K1, r.K2, r.K3}[:len(key)] {
			args = append(args, value)
		}
	}
	// raw: the tables and their keys are data, without a row struct
	res := tx.Exec("DELETE FROM "+string(table)+" WHERE "+strings.Repeat(one+" OR ", len(rows)-1)+one, args...)
	return res.RowsAffected, res.Error
}

// routePayment, routePacket and routeApproval extract the subject from the path of a staff write.
var (
	routePayment  = regexp.MustCompile(`/([cprh][0-9a-v]{24})(?:/|$)`)
	routePacket   = regexp.MustCompile(`/packets/([0-9a-v]{20})(?:/|$)`)
	routeApproval = regexp.MustCompile(`/approvals/(a[0-9A-Z]{25})(?:/|$)`)
)

// keepRepeatable marks answers as not removable whose packet has not ended for repeatedFor. An
// answer about no single packet is removable.
func (tx tx) keepRepeatable(rows []retainedRow) error {
	for i, r := range rows {
		packetID := ""
		switch route := r.K2; {
		case routePayment.Match(route):
			packetID = string(routePayment.FindSubmatch(route)[1][1:21])
		case routePacket.Match(route):
			packetID = string(routePacket.FindSubmatch(route)[1])
		case routeApproval.Match(route):
			err := tx.Model(&decisionRow{}).Where("approval_id = ?", routeApproval.FindSubmatch(route)[1]).
				Select("SUBSTRING(payment_id, 2, 20)").Scan(&packetID).Error
			if err != nil {
				return err
			}
		}
		if packetID == "" {
			continue
		}
		var recent int64
		err := tx.Model(&packetRow{}).Where("id = ? AND (status NOT IN ('closed', 'rejected') OR COALESCE(closed_at, expires_at) > ?)",
			packetID, tx.now.Add(-repeatedFor)).Count(&recent).Error
		if err != nil {
			return err
		}
		rows[i].Gone = recent == 0
	}
	return nil
}

// retention reads what was removed of each table and the age of its oldest row.
func (r *HealthReader) retention(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []retentionRow
	if err := r.store.read(ctx).Find(&rows).Error; err != nil {
		return err
	}
	removed := map[string]int64{}
	for _, row := range rows {
		removed[row.Name] = row.Removed
	}
	for _, one := range staff.Retentions {
		t := retainedTables[one.Table]
		order, from := t.at, any(everBefore)
		if t.id != "" {
			order, from = t.id, 0
		}
		index := t.from[:strings.Index(t.from, ")")+1]
		var oldest struct{ At *time.Time }
		// raw: index is FORCE INDEX
		err := r.store.read(ctx).Raw("SELECT b."+t.at+" AS at FROM "+index+" WHERE b."+order+" > ? ORDER BY b."+order+" LIMIT 1",
			from).Scan(&oldest).Error
		if err != nil {
			return err
		}
		v.Retention = append(v.Retention, observe.Retained{Table: string(one.Table), Removed: removed[string(one.Table)],
			Oldest: orZero(oldest.At)})
	}
	return nil
}
