package report

import (
	"cmp"
	"context"
	"sync"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const (
	// activitySettled is the age from which the transfers of a moment are assumed complete.
	// Transactions take seconds; a transfer delayed longer by a lock is missing in this chart only.
	activitySettled = time.Minute
	// activityStep is the resolution of the cached sums. Each call counts the transfers of the last
	// minute and some seconds again.
	activityStep = 10 * time.Second
	// activityTimeLimit bounds the time that one call counts uncached minutes. The next call
	// continues from there.
	activityTimeLimit = time.Second
)

// minuteSums caches what was booked in the minutes of the last hour, up to a settled moment.
type minuteSums struct {
	mu         sync.Mutex
	restoredAt time.Time // RestoredAt of the MySQL that the sums are from
	upTo       time.Time // exclusive
	booked     map[int64]staff.ActivityMinute
	// timeLimit 0 means activityTimeLimit.
	timeLimit time.Duration
}

// Activity counts what was booked in each of the last staff.ActivitySpan minutes, the current one
// last. It reads a range of the index on the ledger's times and caches past minutes. Minutes not
// reached in one call are not Counted. Errors: ErrUnavailable.
func (s *Source) Activity(ctx context.Context) ([]staff.ActivityMinute, error) {
	m := &s.minutes
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := s.db.Clock(ctx)
	if err != nil {
		return nil, err
	}
	books, err := mysql.ReadState(s.read(ctx))
	if err != nil {
		return nil, err
	}
	if !books.RestoredAt.Equal(m.restoredAt) { // the cached minutes may no longer exist
		m.restoredAt, m.booked = books.RestoredAt, nil
	}
	last := now.Truncate(time.Minute)
	first := last.Add(-(staff.ActivitySpan - 1) * time.Minute)
	m.dropBefore(first, now)
	settled := now.Add(-activitySettled).Truncate(activityStep)
	patience, cancel := context.WithTimeout(ctx, cmp.Or(m.timeLimit, activityTimeLimit))
	defer cancel()
	for m.upTo.Before(settled) && patience.Err() == nil {
		to := m.upTo.Truncate(time.Minute).Add(time.Minute)
		if to.After(settled) {
			to = settled
		}
		if err := s.countMinutes(ctx, m.upTo, to, m.booked); err != nil {
			return nil, mysql.Classify(err)
		}
		m.upTo = to
	}
	fresh := map[int64]staff.ActivityMinute{}
	whole := !m.upTo.Before(settled)
	if whole {
		if err := s.countMinutes(ctx, m.upTo, last.Add(time.Minute), fresh); err != nil {
			return nil, mysql.Classify(err)
		}
	}
	out := make([]staff.ActivityMinute, 0, staff.ActivitySpan)
	for at := first; !at.After(last); at = at.Add(time.Minute) {
		one := addMinutes(m.booked[at.Unix()], fresh[at.Unix()])
		one.At, one.Counted = at, whole || !at.Add(time.Minute).After(m.upTo)
		out = append(out, one)
	}
	return out, nil
}

// dropBefore drops the minutes before first. It drops everything when the clock jumped.
func (m *minuteSums) dropBefore(first, now time.Time) {
	if m.booked == nil || m.upTo.Before(first) || m.upTo.After(now) {
		m.upTo, m.booked = first, map[int64]staff.ActivityMinute{}
	}
	for at := range m.booked {
		if at < first.Unix() {
			delete(m.booked, at)
		}
	}
}

// countMinutes adds the transfers from from (inclusive) to to (exclusive) to into, by minute.
func (s *Source) countMinutes(ctx context.Context, from, to time.Time, into map[int64]staff.ActivityMinute) error {
	var rows []struct {
		Past   int64
		Kind   string
		N, Sum int64
	}
	base := from.Truncate(time.Minute).UTC()
	err := s.read(ctx).Raw(`SELECT TIMESTAMPDIFF(MINUTE, ?, created_at) AS past, kind, COUNT(*) AS n, LEAST(SUM(amount), ?) AS sum
		FROM transfers FORCE INDEX (transfers_created)
		WHERE created_at >= ? AND created_at < ? AND kind IN ('claim', 'paid') GROUP BY past, kind`, base, int64(money.Saturated), from.UTC(),
		to.UTC()).Scan(&rows).Error
	if err != nil {
		return err
	}
	for _, r := range rows {
		at := base.Add(time.Duration(r.Past) * time.Minute).Unix()
		one, sum := staff.ActivityMinute{}, staff.Sum{Count: r.N, Amount: money.Fen(r.Sum)}
		if payout.TransferKind(r.Kind) == payout.PostClaim {
			one.Grabs = sum
		} else {
			one.Paid = sum
		}
		into[at] = addMinutes(into[at], one)
	}
	return nil
}

// addMinutes adds two parts of a minute.
func addMinutes(a, b staff.ActivityMinute) staff.ActivityMinute {
	a.Grabs, a.Paid = a.Grabs.Plus(b.Grabs), a.Paid.Plus(b.Paid)
	return a
}
