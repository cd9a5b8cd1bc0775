package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/internal/money"
)

// Balances are the balances of every ledger account at a moment.
type Balances struct {
	At       time.Time        `json:"at"`      // entries before it are included
	Settled  bool             `json:"settled"` // no earlier entry can be added any more
	Entries  int64            `json:"entries"` // ledger entries
	Sound    bool             `json:"sound"`   // all balances add up to 0, and none that holds money is negative
	Accounts []AccountBalance `json:"accounts"`
	Apps     []AppBalances    `json:"apps"` // their sums are Accounts

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (b *Balances) UnmarshalJSON(text []byte) error {
	type plain Balances
	b.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(b))
}

// AccountBalance is the balance of one account.
type AccountBalance struct {
	Account  string    `json:"account"`  // provider, holding, owed, refunding, outside, suspense, house
	Balance  money.Fen `json:"balance"`  // negative: a debit balance
	Payments *int64    `json:"payments"` // of owed and refunding: the number of payments
}

// AppBalances are the balances of one app.
type AppBalances struct {
	AppID    string           `json:"app_id"`
	Accounts []AccountBalance `json:"accounts"`
}

// CloseSummary is one day of the ledger in a few figures.
type CloseSummary struct {
	Date        string     `json:"date"`    // YYYY-MM-DD, in the time zone of the provider's statement
	Status      string     `json:"status"`  // open, provisional, final
	Pending     []string   `json:"pending"` // what the close waits for
	From        time.Time  `json:"from"`
	To          time.Time  `json:"to"`
	At          time.Time  `json:"at"`       // the moment of the closing balances
	FinalAt     *time.Time `json:"final_at"` // when the close became final
	Entries     int64      `json:"entries"`  // ledger entries of the day
	Funded      Sums       `json:"funded"`
	Claimed     Sums       `json:"claimed"`
	Paid        Sums       `json:"paid"`
	Returned    Sums       `json:"returned"`
	Refunded    Sums       `json:"refunded"`
	Holding     money.Fen  `json:"holding"`   // at the end
	Owed        Sums       `json:"owed"`      // claimed and not paid at the end
	Refunding   Sums       `json:"refunding"` // not complete at the end
	Checked     *bool      `json:"checked"`   // opening balances plus entries give the closing balances; nil: not checked yet
	Differences *int64     `json:"differences"`
	OpenBreaks  *int64     `json:"open_breaks"`
	Ties        *bool      `json:"ties"` // our records and the statement agree, apart from explained differences

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *CloseSummary) UnmarshalJSON(text []byte) error {
	type plain CloseSummary
	c.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(c))
}

// Close is the day-end close: the ledger of a day beside the provider's statement.
type Close struct {
	CloseSummary
	Accounts  []AccountDay  `json:"accounts"`
	Movements []KindSum     `json:"movements"`
	Apps      []AppDay      `json:"apps"`
	Statement *StatementTie `json:"statement"` // nil: not compared yet
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *Close) UnmarshalJSON(text []byte) error {
	var rest struct {
		Accounts  []AccountDay  `json:"accounts"`
		Movements []KindSum     `json:"movements"`
		Apps      []AppDay      `json:"apps"`
		Statement *StatementTie `json:"statement"`
	}
	if err := json.Unmarshal(text, &rest); err != nil {
		return err
	}
	c.Accounts, c.Movements, c.Apps, c.Statement = rest.Accounts, rest.Movements, rest.Apps, rest.Statement
	return c.CloseSummary.UnmarshalJSON(text)
}

// AccountDay is a day of one account: Opening - Debits + Credits = Closing.
type AccountDay struct {
	Account  string    `json:"account"`
	Opening  money.Fen `json:"opening"`
	Debits   money.Fen `json:"debits"`
	Credits  money.Fen `json:"credits"`
	Closing  money.Fen `json:"closing"`
	Payments *int64    `json:"payments"` // of owed and refunding: the number of payments in the closing balance
}

