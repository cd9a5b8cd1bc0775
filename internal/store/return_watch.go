package store

import (
	"context"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

type returnWatchRow struct {
	Provider string
	Day      *string
	Place    string
	UntilAt  *time.Time
}

func (returnWatchRow) TableName() string { return "return_watches" }

// TakeReturnWatchTurn takes the next turn of the search for returned payments and returns its
// position. No other turn begins for every. ok is false when none is due, because another
// worker has the turn: then nothing changes. Errors: payout.ErrWrongProvider, ErrUnavailable.
func (s *Store) TakeReturnWatchTurn(ctx context.Context, by payout.Adapter, every time.Duration) (w payout.ReturnWatch, ok bool,
	err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if err := tx.checkAdapter(by); err != nil {
			return err
		}
		var known int64 // select first: INSERT IGNORE of an existing row locks it, and two workers would deadlock
		if err := tx.Model(&returnWatchRow{}).Where("provider = ?", by.Provider).Count(&known).Error; err != nil {
			return err
		}
		if known == 0 {
			if err := tx.Exec("INSERT IGNORE INTO return_watches (provider, due_at) VALUES (?, ?)", by.Provider, tx.now).Error; err != nil {
				return err
			}
		}
		res := tx.Exec("UPDATE return_watches SET due_at = ? WHERE provider = ? AND "+isDue, tx.now.Add(every), by.Provider, tx.now,
			tx.now.Add(longestTurn))
		if ok = res.RowsAffected == 1; res.Error != nil || !ok {
			return res.Error
		}
		var row returnWatchRow
		if err := tx.Where("provider = ?", by.Provider).Take(&row).Error; err != nil {
			return err
		}
		w = payout.ReturnWatch{Provider: by.Provider, Day: payout.Day(mysql.OrEmpty(row.Day)), After: row.Place, Until: mysql.OrZero(row.UntilAt)}
		return nil
	})
	return w, ok, err
}

// AdvanceReturnWatch moves the position from was to now and makes the next turn due after next. ok
// is false when another worker has moved it. Errors: ErrUnavailable.
func (s *Store) AdvanceReturnWatch(ctx context.Context, was, now payout.ReturnWatch, next time.Duration) (ok bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		res := tx.Exec("UPDATE return_watches SET day = ?, place = ?, until_at = ?, due_at = ? WHERE provider = ? AND COALESCE(day, '') = ? "+
			"AND place = ?",
			mysql.OptString(string(now.Day)), now.After, mysql.OptTime(now.Until), tx.now.Add(next), was.Provider, string(was.Day), was.After)
		ok = res.RowsAffected == 1
		return res.Error
	})
	return ok, err
}
