package payout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"hongbao/internal/money"
)

// TotalsKey says what a sum of postings is of.
type TotalsKey struct {
	App     string // whose packets
	Kind    TransferKind
	Payment Kind // of the payments that they were made for
}

// Totals counts and adds up postings: all up to a moment, or those of a day.
type Totals map[TotalsKey]Sum

// totalRow is a member of Totals as it is stored.
type totalRow struct {
	App     string       `json:"app"`
	Kind    TransferKind `json:"kind"`
	Payment string       `json:"payment"`
	Sum
}

// MarshalJSON implements json.Marshaler: equal totals are equal bytes.
func (t Totals) MarshalJSON() ([]byte, error) {
	rows := make([]totalRow, 0, len(t))
	for key, sum := range t {
		rows = append(rows, totalRow{key.App, key.Kind, string(rune(key.Payment)), sum})
	}
	slices.SortFunc(rows, func(a, b totalRow) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Payment, b.Payment))
	})
	return json.Marshal(rows)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Totals) UnmarshalJSON(text []byte) error {
	var rows []totalRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("totals of postings: %w", err)
	}
	*t = make(Totals, len(rows))
	for _, r := range rows {
		if len(r.Payment) != 1 {
			return fmt.Errorf("totals of postings: kind of payment %q", r.Payment)
		}
		(*t)[TotalsKey{r.App, r.Kind, Kind(r.Payment[0])}] = r.Sum
	}
	return nil
}

// Plus returns both together.
func (t Totals) Plus(other Totals) Totals {
	out := maps.Clone(t)
	if out == nil {
		out = Totals{}
	}
	for key, sum := range other {
		out[key] = out[key].Plus(sum)
	}
	return out
}

// Minus returns what t has more than other, without what is nothing.
func (t Totals) Minus(other Totals) Totals {
	out := Totals{}
	for key := range t.Plus(other) {
		if sum := t[key].Minus(other[key]); sum != (Sum{}) {
			out[key] = sum
		}
	}
	return out
}

// Of returns those of one app.
func (t Totals) Of(app string) Totals {
	out := Totals{}
	for key, sum := range t {
		if key.App == app {
			out[key] = sum
		}
	}
	return out
}

// Apps lists whose postings there are, in order.
func (t Totals) Apps() []string {
	var apps []string
	for key := range t {
		apps = append(apps, key.App)
	}
	slices.Sort(apps)
	return slices.Compact(apps)
}

// Entries counts the postings.
func (t Totals) Entries() int64 {
	var n int64
	for _, sum := range t {
		n += sum.Count
	}
	return n
}

// ByKind adds up by kind of posting.
func (t Totals) ByKind() map[TransferKind]Sum {
	out := map[TransferKind]Sum{}
	for key, sum := range t {
		out[key.Kind] = out[key.Kind].Plus(sum)
	}
	return out
}

// Balance is what an account holds: what was posted to it less what was posted
// from it. Below zero is a debit balance, as that of the provider, who has our money.
// The count is that of the payments which make up the balance; it says something of
// owed and refunding alone, whose payments are posted as a whole.
func (t Totals) Balance(a Account) Sum {
	var out Sum
	for key, sum := range t {
		switch a {
		case transferAccounts[key.Kind][0]:
			out = out.Minus(sum)
		case transferAccounts[key.Kind][1]:
			out = out.Plus(sum)
		}
	}
	return out
}

// Turnover adds up what was posted from an account, and what was posted to it.
func (t Totals) Turnover(a Account) (debits, credits money.Fen) {
	for key, sum := range t {
		switch a {
		case transferAccounts[key.Kind][0]:
			debits = debits.Plus(sum.Amount)
		case transferAccounts[key.Kind][1]:
			credits = credits.Plus(sum.Amount)
		}
	}
	return debits, credits
}

// Sound reports whether the balances can be right: together they are nothing, and no
// account that holds what was put into it is below zero.
func (t Totals) Sound() bool {
	var all money.Fen
	for _, a := range Accounts {
		b := t.Balance(a)
		all = all.Plus(b.Amount)
		if b.Amount < 0 && slices.Contains(neverNegative, a) {
			return false
		}
	}
	return all == 0
}

// Plus returns both together.
func (s Sum) Plus(other Sum) Sum {
	return Sum{Count: s.Count + other.Count, Amount: s.Amount.Plus(other.Amount)}
}

