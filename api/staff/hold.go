package staff

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func renderHold(h payout.Hold) wire.StaffHold {
	out := wire.StaffHold{ID: rest.HoldPrefix + strconv.FormatInt(h.ID, 10), Scope: string(h.Scope), Name: h.Name, Kind: string(h.Kind),
		Reason: h.Reason, By: h.By, Role: h.Role, Since: wire.At(h.Since),
		ReleasedBy: rest.TextOrNull(h.ReleasedBy), ReleasedAt: rest.TimeOrNull(h.ReleasedAt)}
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
		out[i] = staff.ReleasePart{Code: staff.ReleaseCode(p.Code), Count: rest.ValueOr(p.Count, 0),
			Amount: rest.ValueOr(p.Amount, 0)}
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
	raw := rest.EncodeBody(renderHeld(h, r))
	return status, raw
}

// holds is the list of holds.
func (s *API) holds() rest.Listing[wire.HoldFilter, wire.StaffHold] {
	return rest.Listing[wire.HoldFilter, wire.StaffHold]{Name: "holds", ID: "hold",
		Read: func(ctx context.Context, a rest.Selection[wire.HoldFilter]) ([]wire.StaffHold, *rest.Position, error) {
			rows, err := s.cfg.Store.Holds(ctx, staff.HoldFilter{Active: a.Filter.Active, Scope: payout.HoldScope(a.Filter.Scope),
				Name: a.Filter.Name, Kind: payout.HoldKind(a.Filter.Kind), AfterID: rest.NumberOf(rest.HoldPrefix, a.After.ID), Limit: a.Limit + 1})
			return rest.Cut(rows, err, a.Limit, func(h payout.Hold) rest.Position {
				return rest.Position{At: h.Since, ID: renderHold(h).ID}
			}, renderHold)
		}}
}

type holdIn struct {
	ID string `path:"id" of:"hold"`
}

func (s *API) getHold(ctx context.Context, in *holdIn) (*wire.HeldItem, error) {
	h, releases, err := s.cfg.Store.Hold(ctx, rest.NumberOf(rest.HoldPrefix, in.ID))
	held := renderHeld(h, releases)
	return &held, err
}

type placeHoldIn struct {
	rest.Change
	Body wire.NewHold `in:"body"`
}

func (in *placeHoldIn) Check(o *rest.Object) {
	scope, name := in.Body.Scope, in.Body.Name
	switch f := checkHoldName(scope, name, in.Host.Providers.Names()); {
	case f == nil || o.Faulty("scope", "name"):
	case name == "":
		o.Fault("name", rest.Fault{Code: rest.FaultRequired, Message: "is required"})
	default:
		o.Fault("name", *f)
	}
}

// checkHoldName checks the form of a name; a packet or payment need not exist yet.
func checkHoldName(scope, name string, providers []string) *rest.Fault {
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
		return &rest.Fault{Code: rest.FaultFormat, Message: "is not the name of a " + scope}
	}
	return nil
}

func (s *API) placeHold(ctx context.Context, in *placeHoldIn) (*rest.Stored[wire.HeldItem], error) {
	return rest.StoredAs[wire.HeldItem](s.cfg.Store.PlaceHold(ctx, in.Write, payout.HoldScope(in.Body.Scope), in.Body.Name, answerHold))
}

type releaseHoldIn struct {
	rest.Change
	ID   string      `path:"id" of:"hold"`
	Body wire.Reason `in:"body"`
}

// releaseHold releases a hold. Operations may release what holds a provider; what holds a packet, a
// payment or the balances of apps after a recovery is decided by finance.
func (s *API) releaseHold(ctx context.Context, in *releaseHoldIn) (*rest.Stored[wire.HeldItem], error) {
	id, role := rest.NumberOf(rest.HoldPrefix, in.ID), in.Caller.Key.Role
	h, _, err := s.cfg.Store.Hold(ctx, id)
	if err == nil && role != access.RoleFinance && (h.Scope == payout.HoldPacket || h.Scope == payout.HoldPayment || h.OfBalances()) {
		err = rest.RefuseRole(role, rest.Finance)
	}
	if err != nil {
		return nil, err
	}
	return rest.StoredAs[wire.HeldItem](s.cfg.Store.ReleaseHold(ctx, in.Write, id, answerHold))
}

func (s *API) holdRoutes() []*rest.Route {
	const tag = "staff holds"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listHolds", Path: wire.PathHolds, Tag: tag, Summary: "List holds",
			About: "A hold stops sends, closings and decisions of a provider, a packet or a payment until it is released. Newest first. " +
				"Filters are combined with AND. While MySQL is restored and not recovered, everything is held without an item here.",
			Answers: rest.OK("A page of holds."),
		}, s.holds().Page()),
		rest.Get(rest.Route{
			ID: "getHold", Path: wire.PathHolds + "/{id}", Tag: tag, Summary: "Get a hold",
			About:   "Returns a hold and the money that may move when it is released.",
			Answers: rest.OK("The hold."),
		}, s.getHold),
		rest.Post(rest.Route{
			ID: "placeHold", Path: wire.PathHolds, Roles: rest.Holders, Tag: tag, Summary: "Place a hold",
			About: "Stops what begins after its commit; a send that was noted before may still leave for 5 seconds. Claims are recorded and " +
				"queries continue under every hold. An active hold of staff on the same name keeps its author and reason.",
			Answers: rest.OK("The hold."),
		}, s.placeHold),
		rest.Post(rest.Route{
			ID: "releaseHold", Path: wire.PathHolds + "/{id}/release", Roles: rest.Holders, Tag: tag, Summary: "Release a hold",
			About: "A hold of a packet or payment whose release lets money go, and that of a recovery on the balances of apps, need two " +
				"persons of finance: the first request is answered 202 and releases nothing, the same request by another person within 24 " +
				"hours releases it. 409 decision_changed: the first person was shown another amount or effect and has to request it again. " +
				"Several holds may be active on one name; the others stay. A released hold stays as it is.",
			Answers:  append(rest.OK("The hold is released."), rest.Accepted("A second person has to release it too.")...),
			Problems: []wire.Code{wire.CodeDecisionChanged, wire.CodeRecoveryRequired},
		}, s.releaseHold),
		rest.Post(rest.Route{
			ID: "releaseHolds", Path: wire.PathHolds + "/release", Roles: rest.Finance, Tag: tag, Summary: "Release many holds",
			About: "Releases the active holds of packets and payments that match, at most 200, newest first, each as the release of one " +
				"hold does. A dry run shows for each hold what its release moves. When money may move, the first person's call only asks; " +
				"the same call by another person of finance releases what others have asked for, if they were shown the same, and asks for " +
				"the rest. Holds whose release you have asked for are left out; name them in hold_ids to ask again. The same key decides " +
				"about a hold once.",
			MaxBody: 2 * rest.BodyLimit, Answers: rest.OK("The result for each hold; of a dry run, what would be done."),
			Problems: []wire.Code{wire.CodeRequestInProgress},
		}, s.releaseHolds),
	}
}
