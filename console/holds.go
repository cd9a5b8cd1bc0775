package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// hold is a hold as pages show it.
type hold struct{ wire.StaffHold }

// Path is the page of the packet or payment that is held; "" if there is none.
func (h hold) Path() string {
	switch {
	case h.Scope == "packet" && packet.ValidID(h.Name):
		return "/packets/" + h.Name
	case h.Scope == "payment" && len(h.Name) == idLen:
		return paymentPath(h.Name)
	}
	return ""
}

// Held is what is held, as a key of held.
func (h hold) Held() string {
	if h.Scope == "payment" && len(h.Name) == idLen && h.Name[0] == 'c' {
		return "charge"
	}
	return h.Scope
}

// Active reports whether the hold is not released.
func (h hold) Active() bool { return h.ReleasedAt == nil }

func holdsOf(items []wire.StaffHold) []hold {
	out := make([]hold, len(items))
	for i, one := range items {
		out[i] = hold{one}
	}
	return out
}

// holdScopes are the scopes of the filter, the widest first.
var holdScopes = []string{"all", "provider", "packet", "payment"}

// holdsPage is a list of holds.
type holdsPage struct {
	Active string // true, false or "" for both
	Scope  string
	Name   string
	Kind   string
	Items  []hold
	Next   string

	Release holdsRelease
}

// Tabs are the values of Active.
func (holdsPage) Tabs() []string { return []string{"true", "false", ""} }

// Scopes are the scopes of the filter.
func (holdsPage) Scopes() []string { return holdScopes }

// Kinds are the kinds of the filter.
func (holdsPage) Kinds() []string { return holdKinds }

// holdKinds are the kinds of stored holds.
var holdKinds = []string{"staff", "recovery", "second_success", "still_moves", "charge_returned", "other_account"}

// With is the query of the same list with another value of Active.
func (p holdsPage) With(active string) string {
	q := queryOf(map[string]string{"scope": p.Scope, "name": p.Name, "kind": p.Kind})
	q.Set("active", active)
	return q.Encode()
}

// holdsPage is the requested list without its items. After a bulk release that was not carried out it
// has the input.
func (v *visit) holdsPage() holdsPage {
	q := v.query
	p := holdsPage{Active: "true", Scope: q.Get("scope"), Name: q.Get("name"), Kind: q.Get("kind")}
	if q.Has("active") {
		p.Active = q.Get("active")
	}
	if sent := v.submission; sent != nil && sent.Path == "/holds/release" {
		p.Release.Reason, p.Release.Seen = sent.Reason, sent.form["seen"]
	}
	return p
}

func (v *visit) listHolds() error {
	body := v.holdsPage()
	if err := v.readHolds(&body); err != nil {
		refused, err := v.refused(err)
		if err != nil {
			return err
		}
		v.show("holds", refused, body)
		return nil
	}
	v.show("holds", http.StatusOK, body)
	return nil
}