// KindSum is the sum of the ledger entries of one kind.
type KindSum struct {
	Kind   string    `json:"kind"`
	Debit  string    `json:"debit"`
	Credit string    `json:"credit"`
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// AppDay is a day of one app.
type AppDay struct {
	AppID     string       `json:"app_id"`
	Accounts  []AccountDay `json:"accounts"`
	Movements []KindSum    `json:"movements"`
}

// StatementTie is the statement match of a day: the ledger beside the provider's statement.
type StatementTie struct {
	Provider         string          `json:"provider"`
	ReconciliationID string          `json:"reconciliation_id"`
	ReadAt           time.Time       `json:"read_at"`     // the statement covers movements before this time
	ComparedAt       time.Time       `json:"compared_at"` // when the statement match ran
	Operations       []TieOp         `json:"operations"`
	ByKind           []DifferenceSum `json:"by_kind"`
	Differences      []DayDifference `json:"differences"` // the first 1,000
	Unexplained      int64           `json:"unexplained"` // differences that need a break and have none
}

// TieOp is one operation on both sides of a day: Theirs = Ours + Explained.
type TieOp struct {
	Op        string  `json:"op"`
	Ours      Sums    `json:"ours"`
	Theirs    Sums    `json:"theirs"`
	Explained NetSums `json:"explained"`
}

// NetSums is a difference in count and amount.
type NetSums struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// DifferenceSum is the sum of the differences of one kind and operation.
type DifferenceSum struct {
	Kind   string `json:"kind"`
	Op     string `json:"op"`
	Ours   Sums   `json:"ours"`
	Theirs Sums   `json:"theirs"`
}

// DayDifference is one movement that differs between the two sides of a day.
type DayDifference struct {
	Kind     string       `json:"kind"`
	Op       string       `json:"op"`
	OrderNo  string       `json:"order_no"`
	Ours     money.Fen    `json:"ours"`
	Theirs   money.Fen    `json:"theirs"`
	BookedAt *time.Time   `json:"booked_at"` // on any day
	MovedAt  *time.Time   `json:"moved_at"`  // on any day
	Breaks   []CloseBreak `json:"breaks"`
}

// CloseBreak is a break that explains a difference.
type CloseBreak struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Open bool   `json:"open"`
}

const closes = "/v1/staff/closes"

// Balances returns the balances of the ledger at a moment; the zero time: now.
func (s *Staff) Balances(ctx context.Context, at time.Time) (*Balances, error) {
	v := url.Values{}
	if !at.IsZero() {
		v.Set("at", at.UTC().Format(time.RFC3339Nano))
	}
	out := new(Balances)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/balances", query: v}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DayClose returns the day-end close of a day, YYYY-MM-DD. A day before the first entry or in
// the future is a problem with CodeNotFound.
func (s *Staff) DayClose(ctx context.Context, date string) (*Close, error) {
	out := new(Close)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: closes + "/" + segment(date)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ListCloses returns one page of day-end closes.
func (s *Staff) ListCloses(ctx context.Context, p Page) (*List[CloseSummary], error) {
	return page[CloseSummary](ctx, s.caller, closes, url.Values{}, p)
}

// Closes iterates over day-end closes, newest first.
func (s *Staff) Closes(ctx context.Context) iter.Seq2[*CloseSummary, error] {
	return each[CloseSummary](ctx, s.caller, closes, url.Values{})
}

// ExportClose writes the day-end close of a day to w as CSV, as the API sends it. It retries
// only before the first byte is written; after an error w may hold an incomplete file, which
// must not be used.
func (s *Staff) ExportClose(ctx context.Context, date string, w io.Writer) error {
	q := call{method: http.MethodGet, path: "/v1/staff/export/close.csv", query: url.Values{"date": {date}}}
	return s.caller.repeat(ctx, q, func([]byte) (bool, error) { return s.caller.stream(ctx, q, w) })
}
