package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
)

// highestHeartbeat is the highest heartbeat number that this process has seen (rule R13).
type highestHeartbeat struct {
	// number was seen in MySQL or in Redis. A MySQL below it was restored from a backup.
	number atomic.Int64
	// uncompared: no comparison was made yet. Everything that needs one is refused.
	uncompared atomic.Bool
}

func (s *highestHeartbeat) raise(n int64) {
	for {
		have := s.number.Load()
		if n <= have || s.number.CompareAndSwap(have, n) {
			return
		}
	}
}

type mysqlStateRow struct {
	ID          int
	Number      int64
	State       string
	BeatAt      time.Time
	Known       int64
	RestoredAt  *time.Time
	RecoveredAt *time.Time
	Guarded     bool

	Provider, ProviderAccount *string // nil before the first start
}

func (mysqlStateRow) TableName() string { return "books" }

// state returns the stored state; without a row, no heartbeat was written yet.
func (r mysqlStateRow) state() payout.MySQLState {
	if r.ID == 0 {
		return payout.MySQLState{State: payout.MySQLNormal}
	}
	return payout.MySQLState{Heartbeat: r.Number, State: payout.MySQLStatus(r.State), HeartbeatAt: r.BeatAt.UTC(), Known: r.Known,
		RestoredAt: orZero(r.RestoredAt), RecoveredAt: orZero(r.RecoveredAt)}
}

func (tx tx) saveMySQLState(b payout.MySQLState) error {
	return tx.Model(&mysqlStateRow{}).Where("id = 1").Updates(map[string]any{"number": b.Heartbeat, "state": string(b.State),
		"beat_at": b.HeartbeatAt, "known": b.Known, "restored_at": optTime(b.RestoredAt), "recovered_at": optTime(b.RecoveredAt)}).Error
}

// lockMySQLState locks the single row and creates it when it is missing.
func (tx tx) lockMySQLState() (payout.MySQLState, error) {
	const lock = "SELECT * FROM books WHERE id = 1 FOR UPDATE"
	var row mysqlStateRow
	if err := tx.Raw(lock).Scan(&row).Error; err != nil || row.ID != 0 {
		return row.state(), err
	}
	if err := tx.Exec("INSERT IGNORE INTO books (id, number, state, beat_at) VALUES (1, 0, 'normal', '2000-01-01 " +
		"00:00:00')").Error; err != nil {
		return payout.MySQLState{}, err
	}
	err := tx.Raw(lock).Scan(&row).Error
	return row.state(), err
}

// MySQLState reads the heartbeat and recovery state of MySQL (rule R13). It changes nothing. Errors:
// ErrUnavailable.
func (s *Store) MySQLState(ctx context.Context) (payout.MySQLState, error) {
	var row mysqlStateRow
	err := s.read(ctx).Where("id = 1").Limit(1).Find(&row).Error
	return row.state(), classify(err)
}

// BooksBelieved returns nil while MySQL's state is normal. Errors: payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) BooksBelieved(ctx context.Context) error {
	// The time does not matter here.
	return classify(tx{DB: s.read(ctx), highest: s.highest}.believed(""))
}

// CompareHeartbeat compares MySQL's heartbeat number with known and with the highest one that this
// process has seen. known is the number in Redis, read before this call. A lower number marks MySQL
// as restored, for every process. Errors: ErrUnavailable.
func (s *Store) CompareHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error) {
	return s.compareHeartbeat(ctx, known, false)
}

// AdvanceHeartbeat does what CompareHeartbeat does and raises the number by one while the state is
// normal.
func (s *Store) AdvanceHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error) {
	return s.compareHeartbeat(ctx, known, true)
}

func (s *Store) compareHeartbeat(ctx context.Context, known int64, rise bool) (payout.MySQLState, error) {
	var out payout.MySQLState
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		seen := max(known, s.highest.number.Load()) // read before the row, which was at least this
		before, err := tx.lockMySQLState()
		if err != nil {
			return err
		}
		if out = before.CheckRestored(seen, rise, tx.now); out == before {
			return nil
		}
		if payout.TooFarAhead(before.HeartbeatAt, tx.now) && out.HeartbeatAt != before.HeartbeatAt {
			slog.WarnContext(ctx, "MySQL's clock was set back; times stored while it was ahead count as now.",
				slog.Duration("by", before.HeartbeatAt.Sub(tx.now)))
			if err := tx.noteRepair(payout.ClockSetBack, "books"); err != nil {
				return err
			}
		}
		return tx.saveMySQLState(out)
	})
	if err != nil {
		return out, err
	}
	s.highest.raise(max(known, out.Heartbeat))
	s.highest.uncompared.Store(false)
	return out, nil
}

