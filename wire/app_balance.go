package wire

import "hongbao/internal/money"

// Balance is the money that an app has paid in and that is not spent.
type Balance struct {
	Available money.Fen `json:"available" doc:"Pays new packets. It is below 0 only after the database was restored from a backup." fen:"net" example:"1000000"`
	Reserved  money.Fen `json:"reserved" doc:"The amount of the packets that the balance has paid and that are not closed, without what has come back." fen:"sum" example:"20000"`
	Currency  string    `json:"currency" enum:"CNY" doc:"The currency." example:"CNY"`
}

// AppBalance is the balance of one app, for staff.
type AppBalance struct {
	App  string `json:"app" doc:"The app's id." example:"shop"`
	Name string `json:"name" doc:"The app's name." example:"Shop"`
	Balance
}

// BalanceEntry is one entry of the history of a balance.
type BalanceEntry struct {
	ID        string    `json:"id" doc:"The entry's id; later entries have higher ones." example:"4711"`
	At        Time      `json:"at" doc:"When it was made."`
	Kind      string    `json:"kind" enum:"credit,debit,reserve,release" doc:"credit: money was paid in. debit: money was paid out. reserve: a packet was paid. release: the remainder of a packet, or a cancelled payout, came back."`
	Amount    money.Fen `json:"amount" doc:"The amount; debit and reserve take it from the balance." example:"1000"`
	Available money.Fen `json:"available" doc:"The available balance afterwards." fen:"net" example:"999000"`
	Currency  string    `json:"currency" enum:"CNY" doc:"The currency."`
	PacketID  *string   `json:"packet_id" doc:"Of reserve and release: the packet."`
	Reference *string   `json:"reference" doc:"Of credit and debit: the reference, for example of the bank slip."`
}

// BalanceFilter selects entries of the history of a balance; empty members select all.
type BalanceFilter struct {
	Kind string `json:"kind,omitempty" enum:"credit,debit,reserve,release" doc:"Entries of this kind." example:"credit"`
}

// AppBalanceFilter selects entries of the history of an app's balance.
type AppBalanceFilter struct {
	App string `json:"app" check:"app" doc:"The app." example:"shop"`
	BalanceFilter
}

// MoveBalance is the body of a credit or debit.
type MoveBalance struct {
	Amount    money.Fen `json:"amount" minimum:"1" doc:"The amount, in whole fen." example:"1000000"`
	Reason    string    `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"deposit of June"`
	Evidence  string    `json:"evidence" minLength:"1" maxLength:"500" doc:"The evidence of the money that moved at the bank: 1 to 500 characters." example:"bank slip 2026-06-01/4711"`
	Reference string    `json:"reference,omitempty" minLength:"1" maxLength:"200" doc:"Identifies the movement at the bank, once per app. By default it is the evidence." example:"2026-06-01/4711"`
}

// BalanceMovement is a credit or debit that two persons decide.
type BalanceMovement struct {
	ID        string    `json:"id" doc:"The movement's id." example:"mKQ3X7M2P5R6T4V2W3Y7Z5B6C"`
	App       string    `json:"app" doc:"The app." example:"shop"`
	Kind      string    `json:"kind" enum:"credit,debit" doc:"credit: adds to the available balance. debit: takes from it."`
	Amount    money.Fen `json:"amount" doc:"The amount." example:"1000000"`
	Currency  string    `json:"currency" enum:"CNY" doc:"The currency."`
	Reference string    `json:"reference" doc:"The reference." example:"2026-06-01/4711"`
	Available money.Fen `json:"available" doc:"The app's available balance: before the movement while it waits, afterwards once it was carried out." fen:"net" example:"0"`
}

// DecidedMovement is the answer to a credit or debit.
type DecidedMovement struct {
	Decision Decision        `json:"decision" doc:"The decision."`
	Movement BalanceMovement `json:"movement" doc:"What will move."`
	Approval *Approval       `json:"approval" doc:"The approval that a second person has to give; nothing has moved yet."`
}
