package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// payments holds what differs between the commands about payouts, refunds and charges; no charge can be retried.
type payments struct {
	one, many, example string
	id                 idForm
	// list iterates over the items that match the filters, newest first.
	list func(context.Context, *client.Staff, wire.RefundFilter) iter.Seq2[retryItem, error]
	// show reads one item with the effect of a retry.
	show func(context.Context, *client.Staff, string) (retryItem, wire.RetryPreview, error)
	// wouldRetry is a dry run for at most previewStep ids.
	wouldRetry func(context.Context, *client.Staff, []string) ([]wire.BulkItem, error)
	retry      func(context.Context, *client.Staff, string, wire.Retry, ...client.Key) (decided, error)
	// failed completes the newest ones that wait for a decision.
	failed func(context.Context, *call) ([]cobra.Completion, error)
}

// newestFailed selects what waits for a decision.
var newestFailed = wire.RefundFilter{PayoutFilter: wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{Status: wire.PayoutFailed}}}

var payouts = payments{
	one: "payout", many: "payouts", example: "p3q5k9v0c1m7e2u8h4r6t0003", id: payoutID,
	list: func(ctx context.Context, s *client.Staff, f wire.RefundFilter) iter.Seq2[retryItem, error] {
		return itemsOf(s.Payouts(ctx, f.PayoutFilter), itemOfPayout)
	},
	show: func(ctx context.Context, s *client.Staff, id string) (retryItem, wire.RetryPreview, error) {
		p, err := s.Payout(ctx, id)
		if err != nil {
			return retryItem{}, wire.RetryPreview{}, err
		}
		return itemOfPayout(&p.Payout), p.Retry, nil
	},
	wouldRetry: func(ctx context.Context, s *client.Staff, ids []string) ([]wire.BulkItem, error) {
		dry, err := s.RetryPayouts(ctx, wire.BulkRetry{Filter: wire.BulkFilter{IDs: ids}, Reason: dryRunReason, DryRun: true})
		if err != nil {
			return nil, err
		}
		return dry.Items, nil
	},
	retry: func(ctx context.Context, s *client.Staff, id string, r wire.Retry, key ...client.Key) (decided, error) {
		return decidedBy(ofPayout)(s.RetryPayout(ctx, id, r, key...))
	},
	failed: func(ctx context.Context, t *call) ([]cobra.Completion, error) {
		list, err := t.staff.ListPayouts(ctx, newestFailed.PayoutFilter, newest)
		return completions(list, err, func(p *wire.Payout) (string, string) { return p.ID, aboutFailed(p.Amount, p.UserID, p.Failure) })
	},
}

var refunds = payments{
	one: "refund", many: "refunds", example: "r3q5k9v0c1m7e2u8h4r6t0004", id: refundID,
	list: func(ctx context.Context, s *client.Staff, f wire.RefundFilter) iter.Seq2[retryItem, error] {
		return itemsOf(s.Refunds(ctx, f), itemOfRefund)
	},
	show: func(ctx context.Context, s *client.Staff, id string) (retryItem, wire.RetryPreview, error) {
		r, err := s.Refund(ctx, id)
		if err != nil {
			return retryItem{}, wire.RetryPreview{}, err
		}
		return itemOfRefund(&r.Refund), r.Retry, nil
	},
	wouldRetry: func(ctx context.Context, s *client.Staff, ids []string) (items []wire.BulkItem, err error) {
		dry, err := s.RetryRefunds(ctx, wire.BulkRefundRetry{Filter: wire.BulkRefundFilter{IDs: ids}, Reason: dryRunReason, DryRun: true})
		if err != nil {
			return nil, err
		}
		for _, item := range dry.Items {
			items = append(items, wire.BulkItem(item))
		}
		return items, nil
	},
	retry: func(ctx context.Context, s *client.Staff, id string, r wire.Retry, key ...client.Key) (decided, error) {
		return decidedBy(ofRefund)(s.RetryRefund(ctx, id, r, key...))
	},
	failed: func(ctx context.Context, t *call) ([]cobra.Completion, error) {
		list, err := t.staff.ListRefunds(ctx, newestFailed, newest)
		return completions(list, err, func(r *wire.Refund) (string, string) { return r.ID, aboutFailed(r.Amount, r.UserID, r.Failure) })
	},
}

// retryStatuses are selected without --status.
var retryStatuses = []wire.PayoutStatus{wire.PayoutFailed, wire.PayoutReturned}

// aboutFailed describes a failed payment in a completion.
func aboutFailed(amount money.Fen, user string, f *wire.PayoutFailure) string {
	return fmt.Sprintf("%s to %s, %s", formatYuan(amount), user, failureCode(f))
}

