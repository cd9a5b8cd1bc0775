package wire

import (
	"hongbao/internal/money"
)

// CloseStatus is the status of a day-end close.
type CloseStatus string

// The statuses of a day-end close.
const (
	CloseOpen        CloseStatus = "open"
	CloseProvisional CloseStatus = "provisional"
	CloseFinal       CloseStatus = "final"
)

// Balances are the balances of every ledger account at a moment.
type Balances struct {
	At       Time             `json:"at" doc:"The moment; ledger entries before it are included."`
	Settled  bool             `json:"settled" doc:"false within five minutes of the moment: a running transaction may still add an earlier entry."`
	Entries  int64            `json:"entries" minimum:"0" doc:"Sum of the ledger entries."`
	Sound    bool             `json:"sound" doc:"true: all balances add up to 0, and holding, owed and refunding are not negative."`
	Accounts []AccountBalance `json:"accounts" nullable:"false" doc:"Every account."`
	Apps     []AppBalances    `json:"apps" nullable:"false" doc:"The balances by app; their sums are accounts, without fees, top-ups and withdrawals, which belong to no app."`
	Items    []AppBalance     `json:"items" nullable:"false" doc:"Now, at any moment of the query: what each app has paid in and not spent; zeros for an app without movements."`
}

// AccountBalance is the balance of one account.
type AccountBalance struct {
	Account  string    `json:"account" enum:"provider,holding,owed,refunding,outside,suspense,house,fees,prefunded,bank" doc:"provider: held by the provider, negative for our money. holding: in packets, not claimed. owed: claimed, not paid. refunding: being refunded to senders. outside: paid by other means. suspense: moved twice. house: our own money. fees: fees of providers, negative. prefunded: paid in by apps and not in packets. bank: our bank account, negative for our money."`
	Balance  money.Fen `json:"balance" doc:"Credits minus debits; a negative value is a debit balance." fen:"net"`
	Payments *int64    `json:"payments" doc:"How many payments the balance of owed or refunding consists of; null for other accounts."`
}

// AppBalances are the balances of one app.
type AppBalances struct {
	AppID    string           `json:"app_id" doc:"The app of the packets."`
	Accounts []AccountBalance `json:"accounts" nullable:"false" doc:"Every account."`
}

// CloseSummary is one day of the ledger in a few figures.
type CloseSummary struct {
	Date        Date        `json:"date" doc:"The day, in the time zone of the statements of the provider of new payouts."`
	Status      CloseStatus `json:"status" doc:"open: the day is not over. provisional: the day is over and something is missing (pending). final: it does not change."`
	Pending     []string    `json:"pending" nullable:"false" doc:"What the close waits for: day (over for five minutes), sums (computed by the worker), statement (each read after the day), tie (statement match), breaks (open breaks of the day), unexplained (differences without a break), entries (ledger entries that do not add up to the change of the balances)."`
	From        Time        `json:"from" doc:"The first moment of the day."`
	To          Time        `json:"to" doc:"The first moment of the next day."`
	At          Time        `json:"at" doc:"The moment of the closing balances: to, or now while the day is not over."`
	FinalAt     *Time       `json:"final_at" doc:"When the close became final."`
	Entries     int64       `json:"entries" minimum:"0" doc:"Ledger entries of the day."`
	Funded      Sums        `json:"funded" doc:"Charged to senders on the day."`
	Claimed     Sums        `json:"claimed" doc:"Claimed on the day."`
	Paid        Sums        `json:"paid" doc:"Paid to recipients by the provider on the day."`
	Returned    Sums        `json:"returned" doc:"Returned by recipients on the day."`
	Refunded    Sums        `json:"refunded" doc:"Refunded to senders on the day."`
	Holding     money.Fen   `json:"holding" doc:"In packets and not claimed at the end." fen:"sum"`
	Owed        Sums        `json:"owed" doc:"Claimed and not paid at the end."`
	Refunding   Sums        `json:"refunding" doc:"Refunds that are not complete at the end."`
	Checked     *bool       `json:"checked" doc:"true: opening balances plus all ledger entries of the day give the closing balances; null before the check."`
	Differences *int64      `json:"differences" doc:"How many movements differ between our records and the statements; null before the statement match."`
	OpenBreaks  *int64      `json:"open_breaks" doc:"Open breaks of the day; null before the statement match."`
	Ties        *bool       `json:"ties" doc:"true: our records and every statement agree, apart from explained differences; null before the statement match."`
}

// Close is the day-end close: the ledger of a day next to the provider's statement.
type Close struct {
	CloseSummary
	Accounts  []AccountDay `json:"accounts" nullable:"false" doc:"Every account: opening - debits + credits = closing."`
	Movements []KindSum    `json:"movements" nullable:"false" doc:"Ledger entries of the day by kind, including kinds without entries."`
	Apps      []AppDay     `json:"apps" nullable:"false" doc:"The figures by app. Fees, top-ups and withdrawals belong to no app."`
	// Providers and Statements have one item for each provider.
	Providers  []ProviderDay  `json:"providers" nullable:"false" doc:"Our account at each provider that has moved money until the end of the day."`
	Statements []StatementTie `json:"statements" nullable:"false" doc:"The statement matches of the day: of the provider of new payouts, and of each provider whose account the day changed. Empty before them."`
}

// AccountDay is a day of one account.
type AccountDay struct {
	Account  string    `json:"account" enum:"provider,holding,owed,refunding,outside,suspense,house,fees,prefunded,bank" doc:"The account, as in balances."`
	Opening  money.Fen `json:"opening" doc:"The balance at the beginning of the day." fen:"net"`
	Debits   money.Fen `json:"debits" doc:"Debits of the day." fen:"sum"`
	Credits  money.Fen `json:"credits" doc:"Credits of the day." fen:"sum"`
	Closing  money.Fen `json:"closing" doc:"The balance at the end." fen:"net"`
	Payments *int64    `json:"payments" doc:"How many payments the closing balance of owed or refunding consists of; null for other accounts."`
}

