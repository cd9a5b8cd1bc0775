package activities

import (
	"context"

	"hongbao/packet"
	"hongbao/payout"
)

// lapse ends a charge instead of sending it when its packet can no longer be opened: it
// has expired by the clock of its pool, by which grabs are judged, and by that of the
// books, and nothing was ever sent (Cashbook.Lapse). The sender is spared a charge that
// would only be refunded. Whatever cannot be told now is no reason to stop: a packet that
// was charged too late is refunded in full (rule R2).
func (a *Payments) lapse(ctx context.Context, id string) (st payout.State, ended bool, err error) {
	parts, err := payout.Parse(id)
	if err != nil || a.Pools == nil {
		return st, false, nil //nolint:nilerr // what is no payment is told by whoever reads its row
	}
	view, err := a.Pools.View(ctx, parts.PacketID)
	if err != nil || view.State != packet.PoolFunding || view.Now.Before(view.Packet.ExpiresAt) {
		return st, false, nil //nolint:nilerr // see above
	}
	st, err = a.Cashbook.Lapse(ctx, id)
	return st, err == nil && st.Step.Do == payout.ActionEnd, typed(err)
}
