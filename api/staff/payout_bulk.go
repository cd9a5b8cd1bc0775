package staff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

type retryPayoutsIn struct {
	rest.Change
	Body wire.BulkRetry `in:"body"`
}

func (s *API) retryPayouts(ctx context.Context, in *retryPayoutsIn) (*rest.Stored[wire.BulkRetried], error) {
	return rest.StoredAs[wire.BulkRetried](s.retryMany(ctx, payout.KindPayout, in.Change, in.Body, func(b wire.BulkRetried) any { return b }))
}

type retryRefundsIn struct {
	rest.Change
	Body wire.BulkRefundRetry `in:"body"`
}

func (s *API) retryRefunds(ctx context.Context, in *retryRefundsIn) (*rest.Stored[wire.BulkRefundsRetried], error) {
	body := wire.BulkRetry{Filter: wire.BulkFilter(in.Body.Filter), Reason: in.Body.Reason, DryRun: in.Body.DryRun}
	return rest.StoredAs[wire.BulkRefundsRetried](s.retryMany(ctx, payout.KindRefund, in.Change, body, func(b wire.BulkRetried) any {
		out := wire.BulkRefundsRetried{BulkSum: b.BulkSum, Items: make([]wire.BulkRefundItem, len(b.Items))}
		for i, item := range b.Items {
			out.Items[i] = wire.BulkRefundItem(item)
		}
		return out
	}))
}

// retryMany retries many payments of one kind. Payouts and refunds have separate routes, and so separate keys.
func (s *API) retryMany(ctx context.Context, kind payout.Kind, in rest.Change, body wire.BulkRetry, render func(wire.BulkRetried) any,
) (staff.Answer, error) {
	out := wire.BulkRetried{BulkSum: wire.BulkSum{DryRun: body.DryRun}, Items: []wire.BulkItem{}}
	return s.decideMany(ctx, in.Write, bulk{
		named: body.Filter.IDs, check: func(ids []string) error { return s.checkNamed(ctx, ids, kindNames[kind]) },
		list: func(string) ([]string, bool, error) {
			return s.bulkIDs(ctx, paymentFilter(kind, body.Filter.PaymentFilter, in.Now()))
		},
		decide: func(w staff.Write, id string) error {
			item, amount, err := s.bulkItem(ctx, w, id, body.DryRun)
			if err != nil {
				return err
			}
			if item.Result != bulkSkipped {
				out.Count++
				out.Amount = out.Amount.Plus(amount)
			}
			out.Items = append(out.Items, item)
			return nil
		},
		render: func(more bool) any {
			out.More = more
			return render(out)
		},
	})
}

// Results of a bulk retry for one payout.
const (
	bulkWould    = "would_retry"
	bulkRetried  = "retried"
	bulkApproval = "needs_approval"
)

// checkNamed refuses unknown ids.
func (s *API) checkNamed(ctx context.Context, ids []string, thing string) error {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	for i, id := range ids {
		_, err := s.cfg.Store.Payment(ctx, id)
		if errors.Is(err, packet.ErrNotFound) {
			return rest.InvalidField(fmt.Sprintf("filter.%s_ids[%d]", thing, i), rest.FaultFormat, "is not the id of a "+thing)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bulkIDs lists the selected payments: those that can be retried, unless the filter has a
// status.
func (s *API) bulkIDs(ctx context.Context, f staff.PaymentFilter) (ids []string, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	f.Limit = maxBulk + 1
	statuses := []payout.Status{f.Status}
	if f.Status == "" {
		statuses = []payout.Status{payout.StatusFailed, payout.StatusReturned}
	}
	var rows []staff.PaymentRow
	for _, status := range statuses {
		f.Status = status
		some, err := s.cfg.Store.Payments(ctx, f)
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, some...)
	}
	slices.SortStableFunc(rows, func(a, b staff.PaymentRow) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	ids = []string{}
	for _, row := range rows[:min(len(rows), maxBulk)] {
		ids = append(ids, row.ID)
	}
	return ids, len(rows) > maxBulk, nil
}

// bulkItem decides about one payout, or returns what would be decided.
func (s *API) bulkItem(ctx context.Context, w staff.Write, id string, dryRun bool) (wire.BulkItem, money.Fen, error) {
	c := payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: s.cfg.ApprovalAmount}
	store := s.cfg.Store
	d, err := store.Payment(ctx, id)
	if err != nil {
		return wire.BulkItem{}, 0, err // it was listed before
	}
	v, refused := store.PreviewDecision(ctx, id, c)
	if refused != nil && !rest.RefusedByState(refused) {
		return wire.BulkItem{}, 0, refused
	}
	item := wire.BulkItem{ID: id, BulkResult: wire.BulkResult{Result: bulkWould, OrderNo: rest.TextOrNull(v.OrderNo),
		SameOrderNo: v.SameOrderNo}}
	if d.Failure != nil {
		item.Code = rest.TextOrNull(d.Failure.Code)
	}
	if v.NeedsApproval {
		item.Result = bulkApproval
	}
	if v.NeedsEvidence {
		refused = payout.ErrEvidenceRequired
	}
	if dryRun || v.NeedsEvidence {
		return itemOrSkipped(item, refused), d.Amount, nil
	}
	item, err = s.bulkDecide(ctx, w, id, c, item)
	return item, d.Amount, err
}

// bulkDecide decides about one payout, also when the preview refused it. There is one decision
// per key and payout, whose item is stored, so that a repeated call decides nothing twice and
// returns the same.
func (s *API) bulkDecide(ctx context.Context, w staff.Write, id string, c payout.DecisionRequest, item wire.BulkItem,
) (wire.BulkItem, error) {
	w.Route += "/" + id
	stored, err := s.cfg.Store.Decide(ctx, w, id, c, func(d *staff.Decision, _ staff.PaymentRow, refused error) (int, []byte) {
		one := itemOrSkipped(item, refused)
		if refused == nil {
			if one.Result = bulkRetried; d.Status == payout.DecisionWaiting {
				one.Result = bulkApproval
			}
		}
		raw := rest.EncodeBody(one)
		return http.StatusOK, raw
	})
	if errors.Is(err, payout.ErrEvidenceRequired) { // since the preview
		return itemOrSkipped(item, err), nil
	}
	if err != nil {
		return item, err
	}
	if err := json.Unmarshal(stored.Body, &item); err != nil {
		return item, fmt.Errorf("decode remembered item of %s: %w", id, err)
	}
	return item, nil
}

// itemOrSkipped returns the item, or a skipped item when the status refuses the decision.
func itemOrSkipped(i wire.BulkItem, refused error) wire.BulkItem {
	if refused == nil {
		return i
	}
	return wire.BulkItem{ID: i.ID, BulkResult: wire.BulkResult{Result: bulkSkipped, Code: rest.TextOrNull(string(skippedCode(refused)))}}
}

// skippedCode says why the state refuses a decision.
func skippedCode(refused error) wire.Code {
	switch {
	case errors.Is(refused, payout.ErrDecisionPending):
		return wire.CodeDecisionPending
	case errors.Is(refused, payout.ErrDecisionChanged):
		return wire.CodeDecisionChanged
	case errors.Is(refused, payout.ErrHeld):
		return wire.CodeHeld
	}
	return wire.CodeNotRetryable
}
