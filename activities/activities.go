// Package activities holds the steps of the workflows: each does one thing to
// one store or to the provider and may be repeated at any time. Steps on our
// own stores retry for ever; the one call that moves money is made at most once
// a noted send.
package activities

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Books is the part of MySQL that knows packets.
type PacketStore interface {
	RecordPacket(ctx context.Context, p packet.Packet, sealedSeed []byte, eligible []string, provider string) (packet.Status, error)
	Packet(ctx context.Context, id string) (packet.Record, error)
	Fund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error)
	RejectPacket(ctx context.Context, id string, f packet.Failure) error
	SaveFirstAnswer(ctx context.Context, id string, first packet.FirstAnswer) error
	ClosingStore
}

// Closing is the part of MySQL that ends packets.
type ClosingStore interface {
	BeginClosing(ctx context.Context, id string, reason packet.CloseReason) (packet.Status, error)
	CorrectReason(ctx context.Context, id string, reason packet.CloseReason) error
	CloseBooks(ctx context.Context, id string) (money.Fen, error)
	FinishPacket(ctx context.Context, id string, first *packet.FirstAnswer) (bool, error)
	CountRecordedClaims(ctx context.Context, packetID string) (int, error)
	UnrecordedClaims(ctx context.Context, packetID string, claims []packet.Claim) ([]packet.Claim, error)
	ShareConflictUsers(ctx context.Context, packetID string) ([]string, error)
	ClaimStore
}

// ClaimStore is the part of MySQL that books claims, and what could not be booked.
type ClaimStore interface {
	RecordClaim(ctx context.Context, c packet.Claim, provider string) (payout.State, error)
	RecordShareConflict(ctx context.Context, c packet.Claim, provider, detail string) (payout.State, error)
}

// Cashbook is the part of MySQL that knows payments.
type PaymentStore interface {
	ClaimStore
	BeginClaim(ctx context.Context, c packet.Claim, provider string, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (
		payout.SendStart, error)
	IsStaleClaim(ctx context.Context, c packet.Claim) (bool, error)
	PaymentState(ctx context.Context, id string) (payout.State, error)
	ExpireCharge(ctx context.Context, id string) (payout.State, error)
	BeginSend(ctx context.Context, id string, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (payout.SendStart, error)
	Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error)
	BeginQuery(ctx context.Context, orderNo string, by payout.Adapter) (time.Time, error)
	Decisions
}

// Clock tells the time of the books: MySQL's.
type Clock interface {
	Clock(ctx context.Context) (time.Time, error)
}

// Decisions is the part of MySQL that ends people's decisions.
type Decisions interface {
	CarryOut(ctx context.Context, id string) (payout.State, error)
}

// Pool is the part of Redis that opens and ends pools.
type Pool interface {
	OpenPool(ctx context.Context, id string, shares []money.Fen, progress func(loaded int)) error
	Reject(ctx context.Context, id string, f packet.Failure) error
	ClosePool(ctx context.Context, id string, reason packet.CloseReason) (packet.PoolCloseResult, error)
	Retire(ctx context.Context, id string) error
	PoolReader
}

// ClaimPools is the part of Redis that is asked before a claim is booked late (rule R9).
type ClaimPools interface {
	Lanes() int
	Claim(ctx context.Context, id, user string) (packet.Claim, bool, error)
	View(ctx context.Context, id string) (packet.PoolView, error)
	HaltLane(ctx context.Context, lane int, reason packet.LaneReason) error
}

// PoolReader reads what a pool holds.
type PoolReader interface {
	View(ctx context.Context, id string) (packet.PoolView, error)
	EachClaim(ctx context.Context, id string, tell func([]packet.Claim) error) error
	Eligible(ctx context.Context, id string) ([]string, error)
}

// Provider is a payment API: what it is called, what it remembers, how to tell
// it to move money and how to ask. Send and Ask never return an error: silence
// and nonsense are observations too.
type Provider interface {
	Name() string
	Limits() payout.Limits
	EncodeRequest(payout.Instruction) ([]byte, error)
	Send(ctx context.Context, o payout.Order) payout.Observation
	Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation
}

// Starter gives a claim a run unless one is open, and reports whether it started
// one; starting it twice is harmless.
type Starter interface {
	RestartPayout(ctx context.Context, c packet.Claim, app string) (bool, error)
}
