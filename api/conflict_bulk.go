package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// conflictDecisions are the decisions about share conflicts.
var conflictDecisions = map[string]payout.DecisionKind{"honour": payout.DecisionRetry, "void": payout.DecisionCancel}

// conflictDecision is the name of a decision about share conflicts.
func conflictDecision(kind payout.DecisionKind) string {
	if kind == payout.DecisionCancel {
		return "void"
	}
	return "honour"
}

func readBulkConflicts(body []byte) (wire.BulkConflictDecision, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.BulkConflictDecision{}, err
	}
	out := wire.BulkConflictDecision{DryRun: true}
	in := o.object("filter")
	out.Filter.PacketID = valueOr(in.text("packet_id", false, checkFilter), "")
	out.Filter.UserID = valueOr(in.text("user_id", false, checkID), "")
	out.Filter.DefaultDecision = valueOr(in.text("default_decision", false, oneOf([]string{"honour", "void"})), "")
	none := out.Filter.PacketID+out.Filter.UserID+out.Filter.DefaultDecision == ""
	if out.Filter.IDs = in.list("payout_ids", maxBulk, checkConflictID); out.Filter.IDs != nil && !none {
		in.fault("payout_ids", fault{faultFormat, "must be the only member"})
	}
	if in.rejectUnknown(); len(*o.faults) == 0 && none && out.Filter.IDs == nil {
		o.fault("filter", fault{faultRequired, "must have at least one member"})
	}
	out.Reason = valueOr(o.text("reason", true, checkReason), "")
	out.DryRun = valueOr(o.boolean("dry_run"), true)
	return out, o.done()
}

func checkConflictID(s string) *fault {
	parts, err := payout.Parse(s)
	if err != nil || parts.Kind != payout.KindHonour || parts.PaymentID != s {
		return &fault{faultFormat, "must be the id of a share conflict's payout"}
	}
	return nil
}

// decideConflicts returns the handler that honours or voids many share conflicts, or shows what that
// would do.
func decideConflicts(kind payout.DecisionKind) func(*request) (answer, error) {
	return func(r *request) (answer, error) {
		body, err := readBulkConflicts(r.payload)
		if err != nil {
			return answer{}, err
		}
		out := wire.BulkConflictsDecided{DryRun: body.DryRun, Items: []wire.BulkConflictItem{}}
		return r.decideMany(bulk{
			body: body, reason: body.Reason, named: body.Filter.IDs, check: r.checkConflicts, missing: refuse(wire.CodePayoutNotFound),
			list: func(owner string) ([]string, bool, error) { return r.conflictIDs(body.Filter, owner) },
			decide: func(w staff.Write, id string) error {
				item, err := r.decideConflict(w, id, kind, body.DryRun)
				if err != nil {
					return err
				}
				out.Items = append(out.Items, item)
				if item.Result != bulkSkipped {
					out.Count++
					out.Amount = out.Amount.Plus(item.Amount)
				}
				return nil
			},
			render: func(more bool) any {
				out.More = more
				return out
			},
		})
	}
}

// checkConflicts refuses ids without a share conflict.
func (r *request) checkConflicts(ids []string) error {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	for i, id := range ids {
		_, err := r.server.cfg.Store.Payment(ctx, id)
		if errors.Is(err, packet.ErrNotFound) {
			return invalidField(fmt.Sprintf("filter.payout_ids[%d]", i), faultFormat, "is not the id of a share conflict's payout")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *request) conflictIDs(f wire.BulkConflictFilter, owner string) (ids []string, more bool, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	found, err := r.server.cfg.Store.OpenShareConflicts(ctx, staff.ConflictFilter{PacketID: f.PacketID, UserID: f.UserID,
		Default: conflictDecisions[f.DefaultDecision], NotBy: owner, Limit: maxBulk + 1})
	ids = []string{}
	for _, c := range found[:min(len(found), maxBulk)] {
		ids = append(ids, c.Payment.ID)
	}
	return ids, len(found) > maxBulk, err
}

// Results of a bulk decision about share conflicts, with bulkWaiting and bulkSkipped.
const (
	bulkWouldDecide = "would_decide"
	bulkDecided     = "decided"
)

// decideConflict decides about one share conflict, or returns what would be decided. There is one
// decision per key and share conflict, whose item is stored, so that a repeated call returns the same.
func (r *request) decideConflict(w staff.Write, id string, kind payout.DecisionKind, dryRun bool) (wire.BulkConflictItem, error) {
	store := r.server.cfg.Store
	if dryRun {
		plan, refused := store.PreviewConflict(r.ctx, w.Owner, id, kind)
		if refused != nil && !refusedByState(refused) {
			return wire.BulkConflictItem{}, refused
		}
		return renderConflict(plan, refused, bulkWouldDecide), nil
	}
	w.Route += "/" + id
	stored, err := store.DecideConflict(r.ctx, w, id, kind, func(plan staff.ConflictPlan, refused error) (int, []byte) {
		return http.StatusOK, encodeBody(renderConflict(plan, refused, bulkDecided))
	})
	if err != nil {
		return wire.BulkConflictItem{}, err
	}
	var item wire.BulkConflictItem
	if err := json.Unmarshal(stored.Body, &item); err != nil {
		return item, fmt.Errorf("decode remembered item of %s: %w", id, err)
	}
	return item, nil
}

// renderConflict returns the item; second is the result when another person has asked for the same.
func renderConflict(plan staff.ConflictPlan, refused error, second string) wire.BulkConflictItem {
	p := plan.Payment
	out := wire.BulkConflictItem{ID: p.ID, PacketID: p.PacketID, UserID: p.UserID, Amount: p.Amount,
		DefaultDecision: conflictDecision(plan.Default()),
		Result:          bulkWaiting, AskedBy: textOrNull(plan.AskedBy)}
	switch {
	case refused != nil:
		out.Result, out.Code = bulkSkipped, textOrNull(string(skippedCode(refused)))
	case plan.AskedBy != "":
		out.Result = second
	}
	return out
}
