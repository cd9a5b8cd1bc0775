package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// maxNamed is how many payments a bulk decision can list by id.
const maxNamed = 100

// bulkOf describes the kind of payment of a bulk retry: payouts or refunds.
type bulkOf struct {
	staff.PaymentFilter
	ids, one string // the member with the ids, and the noun of one item
	missing  wire.Code
	answer   func(wire.BulkRetried) any
}

var bulkPayouts = bulkOf{PaymentFilter: staff.PaymentFilter{Kind: payout.KindPayout, IncludeHonours: true},
	ids: "payout_ids", one: "a payout",
	missing: wire.CodePayoutNotFound,
	answer:  func(b wire.BulkRetried) any { return b }}

func (of bulkOf) read(body []byte, now time.Time) (wire.BulkRetry, staff.PaymentFilter, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.BulkRetry{}, staff.PaymentFilter{}, err
	}
	return of.from(o, now)
}

func (of bulkOf) from(o *object, now time.Time) (wire.BulkRetry, staff.PaymentFilter, error) {
	out, f := wire.BulkRetry{DryRun: true}, of.PaymentFilter
	if value, ok := o.get("filter", true); ok {
		if value.Kind() != '{' {
			o.fault("filter", fault{faultType, "must be an object"})
		} else {
			in := &object{prefix: "filter.", members: membersOf(value), faults: o.faults}
			in.rejectDuplicates()
			out.Filter, f = of.filter(in, now)
			if in.rejectUnknown(); len(*o.faults) == 0 && reflect.ValueOf(out.Filter).IsZero() {
				o.fault("filter", fault{faultRequired, "must have at least one member"})
			}
		}
	}
	out.Reason = valueOr(o.text("reason", true, checkReason), "")
	out.DryRun = valueOr(o.boolean("dry_run"), true)
	return out, f, o.done()
}

func (of bulkOf) filter(in *object, now time.Time) (wire.BulkFilter, staff.PaymentFilter) {
	f := of.PaymentFilter
	f.Status = payout.Status(valueOr(in.text("status", false, checkStatus), ""))
	f.PacketID = valueOr(in.text("packet_id", false, checkFilter), "")
	f.UserID = valueOr(in.text("user_id", false, checkID), "")
	f.OrderNo = valueOr(in.text("order_no", false, checkFilter), "")
	f.FailureCode = valueOr(in.text("failure_code", false, checkCode), "")
	out := wire.BulkFilter{Status: wire.PayoutStatus(f.Status), PacketID: f.PacketID, UserID: f.UserID, OrderNo: f.OrderNo,
		FailureCode: f.FailureCode}
	out.OlderThanSeconds = in.integer("older_than_seconds", false, 0, maxAge)
	if out.OlderThanSeconds != nil {
		f.CreatedTo = now.Add(-time.Duration(*out.OlderThanSeconds) * time.Second)
	}
	low, high := in.integer("amount_min", false, 0, int64(money.Max)), in.integer("amount_max", false, 0, int64(money.Max))
	out.AmountMin, out.AmountMax = (*money.Fen)(low), (*money.Fen)(high)
	if low != nil {
		f.AmountMin = money.Fen(*low)
	}
	if high != nil {
		f.AmountMax = money.Fen(*high)
		if f.AmountMax < f.AmountMin {
			in.fault("amount_max", fault{faultRange, "must not be below amount_min"})
		}
		if *high == 0 { // no amount is that small, and 0 would mean no bound
			f.AmountMax, f.AmountMin = 1, math.MaxInt64
		}
	}
	if ids := in.list(of.ids, maxNamed, of.checkID); ids != nil {
		alone := wire.BulkFilter{IDs: ids}
		if out.IDs = ids; !reflect.DeepEqual(out, alone) {
			in.fault(of.ids, fault{faultFormat, "must be the only member"})
		}
	}
	return out, f
}

// retryMany handles bulk retries. Payouts and refunds have separate routes, and so separate
// keys.
func retryMany(of bulkOf) func(*request) (answer, error) {
	return func(r *request) (answer, error) { return r.retryMany(of) }
}

