package mysql

import (
	"encoding/json"
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// PacketRow is a row of packets.
type PacketRow struct {
	ID             string `gorm:"primaryKey"`
	AppID          string
	SenderID       string
	Currency       string
	TotalAmount    int64
	ShareCount     int
	Split          string
	MinShare       int64
	MaxShare       int64
	Greeting       string
	GroupID        *string
	Metadata       []byte
	Eligible       []byte
	EligibleCount  int
	BodyHash       string
	Commitment     string
	SealedSeed     []byte
	Status         string
	CloseReason    *string
	FailureCode    *string
	FailureMessage *string
	FirstStatus    *int
	FirstRequestID *string
	CreatedAt      time.Time
	OpensAt        time.Time
	ExpiresAt      time.Time
	BooksClosedAt  *time.Time
	Remainder      *int64
	ClosedAt       *time.Time
	UpdatedAt      time.Time
	ClaimedCount   *int
	BestShare      *int
	LastShare      *int
	Tickets        bool
	OneWin         bool
	ChargeProvider string
	PayoutProvider string
	ChargeMethod   string
	PayWithin      int64
	SealedPayer    []byte
}

// TableName names the table.
func (PacketRow) TableName() string { return "packets" }

// NewPacketRow returns the row of a packet in status funding.
func NewPacketRow(p packet.Packet, sealed []byte, eligible []string, now time.Time) (PacketRow, error) {
	meta, err := json.Marshal(p.Metadata)
	if err != nil {
		return PacketRow{}, fmt.Errorf("encode metadata: %w", err)
	}
	var list []byte
	if eligible != nil {
		if list, err = json.Marshal(eligible); err != nil {
			return PacketRow{}, fmt.Errorf("encode eligible list: %w", err)
		}
	}
	return PacketRow{
		ID: p.ID, AppID: p.App, SenderID: p.SenderID, Currency: p.Currency, TotalAmount: int64(p.TotalAmount), ShareCount: p.ShareCount,
		Split: string(p.Split), MinShare: int64(p.MinShare), MaxShare: int64(p.MaxShare), Greeting: p.Greeting, GroupID: p.GroupID,
		ChargeProvider: p.ChargeProvider, PayoutProvider: p.PayoutProvider, ChargeMethod: p.ChargeMethod,
		PayWithin: p.PayWithin, SealedPayer: p.SealedPayer,
		Metadata: meta, Eligible: list, EligibleCount: p.EligibleCount, Tickets: p.Tickets, OneWin: p.OneWin, BodyHash: p.BodyHash,
		Commitment: p.Commitment, SealedSeed: sealed, Status: string(packet.StatusFunding), CreatedAt: p.CreatedAt.UTC(),
		OpensAt: p.OpensAt.UTC(), ExpiresAt: p.ExpiresAt.UTC(), UpdatedAt: now,
	}, nil
}

// Record returns the packet.
func (r PacketRow) Record() (packet.Record, error) {
	rec := packet.Record{
		Packet: packet.Packet{
			ID: r.ID, App: r.AppID, SenderID: r.SenderID, Currency: r.Currency, TotalAmount: money.Fen(r.TotalAmount), ShareCount: r.ShareCount,
			Split: packet.SplitMode(r.Split), MinShare: money.Fen(r.MinShare), MaxShare: money.Fen(r.MaxShare), Greeting: r.Greeting,
			ChargeProvider: r.ChargeProvider, PayoutProvider: r.PayoutProvider, ChargeMethod: r.ChargeMethod,
			PayWithin: r.PayWithin, SealedPayer: r.SealedPayer,
			GroupID: r.GroupID, Tickets: r.Tickets, OneWin: r.OneWin, BodyHash: r.BodyHash, Commitment: r.Commitment, CreatedAt: r.CreatedAt.UTC(),
			OpensAt: r.OpensAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), EligibleCount: r.EligibleCount,
		},
		Stored: packet.Status(r.Status), Reason: packet.CloseReason(OrEmpty(r.CloseReason)), SealedSeed: r.SealedSeed,
		BooksClosedAt: OrZero(r.BooksClosedAt), ClosedAt: OrZero(r.ClosedAt),
	}
	if r.Remainder != nil && r.ClaimedCount != nil {
		rec.Remainder, rec.BestShare = money.Fen(*r.Remainder), r.BestShare
		rec.ClaimedCount, rec.ClaimedAmount = *r.ClaimedCount, rec.TotalAmount-rec.Remainder
	}
	if r.FailureCode != nil {
		rec.Failure = &packet.Failure{Code: *r.FailureCode, Message: OrEmpty(r.FailureMessage)}
	}
	if r.FirstStatus != nil {
		rec.First = &packet.FirstAnswer{HTTPStatus: *r.FirstStatus, RequestID: OrEmpty(r.FirstRequestID)}
	}
	if err := json.Unmarshal(r.Metadata, &rec.Metadata); err != nil {
		return rec, fmt.Errorf("packet %s: metadata: %w", r.ID, err)
	}
	if r.Eligible != nil {
		if err := json.Unmarshal(r.Eligible, &rec.Eligible); err != nil {
			return rec, fmt.Errorf("packet %s: eligible list: %w", r.ID, err)
		}
	}
	return rec, nil
}

// Place returns the place of the packet in lists.
func (r PacketRow) Place() packet.Cursor { return packet.Cursor{At: r.CreatedAt, ID: r.ID} }

// SelectRefunded is the column of a RefundedRow: the sum of the final refunds of a packet.
const SelectRefunded = "(SELECT COALESCE(SUM(y.amount), 0) FROM payments y WHERE y.packet_id = packets.id " +
	"AND y.kind = 'r' AND y.status IN ('paid', 'paid_outside')) AS refunded"

// RefundedRow is the row of a packet with what was refunded of it.
type RefundedRow struct {
	Packet   PacketRow `gorm:"embedded"`
	Refunded int64
}

// Record returns the packet.
func (r RefundedRow) Record() (packet.Record, error) {
	rec, err := r.Packet.Record()
	rec.RefundedAmount = money.Fen(r.Refunded)
	return rec, err
}