// ProviderDay is a day of our account at one provider.
type ProviderDay struct {
	Provider string    `json:"provider" doc:"The provider." example:"sandbox"`
	Opening  money.Fen `json:"opening" doc:"The balance at the beginning of the day; negative: the provider holds money." fen:"net"`
	Debits   money.Fen `json:"debits" doc:"Debits of the day." fen:"sum"`
	Credits  money.Fen `json:"credits" doc:"Credits of the day." fen:"sum"`
	Closing  money.Fen `json:"closing" doc:"The balance at the end." fen:"net"`
}

// KindSum is the sum of the ledger entries of one kind.
type KindSum struct {
	Kind   string    `json:"kind" doc:"charge, claim, paid, returned, paid_outside, cancel, close, refunded, refund_returned, refund_outside, honoured, voided, second_success, second_returned, charge_returned, refund_kept or refund_dropped; docs/finance.md lists all kinds." example:"paid"`
	Debit  string    `json:"debit" doc:"The debited account." example:"owed"`
	Credit string    `json:"credit" doc:"The credited account." example:"provider"`
	Count  int64     `json:"count" minimum:"0" doc:"The count."`
	Amount money.Fen `json:"amount" doc:"The sum." fen:"sum"`
}

// AppDay is a day of one app.
type AppDay struct {
	AppID     string       `json:"app_id" doc:"The app of the packets."`
	Accounts  []AccountDay `json:"accounts" nullable:"false" doc:"Every account."`
	Movements []KindSum    `json:"movements" nullable:"false" doc:"Ledger entries of the day by kind, including kinds without entries."`
}

// StatementTie is a statement match of a day: the ledger beside one provider's statement. Its
// name is part of the OpenAPI document.
type StatementTie struct {
	Provider         string          `json:"provider" doc:"The provider of the statement." example:"sandbox"`
	ReconciliationID string          `json:"reconciliation_id" doc:"The last reconciliation that read the statement."`
	ReadAt           Time            `json:"read_at" doc:"The statement covers movements before this time."`
	ComparedAt       Time            `json:"compared_at" doc:"When the statement match ran."`
	Ties             bool            `json:"ties" doc:"true: our records and this statement agree, apart from explained differences."`
	Count            int64           `json:"count" minimum:"0" doc:"How many movements differ."`
	Operations       []TieOp         `json:"operations" nullable:"false" doc:"Both sides by operation: theirs = ours + explained, in count and amount."`
	ByKind           []DifferenceSum `json:"by_kind" nullable:"false" doc:"The sums of all differences by kind and operation."`
	Differences      []DayDifference `json:"differences" nullable:"false" doc:"Single differences in the order of time; the first 1,000."`
	Unexplained      int64           `json:"unexplained" minimum:"0" doc:"How many differences need a break and have none."`
}

// TieOp is one operation on both sides of a day.
type TieOp struct {
	Op        string  `json:"op" doc:"The provider's operation: charge, transfer, refund, return; fee, fee_returned, top_up, withdrawal." example:"transfer"`
	Ours      Sums    `json:"ours" doc:"Recorded on the day."`
	Theirs    Sums    `json:"theirs" doc:"In the statement of the day."`
	Explained NetSums `json:"explained" doc:"theirs minus ours, as explained by the single differences."`
}

// NetSums is a difference in count and amount.
type NetSums struct {
	Count  int64     `json:"count" doc:"The difference in count; negative: fewer."`
	Amount money.Fen `json:"amount" doc:"The difference in amount; negative: less." fen:"net"`
}

// DifferenceSum is the sum of the differences of one kind and operation.
type DifferenceSum struct {
	Kind   string `json:"kind" doc:"The kind, as in differences." example:"booked_later"`
	Op     string `json:"op" doc:"The provider's operation." example:"transfer"`
	Ours   Sums   `json:"ours" doc:"The sum of our records of the day."`
	Theirs Sums   `json:"theirs" doc:"The sum of the statement of the day."`
}

// DayDifference is one movement that differs between the two sides of a day.
type DayDifference struct {
	Kind     string       `json:"kind" doc:"booked_later, booked_earlier: in the statement of the day, recorded on another day. moved_earlier, moved_later: recorded on the day, in the statement of another day. theirs_only, ours_only: on one side only. amount_differs: on both sides with different amounts. other: the amounts agree; a break describes the difference." example:"booked_later"`
	Op       string       `json:"op" doc:"The provider's operation." example:"transfer"`
	OrderNo  string       `json:"order_no" doc:"The order number; it may be unknown to us."`
	Ours     money.Fen    `json:"ours" doc:"The amount in our records of the day." fen:"sum"`
	Theirs   money.Fen    `json:"theirs" doc:"The amount in the statement of the day." fen:"sum"`
	BookedAt *Time        `json:"booked_at" doc:"When it was recorded, on any day; null: not recorded."`
	MovedAt  *Time        `json:"moved_at" doc:"When it moved, by the statement of any day; null: in no statement."`
	Breaks   []CloseBreak `json:"breaks" nullable:"false" doc:"The breaks about the order number."`
}

// CloseBreak is a break that explains a difference.
type CloseBreak struct {
	ID   string `json:"id" doc:"The id." example:"b4711"`
	Kind string `json:"kind" doc:"The kind of difference." example:"not_in_statement"`
	Open bool   `json:"open" doc:"true: it was not resolved at the time of the statement match."`
}
