package activities

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// ReconciliationStore is the part of MySQL that stores reconciliations.
type ReconciliationStore interface {
	RequestDailyReconciliation(ctx context.Context, provider string, day payout.Day, by string) (staff.Reconciliation, error)
	BeginReconciliation(ctx context.Context, id string, dayEnd time.Time) (staff.Reconciliation, error)
	FinishReconciliation(ctx context.Context, id string, missing map[payout.Op]staff.Sum) error
	FailReconciliation(ctx context.Context, id, why string) error
	StatementStore
}

// StatementStore is the part of MySQL that stores statements and matches them with the ledger.
type StatementStore interface {
	SaveStatement(ctx context.Context, runID string, by payout.Adapter, day payout.Day, lines []payout.StatementLine) error
	SealStatement(ctx context.Context, runID string, by payout.Adapter, day payout.Day, readAt time.Time) error
	CompareLines(ctx context.Context, r staff.Reconciliation, after int64, unsettled bool, limit int) (int64, error)
	ComparePostings(ctx context.Context, r staff.Reconciliation, zone *time.Location, after staff.TransferCursor,
		limit int) (staff.TransferPage, error)
	ReviewBreaks(ctx context.Context, r staff.Reconciliation, after int64, limit int) (int64, error)
	CountUnsettled(ctx context.Context, r staff.Reconciliation) (int64, error)
}

// Reconciliations holds the activities of a reconciliation. All are repeatable.
type Reconciliations struct {
	Store     ReconciliationStore
	Providers *payout.Registry
}

// stated returns a provider with statements. Errors: payout.ErrProviderMissing, retryable.
func (a *Reconciliations) stated(name string) (payout.Stated, error) {
	p, err := a.Providers.Of(name)
	if err != nil {
		return nil, temporalError(err)
	}
	s, is := p.(payout.Stated)
	if !is {
		return nil, temporalError(fmt.Errorf("statements of %q: %w", name, payout.ErrProviderMissing))
	}
	return s, nil
}

// compareBatch is the number of lines, transfers or breaks that one transaction compares.
const compareBatch = 1000

// RequestReconciliation requests the reconciliation of a provider's day before at, in its time zone.
func (a *Reconciliations) RequestReconciliation(ctx context.Context, provider string, at time.Time) (payout.Day, error) {
	from, err := a.stated(provider)
	if err != nil {
		return "", err
	}
	day := payout.DayOf(at, from.Zone()).Add(-1)
	_, err = a.Store.RequestDailyReconciliation(ctx, provider, day, staff.BySchedule)
	return day, temporalError(err)
}

// BeginReconciliation marks a reconciliation as running and returns it.
func (a *Reconciliations) BeginReconciliation(ctx context.Context, id, provider string, day payout.Day) (staff.Reconciliation, error) {
	from, err := a.stated(provider)
	if err != nil {
		return staff.Reconciliation{}, err
	}
	_, end := day.Span(from.Zone())
	r, err := a.Store.BeginReconciliation(ctx, id, end)
	return r, temporalError(err)
}

// statementPosition is how far a statement was read. It is the detail of the heartbeats, so that
// another worker can continue there.
type statementPosition struct {
	After string `json:"after"`
	Lines int    `json:"lines"`
}

// ReadStatement stores a day's statement page by page and returns the number of its lines. After
// the end of its worker another one continues with the next page.
func (a *Reconciliations) ReadStatement(ctx context.Context, r staff.Reconciliation, day payout.Day) (int, error) {
	from, err := a.stated(r.Provider)
	if err != nil {
		return 0, err
	}
	by := from.Limits().Adapter
	var at statementPosition
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &at); err != nil {
			at = statementPosition{} // from the start: storing a page is idempotent
		}
	}
	stored, first := atomic.Pointer[statementPosition]{}, at
	stored.Store(&first)
	defer heartbeatWith(ctx, func() any { return *stored.Load() })()
	for {
		page, err := from.Statement(ctx, day, at.After)
		if err != nil {
			return at.Lines, err
		}
		if err := a.Store.SaveStatement(ctx, r.ID, by, day, page.Lines); err != nil {
			return at.Lines, temporalError(err)
		}
		at = statementPosition{After: page.Next, Lines: at.Lines + len(page.Lines)}
		if page.Next == "" {
			break
		}
		next := at
		stored.Store(&next)
	}
	// The pages were read after the run began, so they have everything that moved before.
	return at.Lines, temporalError(a.Store.SealStatement(ctx, r.ID, by, day, r.StartedAt))
}

