package api

import (
	"context"
	"slices"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// payoutColumns and refundColumns are the columns of the files of payouts and refunds.
var (
	payoutColumns = fileColumns{names: slices.Concat([]string{"id", "packet_id", "user_id", "share_index"}, paymentColumns)}
	refundColumns = fileColumns{names: slices.Concat([]string{"id", "packet_id", "kind", "payout_id", "user_id"}, paymentColumns)}
)

// paymentColumns are the columns that payouts and refunds share.
var paymentColumns = []string{
	"amount", "currency", "status", "order_no", "provider", "provider_ref",
	"failure_code", "failure_message", "failure_retryable", "failure_next_action", "attempt_count", "created_at", "updated_at", "workflow_id",
	"workflow_url", "amount_yuan", "created_local", "updated_local", "local_zone",
}

func exportPayouts(r *request) (answer, error) {
	return exportPayments(r, payout.KindPayout, "payouts", payoutColumns, r.server.renderPayout)
}

func exportRefunds(r *request) (answer, error) {
	return exportPayments(r, payout.KindRefund, "refunds", refundColumns, r.server.renderRefund)
}

// exportPayments answers with the file of the payments of one kind.
func exportPayments[T any](r *request, kind payout.Kind, name string, columns fileColumns, render func(staff.PaymentRow) T,
) (answer, error) {
	now, store := r.server.cfg.Now().UTC(), r.server.cfg.Store
	q := readQuery(r)
	filter := readFilter(q, now)
	q.late(&filter, kind, now)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Kind, filter.Limit = kind, exportStep
	return exportItems(r, form, name, columns, func(ctx context.Context) (items []T, end bool, err error) {
		rows, err := store.Payments(ctx, filter)
		for _, row := range rows {
			items = append(items, render(row))
			filter.AfterTime, filter.AfterID = row.CreatedAt, row.ID
		}
		return items, len(rows) < exportStep, err
	})
}
