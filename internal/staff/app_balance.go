package staff

import (
	"crypto/sha256"
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// BalanceMovement is a credit or debit of an app's balance, which two persons decide.
type BalanceMovement struct {
	ID     string
	App    string
	Kind   payout.TransferKind // PostCredit or PostDebit
	Amount money.Fen
	// Reference is unique among the credits and debits of the app that have not ended without moving money.
	Reference string
	// Available is the app's available balance now, before a waiting movement and after one that was carried out.
	Available money.Fen
}

// Decision is the kind of decision about the movement.
func (m BalanceMovement) Decision() payout.DecisionKind { return payout.DecisionKind(m.Kind) }

// Covered reports whether the available balance covers the movement.
func (m BalanceMovement) Covered() bool { return m.Kind != payout.PostDebit || m.Available >= m.Amount }

// Hash covers what both persons are shown of the movement.
func (m BalanceMovement) Hash() []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s", m.Kind, m.App, int64(m.Amount), m.Reference))
	return sum[:]
}

// BalanceEntry is one entry of the history of an app's balance.
type BalanceEntry struct {
	ID        int64
	At        time.Time
	Kind      payout.TransferKind // PostCredit, PostDebit, PostReserve or PostRelease
	Amount    money.Fen
	Available money.Fen // of the app, afterwards
	PacketID  string    // of reserve and release
	Reference string    // of credit and debit
}

// BalanceFilter selects entries of the history of an app's balance, newest first.
type BalanceFilter struct {
	App     string
	Kind    payout.TransferKind // "": all
	AfterID int64               // continues behind an entry
	Limit   int
}
