package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// retainedBatch is the number of rows that one transaction reads.
const retainedBatch = 500

// repeatedFor is how long a staff write may be repeated after its packet has ended.
const repeatedFor = 7 * 24 * time.Hour

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
		if err := tx.Model(&mysql.RetentionRow{}).Where("name = ?", string(table)).Count(&known).Error; err != nil {
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
		rows, err := tx.oldest(mysql.RetainedTables[table], before, after)
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
		return tx.Model(&mysql.RetentionRow{}).Where("name = ?", string(table)).Update("removed", gorm.Expr("removed + ?", removed)).Error
	})
	return removed, next, more, err
}

// oldest reads the next rows after a place.
func (tx tx) oldest(t mysql.Retained, before time.Time, after staff.RetentionCursor) (rows []retainedRow, err error) {
	columns := "b." + t.At + " AS at, " + t.Gone + " AS gone"
	for i, name := range t.Key {
		columns += fmt.Sprintf(", b.%s AS k%d", name, i+1)
	}
	from := after.At
	if from.IsZero() {
		from = mysql.EverBefore
	}
	rest := " FROM " + t.From + " WHERE b." + t.At + " >= @at AND b." + t.At + " < @before ORDER BY b." + t.At + " LIMIT @batch OFFSET @kept"
	if t.ID != "" {
		columns += ", b." + t.ID + " AS id"
		rest = " FROM " + t.From + " WHERE b." + t.ID + " > @id ORDER BY b." + t.ID + " LIMIT @batch"
	}
	// raw: t.From names the index
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
	key := mysql.RetainedTables[table].Key
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
			err := tx.Model(&mysql.DecisionRow{}).Where("approval_id = ?", routeApproval.FindSubmatch(route)[1]).
				Select("SUBSTRING(payment_id, 2, 20)").Scan(&packetID).Error
			if err != nil {
				return err
			}
		}
		if packetID == "" {
			continue
		}
		var recent int64
		err := tx.Model(&mysql.PacketRow{}).Where("id = ? AND (status NOT IN ('closed', 'rejected') OR COALESCE(closed_at, expires_at) > ?)",
			packetID, tx.now.Add(-repeatedFor)).Count(&recent).Error
		if err != nil {
			return err
		}
		rows[i].Gone = recent == 0
	}
	return nil
}
