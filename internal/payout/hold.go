package payout

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrHeld means that a hold stops the action. Nothing was changed. HeldError names the hold.
var ErrHeld = errors.New("held")

// ErrRecoveryRequired means that only another recovery ends a hold: a packet whose charge is not known
// has no shares, and its winners cannot be recorded before them.
var ErrRecoveryRequired = errors.New("only another recovery of MySQL ends this hold")

// HoldScope says to what a hold applies.
type HoldScope string

// The scopes.
const (
	HoldAll      HoldScope = "all"      // every payment of the installation; Name is empty
	HoldProvider HoldScope = "provider" // the payments of a provider
	HoldPacket   HoldScope = "packet"   // a packet and its payments
	HoldPayment  HoldScope = "payment"  // one payment, by its derived id, whether its row exists or not
)

// HoldScopes are all scopes, the widest first.
var HoldScopes = []HoldScope{HoldAll, HoldProvider, HoldPacket, HoldPayment}

// HoldKind says why a hold was placed.
type HoldKind string

// The kinds.
const (
	// HoldStaff: placed by staff.
	HoldStaff HoldKind = "staff"
	// HoldRestored: MySQL was restored from a backup. It is derived from the heartbeat, not
	// stored; only the end of a recovery releases it.
	HoldRestored HoldKind = "mysql_restored"
	// HoldRecovery: a recovery could not decide about a packet.
	HoldRecovery HoldKind = "recovery"
	// HoldSecondSuccess: a cancelled payout has reached its recipient after all (rule R5); its refund
	// is held.
	HoldSecondSuccess HoldKind = "second_success"
	// HoldChargeReturned: the charge of a packet was returned to its sender. Its grabs end, and what is
	// owed would be paid with the money of the house. It stays on refunds of the packet, derived from
	// the charge: nothing goes to the sender any more.
	HoldChargeReturned HoldKind = "charge_returned"
	// HoldStillMoves: the money of a cancelled payout may still move, so its refund waits. It is
	// derived from the payout's order numbers and ends with the answer to a query; it is stored when the
	// provider has forgotten a number, which no query answers any more.
	HoldStillMoves HoldKind = "still_moves"
	// HoldOtherAccount: a process was started with another account or kind of adapter than the one
	// that the provider's name is bound to, or a notification is of another account.
	HoldOtherAccount HoldKind = "other_account"
)

// Hold stops actions on what it names, until it is released.
type Hold struct {
	ID    int64 // 0: derived, not stored
	Scope HoldScope
	Name  string // the provider's name, the packet's id or the payment's id
	Kind  HoldKind
	// Cause is the observation that placed it, for instance an order number. The same observation
	// does not place a released hold again.
	Cause  string
	Reason string // for staff
	By     string // owner of the key, or the part of the system that placed it
	Role   string // role of the key, or "system"
	Since  time.Time
	// Release is the first of two persons' wish to release it; nil without one.
	Release *HoldRelease
	// ReleasedAt is zero while the hold is active.
	ReleasedAt time.Time
	ReleasedBy string
}

// HoldRelease is a release that waits for a second person.
type HoldRelease struct {
	By, Role, Reason string
	KeyID            string // the API key of that person
	At               time.Time
	// Shown is the hash of what the first person was shown, see Releases.Hash.
	Shown []byte
}

// HeldError is an ErrHeld with its hold. It is an ErrMySQLRestored too when the hold is derived from
// a restored MySQL.
type HeldError struct{ Hold Hold }

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("held: %s %s: %s", e.Hold.Scope, e.Hold.Name, e.Hold.Reason)
}

// Is matches ErrHeld and ErrMySQLRestored.
func (e *HeldError) Is(target error) bool {
	return target == ErrHeld || target == ErrMySQLRestored && e.Hold.Kind == HoldRestored
}

// HoldAction is what a hold may stop.
type HoldAction string

// The actions. What is not listed goes on under every hold: recording a packet with its charge,
// ending its grabs, queries, settling, notifications and the proof.
const (
	ActionRecordClaim HoldAction = "record a claim or a share conflict"
	ActionSendPayment HoldAction = "note a send, debit the balance of an app and its approval"
	ActionOpenPacket  HoldAction = "write shares, open the pool"
	ActionEndUnopened HoldAction = "reject, lapse, close a packet that never opened"
	ActionCloseBooks  HoldAction = "close the books"
	ActionDecide      HoldAction = "retry, cancel, carry out, and their approval"
	ActionResolve     HoldAction = "mark paid, state what moved, cancel a refund, withdraw, reject an approval, release a hold"
	ActionChangePool  HoldAction = "rebuild a lane, recall by staff"
	ActionMaintain    HoldAction = "make packets of campaigns, delete old rows"
)

