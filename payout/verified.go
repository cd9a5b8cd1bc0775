package payout

import "hongbao/money"

// Verified is what a verification of the whole ledger has gone through.
type Verified struct {
	Packets   int64 `json:"packets"`
	Payments  int64 `json:"payments"`
	Attempts  int64 `json:"attempts"`
	Transfers int64 `json:"transfers"`
	// Violations counts what was found, by rule; every rule is in it.
	Violations map[Rule]int64 `json:"violations"`
	// Suspense is money that moved twice, in fen: no violation, but somebody has to get it back.
	Suspense money.Fen `json:"suspense"`
	// OpenBreaks counts the disagreements that wait for a person, by kind.
	OpenBreaks map[BreakKind]int64 `json:"open_breaks"`
}

// Found sums the violations.
func (v Verified) Found() int64 {
	var n int64
	for _, of := range v.Violations {
		n += of
	}
	return n
}
