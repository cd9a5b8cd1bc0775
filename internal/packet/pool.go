package packet

import (
	"time"

	"hongbao/internal/money"
)

// PoolState is the state of a packet's pool, its grabbable state in Redis.
type PoolState string

// The states of a pool.
const (
	PoolFunding  PoolState = "funding"  // staged; the charge has no final answer yet
	PoolOpening  PoolState = "opening"  // shares are being loaded in chunks
	PoolOpen     PoolState = "open"     // grabs are decided here (not before opens_at)
	PoolClosing  PoolState = "closing"  // no more grabs
	PoolClosed   PoolState = "closed"   // only in a tombstone
	PoolRejected PoolState = "rejected" // charge declined
)

// FirstAnswer is the first answer to the create request; a repeat returns it again.
type FirstAnswer struct {
	HTTPStatus int
	RequestID  string
}

// PoolView is a pool as read from Redis at one moment.
type PoolView struct {
	// Packet is the created packet. Of a retired pool only ID and BodyHash are set.
	Packet Packet
	State  PoolState
	// Retired: only the tombstone is left; MySQL has the rest.
	Retired        bool
	RemainingCount int
	ClaimedCount   int
	ClaimedAmount  money.Fen
	// KeptCount counts claims without a share that the pool got since its rebuild.
	KeptCount int
	// BestShare is the share of the luckiest claim so far (Luckier); nil before the first claim.
	BestShare *int
	Reason    CloseReason // while closing
	Failure   *Failure    // of a rejected packet
	// Action is the sealed client data with which the sender pays; empty: none, or it was withdrawn.
	Action []byte
	// First is nil until the create request was answered for the first time.
	First *FirstAnswer
	// BusyUntil is until when another request is creating this packet (Redis TIME).
	BusyUntil time.Time
	// Now is Redis TIME at the moment of reading.
	Now time.Time
}

// Status derives the API status from the pool.
func (v PoolView) Status() Status {
	switch v.State {
	case PoolFunding, PoolOpening:
		return StatusFunding
	case PoolRejected:
		return StatusRejected
	case PoolClosing:
		return StatusClosing
	case PoolClosed:
		return StatusClosed
	}
	switch {
	case v.Now.Before(v.Packet.OpensAt):
		return StatusScheduled
	case v.RemainingCount == 0:
		return StatusSoldOut
	case v.Packet.expired(v.Now): // grabs are refused already, the flag follows
		return StatusClosing
	default:
		return StatusOpen
	}
}

// BestLuck returns the share with the best luck; nil without a claim. It is final when nothing more
// can be claimed.
func (v PoolView) BestLuck() (share *int, final bool) {
	if v.Retired || v.State != PoolClosing && (v.State != PoolOpen || v.RemainingCount > 0) {
		return nil, false
	}
	return v.BestShare, true
}

// StageResult is the answer to staging a packet.
type StageResult struct {
	View PoolView
	// Existed: the packet key was there before, made by an earlier request.
	Existed bool
	// SameBody: the earlier request had the same body hash. Always true when Existed is false.
	SameBody bool
}

// GrabAnswer is the answer to one grab.
type GrabAnswer struct {
	Result  GrabResult
	Claim   Claim     // of won and replayed
	OpensAt time.Time // of not_open_yet; zero while funding
	// WonBefore: not eligible, because the user has won in another packet of the campaign.
	WonBefore bool
}

// PoolCloseResult is the result of close.lua.
type PoolCloseResult struct {
	// NotYet is positive when expires_at lies ahead by Redis TIME: the time to wait.
	NotYet time.Duration
	// Gone: the pool is not in Redis (retired, or lost).
	Gone          bool
	Reason        CloseReason
	ClaimedCount  int
	ClaimedAmount money.Fen
}
