package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// deliverAction seals client data. That of a recipient is settled with its observation; that of an unpaid charge
// is stored where the API reads it, and Until says that it is there. Lost, the data is obtained again.
func (a *Payments) deliverAction(ctx context.Context, orderNo string, seen *payout.Observation) {
	seen.SealedAction = nil
	if seen.Kind != payout.ObsNeedsRecipient {
		seen.Until = time.Time{}
	}
	if seen.Action == nil || seen.Kind != payout.ObsNeedsPayer && seen.Kind != payout.ObsNeedsRecipient {
		return
	}
	packetID, sealed, err := a.sealAction(orderNo, *seen.Action)
	switch {
	case err != nil:
	case seen.Kind == payout.ObsNeedsRecipient:
		seen.SealedAction = sealed
	case a.Pools != nil:
		if err = a.Pools.StoreAction(ctx, packetID, sealed); err == nil {
			seen.Until = seen.Action.ValidUntil
		}
	}
	if err != nil {
		logger(ctx).Warn("Client data of a payment not delivered; it is obtained again.", "order_no", orderNo, "error", err)
	}
}

// sealAction seals client data of an order with the key of its packet, which it returns too.
func (a *Payments) sealAction(orderNo string, action payout.ClientAction) (packetID string, sealed []byte, err error) {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return "", nil, err
	}
	raw, err := json.Marshal(action)
	if err != nil {
		return "", nil, fmt.Errorf("encode client data of order %s: %w", orderNo, err)
	}
	sealed, err = packet.Seal(a.SeedKey, parts.PacketID, raw)
	return parts.PacketID, sealed, err
}

// actionLost reports whether the pool of an unpaid packet has lost the client data, by a rebuild.
func (a *Payments) actionLost(ctx context.Context, packetID string) bool {
	if a.Pools == nil {
		return false
	}
	view, err := a.Pools.View(ctx, packetID)
	return err == nil && view.State == packet.PoolFunding && len(view.Action) == 0
}
