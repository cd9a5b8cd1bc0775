package rest

import (
	"net/url"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// thing is a kind of thing with ids.
type thing struct {
	valid          func(string) bool
	missing        func() *Refusal // nil: every valid id has a thing, and a malformed one is a fault
	about, example string
}

// things are the kinds of things in paths and cursors, by the tags of and check. A malformed id is answered like an
// unknown one.
var things = map[string]thing{
	"conflict": {isPayment(payout.KindHonour), absent(wire.CodePayoutNotFound), "The payout of a share conflict.",
		"h3q5k9v0c1m7e2u8h4r6t0001"},
	"payout": {isPayment(payout.KindPayout, payout.KindHonour), absent(wire.CodePayoutNotFound),
		"The payout's id.", "p3q5k9v0c1m7e2u8h4r6t0003"},
	"refund": {isPayment(payout.KindRefund), absent(wire.CodeRefundNotFound), "The refund's id.",
		"r3q5k9v0c1m7e2u8h4r6t0000"},
	"charge": {isPayment(payout.KindCharge), absent(wire.CodeChargeNotFound), "The charge's id.",
		"c3q5k9v0c1m7e2u8h4r6t0000"},
	"hold":        {isNumbered(HoldPrefix), none("hold"), "The hold's id.", "h12"},
	"break":       {isNumbered(BreakPrefix), none("break"), "The break's id.", "b4711"},
	"audit entry": {isNumbered(""), none("audit entry"), "The number of an audit entry.", "17"},
	"approval": {isVisibleID(maxApprovalID), none("approval"), "The approval's id.",
		"aKQ3X7M2P5R6T4V2W3Y7Z5B6CD"},
	"reconciliation": {isVisibleID(maxFieldName), none("reconciliation"), "The reconciliation's id.",
		"sKQ3X7M2P5R6T4V2W3Y7Z5B6CD"},
	"key":        {access.ValidKeyID, none("key"), "The key's id.", "k3q5v2c7m4e2"},
	"ticket key": {access.ValidKeyID, none("ticket key"), "The key's id.", "k3q5v2c7m4e2"},
	"provider": {isVisibleID(maxFieldName), none("provider"),
		"The provider's name, as in the provider member of payouts.", "sandbox"},
	"app":           {func(s string) bool { return checkAppID(s) == nil }, none("app"), "The app's id.", "shop"},
	"balance entry": {isNumbered(""), none("balance entry"), "The number of an entry.", "4711"},
	"day":           {func(s string) bool { return CheckDay(s) == nil }, DayNotFound, "The day.", "2026-02-17"},
	"user": {func(s string) bool { return CheckID(s) == nil }, nil, "The user's id, 1 to 64 bytes of UTF-8 without control characters, " +
		"percent-encoded. Compared byte by byte.", "u2"},
	"packet":   {packet.ValidID, absent(wire.CodePacketNotFound), "The packet's id.", "3q5k9v0c1m7e2u8h4r6t"},
	"campaign": {packet.ValidID, absent(wire.CodeCampaignNotFound), "The campaign's id.", "3q5k9v0c1m7e2u8h4r6t"},
}

// read reads an id in a path.
func (t thing) read(name, encoded string) (string, error) {
	text, err := url.PathUnescape(encoded)
	switch {
	case err == nil && t.valid(text):
		return text, nil
	case t.missing != nil:
		return "", t.missing()
	case err != nil:
		return "", InvalidField(name, FaultFormat, "is not percent-encoded")
	}
	f := CheckID(text)
	return "", InvalidField(name, f.Code, f.Message)
}

// check checks the form of an id, for a body or a parameter.
func (t thing) check(name string) func(string) *Fault {
	return func(s string) *Fault {
		if !t.valid(s) {
			return &Fault{FaultFormat, "must be the id of a " + name}
		}
		return nil
	}
}

func none(thing string) func() *Refusal { return func() *Refusal { return noSuch(thing) } }

func absent(code wire.Code) func() *Refusal { return func() *Refusal { return Refuse(code) } }

func isVisibleID(max int) func(string) bool {
	return func(s string) bool { return IsVisible(s, max) }
}

// maxApprovalID is the largest length of an approval id in bytes.
const maxApprovalID = 26

// BreakPrefix begins the ids of breaks.
const BreakPrefix = "b"

// HoldPrefix begins the ids of holds.
const HoldPrefix = "h"

// DayNotFound refuses a day without a close.
func DayNotFound() *Refusal {
	return &Refusal{Code: wire.CodeNotFound,
		Detail: "The ledger has no such day: there is no entry until its end, it is in the future, or it " +
			"is not written YYYY-MM-DD."}
}
