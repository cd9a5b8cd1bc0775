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

// highestNumber is what this process knows of the number of the books (rule R13).
type highestNumber struct {
	// number is the highest it has seen, here or in Redis. Books below it are
	// older than what this process has lived through, whoever noticed already.
	number atomic.Int64
	// uncompared: nothing was compared yet, so nothing that needs it is done.
	uncompared atomic.Bool
}

func (s *highestNumber) raise(n int64) {
	for {
		have := s.number.Load()
		if n <= have || s.number.CompareAndSwap(have, n) {
			return
		}
	}
}

type booksRow struct {
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

func (booksRow) TableName() string { return "books" }

// books is what the row says; without it nothing has beaten yet.
func (r booksRow) books() payout.MySQLState {
	if r.ID == 0 {
		return payout.MySQLState{State: payout.MySQLNormal}
	}
	return payout.MySQLState{Heartbeat: r.Number, State: payout.MySQLStatus(r.State), HeartbeatAt: r.BeatAt.UTC(), Known: r.Known,
		RestoredAt: orZero(r.RestoredAt), RecoveredAt: orZero(r.RecoveredAt)}
}

func (tx tx) saveBooks(b payout.MySQLState) error {
	return tx.Exec("UPDATE books SET number = ?, state = ?, beat_at = ?, known = ?, restored_at = ?, recovered_at = ? WHERE id = 1",
		b.Heartbeat, string(b.State), b.HeartbeatAt, b.Known, optTime(b.RestoredAt), optTime(b.RecoveredAt)).Error
}

// lockBooks reads the one row for a change of it, and makes it when it is not there.
func (tx tx) lockBooks() (payout.MySQLState, error) {
	const lock = "SELECT * FROM books WHERE id = 1 FOR UPDATE"
	var row booksRow
	if err := tx.Raw(lock).Scan(&row).Error; err != nil || row.ID != 0 {
		return row.books(), err
	}
	if err := tx.Exec("INSERT IGNORE INTO books (id, number, state, beat_at) VALUES (1, 0, 'normal', '2000-01-01 " +
		"00:00:00')").Error; err != nil {
		return payout.MySQLState{}, err
	}
	err := tx.Raw(lock).Scan(&row).Error
	return row.books(), err
}

// Books reads the state of the books and changes nothing. Errors: ErrUnavailable.
func (s *Store) Books(ctx context.Context) (payout.MySQLState, error) {
	var row booksRow
	err := s.read(ctx).Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error
	return row.books(), classify(err)
}

// BooksBelieved is nil while the books are normal. Errors: payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) BooksBelieved(ctx context.Context) error {
	// What time it is decides nothing here.
	return classify(tx{DB: s.read(ctx), highest: s.highest}.believed(""))
}

// CompareBooks compares the number of the books with known, the number that Redis
// has kept, read before this call, and with what this process has seen. Books that
// are older are restored from its commit on, for every process. Errors:
// ErrUnavailable.
func (s *Store) CompareBooks(ctx context.Context, known int64) (payout.MySQLState, error) {
	return s.compareBooks(ctx, known, false)
}

// AdvanceBooks does what CompareBooks does, and lets the number of normal books rise
// by one.
func (s *Store) AdvanceBooks(ctx context.Context, known int64) (payout.MySQLState, error) {
	return s.compareBooks(ctx, known, true)
}

func (s *Store) compareBooks(ctx context.Context, known int64, rise bool) (payout.MySQLState, error) {
	var out payout.MySQLState
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		seen := max(known, s.highest.number.Load()) // before the row is read: the row was at least this
		before, err := tx.lockBooks()
		if err != nil {
			return err
		}
		if out = before.CheckRestored(seen, rise, tx.now); out == before {
			return nil
		}
		if payout.TooFarAhead(before.HeartbeatAt, tx.now) && out.HeartbeatAt != before.HeartbeatAt {
			slog.WarnContext(ctx, "MySQL's clock was set back; what it noted meanwhile counts as of now.",
				slog.Duration("by", before.HeartbeatAt.Sub(tx.now)))
			if err := tx.noteRepair(payout.ClockSetBack, "books"); err != nil {
				return err
			}
		}
		return tx.saveBooks(out)
	})
	if err != nil {
		return out, err
	}
	s.highest.raise(max(known, out.Heartbeat))
	s.highest.uncompared.Store(false)
	return out, nil
}

// compareRow judges a row that was read, with seen as the process knew it before.
func (tx tx) compareRow(row booksRow, seen int64) (payout.MySQLState, error) {
	if tx.highest != nil && tx.highest.uncompared.Load() {
		return payout.MySQLState{}, fmt.Errorf("%w: the books were not compared with Redis yet", ErrUnavailable)
	}
	return row.books().CheckRestored(seen, false, tx.now), nil
}

func (tx tx) seen() int64 {
	if tx.highest == nil {
		return 0
	}
	return tx.highest.number.Load()
}

// believed refuses what must not be done on books that are older than reality, or
// to a packet that their recovery could not decide, which is payout.ErrUndecided too;
// packetID may be empty. It is part of the transaction that would do it.
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

// trusted is believed for what may be done to packets that a recovery has left to people.
func (tx tx) trusted() error {
	_, err := tx.normalBooks()
	return err
}

