package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/pause"
	"hongbao/internal/payout"
)

// ReturnStore is the part of MySQL that knows returned payments and the position of their search.
type ReturnStore interface {
	TakeReturnWatchTurn(ctx context.Context, by payout.Adapter, every time.Duration) (payout.ReturnWatch, bool, error)
	AdvanceReturnWatch(ctx context.Context, was, now payout.ReturnWatch, next time.Duration) (ok bool, err error)
	RecordedReturns(ctx context.Context, orderNos []string) (map[string]payout.KnownReturn, error)
	RequestReturnQuery(ctx context.Context, orderNo string, stands time.Duration) (payout.ReturnQuery, error)
	activities.Clock
}

const (
	// returnsEvery is the interval of the search for returned payments.
	returnsEvery = 5 * time.Second
	// returnsRareEvery is the interval for a provider that lists no day before it has ended.
	returnsRareEvery = time.Hour
	// returnsPages bounds the pages of a turn, and returnsCall one call.
	returnsPages = 50
	returnsCall  = 10 * time.Second
	// returnsDayEnd is how long after its end a day may still get lines: until then the next
	// day is not read.
	returnsDayEnd = 2 * payout.ReturnNotificationDelay
	// returnsRetryFor is how long the position waits at a return whose payment was queried too
	// early to show it, by one clock or another. Then the reconciliation finds it.
	returnsRetryFor = 10 * time.Minute
)

// returnWatcher reads the provider's statement as it grows and requests a query of each returned
// payment whose notification did not arrive. It saves time only: the day's reconciliation finds
// the same. So a line that is listed late, before the position, is left to the reconciliation.
type returnWatcher struct {
	book   ReturnStore
	from   payout.Stated
	logger *slog.Logger
	every  time.Duration
	failed bool // at the last turn: logged once
}

// watchReturns searches the statements of every provider until ctx ends.
func (w *Worker) watchReturns(ctx context.Context) error {
	if w.cfg.Returns == nil || w.cfg.Reconcile == nil {
		return nil
	}
	var group errgroup.Group
	for _, p := range w.cfg.Reconcile.Steps.Providers.Stated() {
		group.Go(func() error { return w.watchReturnsOf(ctx, p) })
	}
	return group.Wait()
}

// watchReturnsOf takes turns with the other workers until ctx ends.
func (w *Worker) watchReturnsOf(ctx context.Context, from payout.Stated) error {
	watcher := &returnWatcher{book: w.cfg.Returns, from: from, logger: w.cfg.Logger, every: w.cfg.ReturnsEvery}
	if watcher.every == 0 {
		watcher.every = returnsEvery
	}
	for pause.For(ctx, watcher.every) {
		err := watcher.turn(ctx)
		if err != nil && !watcher.failed && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "Returned payments could not be searched; retrying.", slog.String("provider", watcher.from.Name()),
				slog.Any("error", err))
		}
		watcher.failed = err != nil
	}
	return nil
}

// turn reads from where the last turn ended, unless another worker is reading.
func (r *returnWatcher) turn(ctx context.Context) error {
	at, mine, err := r.book.TakeReturnWatchTurn(ctx, r.from.Limits().Adapter, r.every)
	if err != nil || !mine {
		return err
	}
	for range returnsPages {
		next, more, err := r.page(ctx, at)
		if err != nil {
			return err
		}
		wait := r.every
		if next.Until.IsZero() {
			wait = returnsRareEvery
		}
		kept, err := r.book.AdvanceReturnWatch(ctx, at, next, wait)
		if err != nil || !kept || !more { // not kept: another worker has begun
			return err
		}
		at = next
	}
	return nil
}

// page searches one page and returns the next position; more says that another page is ready.
func (r *returnWatcher) page(ctx context.Context, at payout.ReturnWatch) (next payout.ReturnWatch, more bool, err error) {
	now, err := r.book.Clock(ctx)
	if err != nil {
		return at, false, err
	}
	// Older days are left to their reconciliations; the provider may no longer list them.
	if yesterday := payout.DayOf(now, r.from.Zone()).Add(-1); at.Day < yesterday {
		at.Day, at.After = yesterday, ""
	}
	callCtx, cancel := context.WithTimeout(ctx, returnsCall)
	page, err := r.from.Statement(callCtx, at.Day, at.After)
	cancel()
	if err != nil {
		return at, false, fmt.Errorf("search the statement of %s for returns: %w", at.Day, err)
	}
	next = at
	if page.Last == "" { // it lists no day before it has ended
		next.Day, next.After, next.Until = "", "", time.Time{}
		return next, false, nil
	}
	old := now.Add(-payout.ReturnNotificationDelay)
	fresh, err := r.ask(ctx, page.Lines, now)
	if err != nil {
		return at, false, err
	}
	switch _, end := at.Day.Span(r.from.Zone()); {
	case !fresh.IsZero(): // its notification may still arrive: this page is read again
		next.Until = fresh
	case page.Next != "":
		next.After, next.Until, more = page.Last, old, true
		if n := len(page.Lines); n > 0 {
			next.Until = page.Lines[n-1].At
		}
	case now.After(end.Add(returnsDayEnd)):
		next.Day, next.After, next.Until, more = at.Day.Add(1), "", end, true
	default:
		next.After, next.Until = page.Last, old
	}
	return next, more, nil
}

// ask requests a query for every return that is old enough and not booked. fresh is the time of
// the first return whose notification may still arrive or which has to be queried later.
func (r *returnWatcher) ask(ctx context.Context, lines []payout.StatementLine, now time.Time) (fresh time.Time, err error) {
	var back []payout.StatementLine
	var numbers []string
	for _, line := range lines {
		if line.Op != payout.OpReturn {
			continue
		}
		if line.At.After(now.Add(-payout.ReturnNotificationDelay)) {
			fresh = line.At
			break
		}
		back, numbers = append(back, line), append(numbers, line.OrderNo)
	}
	known, err := r.book.RecordedReturns(ctx, numbers)
	if err != nil {
		return fresh, err
	}
	for _, line := range slices.Backward(back) { // so that fresh is the first one
		if k, ours := known[line.OrderNo]; !ours || k.Booked || k.QueryRequested { // not ours: the reconciliation reports it
			continue
		}
		did, err := r.book.RequestReturnQuery(ctx, line.OrderNo, payout.ReturnNotificationDelay)
		switch {
		case err != nil:
			return fresh, err
		case did == payout.ReturnQueryRequested:
			r.logger.InfoContext(ctx, "Payment returned without a notification: query requested.", slog.String("order_no", line.OrderNo))
		case did == payout.ReturnQueryAnswered && line.At.After(now.Add(-returnsRetryFor)): // an answer from before the return proves nothing
			fresh = line.At
		}
	}
	return fresh, nil
}
