package api

import (
	"context"
	"strconv"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/staff"
)

// breakFileColumns are the members of a Break, one per column, followed by columns formatted
// for people.
var breakFileColumns = []string{
	"id", "kind", "packet_id", "payment_id", "order_no", "user_id", "detail", "provider", "amount", "payment_amount", "reconciliation_id",
	"seen", "created_at", "last_seen_at", "age_seconds", "resolved_at", "resolved_by", "resolved_reason", "amount_yuan", "payment_amount_yuan",
	"created_local", "last_seen_local", "resolved_local", "local_zone",
}

func breakLine(row staff.BreakRow, now time.Time, form fileForm) []string {
	b := renderBreak(row, now)
	fen, yuan := make([]string, 2), make([]string, 2)
	for i, amount := range []*money.Fen{b.Amount, b.PaymentAmount} {
		if amount != nil {
			fen[i], yuan[i] = fenCell(*amount), amount.String()
		}
	}
	at, by, reason := "", "", ""
	if r := b.Resolved; r != nil {
		at, by, reason = r.At.String(), cell(r.By), cell(r.Reason)
	}
	return []string{
		cell(b.ID), cell(b.Kind), optionalCell(b.PacketID), optionalCell(b.PaymentID), optionalCell(b.OrderNo),
		optionalCell(b.UserID), cell(b.Detail), optionalCell(b.Provider), fen[0], fen[1], optionalCell(b.ReconciliationID),
		strconv.Itoa(b.Seen), b.CreatedAt.String(), b.LastSeenAt.String(),
		strconv.FormatInt(b.AgeSeconds, 10), at, by, reason, yuan[0], yuan[1], form.local(row.CreatedAt), form.local(row.LastSeen),
		form.local(row.ResolvedAt), form.zone.String(),
	}
}

func exportBreaks(r *request) (answer, error) {
	q := readQuery(r)
	filter := readBreakFilter(q, r.server.cfg.Now().UTC())
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	cfg := r.server.cfg
	return r.sendFile(form, listFile{name: "breaks", columns: breakFileColumns, more: func(ctx context.Context) (lines [][]string, end bool,
		err error) {
		rows, err := cfg.Store.Breaks(ctx, filter)
		if err != nil {
			return nil, false, err
		}
		for _, row := range rows {
			lines = append(lines, breakLine(row, cfg.Now(), form))
			filter.AfterTime, filter.AfterID = row.CreatedAt, row.ID
		}
		return lines, len(rows) < exportStep, nil
	}})
}