// Minus returns what s has more than other.
func (s Sum) Minus(other Sum) Sum {
	return Sum{Count: s.Count - other.Count, Amount: s.Amount.Plus(-other.Amount)}
}

// TransferKinds lists every kind, in the order in which a packet lives.
var TransferKinds = []TransferKind{PostCharge, PostClaim, PostPaid, PostReturned, PostPaidOutside, PostCancel, PostClose, PostRefunded,
	PostRefundReturned,
	PostRefundPaidOutside, PostHonoured, PostVoided, PostSecondSuccess, PostSecondReturned}

// Accounts returns from which account to which postings of the kind move money.
func (k TransferKind) Accounts() (debit, credit Account) {
	return transferAccounts[k][0], transferAccounts[k][1]
}

// Op is what a statement calls a movement that is posted as this kind for a kind of
// payment; "" when it is none at a provider.
func (k TransferKind) Op(of Kind) Op {
	return BookedMovement{Transfer: Transfer{Kind: k}, Payment: Payment{Kind: of}}.Op()
}

// Standing is the ledger at a moment.
type LedgerSnapshot struct {
	At time.Time
	// Settled: nothing can be posted any more that belongs before the moment.
	Settled bool
	Totals  Totals
}

// LedgerSettled is the age from which no posting can appear behind others any more:
// transactions take seconds, and the server ends those that stand still.
const LedgerSettled = 5 * time.Minute

// Pending names what a day's close still waits for.
type CloseBlocker string

// What a close waits for.
const (
	// BlockedByDay: the day is not over, or has been for less than LedgerSettled.
	BlockedByDay CloseBlocker = "day"
	// BlockedBySums: the worker has not yet written down the end of the day.
	BlockedBySums CloseBlocker = "sums"
	// BlockedByStatement: no reconciliation that began after the day was over has ended.
	BlockedByStatement CloseBlocker = "statement"
	// BlockedByMatch: the worker has not yet put the day beside the statement that was read last.
	BlockedByMatch CloseBlocker = "tie"
	// BlockedByBreaks: breaks of the day are open.
	BlockedByBreaks CloseBlocker = "breaks"
	// BlockedByUnexplained: sides differ, and no break says why.
	BlockedByUnexplained CloseBlocker = "unexplained"
	// BlockedByEntries: the postings of the day, added up once more, are not what lies
	// between opening and closing balances.
	BlockedByEntries CloseBlocker = "entries"
)

// Pendings lists all of them.
var CloseBlockers = []CloseBlocker{BlockedByDay, BlockedBySums, BlockedByStatement, BlockedByMatch, BlockedByBreaks, BlockedByUnexplained, BlockedByEntries}

// Close (日结) is the statement of a day of the ledger. The day is one of the provider's
// statement; postings belong to the day in which they were made.
type DayClose struct {
	Day      Day
	From, To time.Time
	// At is up to when the closing totals go: To, or now while the day lasts.
	At               time.Time
	Opening, Closing Totals
	Match            *StatementMatch // nil: the day was not yet put beside the statement
	// Pending says what the close waits for; empty: it is final.
	Blockers []CloseBlocker
	FinalAt  time.Time // since when it does not change any more
}

// Movements are the postings of the day.
func (c DayClose) Movements() Totals { return c.Closing.Minus(c.Opening) }

// Waits tells what keeps a day that is over from being final. unread: no statement
// was read to its end after the day was over.
func (c DayClose) FindBlockers(unread bool) []CloseBlocker {
	if unread {
		return []CloseBlocker{BlockedByStatement}
	}
	if c.Match == nil {
		return []CloseBlocker{BlockedByMatch}
	}
	var out []CloseBlocker
	if c.Match.ReadAt.Before(c.To) {
		out = append(out, BlockedByStatement)
	}
	if c.Match.OpenBreaks > 0 {
		out = append(out, BlockedByBreaks)
	}
	if !c.Match.Agrees() {
		out = append(out, BlockedByUnexplained)
	}
	if ok := c.Checked(); ok == nil || !*ok {
		out = append(out, BlockedByEntries)
	}
	return out
}

// Checked reports whether the opening balances and the postings of the day, added up
// once more one by one, make the closing balances, and these can be right; nil: that
// was not yet looked at.
func (c DayClose) Checked() *bool {
	if c.Match == nil {
		return nil
	}
	ok := maps.Equal(c.Movements().ByKind(), c.Match.Entries) && c.Opening.Sound() && c.Closing.Sound()
	return &ok
}
