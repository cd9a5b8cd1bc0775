package wire

import (
	"hongbao/internal/money"
)

// StaffHold is a hold in answers to staff.
type StaffHold struct {
	ID     string `json:"id" doc:"The id." example:"h12"`
	Scope  string `json:"scope" enum:"all,provider,packet,payment" doc:"To what it applies."`
	Name   string `json:"name" doc:"The provider, packet or payment that is held; empty for all." example:"sandbox"`
	Kind   string `json:"kind" enum:"staff,recovery,second_success,still_moves,charge_returned,other_account" doc:"Why it was placed: by staff; by the recovery of a restored MySQL; because a cancelled payout has reached its recipient; because the provider has forgotten a cancelled payout that was in progress again; because the charge of a packet was returned to its sender; because a process was started, or a notification came, with another account of the provider."`
	Reason string `json:"reason" doc:"The reason, as text for people." example:"statement of yesterday does not match"`
	By     string `json:"by" doc:"The owner of the key that placed it, or recover or ledger." example:"li.na"`
	Role   string `json:"role" enum:"finance,ops,system" doc:"The role of the key; system without a key."`
	Since  Time   `json:"since" doc:"When it was placed."`
	// Most holds wait for no second person and are active.
	Release    *HoldRelease `json:"release" doc:"The release that the first of two persons asked for; null without one."`
	ReleasedBy *string      `json:"released_by" doc:"The person who released it; null while it is active."`
	ReleasedAt *Time        `json:"released_at" doc:"When it was released; null while it is active."`
}

// HoldFilter selects holds; empty members select all.
type HoldFilter struct {
	Active *bool  `json:"active,omitempty" doc:"true: only active holds; false: only released ones." example:"true"`
	Scope  string `json:"scope,omitempty" check:"code" doc:"Only holds of this scope." example:"packet"`
	Name   string `json:"name,omitempty" check:"code" doc:"Only holds of this provider, packet or payment." example:"sandbox"`
	Kind   string `json:"kind,omitempty" check:"code" doc:"Only holds of this kind." example:"recovery"`
}

// HoldRelease is a release that waits for a second person.
type HoldRelease struct {
	By     string `json:"by" doc:"The person who asked for it." example:"wang.fang"`
	Reason string `json:"reason" doc:"The reason."`
	At     Time   `json:"at" doc:"When it was asked for."`
}

// Releases is the money that may move when a hold is released.
type Releases struct {
	Amount money.Fen     `json:"amount" doc:"The sum of the parts." fen:"sum"`
	What   string        `json:"what" doc:"The parts as an English sentence." example:"3.00 in 2 payments is paid to winners"`
	Parts  []ReleasePart `json:"parts" nullable:"false" doc:"Where the money goes; empty when nothing moves."`
}

// ReleasePart is a part of what a release lets go.
type ReleasePart struct {
	Code   string     `json:"code" enum:"charge,winners,refunds,unclaimed,remainder,house_winners,house_unclaimed,nothing_to_sender,honours,after_retry,decided" doc:"charge: is charged to the sender. winners: is paid to winners. refunds: is refunded to the sender. unclaimed: goes to winners or back to the sender. remainder: grabs have ended, and it goes back to the sender. house_winners, house_unclaimed: the charge was returned, so the house pays winners, recorded or not recorded yet; nothing_to_sender comes with them. honours: the house pays share conflicts. after_retry: a failed or returned payment, which a retry moves. decided: every payment that waits for the release of a provider."`
	Count  *int       `json:"count" doc:"The number of payments; null when they are not counted."`
	Amount *money.Fen `json:"amount" doc:"The amount; null when the part has none." fen:"sum"`
}

// HeldItem is a hold with what its release lets go.
type HeldItem struct {
	Hold     StaffHold `json:"hold" doc:"The hold."`
	Releases Releases  `json:"releases" doc:"What may move when it is released."`
	// Of a provider only the balances of apps need two persons, after a recovery.
	SecondPerson bool `json:"second_person" doc:"true: the release needs two persons."`
}

// NewHold is the body of a new hold.
type NewHold struct {
	Scope  string `json:"scope" enum:"all,provider,packet,payment" doc:"To what it applies. all holds every provider." example:"packet"`
	Name   string `json:"name,omitempty" doc:"The provider, packet id or payment id; absent for all. A packet or payment need not exist yet." example:"1c5emuasbbm9p6qmv2gr"`
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the sender reports a stolen account"`
}

// BulkHoldFilter is the filter of a bulk release of holds.
type BulkHoldFilter struct {
	Scope string   `json:"scope,omitempty" enum:"packet,payment" doc:"Holds of this scope; by default both."`
	Name  string   `json:"name,omitempty" check:"code" doc:"Holds of this packet or payment."`
	Kind  string   `json:"kind,omitempty" enum:"staff,recovery,second_success,still_moves,charge_returned,other_account" doc:"Holds of this kind." example:"recovery"`
	IDs   []string `json:"hold_ids,omitempty" nullable:"false" maxItems:"200" check:"hold" alone:"true" doc:"Exactly these holds; no other member is then allowed."`
}

// BulkRelease is the body of a bulk release.
type BulkRelease struct {
	Filter BulkHoldFilter `json:"filter" doc:"The filter of the holds, with at least one member."`
	Reason string         `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"recovery of May 3 is checked"`
	DryRun bool           `json:"dry_run" required:"false" default:"true" doc:"true: return what would happen and release nothing."`
}

// BulkReleaseItem is the result for one hold.
type BulkReleaseItem struct {
	ID       string   `json:"hold_id" doc:"The hold." example:"h12"`
	Scope    string   `json:"scope" enum:"packet,payment" doc:"The scope of the hold."`
	Name     string   `json:"name" doc:"The packet or payment that is held."`
	Releases Releases `json:"releases" doc:"What moves when it is released."`
	Result   string   `json:"result" enum:"would_release,released,waiting,skipped" doc:"would_release: in a dry run. released: the hold is released. waiting: a second person has to release it too, or would have to in a dry run. skipped: not possible."`
	Code     *string  `json:"code" doc:"Of skipped: decision_changed (the first person was shown something else and has to request it again), forbidden (your key and the key of the first person do not count as two persons) or recovery_required; otherwise null."`
	AskedBy  *string  `json:"asked_by" doc:"The person who asked for the release; null without one."`
}

// BulkReleased is the answer to a bulk release.
type BulkReleased struct {
	DryRun   bool              `json:"dry_run" doc:"true: nothing was released."`
	Count    int               `json:"count" minimum:"0" doc:"How many are released or wait for a second person, or would in a dry run."`
	Releases Releases          `json:"releases" doc:"The sum of what these move. Several holds on one name count once."`
	More     bool              `json:"more" doc:"true: more than the 200 holds of one call match."`
	Items    []BulkReleaseItem `json:"items" nullable:"false" doc:"Newest hold first."`
}