func itemOfPayout(p *wire.Payout) retryItem {
	return retryItem{PayoutID: p.ID, UserID: p.UserID, Amount: p.Amount, Status: p.Status, Failure: failureCode(p.Failure)}
}

func itemOfRefund(r *wire.Refund) retryItem {
	return retryItem{RefundID: r.ID, UserID: r.UserID, Amount: r.Amount, Status: r.Status, Failure: failureCode(r.Failure)}
}

// itemsOf converts the entries of a list to items.
func itemsOf[T any](list iter.Seq2[*T, error], of func(*T) retryItem) iter.Seq2[retryItem, error] {
	return func(yield func(retryItem, error) bool) {
		for each, err := range list {
			if err != nil {
				yield(retryItem{}, err)
				return
			}
			if !yield(of(each), nil) {
				return
			}
		}
	}
}

// retryItem is the result, or the expected result, of the retry of one payout or refund.
type retryItem struct {
	PayoutID    string            `json:"payout_id,omitempty"` // one of these two
	RefundID    string            `json:"refund_id,omitempty"`
	UserID      string            `json:"user_id"`
	Amount      money.Fen         `json:"amount"`
	Status      wire.PayoutStatus `json:"status"` // when it was selected
	Failure     string            `json:"failure_code"`
	Result      string            `json:"result"` // a result of the API, selected (not checked), or not_tried
	Code        *string           `json:"code"`   // cause of skipped
	OrderNo     *string           `json:"order_no"`
	SameOrderNo bool              `json:"same_order_no"`
	Why         string            `json:"why,omitempty"` // reason of the order number
	ApprovalID  *string           `json:"approval_id"`
}

// retryReport is the result, or the expected result, of a retry of many.
type retryReport struct {
	DryRun  bool           `json:"dry_run"`
	Key     string         `json:"idempotency_key,omitempty"`
	Count   int            `json:"count"`  // selected
	Amount  money.Fen      `json:"amount"` // of these
	Results map[string]int `json:"results"`
	Items   []retryItem    `json:"items"`
	advice  string         // next step after a dry run
}

// Results of a retry of many.
const (
	resultSelected = "selected"
	resultNotTried = "not_tried"
	resultWould    = "would_retry"
	resultRetried  = "retried"
	resultApproval = "needs_approval"
	resultSkipped  = "skipped"
)

// id returns the id of the payout or refund.
func (i *retryItem) id() string { return i.PayoutID + i.RefundID }

func (m *retryReport) plan(item retryItem) {
	item.Result = resultSelected
	m.Items = append(m.Items, item)
	m.Count++
	m.Amount += item.Amount
}

// setOrderNumber sets the order number that a retry sends, and its reason.
func (i *retryItem) setOrderNumber(orderNo *string, same bool) {
	i.OrderNo, i.SameOrderNo = orderNo, same
	i.Why = orderNumberReason(i.Status, wire.RetryPreview{OrderNo: orderNo, SameOrderNo: same})
}

// previewStep is the number of ids in one dry run of the API: a quarter of what it takes, because it reads them one by one
// within the time of one request, and MySQL may be busy.
const previewStep = 25

// retrier retries payouts or refunds.
type retrier struct {
	*call
	of payments
}

// previewOne prints the effect of a retry of one item.
func (t retrier) previewOne(ctx context.Context, id string) error {
	item, would, err := t.of.show(ctx, t.staff, id)
	if err != nil {
		return err
	}
	m := &retryReport{DryRun: true, Items: []retryItem{}, advice: "run it without --dry-run to decide"}
	m.plan(item)
	first := &m.Items[0]
	switch {
	case !would.Possible:
		first.Result, first.Code = resultSkipped, would.Code
	case would.SecondPerson:
		first.Result = resultApproval
	default:
		first.Result = resultWould
	}
	first.setOrderNumber(would.OrderNo, would.SameOrderNo)
	return t.report(m)
}

// preview adds the effect of a retry of each item, from dry runs of the API.
func (t retrier) preview(ctx context.Context, m *retryReport) error {
	if len(m.Items) == 0 {
		return nil
	}
	bar := newMeter(t.notes, "checked", len(m.Items))
	defer bar.end()
	for from := 0; from < len(m.Items); from += previewStep {
		some := m.Items[from:min(from+previewStep, len(m.Items))]
		ids := make([]string, len(some))
		for i := range some {
			ids[i] = some[i].id()
		}
		results, err := t.of.wouldRetry(ctx, t.staff, ids)
		if err != nil {
			return err
		}
		for _, r := range results {
			i := slices.Index(ids, r.ID)
			if i < 0 {
				continue
			}
			if some[i].Result = r.Result; r.Result == resultSkipped {
				some[i].Code = r.Code
			}
			some[i].setOrderNumber(r.OrderNo, r.SameOrderNo)
		}
		bar.set(from + len(some))
	}
	return nil
}