func (r *request) retryMany(of bulkOf) (answer, error) {
	now := r.server.cfg.Now().UTC()
	body, filter, err := of.read(r.payload, now)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	w.Route = r.c.Method() + " " + r.route.path
	out := wire.BulkRetried{DryRun: body.DryRun, Items: []wire.BulkItem{}}
	stored, err := r.server.decideMany(r.ctx, w, bulk{
		named: body.Filter.IDs,
		check: func(ids []string) error { return r.checkNamed(ids, of) },
		list:  func(string) ([]string, bool, error) { return r.bulkIDs(filter) },
		decide: func(w staff.Write, id string) error {
			item, amount, err := r.bulkItem(w, id, body.DryRun)
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
			return of.answer(out)
		},
	})
	return staffAnswer(stored, err, refuse(of.missing))
}

// Results of a bulk retry for one payout.
const (
	bulkWould    = "would_retry"
	bulkRetried  = "retried"
	bulkApproval = "needs_approval"
)

// checkNamed refuses unknown ids.
func (r *request) checkNamed(ids []string, of bulkOf) error {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	for i, id := range ids {
		_, err := r.server.cfg.Store.Payment(ctx, id)
		if errors.Is(err, packet.ErrNotFound) {
			return invalidField(fmt.Sprintf("filter.%s[%d]", of.ids, i), faultFormat, "is not the id of "+of.one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkID checks the form of an id.
func (of bulkOf) checkID(s string) *fault {
	parts, err := payout.Parse(s)
	if err != nil || !isOf(parts.Kind, of.Kind) || parts.PaymentID != s {
		return &fault{faultFormat, "must be the id of " + of.one}
	}
	return nil
}

// bulkIDs lists the selected payments: those that can be retried, unless the filter has a
// status.
func (r *request) bulkIDs(f staff.PaymentFilter) (ids []string, more bool, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	f.Limit = maxBulk + 1
	statuses := []payout.Status{f.Status}
	if f.Status == "" {
		statuses = []payout.Status{payout.StatusFailed, payout.StatusReturned}
	}
	var rows []staff.PaymentRow
	for _, status := range statuses {
		f.Status = status
		some, err := r.server.cfg.Store.Payments(ctx, f)
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
func (r *request) bulkItem(w staff.Write, id string, dryRun bool) (wire.BulkItem, money.Fen, error) {
	c := payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: r.server.cfg.ApprovalAmount}
	store := r.server.cfg.Store
	d, err := store.Payment(r.ctx, id)
	if err != nil {
		return wire.BulkItem{}, 0, err // it was listed before
	}
	v, refused := store.PreviewDecision(r.ctx, id, c)
	if refused != nil && !refusedByState(refused) {
		return wire.BulkItem{}, 0, refused
	}
	item := wire.BulkItem{ID: id, Result: bulkWould, OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo}
	if d.Failure != nil {
		item.Code = textOrNull(d.Failure.Code)
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
	item, err = r.bulkDecide(w, id, c, item)
	return item, d.Amount, err
}

func refusedByState(err error) bool {
	return errors.Is(err, payout.ErrNotRetryable) || errors.Is(err, payout.ErrDecisionPending) ||
		errors.Is(err, payout.ErrDecisionChanged) || errors.Is(err, payout.ErrHeld) && !errors.Is(err, payout.ErrMySQLRestored)
}

// bulkDecide decides about one payout, also when the preview refused it. There is one decision
// per key and payout, whose item is stored, so that a repeated call decides nothing twice and
// returns the same.
func (r *request) bulkDecide(w staff.Write, id string, c payout.DecisionRequest, item wire.BulkItem) (wire.BulkItem, error) {
	w.Route += "/" + id
	stored, err := r.server.cfg.Store.Decide(r.ctx, w, id, c, func(d *staff.Decision, _ staff.PaymentRow, refused error) (int, []byte) {
		one := itemOrSkipped(item, refused)
		if refused == nil {
			if one.Result = bulkRetried; d.Status == payout.DecisionWaiting {
				one.Result = bulkApproval
			}
		}
		raw := encodeBody(one)
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
	return wire.BulkItem{ID: i.ID, Result: bulkSkipped, Code: textOrNull(string(skippedCode(refused))), OrderNo: textOrNull("")}
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
