package api

import (
	"context"

	"hongbao/wire"
)

// breakFileColumns are the members of a Break, one per column, followed by columns formatted
// for people.
var breakFileColumns = fileColumns{names: []string{
	"id", "kind", "packet_id", "payment_id", "order_no", "user_id", "detail", "provider", "amount", "payment_amount", "reconciliation_id",
	"seen", "created_at", "last_seen_at", "age_seconds", "resolved_at", "resolved_by", "resolved_reason", "amount_yuan", "payment_amount_yuan",
	"created_local", "last_seen_local", "resolved_local", "local_zone",
}}

func exportBreaks(r *request) (answer, error) {
	q := readQuery(r)
	filter := readBreakFilter(q, r.server.cfg.Now().UTC())
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	cfg := r.server.cfg
	return exportItems(r, form, "breaks", breakFileColumns, func(ctx context.Context) (items []wire.Break, end bool, err error) {
		rows, err := cfg.Store.Breaks(ctx, filter)
		for _, row := range rows {
			items = append(items, renderBreak(row, cfg.Now()))
			filter.AfterTime, filter.AfterID = row.CreatedAt, row.ID
		}
		return items, len(rows) < exportStep, err
	})
}
