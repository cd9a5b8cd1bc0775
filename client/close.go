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

// Balances are those of every account of the ledger at a moment.
type Balances struct {
	At       time.Time        `json:"at"`      // every posting before it is in them
	Settled  bool             `json:"settled"` // nothing can be posted any more that belongs before it
	Entries  int64            `json:"entries"` // postings
	Sound    bool             `json:"sound"`   // together they are nothing, and none that holds money is below zero
	Accounts []AccountBalance `json:"accounts"`
	Apps     []AppBalances    `json:"apps"` // together they are Accounts

	// Raw is the answer as it came.
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
	Balance  money.Fen `json:"balance"`  // below zero is a debit balance
	Payments *int64    `json:"payments"` // of owed and refunding: how many payments make it up
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
	Pending     []string   `json:"pending"` // what it waits for
	From        time.Time  `json:"from"`
	To          time.Time  `json:"to"`
	At          time.Time  `json:"at"`       // up to when the closing balances go
	FinalAt     *time.Time `json:"final_at"` // since when it does not change any more
	Entries     int64      `json:"entries"`  // postings of the day
	Funded      Sums       `json:"funded"`
	Claimed     Sums       `json:"claimed"`
	Paid        Sums       `json:"paid"`
	Returned    Sums       `json:"returned"`
	Refunded    Sums       `json:"refunded"`
	Holding     money.Fen  `json:"holding"`   // at the end
	Owed        Sums       `json:"owed"`      // at the end: payouts in flight
	Refunding   Sums       `json:"refunding"` // at the end: refunds in flight
	Checked     *bool      `json:"checked"`   // opening balances and postings make the closing balances; nil: not looked at yet
	Differences *int64     `json:"differences"`
	OpenBreaks  *int64     `json:"open_breaks"`
	Ties        *bool      `json:"ties"` // books and statement agree, but for what is explained

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *CloseSummary) UnmarshalJSON(text []byte) error {
	type plain CloseSummary
	c.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(c))
}

// Close is the statement of a day of the ledger beside that of the provider.
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
	Payments *int64    `json:"payments"` // of owed and refunding: how many make up the closing balance
}

// KindSum are the postings of one kind.
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

// StatementTie is a day of the ledger beside the provider's statement of it.
type StatementTie struct {
	Provider         string          `json:"provider"`
	ReconciliationID string          `json:"reconciliation_id"`
	ReadAt           time.Time       `json:"read_at"`     // up to when the statement says what has moved
	ComparedAt       time.Time       `json:"compared_at"` // when the two sides were put beside each other
	Operations       []TieOp         `json:"operations"`
	ByKind           []DifferenceSum `json:"by_kind"`
	Differences      []DayDifference `json:"differences"` // the first 1,000 that were found
	Unexplained      int64           `json:"unexplained"` // differences that need a break and have none
}

// MatchOp is one operation on both sides of a day: Theirs = Ours + Explained.
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

// DifferenceSum are the differences of one kind and operation.
type DifferenceSum struct {
	Kind   string `json:"kind"`
	Op     string `json:"op"`
	Ours   Sums   `json:"ours"`
	Theirs Sums   `json:"theirs"`
}

// DayDifference is one movement that the two sides of a day do not have alike.
type DayDifference struct {
	Kind     string       `json:"kind"`
	Op       string       `json:"op"`
	OrderNo  string       `json:"order_no"`
	Ours     money.Fen    `json:"ours"`
	Theirs   money.Fen    `json:"theirs"`
	BookedAt *time.Time   `json:"booked_at"` // on whatever day
	MovedAt  *time.Time   `json:"moved_at"`  // on whatever day
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

// DayClose returns the close of a day, YYYY-MM-DD. A day without one, before the first
// posting or in the future, is a problem with CodeNotFound.
func (s *Staff) DayClose(ctx context.Context, date string) (*Close, error) {
	out := new(Close)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: closes + "/" + segment(date)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ListCloses returns one page of days.
func (s *Staff) ListCloses(ctx context.Context, p Page) (*List[CloseSummary], error) {
	return page[CloseSummary](ctx, s.caller, closes, url.Values{}, p)
}

// Closes iterates over days, newest first.
func (s *Staff) Closes(ctx context.Context) iter.Seq2[*CloseSummary, error] {
	return each[CloseSummary](ctx, s.caller, closes, url.Values{})
}

// ExportClose writes the close of a day to w as CSV, as the API sends it. It is
// repeated only as long as nothing was written; after an error w may hold a part,
// which is not to be used.
func (s *Staff) ExportClose(ctx context.Context, date string, w io.Writer) error {
	q := call{method: http.MethodGet, path: "/v1/staff/export/close.csv", query: url.Values{"date": {date}}}
	return s.caller.repeat(ctx, q, func([]byte) (bool, error) { return s.caller.stream(ctx, q, w) })
}
