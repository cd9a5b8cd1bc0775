package store

import (
	"context"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/failpoint"
	"hongbao/internal/store/mysql"
)

// expiredSignIns is how many expired rows one transaction deletes.
const expiredSignIns = 1000

type endedSignInRow struct {
	ID      []byte
	KeyID   string
	UntilAt time.Time
}

func (endedSignInRow) TableName() string { return "ended_sign_ins" }

// EndSignIn ends a console sign-in for every process. It is stored until its cookie expires. A
// repeat changes nothing. Errors: ErrUnavailable.
func (s *Store) EndSignIn(ctx context.Context, e access.EndedSignIn) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		err := tx.Where("until_at < ?", tx.now).Order("until_at").Limit(expiredSignIns).Delete(&endedSignInRow{}).Error
		if err != nil {
			return err
		}
		// gorm would expand a byte slice after a parenthesis as a list.
		return tx.Exec("INSERT IGNORE INTO ended_sign_ins (key_id, id, ended_at, until_at) VALUES (?, ?, ?, ?)", e.KeyID, e.ID, tx.now,
			e.Until.UTC()).Error
	})
}

// EndedSignIns reads the ended sign-ins whose cookies have not expired. Errors: ErrUnavailable.
func (s *Store) EndedSignIns(ctx context.Context) ([]access.EndedSignIn, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	var rows []endedSignInRow
	if err := s.read(ctx).Raw("SELECT id, key_id, until_at FROM ended_sign_ins FORCE INDEX (ended_sign_ins_until) WHERE until_at >= ?",
		now).Scan(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]access.EndedSignIn, len(rows))
	for i, r := range rows {
		out[i] = access.EndedSignIn{ID: r.ID, KeyID: r.KeyID, Until: r.UntilAt.UTC()}
	}
	return out, nil
}
