package report

import (
	"hongbao/internal/money"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// ledgerBalances reads, by app, the stored balance and what the ledger says: available is the sum of all
// transfers, reserved that of the packets whose books are open, last what the newest transfer states.
const ledgerBalances = `SELECT x.app_id, COALESCE(b.available, 0) AS available, COALESCE(b.reserved, 0) AS reserved,
	COALESCE(t.available, 0) AS sum, COALESCE(t.reserved, 0) AS open, COALESCE(l.available, 0) AS last
	FROM (SELECT app_id FROM app_balances UNION SELECT app_id FROM transfers WHERE app_id IS NOT NULL
		UNION SELECT app_id FROM balance_movements) x
	LEFT JOIN app_balances b ON b.app_id = x.app_id
	LEFT JOIN (SELECT t.app_id, MAX(t.id) AS last, SUM(IF(t.credit = 'prefunded', t.amount, -t.amount)) AS available,
		SUM(CASE WHEN p.id IS NULL OR p.books_closed_at IS NOT NULL THEN 0 WHEN t.kind = 'reserve' THEN t.amount ELSE -t.amount END) AS reserved
		FROM transfers t LEFT JOIN packets p ON p.id = t.packet_id WHERE t.app_id IS NOT NULL GROUP BY t.app_id) t ON t.app_id = x.app_id
	LEFT JOIN transfers l ON l.id = t.last ORDER BY x.app_id`

// unmatchedMovements reads credits and debits without an approved movement of the same app and amount, and
// approved movements without their transfer.
const unmatchedMovements = `SELECT t.order_no AS id, t.app_id, 'no approved movement' AS what FROM transfers t
	LEFT JOIN balance_movements m ON m.id = t.order_no AND m.app_id = t.app_id AND m.kind = t.kind AND m.amount = t.amount
	LEFT JOIN decisions d ON d.payment_id = m.id AND d.status = 'carried_out' AND d.approved_by IS NOT NULL
	WHERE t.kind IN ('credit', 'debit') AND d.id IS NULL
	UNION ALL SELECT m.id, m.app_id, 'approved, and no transfer' FROM balance_movements m
	JOIN decisions d ON d.payment_id = m.id AND d.status = 'carried_out'
	LEFT JOIN transfers t ON t.order_no = m.id AND t.kind = m.kind WHERE t.id IS NULL`

// balances checks the balances of apps against their transfers, and the transfers of movements.
func (c *ledgerCheck) balances() error {
	var rows []struct {
		AppID                                string
		Available, Reserved, Sum, Open, Last int64
	}
	if err := c.db.Raw(ledgerBalances).Scan(&rows).Error; err != nil {
		return err
	}
	var unmatched []struct{ ID, AppID, What string }
	if err := c.db.Raw(unmatchedMovements).Scan(&unmatched).Error; err != nil {
		return err
	}
	for _, r := range rows {
		b := staff.LedgerBalance{App: r.AppID, Available: money.Fen(r.Available), Reserved: money.Fen(r.Reserved), Sum: money.Fen(r.Sum),
			Open: money.Fen(r.Open), Last: money.Fen(r.Last)}
		for _, m := range unmatched {
			if m.AppID == r.AppID {
				b.Unmatched = append(b.Unmatched, m.ID+": "+m.What)
			}
		}
		if err := c.report(staff.VerifyBalance(b)); err != nil {
			return err
		}
	}
	var moved int64
	err := c.db.Model(&mysql.TransferRow{}).Where("packet_id = ''").Count(&moved).Error
	c.out.Transfers += moved
	return err
}