// readHolds reads the items of a list.
func (v *visit) readHolds(body *holdsPage) error {
	f := wire.HoldFilter{Scope: body.Scope, Name: body.Name, Kind: body.Kind}
	if yes, err := strconv.ParseBool(body.Active); err == nil {
		f.Active = &yes
	}
	found, err := v.staff.ListHolds(v.r.Context(), f, client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body.Items = holdsOf(found.Items)
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	return nil
}

// activeHolds returns the active holds of any of these names: a packet, a payment.
func (v *visit) activeHolds(names ...string) (out []hold, err error) {
	yes := true
	for _, name := range names {
		found, err := v.staff.ListHolds(v.r.Context(), wire.HoldFilter{Active: &yes, Name: name}, client.Page{})
		if err != nil {
			return nil, err
		}
		out = append(out, holdsOf(found.Items)...)
	}
	return out, nil
}

// holdPage is one hold with what its release lets go.
type holdPage struct {
	Hold   hold
	Amount money.Fen // what the release lets go
	What   string    // the same in words
	// SecondPerson: the release needs two persons.
	SecondPerson bool
}

// MayRelease reports whether a role releases the hold: operations only what holds no single packet or
// payment, and needs one person.
func (b holdPage) MayRelease(role access.Role) bool {
	return role == access.RoleFinance || role == access.RoleOps && !b.SecondPerson && (b.Hold.Scope == "all" || b.Hold.Scope == "provider")
}

// AskedBy reports whether a person is the first of two to release the hold.
func (b holdPage) AskedBy(owner string) bool {
	return b.Hold.Release != nil && access.SamePerson(b.Hold.Release.By, owner)
}

// Asks reports whether the form of a person asks another one to release the hold as well.
func (b holdPage) Asks(owner string) bool {
	return b.SecondPerson && (b.Hold.Release == nil || b.AskedBy(owner))
}

// outcome returns message and tone for a release that was just submitted; none for a request that no
// longer waits.
func (b holdPage) outcome(done, tone string) (key, toneNow string) {
	switch {
	case done != "done.release_waiting":
		return done, tone
	case b.Hold.Active() && b.Hold.Release != nil:
		return done, "warn"
	}
	return "", ""
}

func (v *visit) showHold() error {
	found, err := v.staff.GetHold(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	v.show("hold", http.StatusOK, holdPage{Hold: hold{found.Hold}, Amount: found.Releases.Amount,
		What: releasesText(v.lang, found.Releases), SecondPerson: found.SecondPerson})
	return nil
}

// codeReleaseChanged is decision_changed of a release: unlike an approval it cannot be rejected or
// withdrawn.
const codeReleaseChanged wire.Code = "release_changed"

// releaseHold releases a hold, or asks another person to release it as well.
func (v *visit) releaseHold() error {
	id := v.r.PathValue("id")
	after, err := v.staff.ReleaseHold(v.r.Context(), id, wire.Reason{Reason: v.reason()}, v.key())
	if err != nil {
		p := v.problemOf(err)
		if p.Code == wire.CodeDecisionChanged {
			p.Code = codeReleaseChanged
		}
		return v.showFormAgain(p)
	}
	done := "release_hold"
	if after.Hold.ReleasedAt == nil {
		done = "release_waiting"
	}
	return v.redirectDone("/holds/"+url.PathEscape(id), done)
}

// placeHold holds a packet or a payment and returns to its page.
func (v *visit) placeHold(scope, page string) error {
	name := v.r.PathValue("id")
	_, err := v.staff.PlaceHold(v.r.Context(), wire.NewHold{Scope: scope, Name: name, Reason: v.reason()}, v.key())
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone(page+url.PathEscape(name), "hold_"+scope)
}

// holdPacket holds a packet.
func (v *visit) holdPacket() error { return v.placeHold("packet", "/packets/") }

// heldByStaff reports whether one of the holds was placed by staff on this name: another one changes
// nothing.
func heldByStaff(holds []hold, name string) bool {
	for _, h := range holds {
		if h.Name == name && h.Kind == "staff" {
			return true
		}
	}
	return false
}

// holdsDue are the active holds of a scope, for the overview.
type holdsDue struct {
	Scope  string
	Count  int64
	More   bool       // Count is a lower bound
	Oldest *wire.Time // nil with More
}

// maxHolds is how many holds of a scope the overview counts: the largest page of the API.
const maxHolds = 200

// readHoldsDue counts the active holds of packets and of payments.
func readHoldsDue(ctx context.Context, staff *client.Staff) ([]holdsDue, error) {
	yes, out := true, []holdsDue{}
	for _, scope := range []string{"packet", "payment"} {
		found, err := staff.ListHolds(ctx, wire.HoldFilter{Active: &yes, Scope: scope}, client.Page{Limit: maxHolds})
		if err != nil {
			return nil, err
		}
		due := holdsDue{Scope: scope, Count: int64(len(found.Items)), More: found.NextCursor != nil}
		switch {
		case due.Count == 0:
			continue
		case !due.More:
			due.Oldest = &found.Items[due.Count-1].Since
		}
		out = append(out, due)
	}
	return out, nil
}

// releasesText says in words what a release lets go. Of a code without words the API's sentence is
// shown: another version may have written it.
func releasesText(l language, r wire.Releases) string {
	if len(r.Parts) == 0 {
		return say(l, "hold.nothing")
	}
	parts := make([]string, len(r.Parts))
	for i, p := range r.Parts {
		amount := ""
		if p.Amount != nil {
			amount = yuan(*p.Amount)
		}
		switch {
		case p.Count != nil && *p.Count == 1:
			amount = say(l, "hold.in_one", amount)
		case p.Count != nil:
			amount = say(l, "hold.in_many", amount, grouped(*p.Count))
		}
		text, err := translate(l, "releases."+p.Code)
		if err != nil {
			return r.What
		}
		parts[i] = strings.Replace(text, "%s", amount, 1)
	}
	return strings.Join(parts, separator(l, ";"))
}
