package report

import (
	"cmp"
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const (
	// ledgerStep is the number of transfers that one statement adds up.
	ledgerStep = 200_000
	// ledgerTimeLimit bounds the time that one call adds up uncached transfers. The next call
	// continues from there.
	ledgerTimeLimit = 2 * time.Second
	// ledgerSettled is the age from which no transfer with a lower id can appear: transactions take
	// seconds.
	ledgerSettled = 5 * time.Minute
)

// ledgerSums caches the sums of all transfers up to a settled one. The ledger is append-only: they
// change only when MySQL is restored.
type ledgerSums struct {
	mu         sync.Mutex
	restoredAt time.Time // RestoredAt of the MySQL that the sums are from
	upTo       int64
	rows       map[mysql.LedgerKey]int64
	// beyond: a sum exceeds 64 bits, permanently.
	beyond bool
	// timeLimit 0 means ledgerTimeLimit.
	timeLimit time.Duration
}

// unfinished selects payments that are not final. Declined charges are final; they accumulate and
// need no action.
const unfinished = `(kind IN ('p', 'r', 'h') AND status IN ('pending', 'sending', 'unknown', 'awaiting_recipient', 'failed', 'returned')
	OR kind = 'c' AND status IN ('pending', 'sending', 'unknown', 'awaiting_recipient', 'awaiting_payer'))`

// notConfirmed selects payouts p whose recipients did not confirm in time. Their apps have them sent again
// without staff (payout.CheckConfirmAgain), so lists and counts of what finance has to decide do not have them.
const notConfirmed = `p.kind = 'p' AND p.status = 'failed' AND p.failure_code = '` + payout.FailureNotConfirmed + "'"

// Overview adds up the whole ledger and counts unfinished work. Each statement reads an index from
// the unfinished rows, and of the ledger only the transfers since the last call. The ledger is left
// out when a sum exceeds 64 bits. Errors: ErrUnavailable.
func (s *Source) Overview(ctx context.Context) (staff.Overview, error) {
	var out staff.Overview
	if err := s.sumLedger(ctx, &out); err != nil {
		return out, mysql.Classify(err)
	}
	var rows []struct {
		Kind, Status string
		N, Sum       int64
		Oldest       *time.Time
	}
	// Amounts of requests are unbounded: the sum may exceed 64 bits.
	err := s.read(ctx).Raw("SELECT kind, status, COUNT(*) AS n, LEAST(SUM(amount), ?) AS sum, MIN(created_at) AS oldest FROM payments p "+
		"FORCE INDEX (payments_status) WHERE "+
		unfinished+" AND NOT ("+notConfirmed+") GROUP BY kind, status", int64(money.Saturated)).Scan(&rows).Error
	if err != nil {
		return out, mysql.Classify(err)
	}
	for _, r := range rows {
		out.Payments = append(out.Payments, staff.StatusCount{Kind: payout.Kind(r.Kind[0]), Status: payout.Status(r.Status),
			Sum: staff.Sum{Count: r.N, Amount: money.Fen(r.Sum)}, Oldest: mysql.OrZero(r.Oldest)})
	}
	var breaks backlogRow
	if err := s.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(created_at) AS oldest FROM breaks WHERE resolved_at IS NULL").Scan(
		&breaks).Error; err != nil {
		return out, mysql.Classify(err)
	}
	out.Breaks = staff.Backlog{Count: breaks.N, Oldest: mysql.OrZero(breaks.Oldest)}
	waiting, err := s.waitingDecisions(ctx)
	if err != nil {
		return out, err
	}
	out.Approvals = staff.Backlog{Count: waiting.N, Oldest: mysql.OrZero(waiting.Oldest)}
	if out.Decisions, err = s.DecisionBacklogs(ctx); err != nil {
		return out, err
	}
	out.LateRefunds, err = s.lateRefunds(ctx)
	return out, mysql.Classify(err)
}

// lateRefunds counts unfinished refunds that are due since payout.RefundLateAfter.
func (s *Source) lateRefunds(ctx context.Context) (staff.Backlog, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return staff.Backlog{}, err
	}
	var row backlogRow
	by := now.Add(-payout.RefundLateAfter)
	err = s.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(p.created_at) AS oldest FROM payments p FORCE INDEX (payments_status) WHERE p.kind = "+
		"'r' AND "+lateRefund,
		unfinishedStatuses, by, by).Scan(&row).Error
	return staff.Backlog{Count: row.N, Oldest: mysql.OrZero(row.Oldest)}, err
}

