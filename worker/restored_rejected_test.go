package worker_test

import (
	"context"
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
)

// charged is a provider that has carried a charge out after all.
type charged struct {
	*stepped
	line payout.StatementLine
}

func (c charged) Ask(ctx context.Context, op payout.Op, no string) payout.Observation {
	o := c.stepped.Ask(ctx, op, no)
	if no == c.line.OrderNo {
		o.Kind, o.Code, o.Message = payout.ObsSucceeded, "", ""
	}
	return o
}

func (c charged) Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error) {
	page, err := c.stepped.Statement(ctx, day, after)
	if page.Next == "" && day == payout.DayOf(c.line.At, c.Zone()) {
		page.Lines = append(page.Lines, c.line)
	}
	return page, err
}

// TestR13_LateChargeOfARejectedPacket: a packet was rejected before the backup, its charge
// went through after it. The recovery believes the provider, and the money goes back.
func TestR13_LateChargeOfARejectedPacket(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	r, _ := beatingRig(t)
	p := r.create(t, spec{total: 100, count: 2, sender: "poor~broke"})
	r.awaitStatus(t, p.ID, packet.StatusRejected)
	recovery := r.recovery(t)
	now := must(r.store.Clock(t.Context()))(t)
	recovery.Since = now.Add(-time.Hour)
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	recovery.Provider = charged{recovery.Provider.(*stepped),
		payout.StatementLine{Ref: "late", Op: payout.OpCharge, OrderNo: payout.OrderNo(charge, 1), Account: p.SenderID, Amount: 100, At: now}}
	told, err := recovery.Run(t.Context())
	if err != nil || !told.Ended || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	if got := must(r.store.PaymentOf(t.Context(), charge))(t); got.Status != payout.StatusPaid {
		t.Errorf("%+v", got)
	}
	refund, err := r.store.PaymentOf(t.Context(), payout.ID(payout.KindRefund, p.ID, 0))
	if err != nil || refund.Amount != 100 {
		t.Errorf("%+v, %v", refund, err)
	}
}
