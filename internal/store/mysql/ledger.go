package mysql

import (
	"time"

	"gorm.io/gorm"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TransferRow is a row of transfers.
type TransferRow struct {
	ID        int64
	PacketID  string
	Kind      string
	Debit     string
	Credit    string
	Amount    int64
	OrderNo   string
	Reference string
	CreatedAt time.Time
	AppID     *string // of the balance that it changes
	Available *int64  // of that balance, afterwards
	Provider  *string // whose account it changes
}

// TableName names the table.
func (TransferRow) TableName() string { return "transfers" }

// Transfer returns the transfer as the verification compares it.
func (r TransferRow) Transfer() staff.StoredTransfer {
	return staff.StoredTransfer{ID: r.ID, PacketID: r.PacketID, Reference: r.Reference,
		Transfer: payout.Transfer{Kind: payout.TransferKind(r.Kind),
			Debit: payout.Account(r.Debit), Credit: payout.Account(r.Credit), Amount: money.Fen(r.Amount), OrderNo: r.OrderNo}}
}

// Dated returns the transfer as a match with a provider's statement compares it.
func (r TransferRow) Dated(provider string) staff.DatedTransfer {
	d := staff.DatedTransfer{ID: r.ID, Kind: payout.TransferKind(r.Kind), OrderNo: r.OrderNo, Amount: money.Fen(r.Amount),
		At: r.CreatedAt.UTC()}
	if r.Provider != nil && *r.Provider == provider {
		d.Op = d.Kind.Op(payout.Kind(r.OrderNo[0]))
	}
	return d
}

// LedgerKey is a kind of transfer; the accounts follow from it.
type LedgerKey struct {
	Kind, Debit, Credit string
	Promise             bool
}

// LedgerSum is a sum of transfers.
type LedgerSum struct {
	Key LedgerKey `gorm:"embedded"`
	Sum int64
}

// BalancesOf turns sums of transfers into balances.
func BalancesOf(rows []LedgerSum) payout.Balances {
	b := payout.Balances{ByKind: map[payout.TransferKind]money.Fen{}, ByAccount: map[payout.Account]money.Fen{},
		Honours: map[payout.TransferKind]money.Fen{}}
	for _, r := range rows {
		b.ByKind[payout.TransferKind(r.Key.Kind)] += money.Fen(r.Sum)
		b.ByAccount[payout.Account(r.Key.Debit)] -= money.Fen(r.Sum)
		b.ByAccount[payout.Account(r.Key.Credit)] += money.Fen(r.Sum)
		if r.Key.Promise {
			b.Honours[payout.TransferKind(r.Key.Kind)] += money.Fen(r.Sum)
		}
	}
	return b
}

// Balances sums a packet's ledger; zero without transfers.
func Balances(db *gorm.DB, packetID string) (payout.Balances, error) {
	var rows []LedgerSum
	err := db.Raw(`SELECT kind, debit, credit, SUBSTRING(order_no, 1, 1) = 'h' AS promise, SUM(amount) AS sum FROM transfers
		WHERE packet_id = ? GROUP BY kind, debit, credit, promise`, packetID).Scan(&rows).Error
	return BalancesOf(rows), err
}
