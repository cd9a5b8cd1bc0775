package reconcile

import (
	"context"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// List is a list of a store that is read in pages.
type List[T any] struct {
	Limit int // items a page
	Read  func(ctx context.Context, after packet.Cursor, limit int) ([]T, error)
	At    func(T) packet.Cursor // the place of an item
}

// Page returns the page after a place, and the place after which the next begins: the zero Cursor after
// the last page.
func (l List[T]) Page(ctx context.Context, after packet.Cursor) (page []T, next packet.Cursor, err error) {
	page, err = l.Read(ctx, after, l.Limit)
	if err != nil || len(page) < l.Limit {
		return page, next, err
	}
	if next = l.At(page[len(page)-1]); !next.At.After(after.At) && next.ID == after.ID { // a page full of one millisecond
		next.At = after.At.Add(time.Millisecond)
	}
	return page, next, nil
}

// Each calls do with every page. Errors: those of the store and of do, which end it.
func (l List[T]) Each(ctx context.Context, do func([]T) error) error {
	for after := (packet.Cursor{}); ; {
		page, next, err := l.Page(ctx, after)
		if err == nil && len(page) > 0 {
			err = do(page)
		}
		if err != nil || next == (packet.Cursor{}) {
			return err
		}
		after = next
	}
}

// LivePackets lists the packets of a lane in Redis. Those created in one millisecond may be on two pages.
func LivePackets(read func(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error),
	lane, limit int) List[packet.LivePacket] {
	return List[packet.LivePacket]{Limit: limit,
		Read: func(ctx context.Context, after packet.Cursor, limit int) ([]packet.LivePacket, error) {
			return read(ctx, lane, after.At, limit)
		},
		At: func(p packet.LivePacket) packet.Cursor { return packet.Cursor{At: p.CreatedAt} }}
}

// ValidIDs returns the ids of live packets that are ids of packets.
func ValidIDs(live []packet.LivePacket) []string {
	ids := make([]string, 0, len(live))
	for _, p := range live {
		if packet.ValidID(p.ID) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// UnfinishedStore lists unfinished packets.
type UnfinishedStore interface {
	UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor, limit int) ([]packet.UnfinishedPacket, error)
}

// UnfinishedStatuses are the statuses of packets that have not ended.
var UnfinishedStatuses = []packet.Status{packet.StatusFunding, packet.StatusOpen, packet.StatusClosing}

// UnfinishedPackets lists the packets of a status that have not ended, in the order of expiry.
func UnfinishedPackets(s UnfinishedStore, status packet.Status, limit int) List[packet.UnfinishedPacket] {
	return List[packet.UnfinishedPacket]{Limit: limit,
		Read: func(ctx context.Context, after packet.Cursor, limit int) ([]packet.UnfinishedPacket, error) {
			return s.UnfinishedPackets(ctx, status, after, limit)
		},
		At: func(u packet.UnfinishedPacket) packet.Cursor { return packet.Cursor{At: u.ExpiresAt, ID: u.ID} }}
}

// WaitingStore lists waiting payments.
type WaitingStore interface {
	WaitingLists(ctx context.Context) ([]payout.WaitingList, error)
	WaitingPayments(ctx context.Context, kind payout.Kind, status payout.Status, after packet.Cursor, limit int) ([]payout.OpenPayment, error)
}

// WaitingPayments lists the payments of a kind and status, the oldest first.
func WaitingPayments(s WaitingStore, of payout.WaitingList, limit int) List[payout.OpenPayment] {
	return List[payout.OpenPayment]{Limit: limit,
		Read: func(ctx context.Context, after packet.Cursor, limit int) ([]payout.OpenPayment, error) {
			return s.WaitingPayments(ctx, of.Kind, of.Status, after, limit)
		},
		At: func(p payout.OpenPayment) packet.Cursor { return packet.Cursor{At: p.CreatedAt, ID: p.ID} }}
}
