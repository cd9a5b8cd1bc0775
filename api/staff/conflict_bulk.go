package staff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"hongbao/api/rest"
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

type conflictsIn struct {
	rest.Change
	Body wire.BulkConflictDecision `in:"body"`
}

// decideConflicts returns the operation that honours or voids many share conflicts, or shows what that
// would do.
func (s *API) decideConflicts(kind payout.DecisionKind) rest.Operation[conflictsIn, rest.Stored[wire.BulkConflictsDecided]] {
	return func(ctx context.Context, in *conflictsIn) (*rest.Stored[wire.BulkConflictsDecided], error) {
		out := wire.BulkConflictsDecided{DryRun: in.Body.DryRun, Items: []wire.BulkConflictItem{}}
		return rest.StoredAs[wire.BulkConflictsDecided](s.decideMany(ctx, in.Write, bulk{
			named: in.Body.Filter.IDs, check: func(ids []string) error { return s.checkConflicts(ctx, ids) },
			list: func(owner string) ([]string, bool, error) { return s.conflictIDs(ctx, in.Body.Filter, owner) },
			decide: func(w staff.Write, id string) error {
				item, err := s.decideConflict(ctx, w, id, kind, in.Body.DryRun)
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
		}))
	}
}

// checkConflicts refuses ids without a share conflict.
func (s *API) checkConflicts(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	for i, id := range ids {
		_, err := s.cfg.Store.Payment(ctx, id)
		if errors.Is(err, packet.ErrNotFound) {
			return rest.InvalidField(fmt.Sprintf("filter.payout_ids[%d]", i), rest.FaultFormat, "is not the id of a share conflict's payout")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *API) conflictIDs(ctx context.Context, f wire.BulkConflictFilter, owner string) (ids []string, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	found, err := s.cfg.Store.OpenShareConflicts(ctx, staff.ConflictFilter{PacketID: f.PacketID, UserID: f.UserID,
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
func (s *API) decideConflict(ctx context.Context, w staff.Write, id string, kind payout.DecisionKind, dryRun bool,
) (wire.BulkConflictItem, error) {
	store := s.cfg.Store
	if dryRun {
		plan, refused := store.PreviewConflict(ctx, w, id, kind)
		if refused != nil && !rest.RefusedByState(refused) {
			return wire.BulkConflictItem{}, refused
		}
		return renderConflict(plan, refused, bulkWouldDecide), nil
	}
	w.Route += "/" + id
	stored, err := store.DecideConflict(ctx, w, id, kind, func(plan staff.ConflictPlan, refused error) (int, []byte) {
		return http.StatusOK, rest.EncodeBody(renderConflict(plan, refused, bulkDecided))
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
		Result:          bulkWaiting, AskedBy: rest.TextOrNull(plan.AskedBy)}
	switch {
	case refused != nil:
		out.Result, out.Code = bulkSkipped, rest.TextOrNull(string(skippedCode(refused)))
	case plan.AskedBy != "":
		out.Result = second
	}
	return out
}