func (tx tx) normalBooks() (booksRow, error) {
	seen := tx.seen()
	var row booksRow
	if err := tx.Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error; err != nil {
		return row, err
	}
	b, err := tx.compareRow(row, seen)
	if err == nil && b.State != payout.MySQLNormal {
		err = fmt.Errorf("books at %d, %d is known: %w", b.Heartbeat, b.Known, payout.ErrMySQLRestored)
	}
	return row, err
}

// undecided reports whether a recovery could not decide about a packet, and nobody
// has since.
func (tx tx) undecided(row booksRow, packetID string) (bool, error) {
	if !row.Guarded || packetID == "" {
		return false, nil
	}
	var n int64
	err := tx.Raw("SELECT COUNT(*) FROM breaks WHERE packet_id = ? AND kind = ? AND resolved_at IS NULL", packetID,
		string(payout.BreakRestored)).Scan(&n).Error
	return n > 0, err
}

// Undecided reports whether a recovery of the books has left a packet to a person, and
// nobody has resolved that since. Errors: ErrUnavailable.
func (s *Store) Undecided(ctx context.Context, packetID string) (bool, error) {
	tx := tx{DB: s.read(ctx)} // what time it is decides nothing here
	left, err := tx.left(packetID)
	return left, classify(err)
}

// left is undecided for who has not read the books' row.
func (tx tx) left(packetID string) (bool, error) {
	var row booksRow
	if err := tx.Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error; err != nil {
		return false, err
	}
	return tx.undecided(row, packetID)
}

// adapter is whose payments these are; zero before the first start.
func (r booksRow) adapter() payout.Adapter {
	return payout.Adapter{Provider: orEmpty(r.Provider), Account: orEmpty(r.ProviderAccount)}
}

// checkAdapter refuses what another adapter would do.
func (r booksRow) checkAdapter(a payout.Adapter) error {
	if own := r.adapter(); own != a && own != (payout.Adapter{}) {
		return fmt.Errorf("this installation is of %s, not of %s: %w", own, a, payout.ErrWrongProvider)
	}
	return nil
}

// SaveAdapter keeps whose payments these are: the first start does. Errors:
// payout.ErrWrongProvider when they are another's, ErrUnavailable.
func (s *Store) SaveAdapter(ctx context.Context, a payout.Adapter) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if _, err := tx.lockBooks(); err != nil {
			return err
		}
		if err := tx.checkAdapter(a); err != nil {
			return err
		}
		return tx.Exec("UPDATE books SET provider = ?, provider_account = ? WHERE id = 1", a.Provider, a.Account).Error
	})
}

// SavedAdapter is what SaveAdapter has kept; zero before the first start. Errors: ErrUnavailable.
func (s *Store) SavedAdapter(ctx context.Context) (payout.Adapter, error) {
	var row booksRow
	err := s.read(ctx).Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error
	return row.adapter(), classify(err)
}

// checkAdapter refuses what another adapter would do in a transaction.
func (tx tx) checkAdapter(a payout.Adapter) error {
	var row booksRow
	if err := tx.Raw("SELECT * FROM books WHERE id = 1").Scan(&row).Error; err != nil {
		return err
	}
	return row.checkAdapter(a)
}

// sending returns what keeps a packet's payments from being sent through a
// provider: a person's hold, or books that are older than reality; nil when
// nothing does. guarded: a recovery has left something to people, see leftToPeople. It is
// part of every send, and one statement once the books beat.
func (tx tx) sending(by payout.Adapter, packetID string) (hold *payout.Hold, guarded bool, err error) {
	seen := tx.seen()
	var row struct {
		Provider providerRow `gorm:"embedded;embeddedPrefix:p_"`
		Books    booksRow    `gorm:"embedded;embeddedPrefix:b_"`
	}
	err = tx.Raw(`SELECT p.name AS p_name, p.held_by AS p_held_by, p.held_role AS p_held_role, p.reason AS p_reason, p.held_at AS p_held_at,
		p.released_at AS p_released_at,
		b.id AS b_id, b.number AS b_number, b.state AS b_state, b.beat_at AS b_beat_at, b.known AS b_known, b.restored_at AS b_restored_at,
		b.guarded AS b_guarded, b.provider AS b_provider, b.provider_account AS b_provider_account
		FROM books b LEFT JOIN providers p ON p.name = ? WHERE b.id = 1`, by.Provider).Scan(&row).Error
	if err == nil && row.Books.ID == 0 { // nothing has beaten yet
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
		return &payout.Hold{By: "recover", Role: "system", Reason: "the recovery of the books left this packet to a person", Since: tx.now}, true,
			nil
	}
	return row.Provider.state().Hold, row.Books.Guarded, nil
}

// holding is sending for a payment: the refund of a cancelled payout does not go out either
// while the payout's money may still move, or has moved to the recipient after all and nobody
// has resolved that break (rule R5: a share is asked about with all its numbers).
func (tx tx) holding(p payout.Payment, by payout.Adapter) (hold *payout.Hold, guarded bool, err error) {
	if hold, guarded, err = tx.sending(by, p.PacketID); hold != nil || err != nil || p.Kind != payout.KindRefund {
		return hold, guarded, err
	}
	parts, err := payout.Parse(p.ID)
	if err != nil || parts.Number == 0 { // of the remainder
		return nil, guarded, err
	}
	cancelled := payout.ID(payout.KindPayout, p.PacketID, parts.Number-1)
	_, attempts, err := tx.load(cancelled, false)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, guarded, err
	}
	if payout.MayStillMove(attempts) {
		return &payout.Hold{By: "ledger", Role: "system", Reason: "the cancelled payout is under way again: its outcome is asked for first",
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