// compareRow compares a row with seen, the highest number known before the row was read.
func (tx tx) compareRow(row mysqlStateRow, seen int64) (payout.MySQLState, error) {
	if tx.highest != nil && tx.highest.uncompared.Load() {
		return payout.MySQLState{}, fmt.Errorf("%w: MySQL was not compared with Redis yet, wait for the first heartbeat", ErrUnavailable)
	}
	return row.state().CheckRestored(seen, false, tx.now), nil
}

func (tx tx) seen() int64 {
	if tx.highest == nil {
		return 0
	}
	return tx.highest.number.Load()
}

// believed refuses what must not be done on a restored MySQL, or to a packet that the recovery left
// undecided (payout.ErrUndecided too). packetID may be empty. It runs inside the transaction that
// does it.
func (tx tx) believed(packetID string) error {
	row, err := tx.normalBooks()
	if err != nil {
		return err
	}
	undecided, err := tx.undecided(row, packetID)
	if err == nil && undecided {
		err = fmt.Errorf("packet %s: its break of kind %s is open: %w: %w", packetID, payout.BreakRestored, payout.ErrUndecided,
			payout.ErrMySQLRestored)
	}
	return err
}

// trusted is believed without the check of undecided packets.
func (tx tx) trusted() error {
	_, err := tx.normalBooks()
	return err
}

func (tx tx) normalBooks() (mysqlStateRow, error) {
	seen := tx.seen()
	var row mysqlStateRow
	if err := tx.Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error; err != nil {
		return row, err
	}
	b, err := tx.compareRow(row, seen)
	if err == nil && b.State != payout.MySQLNormal {
		err = fmt.Errorf("heartbeat of MySQL is %d, %d is known: %w", b.Heartbeat, b.Known, payout.ErrMySQLRestored)
	}
	return row, err
}

// undecided reports whether a recovery left a packet undecided and its break is still open.
func (tx tx) undecided(row mysqlStateRow, packetID string) (bool, error) {
	if !row.Guarded || packetID == "" {
		return false, nil
	}
	var n int64
	err := tx.Raw("SELECT COUNT(*) FROM breaks WHERE packet_id = ? AND kind = ? AND resolved_at IS NULL", packetID,
		string(payout.BreakRestored)).Scan(&n).Error
	return n > 0, err
}

// Undecided reports whether a recovery left a packet to staff and the break is still open. Errors:
// ErrUnavailable.
func (s *Store) Undecided(ctx context.Context, packetID string) (bool, error) {
	tx := tx{DB: s.read(ctx)} // the time does not matter here
	left, err := tx.left(packetID)
	return left, classify(err)
}

// left is undecided without a row read before.
func (tx tx) left(packetID string) (bool, error) {
	var row mysqlStateRow
	if err := tx.Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error; err != nil {
		return false, err
	}
	return tx.undecided(row, packetID)
}

// adapter returns the provider and account of this installation; zero before the first start.
func (r mysqlStateRow) adapter() payout.Adapter {
	return payout.Adapter{Provider: orEmpty(r.Provider), Account: orEmpty(r.ProviderAccount)}
}

// checkAdapter refuses an adapter of another provider or account.
func (r mysqlStateRow) checkAdapter(a payout.Adapter) error {
	if own := r.adapter(); own != a && own != (payout.Adapter{}) {
		return fmt.Errorf("this installation uses %s, not %s: %w", own, a, payout.ErrWrongProvider)
	}
	return nil
}

// SaveAdapter stores the provider and account of this installation at its first start. Errors:
// payout.ErrWrongProvider when another one is stored, ErrUnavailable.
func (s *Store) SaveAdapter(ctx context.Context, a payout.Adapter) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if _, err := tx.lockMySQLState(); err != nil {
			return err
		}
		if err := tx.checkAdapter(a); err != nil {
			return err
		}
		return tx.Model(&mysqlStateRow{}).Where("id = 1").
			Updates(map[string]any{"provider": a.Provider, "provider_account": a.Account}).Error
	})
}

