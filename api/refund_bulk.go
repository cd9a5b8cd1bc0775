package api

import (
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

var bulkRefunds = bulkOf{PaymentFilter: staff.PaymentFilter{Kind: payout.KindRefund},
	ids: "refund_ids", one: "a refund",
	missing: wire.CodeRefundNotFound,
	answer: func(b wire.BulkRetried) any {
		out := wire.BulkRefundsRetried{DryRun: b.DryRun, Count: b.Count, Amount: b.Amount, More: b.More, Items: make([]wire.BulkRefundItem,
			len(b.Items))}
		for i, item := range b.Items {
			out.Items[i] = wire.BulkRefundItem(item)
		}
		return out
	}}

// refundIDsParam is payoutIDsParam for refunds.
var refundIDsParam = param{in: "query", name: "ids", required: true, schema: "",
	example: "r3q5k9v0c1m7e2u8h4r6t0000,r3q5k9v0c1m7e2u8h4r6t0004",
	about:   "1 to 100 ids of refunds, with commas between them."}

func getRefundStatuses(r *request) (answer, error) {
	return r.statuses(bulkRefunds, func(found []wire.PayoutAt) any {
		out := wire.RefundStatuses{Items: make([]wire.RefundAt, len(found))}
		for i, one := range found {
			out.Items[i] = wire.RefundAt(one)
		}
		return out
	})
}
