// Package reconcile compares what Redis and Temporal have of a packet's claims with what MySQL has.
// Watch, drain, rebuild and recovery are policies around it: each says which claims it reads and carries
// out the repairs.
package reconcile

import "hongbao/internal/packet"

// First names the store that was read first. Only the store that was read later can be shown to lack
// something: what was claimed or recorded in between is in the later one alone.
type First int

// The orders of reading. Of the zero value nothing is proposed.
const (
	ClaimsFirst   First = iota + 1 // Redis or Temporal before MySQL: MySQL may lack claims
	RecordedFirst                  // MySQL before Redis: the pool may lack claims
)

// Mode says in which MySQL a repair may be made. Its transaction checks it.
type Mode string

// The modes.
const (
	Normal     Mode = "normal"     // refused while MySQL is restored
	Recovering Mode = "recovering" // refused while MySQL is normal
)

// Kind is a kind of repair.
type Kind string

// The repairs.
const (
	// Start: MySQL lacks the claim; its payout run records it.
	Start Kind = "start"
	// Record: MySQL lacks the claim, and no run may record it.
	Record Kind = "record"
	// Conflict: MySQL has another share of the claim's user; the claim becomes a share conflict.
	Conflict Kind = "conflict"
	// PoolLacks: the pool lacks a claim of the user that MySQL has; its lane has lost something.
	PoolLacks Kind = "pool lacks"
)

// Repair is a proposal. Its transaction or script proves it again.
type Repair struct {
	Kind  Kind
	Mode  Mode
	Claim packet.Claim // of PoolLacks only the packet and the user
}

// AnyShare is the share of a claim of which only the user is known. Any claim of the user covers it.
const AnyShare = -1

// Facts are the claims of a packet that Redis or Temporal has and what MySQL has about them.
type Facts struct {
	PacketID string
	First    First
	Mode     Mode
	// Claims is a page if it was read first, and all of the pool's if MySQL was.
	Claims   []packet.Claim
	Recorded packet.Recorded
}

// Diff returns the repairs of what the store that was read later lacks.
func Diff(f Facts) []Repair {
	switch f.First {
	case ClaimsFirst:
		return lackedByMySQL(f)
	case RecordedFirst:
		return lackedByPool(f)
	}
	return nil
}

// userClaims are the claims of one user that MySQL has.
type userClaims struct {
	share, conflict *int
}

func (u userClaims) has(share int) bool {
	switch {
	case share <= AnyShare:
		return u.share != nil || u.conflict != nil
	case u.share != nil && *u.share == share:
		return true
	}
	return u.conflict != nil && *u.conflict == share
}

// lackedByMySQL: a user who grabbed again after a lost claim may have two claims of which one is
// recorded; that one does not cover the other. A user has one share conflict a packet: a
// further claim can only get its share, if that is free.
func lackedByMySQL(f Facts) []Repair {
	recorded := make(map[string]userClaims, len(f.Recorded.Claims))
	for _, c := range f.Recorded.Claims {
		u := recorded[c.UserID]
		if c.Conflict {
			u.conflict = &c.ShareIndex
		} else {
			u.share = &c.ShareIndex
		}
		recorded[c.UserID] = u
	}
	taken := make(map[int]bool, len(f.Recorded.Taken))
	for _, share := range f.Recorded.Taken {
		taken[share] = true
	}
	start := Start
	if f.Mode == Recovering {
		start = Record
	}
	var out []Repair
	for _, c := range f.Claims {
		switch u := recorded[c.UserID]; {
		case u.has(c.ShareIndex):
		case u.conflict != nil && (u.share != nil || taken[c.ShareIndex]):
		case u.share != nil:
			out = append(out, Repair{Conflict, f.Mode, c})
		default:
			out = append(out, Repair{start, f.Mode, c})
		}
	}
	return out
}

func lackedByPool(f Facts) []Repair {
	pool := make(map[string]bool, len(f.Claims))
	for _, c := range f.Claims {
		pool[c.UserID] = true
	}
	var out []Repair
	for _, c := range f.Recorded.Claims {
		if !pool[c.UserID] {
			out = append(out, Repair{PoolLacks, f.Mode, packet.Claim{PacketID: f.PacketID, UserID: c.UserID}})
			pool[c.UserID] = true // a user with a share and a conflict is one user
		}
	}
	return out
}