// SavedAdapter returns what SaveAdapter stored; zero before the first start. Errors: ErrUnavailable.
func (s *Store) SavedAdapter(ctx context.Context) (payout.Adapter, error) {
	var row mysqlStateRow
	err := s.read(ctx).Where("id = 1").Limit(1).Find(&row).Error
	return row.adapter(), classify(err)
}

// checkAdapter refuses an adapter of another provider or account than the stored one.
func (tx tx) checkAdapter(a payout.Adapter) error {
	var row mysqlStateRow
	if err := tx.Where("id = 1").Limit(1).Find(&row).Error; err != nil {
		return err
	}
	return row.checkAdapter(a)
}

// sending returns the hold that stops sends of a packet's payments through a provider, nil without
// one: placed by staff, or derived from a restored MySQL. guarded: a recovery left something to
// staff, see leftToPeople. Every send calls it; it takes one statement once a heartbeat was written.
func (tx tx) sending(by payout.Adapter, packetID string) (hold *payout.Hold, guarded bool, err error) {
	seen := tx.seen()
	var row struct {
		Provider providerRow   `gorm:"embedded;embeddedPrefix:p_"`
		Books    mysqlStateRow `gorm:"embedded;embeddedPrefix:b_"`
	}
	err = tx.Raw(`SELECT p.name AS p_name, p.held_by AS p_held_by, p.held_role AS p_held_role, p.reason AS p_reason, p.held_at AS p_held_at,
		p.released_at AS p_released_at,
		b.id AS b_id, b.number AS b_number, b.state AS b_state, b.beat_at AS b_beat_at, b.known AS b_known, b.restored_at AS b_restored_at,
		b.guarded AS b_guarded, b.provider AS b_provider, b.provider_account AS b_provider_account
		FROM books b LEFT JOIN providers p ON p.name = ? WHERE b.id = 1`, by.Provider).Scan(&row).Error
	if err == nil && row.Books.ID == 0 { // no heartbeat was written yet
		err = tx.Raw("SELECT name AS p_name, held_by AS p_held_by, held_role AS p_held_role, reason AS p_reason, held_at AS p_held_at FROM "+
			"providers WHERE name = ?", by.Provider).Scan(&row).Error
	}
	if err != nil {
		return nil, false, err
	}
	if err := row.Books.checkAdapter(by); err != nil {
		return nil, false, err
	}
	b, err := tx.compareRow(row.Books, seen)
	if err != nil {
		return nil, false, err
	}
	if hold := b.Hold(); hold != nil {
		return hold, false, nil
	}
	undecided, err := tx.undecided(row.Books, packetID)
	if err != nil {
		return nil, false, err
	}
	if undecided {
		return &payout.Hold{By: "recover", Role: "system", Reason: "the recovery of MySQL left this packet to staff: resolve its break first",
				Since: tx.now}, true,
			nil
	}
	return row.Provider.state().Hold, row.Books.Guarded, nil
}

// holding is sending for a payment. The refund of a cancelled payout is held too while the payout's
// money may still move (rule R5: a share is queried with all its order numbers). So it is while an
// open break says that the money has reached the recipient.
func (tx tx) holding(p payout.Payment, by payout.Adapter) (hold *payout.Hold, guarded bool, err error) {
	if hold, guarded, err = tx.sending(by, p.PacketID); hold != nil || err != nil || p.Kind != payout.KindRefund {
		return hold, guarded, err
	}
	parts, err := payout.Parse(p.ID)
	if err != nil || parts.Number == 0 { // refund of the remainder
		return nil, guarded, err
	}
	cancelled := payout.ID(payout.KindPayout, p.PacketID, parts.Number-1)
	_, attempts, err := tx.load(cancelled, false)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, guarded, err
	}
	if payout.MayStillMove(attempts) {
		return &payout.Hold{By: "ledger", Role: "system", Reason: "the cancelled payout is in progress again: its outcome is queried first",
			Since: tx.now}, guarded, nil
	}
	var n int64
	err = tx.Raw("SELECT COUNT(*) FROM breaks WHERE payment_id = ? AND kind = ? AND resolved_at IS NULL",
		cancelled, string(payout.BreakSecondSuccess)).Scan(&n).Error
	if n > 0 {
		hold = &payout.Hold{By: "ledger", Role: "system", Reason: "the cancelled payout has reached its recipient: resolve the break first",
			Since: tx.now}
	}
	return hold, guarded, err
}