// HoldActions are all actions, in the order of the documents' table.
var HoldActions = []HoldAction{ActionRecordClaim, ActionSendPayment, ActionOpenPacket, ActionEndUnopened, ActionCloseBooks, ActionDecide,
	ActionResolve, ActionChangePool, ActionMaintain}

// stops says which actions a hold of a scope stops. A hold of a restored MySQL stops all of them.
// ActionOpenPacket and ActionEndUnopened look for a hold of the packet's charge.
var stops = map[HoldScope][]HoldAction{
	HoldAll:      HoldActions,
	HoldProvider: {ActionSendPayment},
	HoldPacket:   {ActionSendPayment, ActionOpenPacket, ActionEndUnopened, ActionCloseBooks, ActionDecide},
	HoldPayment:  {ActionSendPayment, ActionOpenPacket, ActionEndUnopened, ActionDecide},
}

// Stops reports whether an active hold stops an action on what it names. A hold of staff on
// everything acts as a hold on every provider: the database knows everything then.
func (h Hold) Stops(action HoldAction) bool {
	scope := h.Scope
	if scope == HoldAll && h.Kind != HoldRestored {
		scope = HoldProvider
	}
	return slices.Contains(stops[scope], action)
}

// RecoveryHold holds a packet about which a recovery could not decide. subject is the order number or
// payment id in question, b the state of the restored MySQL: another recovery that does not know
// either holds the packet again.
func RecoveryHold(packetID, subject, detail string, b MySQLState) Hold {
	return Hold{Scope: HoldPacket, Name: packetID, Kind: HoldRecovery, Cause: fmt.Sprintf("%s after %d", subject, b.Known), By: "recover",
		Role: "system", Reason: subject + ": " + detail}
}

// OfLeftCharge reports whether the last recovery placed the hold because it did not know what became
// of the packet's charge.
func (h Hold) OfLeftCharge(b MySQLState) bool {
	charge := OrderNo(ID(KindCharge, h.Name, 0), 1)
	return h.Scope == HoldPacket && h.Kind == HoldRecovery && h.Cause == RecoveryHold(h.Name, charge, "", b).Cause
}

// RecoveredHold holds a provider when a recovery has ended: a hold that was placed since the backup
// is not known any more.
func RecoveredHold(provider string, b MySQLState) Hold {
	h := Hold{Scope: HoldProvider, Name: provider, Kind: HoldRecovery, Cause: fmt.Sprintf("recovered to %d", b.Heartbeat), By: "recover",
		Role: "system", Reason: "MySQL was recovered: check what was held before the restore, then release"}
	if h.OfBalances() {
		h.Reason = "after a recovery two persons of finance compare the balances of apps with the bank statement and release this"
	}
	return h
}

// OfBalances reports whether a recovery holds the balances of apps, which may lack credits and debits since the
// backup. Two persons of finance release such a hold.
func (h Hold) OfBalances() bool {
	return h.Scope == HoldProvider && h.Name == BalanceProvider && h.Kind == HoldRecovery
}

// Hold is the hold that a settlement places; nil without one. A cancelled payout has reached its
// recipient, or may and is forgotten: the refund of its cancellation must not leave as well. Or the
// charge was returned, so the packet has no money.
func (s Settlement) Hold() *Hold {
	p := s.Payment
	if p.Kind == KindCharge && s.Attempt.ReturnBooked {
		return &Hold{Scope: HoldPacket, Name: p.PacketID, Kind: HoldChargeReturned, Cause: s.Attempt.OrderNo, By: "ledger", Role: "system",
			Reason: "the sender has the charge back: payouts would be paid with the money of the house"}
	}
	if p.Kind != KindPayout || p.Status != StatusCancelled {
		return nil
	}
	held := &Hold{Scope: HoldPayment, Name: ID(KindRefund, p.PacketID, p.ShareIndex+1), Cause: s.Attempt.OrderNo, By: "ledger", Role: "system"}
	for _, b := range s.Breaks {
		if b.Kind == BreakSecondSuccess {
			held.Kind, held.Reason = HoldSecondSuccess, "the cancelled payout has reached its recipient: "+b.Detail
			return held
		}
	}
	if s.Attempt.Forgotten && s.Attempt.mayMove() {
		held.Kind = HoldStillMoves
		held.Reason = "the provider has forgotten the cancelled payout, which it last reported as " + string(s.Attempt.Statement)
		return held
	}
	return nil
}

// Action is what a decision does to a payment of a kind, for its holds. A query goes on under every
// hold.
func (k DecisionKind) Action(of Kind) HoldAction {
	switch {
	case k == DecisionQuery:
		return ""
	case k == DecisionMarkPaid, k == DecisionMoved, k == DecisionNotMoved, k == DecisionWrittenOff, k == DecisionCredit,
		k == DecisionCancel && of == KindRefund: // nothing is sent
		return ActionResolve
	case k == DecisionDebit: // money leaves the balance
		return ActionSendPayment
	}
	return ActionDecide
}