// sumLedger fills in the sums of all transfers, or how far they have been added up.
func (s *Source) sumLedger(ctx context.Context, out *staff.Overview) error {
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := s.read(ctx).Raw("SELECT COALESCE(MAX(id), 0) FROM transfers").Scan(&out.Posted).Error; err != nil || l.beyond {
		return err
	}
	now, err := s.db.Clock(ctx)
	if err != nil {
		return err
	}
	var settled int64
	err = s.read(ctx).Raw("SELECT id FROM transfers FORCE INDEX (transfers_created) WHERE created_at < ? ORDER BY created_at DESC, id DESC "+
		"LIMIT 1",
		now.Add(-ledgerSettled)).Scan(&settled).Error
	if err != nil {
		return err
	}
	books, err := mysql.ReadState(s.read(ctx))
	if err != nil {
		return err
	}
	if l.rows == nil || !books.RestoredAt.Equal(l.restoredAt) {
		l.restoredAt, l.upTo, l.rows = books.RestoredAt, 0, map[mysql.LedgerKey]int64{}
	}
	patience, cancel := context.WithTimeout(ctx, cmp.Or(l.timeLimit, ledgerTimeLimit))
	defer cancel()
	for l.upTo < settled && patience.Err() == nil {
		to := min(l.upTo+ledgerStep, settled)
		some, err := s.sumTransfers(ctx, l.upTo, &to)
		if err != nil {
			return err
		}
		if l.beyond = !addUp(l.rows, some); l.beyond {
			return nil
		}
		l.upTo = to
	}
	if err := s.read(ctx).Raw("SELECT COALESCE(MAX(id), 0) FROM transfers").Scan(&out.Posted).Error; err != nil {
		return err
	}
	if out.Summed = l.upTo; l.upTo < settled {
		return nil
	}
	tail, err := s.sumTransfers(ctx, l.upTo, nil)
	if err != nil {
		return err
	}
	all := maps.Clone(l.rows)
	if l.beyond = !addUp(all, tail); l.beyond {
		out.Summed = 0
		return nil
	}
	var rows []mysql.LedgerSum
	for key, sum := range all {
		rows = append(rows, mysql.LedgerSum{Key: key, Sum: sum})
	}
	out.Ledger, out.Summed = mysql.BalancesOf(rows), out.Posted
	return nil
}

// addUp adds sums to to; false when one exceeds 64 bits.
func addUp(to map[mysql.LedgerKey]int64, some []mysql.LedgerSum) bool {
	for _, r := range some {
		if r.Sum > math.MaxInt64-1-to[r.Key] {
			return false
		}
		to[r.Key] += r.Sum
	}
	return true
}

// sumTransfers adds up the transfers with id after < id <= upTo; nil: to the newest. Sums saturate at
// 64 bits.
func (s *Source) sumTransfers(ctx context.Context, after int64, upTo *int64) ([]mysql.LedgerSum, error) {
	q := s.read(ctx).Table("transfers").Select("kind, debit, credit, SUBSTRING(order_no, 1, 1) = 'h' AS promise, LEAST(SUM(amount), ?) AS sum",
		int64(math.MaxInt64)).Where("id > ?", after)
	if upTo != nil {
		q = q.Where("id <= ?", *upTo)
	}
	var rows []mysql.LedgerSum
	return rows, q.Group("kind, debit, credit, promise").Scan(&rows).Error
}

// sumLimit bounds the payments that PaymentSum counts.
const sumLimit = 10_000

// PaymentSum counts the payments of a filter and adds up their amounts, up to 10,000; more reports
// that there are others. Errors: ErrUnavailable.
func (s *Source) PaymentSum(ctx context.Context, f staff.PaymentFilter) (sum staff.Sum, more bool, err error) {
	kinds := []payout.Kind{f.Kind}
	if f.Kind == payout.KindPayout && f.IncludeHonours {
		kinds = append(kinds, payout.KindHonour)
	}
	for _, kind := range kinds {
		f.Kind, f.Limit = kind, sumLimit+1
		q, fits, err := s.filtered(ctx, f)
		if err != nil {
			return sum, more, mysql.Classify(err)
		}
		if !fits {
			continue
		}
		var row struct{ N, Sum int64 }
		found := q.Select("p.amount").Order("p.created_at DESC, p.id DESC").Limit(f.Limit)
		if err := s.read(ctx).Table("(?) f", found).Select("COUNT(*) AS n, LEAST(COALESCE(SUM(amount), 0), ?) AS sum",
			int64(money.Saturated)).Scan(&row).Error; err != nil {
			return sum, more, mysql.Classify(err)
		}
		sum.Count += row.N
		sum.Amount = sum.Amount.Plus(money.Fen(row.Sum))
		more = more || row.N > sumLimit
	}
	return sum, more, nil
}