// CompareLines matches the lines of the day's statement with the ledger.
func (a *Reconciliations) CompareLines(ctx context.Context, r staff.Reconciliation) error {
	defer heartbeat(ctx)()
	return temporalError(a.compareLines(ctx, r, false))
}

// compareLines compares all lines, or only those that did not match before.
func (a *Reconciliations) compareLines(ctx context.Context, r staff.Reconciliation, onlyUnsettled bool) error {
	return inBatches(ctx, func(after int64) (int64, error) {
		return a.Store.CompareLines(ctx, r, after, onlyUnsettled, compareBatch)
	})
}

// inBatches calls do with 0 and then with each returned position, until that is 0.
func inBatches(ctx context.Context, do func(after int64) (int64, error)) error {
	for after := int64(0); ; {
		next, err := do(after)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || next == 0 {
			return err
		}
		after = next
	}
}

// ComparePostings matches the day's ledger transfers with the statements. Unread in its result are
// the days whose statements must be read first: some transfers may be in them.
func (a *Reconciliations) ComparePostings(ctx context.Context, r staff.Reconciliation) (staff.TransferPage, error) {
	from, err := a.stated(r.Provider)
	if err != nil {
		return staff.TransferPage{}, err
	}
	defer heartbeat(ctx)()
	all := staff.TransferPage{Missing: map[payout.Op]staff.Sum{}}
	for at := (staff.TransferCursor{}); ; {
		page, err := a.Store.ComparePostings(ctx, r, from.Zone(), at, compareBatch)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return all, temporalError(err)
		}
		for op, sum := range page.Missing {
			all.Missing[op] = all.Missing[op].Plus(sum)
		}
		all.Unread = append(all.Unread, page.Unread...)
		slices.Sort(all.Unread)
		all.Unread = slices.Compact(all.Unread)
		if page.Next == nil {
			return all, nil
		}
		at = *page.Next
	}
}

// SettleBreaks compares breaks again and resolves those that match now. It returns how many may
// still be resolved by queries of the provider.
func (a *Reconciliations) SettleBreaks(ctx context.Context, r staff.Reconciliation) (int64, error) {
	defer heartbeat(ctx)()
	// Breaks first. A payment that settles between the two steps then keeps its break for another
	// comparison. In the other order the break would be resolved while its line kept the old result.
	err := inBatches(ctx, func(after int64) (int64, error) { return a.Store.ReviewBreaks(ctx, r, after, compareBatch) })
	if err == nil {
		err = a.compareLines(ctx, r, true)
	}
	if err != nil {
		return 0, temporalError(err)
	}
	n, err := a.Store.CountUnsettled(ctx, r)
	return n, temporalError(err)
}

// FinishReconciliation ends a reconciliation and stores its result.
func (a *Reconciliations) FinishReconciliation(ctx context.Context, id string, missing map[payout.Op]staff.Sum) error {
	defer heartbeat(ctx)() // it adds up the lines of the day
	return temporalError(a.Store.FinishReconciliation(ctx, id, missing))
}

// FailReconciliation ends a reconciliation whose statement could not be read.
func (a *Reconciliations) FailReconciliation(ctx context.Context, id, why string) error {
	return temporalError(a.Store.FailReconciliation(ctx, id, why))
}
