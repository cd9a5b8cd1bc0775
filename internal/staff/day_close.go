package staff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// TotalsKey groups the transfers of one sum.
type TotalsKey struct {
	App     string // the app of the packets; "": of movements without an order
	Kind    payout.TransferKind
	Payment payout.Kind // kind of the payments that the transfers belong to
	// Provider is the one whose account the transfers change; "": none.
	Provider string
}

// Totals are counts and sums of ledger transfers by group: all up to a moment, or those of a day.
type Totals map[TotalsKey]Sum

// totalRow is the stored form of one group of Totals.
type totalRow struct {
	App      string              `json:"app"`
	Kind     payout.TransferKind `json:"kind"`
	Payment  string              `json:"payment"`
	Provider string              `json:"provider,omitempty"`
	Sum
}

// MarshalJSON implements json.Marshaler. Equal totals encode to equal bytes.
func (t Totals) MarshalJSON() ([]byte, error) {
	rows := make([]totalRow, 0, len(t))
	for key, sum := range t {
		rows = append(rows, totalRow{key.App, key.Kind, string(rune(key.Payment)), key.Provider, sum})
	}
	slices.SortFunc(rows, func(a, b totalRow) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Payment, b.Payment),
			cmp.Compare(a.Provider, b.Provider))
	})
	return json.Marshal(rows)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Totals) UnmarshalJSON(text []byte) error {
	var rows []totalRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("totals of transfers: %w", err)
	}
	*t = make(Totals, len(rows))
	for _, r := range rows {
		if len(r.Payment) != 1 {
			return fmt.Errorf("totals of transfers: kind of payment %q", r.Payment)
		}
		(*t)[TotalsKey{r.App, r.Kind, payout.Kind(r.Payment[0]), r.Provider}] = r.Sum
	}
	return nil
}

// Plus returns the sum of t and other.
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

// Minus returns t less other, without groups that are zero.
func (t Totals) Minus(other Totals) Totals {
	out := Totals{}
	for key := range t.Plus(other) {
		if sum := t[key].Minus(other[key]); sum != (Sum{}) {
			out[key] = sum
		}
	}
	return out
}

// OfApp returns the totals of one app.
func (t Totals) OfApp(app string) Totals {
	return t.where(func(key TotalsKey) bool { return key.App == app })
}

// OfProvider returns the totals of the transfers that change the account of one provider.
func (t Totals) OfProvider(name string) Totals {
	return t.where(func(key TotalsKey) bool { return key.Provider == name })
}

func (t Totals) where(selected func(TotalsKey) bool) Totals {
	out := Totals{}
	for key, sum := range t {
		if selected(key) {
			out[key] = sum
		}
	}
	return out
}

// Apps lists the apps with transfers, sorted. Movements without an order belong to no app.
func (t Totals) Apps() []string { return t.distinct(func(key TotalsKey) string { return key.App }) }

// Providers lists the providers whose accounts the transfers change, sorted.
func (t Totals) Providers() []string {
	return t.distinct(func(key TotalsKey) string { return key.Provider })
}

