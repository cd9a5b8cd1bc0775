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
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// bulkScopes are the scopes of a bulk release. Few holds stop a provider, and each of them many payments.
var bulkScopes = []payout.HoldScope{payout.HoldPacket, payout.HoldPayment}

type releaseHoldsIn struct {
	rest.Change
	Body wire.BulkRelease `in:"body"`
}

// releaseHolds releases many holds, or shows what that would do.
func (s *API) releaseHolds(ctx context.Context, in *releaseHoldsIn) (*rest.Stored[wire.BulkReleased], error) {
	out := wire.BulkReleased{DryRun: in.Body.DryRun, Items: []wire.BulkReleaseItem{}}
	var sum staff.Releases
	summed := map[string]bool{}
	return rest.StoredAs[wire.BulkReleased](s.decideMany(ctx, in.Write, bulk{
		named: in.Body.Filter.IDs, check: func(ids []string) error { return s.checkHeld(ctx, ids) },
		list: func(owner string) ([]string, bool, error) { return s.heldIDs(ctx, in.Body.Filter, owner) },
		decide: func(w staff.Write, text string) error {
			item, err := s.releaseOne(ctx, w, text, in.Body.DryRun)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, item)
			if item.Result == bulkSkipped {
				return nil
			}
			out.Count++
			if parts := partsOf(item.Releases); len(parts) > 0 && !summed[item.Name] {
				sum, summed[item.Name] = sum.Plus(parts), true
			}
			return nil
		},
		render: func(more bool) any {
			out.More, out.Releases = more, renderReleases(sum)
			return out
		},
	}))
}

// checkHeld refuses ids without a hold on a packet or payment.
func (s *API) checkHeld(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	for i, text := range ids {
		h, _, err := s.cfg.Store.Hold(ctx, rest.NumberOf(rest.HoldPrefix, text))
		if err != nil && !errors.Is(err, packet.ErrNotFound) {
			return err
		}
		if err != nil || !slices.Contains(bulkScopes, h.Scope) {
			return rest.InvalidField(fmt.Sprintf("filter.hold_ids[%d]", i), rest.FaultFormat, "is not the id of a hold on a packet or a payment")
		}
	}
	return nil
}

// heldIDs lists the active holds that match, without those whose release the person has asked for.
func (s *API) heldIDs(ctx context.Context, f wire.BulkHoldFilter, owner string) (ids []string, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	active := true
	var found []payout.Hold
	for _, scope := range bulkScopes {
		if f.Scope != "" && f.Scope != string(scope) {
			continue
		}
		some, err := s.cfg.Store.Holds(ctx, staff.HoldFilter{Active: &active, Scope: scope, Name: f.Name,
			Kind: payout.HoldKind(f.Kind), NotBy: owner, Limit: maxBulk + 1})
		if err != nil {
			return nil, false, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b payout.Hold) int { return cmp.Compare(b.ID, a.ID) })
	ids = []string{}
	for _, h := range found[:min(len(found), maxBulk)] {
		ids = append(ids, renderHold(h).ID)
	}
	return ids, len(found) > maxBulk, nil
}

// Results of a bulk release, with bulkWaiting and bulkSkipped.
const (
	bulkWouldRelease = "would_release"
	bulkReleased     = "released"
)

// releaseOne releases one hold as releaseHold does, or returns what would be done. There is one
// release per key and hold, whose item is stored, so that a repeated call returns the same.
func (s *API) releaseOne(ctx context.Context, w staff.Write, text string, dryRun bool) (wire.BulkReleaseItem, error) {
	id, store := rest.NumberOf(rest.HoldPrefix, text), s.cfg.Store
	if dryRun {
		plan, refused := store.PreviewRelease(ctx, w, id)
		item := renderReleaseItem(plan.Hold, plan.Releases)
		if item.Result = bulkWouldRelease; plan.Asks {
			item.Result = bulkWaiting
		}
		return releaseOrSkipped(item, refused)
	}
	w.Route += "/" + text
	stored, err := store.ReleaseHold(ctx, w, id, func(h payout.Hold, releases staff.Releases) (int, []byte) {
		one := renderReleaseItem(h, releases)
		if one.Result = bulkReleased; h.ReleasedAt.IsZero() {
			one.Result = bulkWaiting
		}
		return http.StatusOK, rest.EncodeBody(one)
	})
	if err != nil {
		plan, _ := store.PreviewRelease(ctx, w, id)
		return releaseOrSkipped(renderReleaseItem(plan.Hold, plan.Releases), err)
	}
	var item wire.BulkReleaseItem
	if err := json.Unmarshal(stored.Body, &item); err != nil {
		return item, fmt.Errorf("decode remembered item of %s: %w", text, err)
	}
	return item, nil
}

func renderReleaseItem(h payout.Hold, releases staff.Releases) wire.BulkReleaseItem {
	out := wire.BulkReleaseItem{ID: renderHold(h).ID, Scope: string(h.Scope), Name: h.Name, Releases: renderReleases(releases)}
	if h.Release != nil {
		out.AskedBy = rest.TextOrNull(h.Release.By)
	}
	return out
}

// releaseOrSkipped returns the item, a skipped one when the state refuses the release, or any other error.
func releaseOrSkipped(i wire.BulkReleaseItem, refused error) (wire.BulkReleaseItem, error) {
	code := wire.CodeDecisionChanged
	switch {
	case refused == nil:
		return i, nil
	case errors.Is(refused, payout.ErrRecoveryRequired):
		code = wire.CodeRecoveryRequired
	case errors.Is(refused, payout.ErrOneIssuer):
		code = wire.CodeForbidden
	case !errors.Is(refused, payout.ErrDecisionChanged):
		return i, refused
	}
	i.Result, i.Code = bulkSkipped, rest.TextOrNull(string(code))
	return i, nil
}
