package report

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// DayClose reads the close of a ledger day, matched with the statement of a provider and of those whose accounts
// it changed. A final day is read as stored;
// of others the closing balances are summed from the last stored sums. Errors: ErrNotFound when the
// day begins in the future or ends before the first transfer, ErrUnavailable.
func (s *Source) DayClose(ctx context.Context, provider string, day payout.Day, zone *time.Location) (staff.DayClose, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return staff.DayClose{}, err
	}
	return s.readClose(ctx, provider, day, zone, now)
}

func (s *Source) readClose(ctx context.Context, provider string, day payout.Day, zone *time.Location, now time.Time) (staff.DayClose,
	error) {
	row, err := s.readCloseRow(ctx, day, zone)
	if err != nil {
		return staff.DayClose{}, err
	}
	if row.FinalAt != nil && now.Before(row.ClosedTo) {
		now = row.ClosedTo // a stored final day is over, even when the clock was set back
	}
	c, err := s.closeOf(ctx, day, zone, now)
	if err != nil {
		return c, err
	}
	return c, s.fillPending(ctx, &c, provider, row)
}

// closeOf reads the opening and closing balances of a day.
func (s *Source) closeOf(ctx context.Context, day payout.Day, zone *time.Location, now time.Time) (staff.DayClose, error) {
	c := staff.DayClose{Day: day}
	c.From, c.To = day.Span(zone)
	if c.At = c.To; now.Before(c.To) {
		c.At = now
	}
	first, err := s.nextTransfer(ctx, ledgerBegin, c.At)
	if err != nil {
		return c, err
	}
	if !c.From.Before(now) || first.IsZero() {
		return c, fmt.Errorf("day-end close of %s: %w", day, ErrNotFound)
	}
	if c.Opening, err = s.LedgerSumsAt(ctx, c.From); err != nil {
		return c, err
	}
	c.Closing, err = s.LedgerSumsAt(ctx, c.At)
	return c, err
}

// fillPending fills in the statement match and what the close waits for.
func (s *Source) fillPending(ctx context.Context, c *staff.DayClose, provider string, row closeRow) error {
	c.Match = row.match
	if row.FinalAt != nil {
		c.FinalAt = row.FinalAt.UTC()
		return nil
	}
	if c.At.Before(c.To) {
		c.Blockers = []staff.CloseBlocker{staff.BlockedByDay}
		return nil
	}
	if row.ClosedTo.IsZero() {
		c.Blockers = []staff.CloseBlocker{staff.BlockedBySums}
	}
	read, complete, err := s.statementsOf(ctx, c, provider)
	if err != nil {
		return err
	}
	c.Blockers = append(c.Blockers, c.FindBlockers(!complete)...)
	if complete && c.Match != nil && !c.Match.IsOf(read) {
		c.Blockers = append(c.Blockers, staff.BlockedByMatch)
	}
	return nil
}

// statementsOf returns the last ended reconciliations of a day, of each provider whose statement it is matched
// with. complete: each began after the end of the day.
func (s *Source) statementsOf(ctx context.Context, c *staff.DayClose, provider string) (read []staff.Reconciliation, complete bool,
	err error) {
	complete = true
	for _, name := range c.Providers(provider) {
		r, err := s.readDay(ctx, name, c.Day)
		if err != nil {
			return nil, false, err
		}
		complete = complete && r.ID != "" && !r.Provisional
		read = append(read, r)
	}
	return read, complete, nil
}

// DayCloses lists the ledger's days, newest first, from the day before before (or today) to the
// first transfer's day. Differences of the statement match are left out. Errors: ErrUnavailable.
func (s *Source) DayCloses(ctx context.Context, provider string, zone *time.Location, before payout.Day, limit int) ([]staff.DayClose,
	error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return nil, err
	}
	day := payout.DayOf(now, zone)
	if before != "" && before <= day {
		day = before.Add(-1)
	}
	first, err := s.nextTransfer(ctx, ledgerBegin, now)
	if err != nil || first.IsZero() {
		return nil, err
	}
	var out []staff.DayClose
	for last := payout.DayOf(first, zone); day >= last && len(out) < limit; day = day.Add(-1) {
		c, err := s.readClose(ctx, provider, day, zone, now)
		if err != nil {
			return nil, err
		}
		if c.Match != nil {
			for _, m := range c.Match.Statements {
				m.Differences = nil
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// LedgerBalances returns the balances at a moment; the zero time or a future one means now. Errors:
// ErrUnavailable.
func (s *Source) LedgerBalances(ctx context.Context, at time.Time) (staff.LedgerSnapshot, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return staff.LedgerSnapshot{}, err
	}
	if at.IsZero() || at.After(now) {
		at = now
	}
	totals, err := s.LedgerSumsAt(ctx, at)
	return staff.LedgerSnapshot{At: at.UTC(), Settled: !at.After(now.Add(-staff.LedgerSettled)), Totals: totals}, err
}