// distinct lists the values of the groups that are not empty, sorted.
func (t Totals) distinct(value func(TotalsKey) string) []string {
	var out []string
	for key := range t {
		if v := value(key); v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Entries counts the transfers.
func (t Totals) Entries() int64 {
	var n int64
	for _, sum := range t {
		n += sum.Count
	}
	return n
}

// ByKind sums by kind of transfer.
func (t Totals) ByKind() map[payout.TransferKind]Sum {
	out := map[payout.TransferKind]Sum{}
	for key, sum := range t {
		out[key.Kind] = out[key.Kind].Plus(sum)
	}
	return out
}

// Balance is the balance of an account: credits less debits. The provider account normally has a
// debit balance (below zero): the provider holds our money. Count is the number of payments in the
// balance; it is meaningful only for owed and refunding, whose payments are transferred as a whole.
func (t Totals) Balance(a payout.Account) Sum {
	var out Sum
	for key, sum := range t {
		debit, credit := key.Kind.Accounts()
		switch a {
		case debit:
			out = out.Minus(sum)
		case credit:
			out = out.Plus(sum)
		}
	}
	return out
}

// Turnover sums the debits and the credits of an account.
func (t Totals) Turnover(a payout.Account) (debits, credits money.Fen) {
	for key, sum := range t {
		debit, credit := key.Kind.Accounts()
		switch a {
		case debit:
			debits = debits.Plus(sum.Amount)
		case credit:
			credits = credits.Plus(sum.Amount)
		}
	}
	return debits, credits
}

// Sound reports whether the balances can be right: they sum to zero, and no account of
// NeverNegative is below zero.
func (t Totals) Sound() bool {
	var all money.Fen
	for _, a := range payout.Accounts {
		b := t.Balance(a)
		all = all.Plus(b.Amount)
		if b.Amount < 0 && slices.Contains(payout.NeverNegative, a) {
			return false
		}
	}
	return all == 0
}

// Plus returns the sum of s and other.
func (s Sum) Plus(other Sum) Sum {
	return Sum{Count: s.Count + other.Count, Amount: s.Amount.Plus(other.Amount)}
}

// Minus returns s less other.
func (s Sum) Minus(other Sum) Sum {
	return Sum{Count: s.Count - other.Count, Amount: s.Amount.Plus(-other.Amount)}
}

// LedgerSnapshot is the ledger at a moment.
type LedgerSnapshot struct {
	At time.Time
	// Settled: no transfer from before the moment can still appear.
	Settled bool
	Totals  Totals
}

// LedgerSettled is the age from which no transfer can be committed behind newer ones: transactions
// take seconds, and the server ends idle ones.
const LedgerSettled = 5 * time.Minute

// CloseBlocker names what a day-end close still waits for.
type CloseBlocker string

// The blockers.
const (
	// BlockedByDay: the day is not over, or ended less than LedgerSettled ago.
	BlockedByDay CloseBlocker = "day"
	// BlockedBySums: the worker has not stored the closing totals yet.
	BlockedBySums CloseBlocker = "sums"
	// BlockedByStatement: at a provider of the day, no reconciliation has completed that began after its end.
	BlockedByStatement CloseBlocker = "statement"
	// BlockedByMatch: the worker has not matched the day with the statements read last.
	BlockedByMatch CloseBlocker = "tie"
	// BlockedByBreaks: breaks of the day are open.
	BlockedByBreaks CloseBlocker = "breaks"
	// BlockedByUnexplained: both sides differ, and no break explains it.
	BlockedByUnexplained CloseBlocker = "unexplained"
	// BlockedByEntries: the transfers of the day do not sum to closing less opening balances.
	BlockedByEntries CloseBlocker = "entries"
)

// CloseBlockers lists all of them.
var CloseBlockers = []CloseBlocker{BlockedByDay, BlockedBySums, BlockedByStatement, BlockedByMatch, BlockedByBreaks, BlockedByUnexplained,
	BlockedByEntries}

// DayClose (日结) is the day-end close of the ledger. The day is that of the statements of the provider of new
// payouts; a transfer belongs to the day on which it was recorded.
type DayClose struct {
	Day      payout.Day
	From, To time.Time
	// At is the moment of the closing totals: To, or now before the end of the day.
	At               time.Time
	Opening, Closing Totals
	Match            *DayMatch // nil: the day is not matched with its statements yet
	// Blockers lists what the close waits for; empty: it is final.
	Blockers []CloseBlocker
	FinalAt  time.Time // the time from which it no longer changes
}

// Movements are the transfers of the day.
func (c DayClose) Movements() Totals { return c.Closing.Minus(c.Opening) }

// Providers lists the providers whose statements the day is matched with: always, and those whose accounts its
// transfers change.
func (c DayClose) Providers(always string) []string {
	others := slices.DeleteFunc(c.Movements().Providers(), func(name string) bool { return name == always })
	return append([]string{always}, others...)
}

// FindBlockers lists what keeps a past day from being final. unread: a statement was not read completely after
// the end of the day.
func (c DayClose) FindBlockers(unread bool) []CloseBlocker {
	if unread {
		return []CloseBlocker{BlockedByStatement}
	}
	if c.Match == nil {
		return []CloseBlocker{BlockedByMatch}
	}
	var out []CloseBlocker
	if slices.ContainsFunc(c.Match.Statements, func(s *StatementMatch) bool { return s.ReadAt.Before(c.To) }) {
		out = append(out, BlockedByStatement)
	}
	if c.Match.OpenBreaks() > 0 {
		out = append(out, BlockedByBreaks)
	}
	if !c.Match.Agrees() {
		out = append(out, BlockedByUnexplained)
	}
	if ok := c.EntriesMatch(); ok == nil || !*ok {
		out = append(out, BlockedByEntries)
	}
	return out
}

// EntriesMatch reports whether the balances are sound and the transfers of the day, summed one by one,
// make closing less opening balances; nil: not checked yet.
func (c DayClose) EntriesMatch() *bool {
	if c.Match == nil {
		return nil
	}
	ok := maps.Equal(c.Movements().ByKind(), c.Match.Entries) && c.Opening.Sound() && c.Closing.Sound()
	return &ok
}
