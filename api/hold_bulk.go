package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// bulkScopes are the scopes of a bulk release. Few holds stop a provider, and each of them many payments.
var bulkScopes = []payout.HoldScope{payout.HoldPacket, payout.HoldPayment}

// bulkHoldKinds are the kinds of holds on packets and payments.
var bulkHoldKinds = []payout.HoldKind{payout.HoldStaff, payout.HoldRecovery, payout.HoldSecondSuccess, payout.HoldChargeReturned}

func readBulkRelease(body []byte) (wire.BulkRelease, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.BulkRelease{}, err
	}
	out := wire.BulkRelease{DryRun: true}
	in := o.object("filter")
	out.Filter.Scope = valueOr(in.text("scope", false, oneOf(bulkScopes)), "")
	out.Filter.Name = valueOr(in.text("name", false, checkCode), "")
	out.Filter.Kind = valueOr(in.text("kind", false, oneOf(bulkHoldKinds)), "")
	none := out.Filter.Scope+out.Filter.Name+out.Filter.Kind == ""
	if out.Filter.IDs = in.list("hold_ids", maxBulk, checkHoldID); out.Filter.IDs != nil && !none {
		in.fault("hold_ids", fault{faultFormat, "must be the only member"})
	}
	if in.rejectUnknown(); len(*o.faults) == 0 && none && out.Filter.IDs == nil {
		o.fault("filter", fault{faultRequired, "must have at least one member"})
	}
	out.Reason = valueOr(o.text("reason", true, checkReason), "")
	out.DryRun = valueOr(o.boolean("dry_run"), true)
	return out, o.done()
}

// oneOf checks for one of some values.
func oneOf[T ~string](values []T) func(string) *fault {
	return func(s string) *fault {
		if slices.Contains(values, T(s)) {
			return nil
		}
		var texts []string
		for _, v := range values {
			texts = append(texts, string(v))
		}
		return &fault{faultEnum, "must be one of " + strings.Join(texts, ", ")}
	}
}

func checkHoldID(s string) *fault {
	if _, ok := holdID(s); !ok {
		return &fault{faultFormat, "must be the id of a hold"}
	}
	return nil
}

// releaseHolds releases many holds, or shows what that would do.
func releaseHolds(r *request) (answer, error) {
	body, err := readBulkRelease(r.payload)
	if err != nil {
		return answer{}, err
	}
	out := wire.BulkReleased{DryRun: body.DryRun, Items: []wire.BulkReleaseItem{}}
	var sum staff.Releases
	summed := map[string]bool{}
	return r.decideMany(bulk{
		body: body, reason: body.Reason, named: body.Filter.IDs, check: r.checkHeld, missing: noSuch("hold"),
		list: func(owner string) ([]string, bool, error) { return r.heldIDs(body.Filter, owner) },
		decide: func(w staff.Write, text string) error {
			item, err := r.releaseOne(w, text, body.DryRun)
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
	})
}

// checkHeld refuses ids without a hold on a packet or payment.
func (r *request) checkHeld(ids []string) error {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	for i, text := range ids {
		id, _ := holdID(text)
		h, _, err := r.server.cfg.Store.Hold(ctx, id)
		if err != nil && !errors.Is(err, packet.ErrNotFound) {
			return err
		}
		if err != nil || !slices.Contains(bulkScopes, h.Scope) {
			return invalidField(fmt.Sprintf("filter.hold_ids[%d]", i), faultFormat, "is not the id of a hold on a packet or a payment")
		}
	}
	return nil
}

// heldIDs lists the active holds that match, without those whose release the person has asked for.
func (r *request) heldIDs(f wire.BulkHoldFilter, owner string) (ids []string, more bool, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	active := true
	var found []payout.Hold
	for _, scope := range bulkScopes {
		if f.Scope != "" && f.Scope != string(scope) {
			continue
		}
		some, err := r.server.cfg.Store.Holds(ctx, staff.HoldFilter{Active: &active, Scope: scope, Name: f.Name,
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
func (r *request) releaseOne(w staff.Write, text string, dryRun bool) (wire.BulkReleaseItem, error) {
	id, _ := holdID(text)
	store := r.server.cfg.Store
	if dryRun {
		plan, refused := store.PreviewRelease(r.ctx, w.Owner, id)
		item := renderReleaseItem(plan.Hold, plan.Releases)
		if item.Result = bulkWouldRelease; plan.Asks {
			item.Result = bulkWaiting
		}
		return releaseOrSkipped(item, refused)
	}
	w.Route += "/" + text
	stored, err := store.ReleaseHold(r.ctx, w, id, func(h payout.Hold, releases staff.Releases) (int, []byte) {
		one := renderReleaseItem(h, releases)
		if one.Result = bulkReleased; h.ReleasedAt.IsZero() {
			one.Result = bulkWaiting
		}
		return http.StatusOK, encodeBody(one)
	})
	if err != nil {
		plan, _ := store.PreviewRelease(r.ctx, w.Owner, id)
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
		out.AskedBy = textOrNull(h.Release.By)
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
	case !errors.Is(refused, payout.ErrDecisionChanged):
		return i, refused
	}
	i.Result, i.Code = bulkSkipped, textOrNull(string(code))
	return i, nil
}
