package report

import (
	"context"
	"slices"

	"hongbao/internal/money"
	"hongbao/internal/store/mysql"
)

// payableShares is the number of shares in open packets up to which the unclaimed ones are added up. Of more, every
// packet counts with its total: the sum stays cheap, and is rather too high than too low.
const payableShares = 1_000_000

// selectOpenTotals adds up the packets whose claims may still be recorded, by the provider of their payouts.
const selectOpenTotals = `SELECT k.payout_provider AS provider, SUM(k.share_count) AS shares, LEAST(SUM(k.total_amount), ?) AS fen
	FROM packets k FORCE INDEX (packets_status)
	WHERE k.status IN ('open', 'closing') AND k.books_closed_at IS NULL GROUP BY k.payout_provider`

// selectUnclaimed adds up the unclaimed shares of these packets.
const selectUnclaimed = `SELECT k.payout_provider AS provider, LEAST(SUM(s.amount), ?) AS fen
	FROM packets k FORCE INDEX (packets_status) STRAIGHT_JOIN shares s ON s.packet_id = k.id
	WHERE k.status IN ('open', 'closing') AND k.books_closed_at IS NULL AND s.user_id IS NULL GROUP BY k.payout_provider`

// selectOwed adds up what is claimed and not paid, failed and returned payouts included: staff may retry them.
const selectOwed = `SELECT provider, LEAST(SUM(amount), ?) AS fen FROM payments FORCE INDEX (payments_status)
	WHERE kind IN ('p', 'h') AND status IN ? GROUP BY provider`

// Payable returns what each provider may still have to pay out, by name: claimed and not paid, and unclaimed in open
// packets. Providers without any are omitted. Errors: ErrUnavailable.
func (s *Source) Payable(ctx context.Context) (map[string]money.Fen, error) {
	out, err := s.payable(ctx, payableShares)
	return out, mysql.Classify(err)
}

type payableRow struct {
	Provider    string
	Shares, Fen int64
}

func (s *Source) payable(ctx context.Context, most int64) (map[string]money.Fen, error) {
	var open, owed []payableRow
	if err := s.read(ctx).Raw(selectOpenTotals, int64(money.Saturated)).Scan(&open).Error; err != nil {
		return nil, err
	}
	shares := int64(0)
	for _, r := range open {
		shares += r.Shares
	}
	if shares <= most {
		open = nil
		if err := s.read(ctx).Raw(selectUnclaimed, int64(money.Saturated)).Scan(&open).Error; err != nil {
			return nil, err
		}
	}
	// After the shares: one that is claimed in between counts twice, and not never.
	if err := s.read(ctx).Raw(selectOwed, int64(money.Saturated), unfinishedStatuses).Scan(&owed).Error; err != nil {
		return nil, err
	}
	out := map[string]money.Fen{}
	for _, r := range slices.Concat(open, owed) {
		out[r.Provider] = out[r.Provider].Plus(money.Fen(r.Fen))
	}
	return out, nil
}
