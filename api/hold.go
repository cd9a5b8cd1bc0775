package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// StaffHold is a hold in answers to staff.
type StaffHold struct {
	ID     string `json:"id" doc:"The id." example:"h12"`
	Scope  string `json:"scope" enum:"all,provider,packet,payment" doc:"To what it applies."`
	Name   string `json:"name" doc:"The provider, packet or payment that is held; empty for all." example:"sandbox"`
	Kind   string `json:"kind" enum:"staff,recovery,second_success,still_moves,charge_returned" doc:"Why it was placed: by staff; by the recovery of a restored MySQL; because a cancelled payout has reached its recipient; because the provider has forgotten a cancelled payout that was in progress again; because the charge of a packet came back to its sender."`
	Reason string `json:"reason" doc:"The reason, as text for people." example:"statement of yesterday does not match"`
	By     string `json:"by" doc:"The owner of the key that placed it, or recover or ledger." example:"li.na"`
	Role   string `json:"role" enum:"finance,ops,system" doc:"The role of the key; system without a key."`
	Since  Stamp  `json:"since" doc:"When it was placed."`
	// Most holds wait for no second person and are active.
	Release    Nullable[HoldRelease] `json:"release" doc:"The release that the first of two persons asked for; null without one."`
	ReleasedBy Nullable[string]      `json:"released_by" doc:"The person who released it; null while it is active."`
	ReleasedAt Nullable[Stamp]       `json:"released_at" doc:"When it was released; null while it is active."`
}

// HoldRelease is a release that waits for a second person.
type HoldRelease struct {
	By     string `json:"by" doc:"The person who asked for it." example:"wang.fang"`
	Reason string `json:"reason" doc:"The reason."`
	At     Stamp  `json:"at" doc:"When it was asked for."`
}

// Releases is the money that may move when a hold is released.
type Releases struct {
	Amount TotalFen      `json:"amount" doc:"The sum of the parts."`
	What   string        `json:"what" doc:"The parts as an English sentence." example:"3.00 in 2 payments is paid to winners"`
	Parts  []ReleasePart `json:"parts" nullable:"false" doc:"Where the money goes; empty when nothing moves."`
}

// ReleasePart is a part of what a release lets go.
type ReleasePart struct {
	Code   string             `json:"code" enum:"charge,winners,refunds,unclaimed,remainder,house_winners,house_unclaimed,nothing_to_sender,honours,after_retry,decided" doc:"charge: is charged to the sender. winners: is paid to winners. refunds: is refunded to the sender. unclaimed: goes to winners or back to the sender. remainder: grabs have ended, and it goes back to the sender. house_winners, house_unclaimed: the charge was returned, so the house pays winners, recorded or not recorded yet; nothing_to_sender comes with them. honours: the house pays share conflicts. after_retry: a failed or returned payment, which a retry moves. decided: every payment that waits for the release of a provider."`
	Count  Nullable[int]      `json:"count" doc:"The number of payments; null when they are not counted."`
	Amount Nullable[TotalFen] `json:"amount" doc:"The amount; null when the part has none."`
}

// HeldItem is a hold with what its release lets go.
type HeldItem struct {
	Hold     StaffHold `json:"hold" doc:"The hold."`
	Releases Releases  `json:"releases" doc:"What may move when it is released."`
	// A provider's release needs one person.
	SecondPerson bool `json:"second_person" doc:"true: the release needs two persons."`
}

// StaffHolds is a page of holds.
type StaffHolds struct {
	Items      []StaffHold      `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// NewHold is the body of a new hold.
type NewHold struct {
	Scope  string `json:"scope" enum:"all,provider,packet,payment" doc:"To what it applies. all holds every provider." example:"packet"`
	Name   string `json:"name,omitempty" doc:"The provider, packet id or payment id; absent for all. A packet or payment need not exist yet." example:"1c5emuasbbm9p6qmv2gr"`
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the sender reports a stolen account"`
}

const holdPrefix = "h"

func renderHold(h payout.Hold) StaffHold {
	out := StaffHold{ID: holdPrefix + strconv.FormatInt(h.ID, 10), Scope: string(h.Scope), Name: h.Name, Kind: string(h.Kind),
		Reason: h.Reason, By: h.By, Role: h.Role, Since: Stamp(h.Since),
		ReleasedBy: textOrNull(h.ReleasedBy), ReleasedAt: stampOrNull(h.ReleasedAt)}
	if r := h.Release; r != nil && h.ReleasedAt.IsZero() {
		out.Release = orNull(&HoldRelease{By: r.By, Reason: r.Reason, At: Stamp(r.At)})
	}
	return out
}

func renderReleases(r staff.Releases) Releases {
	out := Releases{Amount: TotalFen(r.Amount()), What: r.What(), Parts: make([]ReleasePart, len(r))}
	for i, p := range r {
		out.Parts[i].Code = string(p.Code)
		if p.Count != 0 {
			out.Parts[i].Count = orNull(&p.Count)
		}
		if amount := TotalFen(p.Amount); amount != 0 {
			out.Parts[i].Amount = orNull(&amount)
		}
	}
	return out
}

// parts reverses renderReleases.
func (r Releases) parts() staff.Releases {
	out := make(staff.Releases, len(r.Parts))
	for i, p := range r.Parts {
		out[i] = staff.ReleasePart{Code: staff.ReleaseCode(p.Code), Count: valueOr(p.Count.Value, 0),
			Amount: money.Fen(valueOr(p.Amount.Value, 0))}
	}
	return out
}

func renderHeld(h payout.Hold, r staff.Releases) HeldItem {
	return HeldItem{Hold: renderHold(h), Releases: renderReleases(r), SecondPerson: r.NeedSecondPerson(h)}
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
	var page StaffHolds
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

func readNewHold(body []byte, provider string) (NewHold, error) {
	o, err := readObject(body)
	if err != nil {
		return NewHold{}, err
	}
	var h NewHold
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
		return answer{}, refuse(CodeDecisionChanged)
	case errors.Is(err, payout.ErrRecoveryRequired):
		return answer{}, refuse(CodeRecoveryRequired)
	}
	return staffAnswer(stored, err, noSuch("hold"))
}
