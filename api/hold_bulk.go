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
)

// BulkHoldFilter is the filter of a bulk release of holds.
type BulkHoldFilter struct {
	Scope string   `json:"scope,omitempty" enum:"packet,payment" doc:"Holds of this scope; by default both."`
	Name  string   `json:"name,omitempty" doc:"Holds of this packet or payment."`
	Kind  string   `json:"kind,omitempty" enum:"staff,recovery,second_success,still_moves,charge_returned" doc:"Holds of this kind."`
	IDs   []string `json:"hold_ids,omitempty" nullable:"false" maxItems:"200" doc:"Exactly these holds; no other member is then allowed."`
}

// BulkRelease is the body of a bulk release.
type BulkRelease struct {
	Filter BulkHoldFilter `json:"filter" doc:"The filter of the holds, with at least one member."`
	Reason string         `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"recovery of May 3 is checked"`
	DryRun bool           `json:"dry_run,omitempty" default:"true" doc:"true: return what would happen and release nothing."`
}

// BulkReleaseItem is the result for one hold.
type BulkReleaseItem struct {
	ID       string           `json:"hold_id" doc:"The hold." example:"h12"`
	Scope    string           `json:"scope" enum:"packet,payment" doc:"The scope of the hold."`
	Name     string           `json:"name" doc:"The packet or payment that is held."`
	Releases Releases         `json:"releases" doc:"What moves when it is released."`
	Result   string           `json:"result" enum:"would_release,released,waiting,skipped" doc:"would_release: in a dry run. released: the hold is released. waiting: a second person has to release it too, or would have to in a dry run. skipped: not possible."`
	Code     Nullable[string] `json:"code" doc:"Of skipped: decision_changed (the first person was shown something else and has to ask again) or recovery_required; otherwise null."`
	AskedBy  Nullable[string] `json:"asked_by" doc:"The person who asked for the release; null without one."`
}

// BulkReleased is the answer to a bulk release.
type BulkReleased struct {
	DryRun   bool              `json:"dry_run" doc:"true: nothing was released."`
	Count    int               `json:"count" minimum:"0" doc:"How many are released or wait for a second person, or would in a dry run."`
	Releases Releases          `json:"releases" doc:"The sum of what these move. Several holds on one name count once."`
	More     bool              `json:"more" doc:"true: more than the 200 holds of one call match."`
	Items    []BulkReleaseItem `json:"items" nullable:"false" doc:"Newest hold first."`
}

// bulkScopes are the scopes of a bulk release. Few holds stop a provider, and each of them many payments.
var bulkScopes = []payout.HoldScope{payout.HoldPacket, payout.HoldPayment}

// bulkHoldKinds are the kinds of holds on packets and payments.
var bulkHoldKinds = []payout.HoldKind{payout.HoldStaff, payout.HoldRecovery, payout.HoldSecondSuccess, payout.HoldChargeReturned}

func readBulkRelease(body []byte) (BulkRelease, error) {
	o, err := readObject(body)
	if err != nil {
		return BulkRelease{}, err
	}
	out := BulkRelease{DryRun: true}
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
	out := BulkReleased{DryRun: body.DryRun, Items: []BulkReleaseItem{}}
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
			if parts := item.Releases.parts(); len(parts) > 0 && !summed[item.Name] {
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
			return invalid(FieldError{fmt.Sprintf("filter.hold_ids[%d]", i), faultFormat, "is not the id of a hold on a packet or a payment"})
		}
	}
	return nil
}

// heldIDs lists the active holds that match, without those whose release the person has asked for.
func (r *request) heldIDs(f BulkHoldFilter, owner string) (ids []string, more bool, err error) {
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
func (r *request) releaseOne(w staff.Write, text string, dryRun bool) (BulkReleaseItem, error) {
	id, _ := holdID(text)
	store := r.server.cfg.Store
	if dryRun {
		plan, refused := store.PreviewRelease(r.ctx, w.Owner, id)
		item := renderReleaseItem(plan.Hold, plan.Releases)
		if item.Result = bulkWouldRelease; plan.Asks {
			item.Result = bulkWaiting
		}
		return item.orSkipped(refused)
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
		return renderReleaseItem(plan.Hold, plan.Releases).orSkipped(err)
	}
	var item BulkReleaseItem
	if err := json.Unmarshal(stored.Body, &item); err != nil {
		return item, fmt.Errorf("decode remembered item of %s: %w", text, err)
	}
	return item, nil
}

func renderReleaseItem(h payout.Hold, releases staff.Releases) BulkReleaseItem {
	out := BulkReleaseItem{ID: renderHold(h).ID, Scope: string(h.Scope), Name: h.Name, Releases: renderReleases(releases)}
	if h.Release != nil {
		out.AskedBy = textOrNull(h.Release.By)
	}
	return out
}

// orSkipped returns the item, a skipped one when the state refuses the release, or any other error.
func (i BulkReleaseItem) orSkipped(refused error) (BulkReleaseItem, error) {
	code := CodeDecisionChanged
	switch {
	case refused == nil:
		return i, nil
	case errors.Is(refused, payout.ErrRecoveryRequired):
		code = CodeRecoveryRequired
	case !errors.Is(refused, payout.ErrDecisionChanged):
		return i, refused
	}
	i.Result, i.Code = bulkSkipped, textOrNull(string(code))
	return i, nil
}