// retryMany first selects all items of all pages, then decides about each of them once, under one idempotency key. An item
// that fails again is not selected a second time.
func (t retrier) retryMany(ctx context.Context, f wire.RefundFilter, key string, dry bool) error {
	m := &retryReport{DryRun: dry, Items: []retryItem{}, advice: "add --yes and --reason to decide"}
	statuses := []wire.PayoutStatus{f.Status}
	if f.Status == "" {
		statuses = retryStatuses
	}
	for _, status := range statuses {
		one := f
		one.Status = status
		for item, err := range t.of.list(ctx, t.staff, one) {
			if err != nil {
				return err
			}
			m.plan(item)
		}
	}
	if err := t.preview(ctx, m); err != nil {
		return err
	}
	if dry {
		return t.report(m)
	}
	if m.Key = key; key == "" {
		m.Key = rand.Text()
	}
	broke := t.decideMany(ctx, m)
	err := t.report(m)
	if broke == nil || err != nil && !errors.Is(err, errReported) {
		return err
	}
	return errors.Join(broke,
		printf(t.notes, "Interrupted. To continue, run the command again with --idempotency-key %s: no item is decided twice.\n", m.Key))
}

// decideMany decides about all items of the plan. It records refusals by the state and continues; any other error ends it.
func (t retrier) decideMany(ctx context.Context, m *retryReport) error {
	if len(m.Items) == 0 {
		return nil
	}
	bar := newMeter(t.notes, "retried", len(m.Items))
	defer bar.end()
	for i := range m.Items {
		m.Items[i].Result = resultNotTried
	}
	for i := range m.Items {
		item := &m.Items[i]
		done, err := t.of.retry(ctx, t.staff, item.id(), wire.Retry{Reason: t.reason}, client.Key(m.Key))
		switch {
		case client.IsCode(err, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld):
			p, _ := errors.AsType[*client.Problem](err)
			code := string(p.Code)
			item.Result, item.Code = resultSkipped, &code
			item.setOrderNumber(nil, false)
		case err != nil:
			return err
		case done.approval != nil:
			item.Result, item.ApprovalID = resultApproval, &done.approval.ID
		default:
			item.Result = resultRetried
		}
		bar.set(i + 1)
	}
	return nil
}

// report prints the results and returns the error of the exit code.
func (t retrier) report(m *retryReport) error {
	m.Results = map[string]int{}
	for _, item := range m.Items {
		m.Results[item.Result]++
	}
	if err := t.printReport(m); err != nil || m.DryRun {
		return err
	}
	switch {
	case m.Results[resultSkipped] > 0:
		return errSomeRefused
	case m.Results[resultApproval] > 0:
		return errNeedsApproval
	}
	return nil
}

func (t retrier) printReport(m *retryReport) error {
	if t.json {
		return encodeJSON(t.out, m)
	}
	if m.Count == 0 {
		return printf(t.out, "No %s matches.\n", t.of.one)
	}
	show := newGrid(t.out, t.of.one, "user", "amount", "was", "failure", "result", "order number", "reason of the number")
	for _, item := range m.Items {
		show.row(item.id(), item.UserID, formatYuan(item.Amount), item.Status, item.Failure, resultText(item), orderText(item), item.Why)
	}
	show.render()
	var err error
	switch r := m.Results; {
	case m.DryRun:
		err = printf(t.out, "Selected: %d, %s. Nothing was decided; %s.\n", m.Count, formatAmount(m.Amount), m.advice)
	default:
		err = printf(t.out, "Of %d %s, %s: %d retried, %d wait for approval, %d refused, %d not tried.\n",
			m.Count, t.of.many, formatAmount(m.Amount), r[resultRetried], r[resultApproval], r[resultSkipped], r[resultNotTried])
	}
	if err == nil && m.Results[resultApproval] > 0 && !m.DryRun {
		err = printf(t.out, "A second person has to approve: hongbao approvals list --status waiting\n")
	}
	return err
}

func resultText(item retryItem) string {
	switch {
	case item.Result == resultSkipped:
		return "refused: " + optionalText(item.Code)
	case item.ApprovalID != nil:
		return "needs_approval: " + *item.ApprovalID
	case item.Result == resultSelected:
		return "selected; not checked"
	}
	return item.Result
}

func orderText(item retryItem) string {
	switch {
	case item.OrderNo == nil:
		return ""
	case item.SameOrderNo:
		return *item.OrderNo + " (the same)"
	}
	return *item.OrderNo + " (new)"
}
