package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/money"
	"hongbao/payout"
)

// retryFlags are those of "payouts retry", for one payout and for many.
type retryFlags struct {
	staffFlags
	filter filterFlags
	yes    bool
	dryRun bool
}

func newPayoutsRetryCommand(env environment) *cobra.Command {
	f := retryFlags{staffFlags: newDesk()}
	f.timeout = time.Hour // there may be many
	cmd := &cobra.Command{
		Use:   "retry <payout id> --reason <text> | retry --failure-code <code> ...",
		Short: "Pay a payout again, or all that filters select",
		Long: `Pay a payout again that failed or came back: every earlier order number is asked
about before anything is sent. From the installation's approval amount on a second
person has to agree first.

Without an id it is about all payouts that the filters select, failed and returned
ones unless --status says otherwise. Without --yes nothing is decided: it says which
payouts there are, with which order number each would be paid, the same or a new one
and why, and which need a second person. With --yes exactly these are decided about,
each once, however many there are; whatever fails in the meantime is left alone.
When that is broken off, run it again with the --idempotency-key it prints.`,
		Example: `  hongbao payouts retry p3q5k9v0c1m7e2u8h4r6t0003 --reason 'account unfrozen, ticket 4711'
  hongbao payouts retry --failure-code account_frozen --older-than 1h
  hongbao payouts retry --failure-code account_frozen --older-than 1h --reason 'bank has unfrozen them' --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return paymentID("payout", payout.KindPayout, payout.KindHonour)(cmd, args)
		},
		ValidArgsFunction: completePayouts(env, &f.staffFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.retry(cmd, env, args) },
	}
	f.add(cmd, true)
	f.filter.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, "of those that filters select: decide, do not only say")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would happen; without an id that is so unless there is --yes")
	return cmd
}

func (f *retryFlags) retry(cmd *cobra.Command, env environment, args []string) error {
	given := f.filter.given(cmd)
	want, err := f.filter.read(cmd)
	if err != nil {
		return err
	}
	switch {
	case f.yes && f.dryRun:
		return &usageError{errors.New("--yes and --dry-run contradict each other")}
	case len(args) == 1 && len(given) > 0:
		return &usageError{fmt.Errorf("%s goes without an id", given[0])}
	case len(args) == 0 && want.Status != "" && !mendable(want.Status):
		return &usageError{fmt.Errorf("--status %s: only failed, returned and unknown payouts can be paid again", want.Status)}
	case len(args) == 0 && len(given) == 0:
		return &usageError{errors.New("an id is needed, or a filter: which payouts?")}
	}
	dry := f.dryRun || len(args) == 0 && !f.yes
	if dry && f.reason == "" {
		f.reason = dryReason
	}
	return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
		switch {
		case len(args) == 0:
			return t.retryMany(ctx, want, f.idempotencyKey, dry)
		case dry:
			return t.previewOne(ctx, args[0])
		}
		done, err := t.staff.RetryPayout(ctx, args[0], f.decision())
		if err != nil {
			return err
		}
		return t.decided(done)
	})
}

// mendable reports whether a retry may be possible in a status.
func mendable(s client.PayoutStatus) bool {
	return s == client.PayoutFailed || s == client.PayoutReturned || s == client.PayoutUnknown
}

// previewOne says what a retry of one payout would do.
func (t *clerk) previewOne(ctx context.Context, id string) error {
	p, err := t.staff.Payout(ctx, id)
	if err != nil {
		return err
	}
	m := &manyRetried{DryRun: true, Items: []manyItem{}, advice: "without --dry-run it is"}
	m.plan(&p.Payout)
	item := &m.Items[0]
	switch {
	case !p.Retry.Possible:
		item.Result, item.Code = resultSkipped, p.Retry.Code
	case p.Retry.SecondPerson:
		item.Result = resultApproval
	default:
		item.Result = resultWould
	}
	item.number(p.Retry.OrderNo, p.Retry.SameOrderNo)
	return t.tellMany(m)
}

// manyItem is what was done, or would be, about one of many payouts.
type manyItem struct {
	PayoutID    string              `json:"payout_id"`
	UserID      string              `json:"user_id"`
	Amount      money.Fen           `json:"amount"`
	Status      client.PayoutStatus `json:"status"` // when it was selected
	Failure     string              `json:"failure_code"`
	Result      string              `json:"result"` // as the API's, and: selected (not looked at), not_tried
	Code        *string             `json:"code"`   // of skipped: why
	OrderNo     *string             `json:"order_no"`
	SameOrderNo bool                `json:"same_order_no"`
	Why         string              `json:"why,omitempty"` // this order number and no other
	ApprovalID  *string             `json:"approval_id"`
}

// manyRetried is what a retry of many did, or would do.
type manyRetried struct {
	DryRun  bool           `json:"dry_run"`
	Key     string         `json:"idempotency_key,omitempty"`
	Count   int            `json:"count"`  // selected
	Amount  money.Fen      `json:"amount"` // of these
	Results map[string]int `json:"results"`
	Items   []manyItem     `json:"items"`
	advice  string         // how to do what a dry run shows
}

// Results that only a retry of many has.
const (
	resultSelected = "selected"
	resultNotTried = "not_tried"
	resultWould    = "would_retry"
	resultRetried  = "retried"
	resultApproval = "needs_approval"
	resultSkipped  = "skipped"
)

func (m *manyRetried) plan(p *client.Payout) {
	m.Items = append(m.Items, manyItem{PayoutID: p.ID, UserID: p.UserID, Amount: p.Amount, Status: p.Status, Failure: failureCode(p.Failure), Result: resultSelected})
	m.Count++
	m.Amount += p.Amount
}

// number notes which order number a retry sends, and why that one.
func (i *manyItem) number(orderNo *string, same bool) {
	i.OrderNo, i.SameOrderNo = orderNo, same
	i.Why = whyNumber(i.Status, client.RetryPreview{OrderNo: orderNo, SameOrderNo: same})
}

// previewStep is how many payouts one dry run of the API can name.
const previewStep = 100

// preview adds what the API says that a retry of each payout would do now.
func (t *clerk) preview(ctx context.Context, m *manyRetried) error {
	if len(m.Items) == 0 {
		return nil
	}
	bar := newMeter(t.notes, "looked at", len(m.Items))
	defer bar.end()
	for from := 0; from < len(m.Items); from += previewStep {
		some := m.Items[from:min(from+previewStep, len(m.Items))]
		ids := make([]string, len(some))
		for i := range some {
			ids[i] = some[i].PayoutID
		}
		dry, err := t.staff.RetryPayouts(ctx, client.BulkRetryRequest{Filter: client.BulkFilter{PayoutIDs: ids}, Reason: dryReason, DryRun: true})
		if err != nil {
			return err
		}
		said := map[string]client.BulkItem{}
		for _, item := range dry.Items {
			said[item.PayoutID] = item
		}
		for i := range some {
			s, ok := said[some[i].PayoutID]
			if !ok {
				continue
			}
			if some[i].Result = s.Result; s.Result == resultSkipped {
				some[i].Code = s.Code
			}
			some[i].number(s.OrderNo, s.SameOrderNo)
		}
		bar.set(from + len(some))
	}
	return nil
}

// retryMany selects payouts first, all pages of them, and then decides about
// exactly these: each by a decision of its own under one idempotency key. What
// fails again meanwhile is not selected a second time.
func (t *clerk) retryMany(ctx context.Context, f client.PayoutFilter, key string, dry bool) error {
	m := &manyRetried{DryRun: dry, Items: []manyItem{}, advice: "--yes with a --reason does it"}
	statuses := []client.PayoutStatus{f.Status}
	if f.Status == "" {
		statuses = []client.PayoutStatus{client.PayoutFailed, client.PayoutReturned}
	}
	for _, status := range statuses {
		one := f
		one.Status = status
		for p, err := range t.staff.Payouts(ctx, one) {
			if err != nil {
				return err
			}
			m.plan(p)
		}
	}
	if err := t.preview(ctx, m); err != nil {
		return err
	}
	if dry {
		return t.tellMany(m)
	}
	if m.Key = key; key == "" {
		m.Key = rand.Text()
	}
	broke := t.decideMany(ctx, m)
	err := t.tellMany(m)
	if broke == nil || err != nil && !errors.Is(err, errSilent) {
		return err
	}
	return errors.Join(broke, printf(t.notes, "Broken off. To go on, run it again with --idempotency-key %s: what was decided is not decided twice.\n", m.Key))
}

// decideMany decides about every payout of the plan. Refusals by the state are
// noted and passed over; any other error ends it.
func (t *clerk) decideMany(ctx context.Context, m *manyRetried) error {
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
		done, err := t.staff.RetryPayout(ctx, item.PayoutID, client.DecisionRequest{IdempotencyKey: m.Key, Reason: t.flags.reason})
		switch {
		case client.IsCode(err, client.CodeNotRetryable, client.CodeDecisionPending):
			p, _ := errors.AsType[*client.Problem](err)
			code := string(p.Code)
			item.Result, item.Code = resultSkipped, &code
			item.number(nil, false)
		case err != nil:
			return err
		case done.Approval != nil:
			item.Result, item.ApprovalID = resultApproval, &done.Approval.ID
		default:
			item.Result = resultRetried
		}
		bar.set(i + 1)
	}
	return nil
}

// tellMany tells what was done, or would be, and turns it into the exit code.
func (t *clerk) tellMany(m *manyRetried) error {
	m.Results = map[string]int{}
	for _, item := range m.Items {
		m.Results[item.Result]++
	}
	if err := t.showMany(m); err != nil || m.DryRun {
		return err
	}
	switch {
	case m.Results[resultSkipped] > 0:
		return errSomeRefused
	case m.Results[resultApproval] > 0:
		return errWaits
	}
	return nil
}

func (t *clerk) showMany(m *manyRetried) error {
	if t.json {
		return encodeJSON(t.out, m)
	}
	if m.Count == 0 {
		return printf(t.out, "No payout fits.\n")
	}
	show := newGrid(t.out, "payout", "user", "amount", "was", "failure", "result", "order number", "why that number")
	for _, item := range m.Items {
		show.row(item.PayoutID, item.UserID, shown(item.Amount), item.Status, item.Failure, resultText(item), orderText(item), item.Why)
	}
	show.render()
	var err error
	switch r := m.Results; {
	case m.DryRun:
		err = printf(t.out, "Selected: %d, %s. Nothing was decided; %s.\n", m.Count, amount(m.Amount), m.advice)
	default:
		err = printf(t.out, "Of %d payouts, %s: %d are to be paid again, %d wait for a second person, %d were refused, %d were not tried.\n",
			m.Count, amount(m.Amount), r[resultRetried], r[resultApproval], r[resultSkipped], r[resultNotTried])
	}
	if err == nil && m.Results[resultApproval] > 0 && !m.DryRun {
		err = printf(t.out, "Another person has to agree: hongbao approvals list --status waiting\n")
	}
	return err
}

func resultText(item manyItem) string {
	switch {
	case item.Result == resultSkipped:
		return "refused: " + orNone(item.Code)
	case item.ApprovalID != nil:
		return "needs_approval: " + *item.ApprovalID
	case item.Result == resultSelected:
		return "selected; not looked at closely"
	}
	return item.Result
}

func orderText(item manyItem) string {
	switch {
	case item.OrderNo == nil:
		return ""
	case item.SameOrderNo:
		return *item.OrderNo + " (the same)"
	}
	return *item.OrderNo + " (new)"
}
