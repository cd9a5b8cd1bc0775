// Package activities holds the activities of the workflows. Each changes one store or calls the
// provider, and is repeatable. Activities on our own stores retry without limit. The call that
// moves money is made at most once per noted send.
package activities

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// PacketStore is the part of MySQL that stores packets.
type PacketStore interface {
	RecordPacket(ctx context.Context, p packet.Packet, sealedSeed []byte, eligible []string) (packet.Status, error)
	PacketRow(ctx context.Context, id string) (packet.Record, error)
	Fund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error)
	RejectPacket(ctx context.Context, id string, f packet.Failure) error
	SaveFirstAnswer(ctx context.Context, id string, first packet.FirstAnswer) error
	PaymentState(ctx context.Context, id string) (payout.State, error)
	ClosingStore
}

// ClosingStore is the part of MySQL that closes packets.
type ClosingStore interface {
	BeginClosing(ctx context.Context, id string, reason packet.CloseReason) (packet.Status, error)
	CloseBooks(ctx context.Context, id string, reason packet.CloseReason) (money.Fen, error)
	FinishPacket(ctx context.Context, id string, first *packet.FirstAnswer) (bool, error)
	CountClaims(ctx context.Context, packetID string) (shares, conflicts int, err error)
	ClaimRecords
}

// ClaimStore is the part of MySQL that records claims and share conflicts.
type ClaimStore interface {
	RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error)
	RecordShareConflict(ctx context.Context, c packet.Claim, detail string) (payout.State, error)
}

// PaymentStore is the part of MySQL that stores payments.
type PaymentStore interface {
	ClaimStore
	PacketProviders(ctx context.Context, packetID string) (charge, payouts string, err error)
	BeginClaim(ctx context.Context, c packet.Claim, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (
		payout.SendStart, error)
	IsStaleClaim(ctx context.Context, c packet.Claim) (bool, error)
	PaymentState(ctx context.Context, id string) (payout.State, error)
	ExpireCharge(ctx context.Context, id string) (payout.State, error)
	BeginSend(ctx context.Context, id string, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (payout.SendStart, error)
	Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error)
	BeginClose(ctx context.Context, id string) (st payout.State, due bool, err error)
	EndClose(ctx context.Context, id string, answered bool) (payout.State, error)
	BeginQuery(ctx context.Context, orderNo string, by payout.Adapter) (time.Time, error)
	Decisions
}

// Clock returns the time of MySQL.
type Clock interface {
	Clock(ctx context.Context) (time.Time, error)
}

// Decisions is the part of MySQL that completes decisions of staff.
type Decisions interface {
	CarryOut(ctx context.Context, id string) (payout.State, error)
}

// Pool is the part of Redis that opens and closes pools.
type Pool interface {
	OpenPool(ctx context.Context, id string, shares []money.Fen, progress func(loaded int)) error
	Reject(ctx context.Context, id string, f packet.Failure) error
	ClosePool(ctx context.Context, id string, reason packet.CloseReason) (packet.PoolCloseResult, error)
	Retire(ctx context.Context, id string) error
	PoolReader
}

// ClaimPools is the part of Redis that keeps stale claims, is read before a charge is sent, and
// holds the client data of an unpaid one.
type ClaimPools interface {
	KeepStaleClaim(ctx context.Context, c packet.Claim) (packet.Claim, packet.StaleResult, error)
	View(ctx context.Context, id string) (packet.PoolView, error)
	StoreAction(ctx context.Context, id string, sealed []byte) error
}

// PoolReader reads the contents of a pool.
type PoolReader interface {
	View(ctx context.Context, id string) (packet.PoolView, error)
	EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error
	Eligible(ctx context.Context, id string) ([]string, error)
}

// Starter starts a payout run for a claim unless one is open, and reports whether it started one.
// It is idempotent.
type Starter interface {
	RestartPayout(ctx context.Context, c packet.Claim, app string) (bool, error)
}
