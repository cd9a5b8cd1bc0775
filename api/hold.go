package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func renderHold(h payout.Hold) wire.StaffHold {
	out := wire.StaffHold{ID: holdPrefix + strconv.FormatInt(h.ID, 10), Scope: string(h.Scope), Name: h.Name, Kind: string(h.Kind),
		Reason: h.Reason, By: h.By, Role: h.Role, Since: wire.At(h.Since),
		ReleasedBy: textOrNull(h.ReleasedBy), ReleasedAt: timeOrNull(h.ReleasedAt)}
	if r := h.Release; r != nil && h.ReleasedAt.IsZero() {
		out.Release = &wire.HoldRelease{By: r.By, Reason: r.Reason, At: wire.At(r.At)}
	}
	return out
}

func renderReleases(r staff.Releases) wire.Releases {
	out := wire.Releases{Amount: r.Amount(), What: r.What(), Parts: make([]wire.ReleasePart, len(r))}
	for i, p := range r {
		out.Parts[i].Code = string(p.Code)
		if p.Count != 0 {
			out.Parts[i].Count = &p.Count
		}
		if amount := p.Amount; amount != 0 {
			out.Parts[i].Amount = &amount
		}
	}
	return out
}

// partsOf reverses renderReleases.
func partsOf(r wire.Releases) staff.Releases {
	out := make(staff.Releases, len(r.Parts))
	for i, p := range r.Parts {
		out[i] = staff.ReleasePart{Code: staff.ReleaseCode(p.Code), Count: valueOr(p.Count, 0),
			Amount: valueOr(p.Amount, 0)}
	}
	return out
}

func renderHeld(h payout.Hold, r staff.Releases) wire.HeldItem {
	return wire.HeldItem{Hold: renderHold(h), Releases: renderReleases(r), SecondPerson: r.NeedSecondPerson(h)}
}

// answerHold renders a hold inside its transaction: 202 while a release waits for a second person.
func answerHold(h payout.Hold, r staff.Releases) (int, []byte) {
	status := http.StatusOK
	if h.Release != nil && h.ReleasedAt.IsZero() {
		status = http.StatusAccepted
	}
	raw := encodeBody(renderHeld(h, r))
	return status, raw
}

// holds is the list of holds.
func (s *API) holds() listing[wire.HoldFilter, wire.StaffHold] {
	return listing[wire.HoldFilter, wire.StaffHold]{"holds", "hold",
		func(ctx context.Context, a selection[wire.HoldFilter]) ([]wire.StaffHold, *position, error) {
			rows, err := s.cfg.Store.Holds(ctx, staff.HoldFilter{Active: a.filter.Active, Scope: payout.HoldScope(a.filter.Scope),
				Name: a.filter.Name, Kind: payout.HoldKind(a.filter.Kind), AfterID: numberOf(holdPrefix, a.after.ID), Limit: a.limit + 1})
			return cut(rows, err, a.limit, func(h payout.Hold) position { return position{h.Since, renderHold(h).ID} }, renderHold)
		}}
}

type holdIn struct {
	ID string `path:"id" of:"hold"`
}

func (s *API) getHold(ctx context.Context, in *holdIn) (*wire.HeldItem, error) {
	h, releases, err := s.cfg.Store.Hold(ctx, numberOf(holdPrefix, in.ID))
	held := renderHeld(h, releases)
	return &held, err
}

type placeHoldIn struct {
	Change
	Body wire.NewHold `in:"body"`
}

func (in *placeHoldIn) Check(o *object) {
	scope, name := in.Body.Scope, in.Body.Name
	switch f := checkHoldName(scope, name, in.host.providers.Names()); {
	case f == nil || o.faulty("scope", "name"):
	case name == "":
		o.fault("name", fault{faultRequired, "is required"})
	default:
		o.fault("name", *f)
	}
}

// checkHoldName checks the form of a name; a packet or payment need not exist yet.
func checkHoldName(scope, name string, providers []string) *fault {
	var ok bool
	switch payout.HoldScope(scope) {
	case payout.HoldProvider:
		ok = slices.Contains(providers, name)
	case payout.HoldPacket:
		ok = packet.ValidID(name)
	case payout.HoldPayment:
		parts, err := payout.Parse(name)
		ok = err == nil && parts.PaymentID == name
	case payout.HoldAll:
		ok = name == ""
	}
	if !ok {
		return &fault{faultFormat, "is not the name of a " + scope}
	}
	return nil
}

func (s *API) placeHold(ctx context.Context, in *placeHoldIn) (*stored[wire.HeldItem], error) {
	return storedAs[wire.HeldItem](s.cfg.Store.PlaceHold(ctx, in.Write, payout.HoldScope(in.Body.Scope), in.Body.Name, answerHold))
}

type releaseHoldIn struct {
	Change
	ID   string      `path:"id" of:"hold"`
	Body wire.Reason `in:"body"`
}

// releaseHold releases a hold. Operations may release what holds a provider; what holds a packet or a
// payment is decided by finance.
func (s *API) releaseHold(ctx context.Context, in *releaseHoldIn) (*stored[wire.HeldItem], error) {
	id, role := numberOf(holdPrefix, in.ID), in.caller.key.Role
	h, _, err := s.cfg.Store.Hold(ctx, id)
	if err == nil && role != access.RoleFinance && (h.Scope == payout.HoldPacket || h.Scope == payout.HoldPayment) {
		err = refuseRole(role, finance)
	}
	if err != nil {
		return nil, err
	}
	return storedAs[wire.HeldItem](s.cfg.Store.ReleaseHold(ctx, in.Write, id, answerHold))
}
