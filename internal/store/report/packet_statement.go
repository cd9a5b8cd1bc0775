package report

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// movementSums are the movements of a packet with one operation, in the statements and in the ledger.
type movementSums struct {
	Op        string
	Listed    int64
	Stated    int64
	Booked    int64
	Missing   int64
	Differing int64
	Day       *string
	BookedAt  *time.Time
}

// movementKinds are the kinds of transfers that a statement lists under an order number, and returnKinds those of them
// that it lists as returns.
var movementKinds, returnKinds = func() (all, returns []payout.TransferKind) {
	for _, k := range payout.TransferKinds {
		op := k.Op(payout.KindPayout)
		if op == "" || op.WithoutOrder() {
			continue
		}
		all = append(all, k)
		if op == payout.OpReturn {
			returns = append(returns, k)
		}
	}
	return all, returns
}()

// PacketStatement compares the movements of a packet at a provider with the lines of its statements, as they are now:
// verdicts of earlier reconciliations do not count. It reads every movement of the packet. Errors: ErrUnavailable.
func (s *Source) PacketStatement(ctx context.Context, provider, packetID string) (staff.PacketStatement, error) {
	var out staff.PacketStatement
	var rows []movementSums
	// The join of lines with statements has a fixed order: from the statements on it would read all lines of the provider.
	err := s.read(ctx).Raw(`SELECT op, SUM(theirs) AS listed, LEAST(SUM(stated), @saturated) AS stated, SUM(booked) AS booked,
		SUM(theirs < ours) AS missing, SUM(theirs <> ours OR stated <> booked) AS differing, MAX(day) AS day, MAX(booked_at) AS booked_at
		FROM (SELECT op, order_no, SUM(theirs) AS theirs, SUM(ours) AS ours, SUM(stated) AS stated, SUM(booked) AS booked, MAX(day) AS day,
			MAX(booked_at) AS booked_at
			FROM (SELECT l.op, l.order_no, 1 AS theirs, 0 AS ours, l.amount AS stated, 0 AS booked, l.day, NULL AS booked_at
				FROM statement_lines l FORCE INDEX (statement_lines_order)
				STRAIGHT_JOIN statements d ON d.provider = l.provider AND d.day = l.day
				WHERE l.provider = @provider AND (l.order_no LIKE @charges OR l.order_no LIKE @payouts OR l.order_no LIKE @refunds)
				UNION ALL SELECT CASE WHEN kind IN @returns THEN 'return' WHEN order_no LIKE 'c%' THEN 'charge'
					WHEN order_no LIKE 'p%' THEN 'transfer' ELSE 'refund' END, order_no, 0, 1, 0, amount, NULL, created_at
				FROM transfers FORCE INDEX (transfers_packet)
				WHERE packet_id = @packet AND provider = @provider AND kind IN @kinds AND order_no NOT LIKE 'h%') sides
			GROUP BY op, order_no) movements
		GROUP BY op`, map[string]any{"saturated": int64(money.Saturated), "provider": provider, "packet": packetID,
		"charges": string(payout.KindCharge) + packetID + "%", "payouts": string(payout.KindPayout) + packetID + "%",
		"refunds": string(payout.KindRefund) + packetID + "%", "kinds": movementKinds, "returns": returnKinds}).Scan(&rows).Error
	if err != nil {
		return out, mysql.Classify(err)
	}
	for _, r := range rows {
		out.Stated.Add(payout.Op(r.Op), money.Fen(r.Stated))
		out.Booked.Add(payout.Op(r.Op), money.Fen(r.Booked))
		out.Lines, out.Missing, out.Differing = out.Lines+r.Listed, out.Missing+r.Missing, out.Differing+r.Differing
		if r.Day != nil {
			out.Day = max(out.Day, payout.Day(*r.Day))
		}
		if r.BookedAt != nil && r.BookedAt.After(out.BookedAt) {
			out.BookedAt = r.BookedAt.UTC()
		}
	}
	if out.Day == "" {
		return out, nil
	}
	var read struct{ ReadAt *time.Time }
	err = s.read(ctx).Table("statements").Select("read_at").Where("provider = ? AND day = ?", provider, string(out.Day)).
		Limit(1).Find(&read).Error
	out.ReadAt = mysql.OrZero(read.ReadAt)
	return out, mysql.Classify(err)
}

// PacketFees returns what a provider has deducted from us for the orders of a packet, less what it has returned, as far as the
// ledger has it: fees come from statements, and count where the line names its order. Errors: ErrUnavailable.
func (s *Source) PacketFees(ctx context.Context, provider, packetID string) (money.Fen, error) {
	var fees int64
	err := s.read(ctx).Raw(`SELECT COALESCE(SUM(IF(op = ?, booked, -booked)), 0) FROM statement_lines FORCE INDEX (statement_lines_fee)
		WHERE provider = ? AND (fee_of LIKE ? OR fee_of LIKE ? OR fee_of LIKE ?)`, payout.OpFee, provider,
		string(payout.KindCharge)+packetID+"%", string(payout.KindPayout)+packetID+"%", string(payout.KindRefund)+packetID+"%").Scan(&fees).Error
	return money.Fen(fees), mysql.Classify(err)
}
