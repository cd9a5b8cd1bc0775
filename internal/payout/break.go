package payout

// Break (差异) is a difference that staff have to resolve.
type Break struct {
	Kind    BreakKind
	OrderNo string
	UserID  string // the user of a share conflict
	Detail  string
}

// BreakKind names a difference.
type BreakKind string

// The breaks that are found without a statement.
const (
	// BreakMismatch: an answer names another order number, account or amount than the stored
	// request.
	BreakMismatch BreakKind = "mismatch"
	// BreakContradiction: definite statements of the provider about one order number disagree.
	BreakContradiction BreakKind = "contradiction"
	// BreakSecondSuccess: money moved under a superseded order number, or after a cancel or
	// mark-paid.
	BreakSecondSuccess BreakKind = "second_success"
	// BreakLateSuccess: money moved after the payment had failed.
	BreakLateSuccess BreakKind = "late_success"
	// BreakForgotten: the provider no longer knows an order number that it had accepted.
	BreakForgotten BreakKind = "forgotten"
	// BreakOutcomeUnknown: the provider may have forgotten an order number of an open payment, and has not
	// reported its outcome. Staff state what became of its money, or decide without it (rule R5).
	BreakOutcomeUnknown BreakKind = "outcome_unknown"
	// BreakShareConflict: a claim of the pool cannot be recorded.
	BreakShareConflict BreakKind = "share_conflict"
	// BreakRestored: a recovery could not decide about a packet after a restore of MySQL. HoldRecovery
	// holds the packet.
	BreakRestored BreakKind = "restored"
	// BreakPoolLost: Redis lost acknowledged grabs, and their users are not known.
	BreakPoolLost BreakKind = "pool_lost"
)

// MachineBreaks lists the breaks that are found without a provider's statement.
var MachineBreaks = []BreakKind{BreakMismatch, BreakContradiction, BreakSecondSuccess, BreakLateSuccess, BreakForgotten,
	BreakOutcomeUnknown, BreakShareConflict, BreakRestored, BreakPoolLost}

// OrderBreaks lists the breaks about an order number, the most serious first. One bad order is one
// break, of the first kind that applies; its detail lists the other findings.
var OrderBreaks = []BreakKind{BreakSecondSuccess, BreakLateSuccess, BreakMismatch, BreakContradiction, BreakForgotten, BreakForeignOrder,
	BreakOpDiffers, BreakMovedTwice, BreakAccountDiffers, BreakAmountDiffers, BreakSuperseded, BreakReturnNotBooked, BreakNotBooked,
	BreakNotInStatement, BreakOutcomeUnknown}

// The breaks that reconciliation finds. Repairable ones are repaired: the provider is queried, the
// answer is settled, and the break is resolved when both sides agree. The others are for staff.
const (
	// BreakNotBooked: money moved at the provider and is not in the ledger.
	BreakNotBooked BreakKind = "not_booked"
	// BreakReturnNotBooked: money was returned at the provider and the return is not in the ledger.
	BreakReturnNotBooked BreakKind = "return_not_booked"
	// BreakSuperseded: money moved under a superseded order number.
	BreakSuperseded BreakKind = "superseded"
	// BreakNotInStatement: booked as moved or returned, and in no statement.
	BreakNotInStatement BreakKind = "not_in_statement"
	// BreakAmountDiffers: another amount than was requested or booked.
	BreakAmountDiffers BreakKind = "amount_differs"
	// BreakAccountDiffers: another account than was requested.
	BreakAccountDiffers BreakKind = "account_differs"
	// BreakOpDiffers: another kind of movement than was requested.
	BreakOpDiffers BreakKind = "op_differs"
	// BreakMovedTwice: the same movement more than once under one number.
	BreakMovedTwice BreakKind = "moved_twice"
	// BreakForeignOrder: the order number is none of ours, or was never sent.
	BreakForeignOrder BreakKind = "foreign_order"
)

// StatementBreaks lists the breaks that reconciliation finds.
var StatementBreaks = []BreakKind{BreakNotBooked, BreakReturnNotBooked, BreakSuperseded, BreakNotInStatement,
	BreakAmountDiffers, BreakAccountDiffers, BreakOpDiffers, BreakMovedTwice, BreakForeignOrder}

// Repairable reports whether a query of the provider can settle a break.
func (k BreakKind) Repairable() bool {
	return k == BreakNotBooked || k == BreakReturnNotBooked || k == BreakSuperseded
}
