package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

const holdPrefix = "h"

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

func readHoldFilter(q *query) staff.HoldFilter {
	f := staff.HoldFilter{Scope: payout.HoldScope(q.text("scope", checkCode)), Name: q.text("name", checkCode),
		Kind: payout.HoldKind(q.text("kind", checkCode))}
	if text := q.text("active", checkBool); text != "" {
		yes := text == "true"
		f.Active = &yes
	}
	return f
}

func listHolds(r *request) (answer, error) {
	q := readQuery(r)
	filter := readHoldFilter(q)
	given := q.given()
	limit, text := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	if text != "" {
		c, err := continueList(text, given, func(q *query) { filter = readHoldFilter(q) })
		id, ok := holdID(c.ID)
		if err != nil || !ok {
			return answer{}, badCursor()
		}
		filter.AfterID, given = id, c.Filters
	}
	filter.Limit = limit + 1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.Holds(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	var page wire.List[wire.StaffHold]
	page.Items, page.NextCursor = pageOf(rows, limit, func(h payout.Hold) listCursor {
		return listCursor{Filters: given, At: h.Since, ID: renderHold(h).ID}
	}, renderHold)
	return answer{status: http.StatusOK, body: page}, nil
}

// holdID parses the id of a hold.
func holdID(text string) (int64, bool) {
	digits, ok := strings.CutPrefix(text, holdPrefix)
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, ok && err == nil && id > 0 && strconv.FormatInt(id, 10) == digits
}

func (r *request) holdInPath() (id int64, text string, err error) {
	text, _ = url.PathUnescape(r.c.Params("id"))
	text = strings.Clone(text)
	id, ok := holdID(text)
	if !ok {
		err = noSuch("hold")
	}
	return id, text, err
}

func getHold(r *request) (answer, error) {
	id, _, err := r.holdInPath()
	if err != nil {
		return answer{}, err
	}
	h, releases, err := r.server.cfg.Store.Hold(r.ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return answer{}, noSuch("hold")
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: renderHeld(h, releases)}, nil
}

func readNewHold(body []byte, provider string) (wire.NewHold, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.NewHold{}, err
	}
	var h wire.NewHold
	h.Scope = valueOr(o.text("scope", true, checkHoldScope), "")
	h.Name = valueOr(o.text("name", h.Scope != string(payout.HoldAll), func(s string) *fault { return checkHoldName(h.Scope, s, provider) }),
		"")
	h.Reason = valueOr(o.text("reason", true, checkReason), "")
	return h, o.done()
}

func checkHoldScope(s string) *fault {
	for _, known := range payout.HoldScopes {
		if s == string(known) {
			return nil
		}
	}
	return &fault{faultEnum, "must be all, provider, packet or payment"}
}

// checkHoldName checks the form of a name; a packet or payment need not exist yet.
func checkHoldName(scope, name, provider string) *fault {
	var ok bool
	switch payout.HoldScope(scope) {
	case payout.HoldProvider:
		ok = name == provider
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

func placeHold(r *request) (answer, error) {
	body, err := readNewHold(r.payload, r.server.cfg.Provider.Name())
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	stored, err := r.server.cfg.Store.PlaceHold(r.ctx, w, payout.HoldScope(body.Scope), body.Name, answerHold)
	return staffAnswer(stored, err, noSuch("hold"))
}

// releaseHold releases a hold. Operations may release what holds a provider; what holds a packet or a
// payment is decided by finance.
func releaseHold(r *request) (answer, error) {
	body, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	id, text, err := r.holdInPath()
	if err != nil {
		return answer{}, err
	}
	h, _, err := r.server.cfg.Store.Hold(r.ctx, id)
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return answer{}, noSuch("hold")
	case err != nil:
		return answer{}, err
	case r.caller.key.Role != access.RoleFinance && (h.Scope == payout.HoldPacket || h.Scope == payout.HoldPayment):
		return answer{}, refuseRole(r.caller.key.Role, []access.Role{access.RoleFinance})
	}
	w.Route = r.c.Method() + " " + r.route.on(text)
	stored, err := r.server.cfg.Store.ReleaseHold(r.ctx, w, id, answerHold)
	switch {
	case errors.Is(err, payout.ErrDecisionChanged):
		return answer{}, refuse(wire.CodeDecisionChanged)
	case errors.Is(err, payout.ErrRecoveryRequired):
		return answer{}, refuse(wire.CodeRecoveryRequired)
	}
	return staffAnswer(stored, err, noSuch("hold"))
}
