package staff

import (
	"hongbao/internal/money"
)

// LedgerBalance is the stored balance of an app and what its transfers say.
type LedgerBalance struct {
	App string
	// Available and Reserved are the stored ones.
	Available, Reserved money.Fen
	// Sum adds up the app's transfers, Open those of its packets whose books are open.
	Sum, Open money.Fen
	// Last is the available balance after the newest transfer, as it states.
	Last money.Fen
	// Unmatched are movements without their transfer, and transfers without an approved movement, explained.
	Unmatched []string
}

// VerifyBalance checks that the balance of an app is the sum of its transfers.
func VerifyBalance(b LedgerBalance) []Violation {
	var v violations
	for _, side := range []struct {
		what       string
		found, sum money.Fen
	}{{"available", b.Available, b.Sum}, {"reserved", b.Reserved, b.Open}, {"available after the newest transfer", b.Last, b.Sum}} {
		if side.found != side.sum {
			v.add(RuleBalance, b.App, "%s is %d, but its transfers sum to %d", side.what, side.found, side.sum)
		}
	}
	for _, reason := range b.Unmatched {
		v.add(RuleBalance, b.App, "%s", reason)
	}
	return v.found
}
