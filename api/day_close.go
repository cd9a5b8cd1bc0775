package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// CloseStatus is the status of a day-end close.
type CloseStatus string

// The statuses of a day-end close.
const (
	closeOpen        CloseStatus = "open"
	closeProvisional CloseStatus = "provisional"
	closeFinal       CloseStatus = "final"
)

// Schema implements huma.SchemaProvider.
func (CloseStatus) Schema(huma.Registry) *huma.Schema {
	return enum([]CloseStatus{closeOpen, closeProvisional, closeFinal})
}

// CloseSummary is one day of the ledger in a few figures.
type CloseSummary struct {
	Date        Date            `json:"date" doc:"The day, in the time zone of the provider's statement."`
	Status      CloseStatus     `json:"status" doc:"open: the day is not over. provisional: the day is over and something is missing (pending). final: it does not change."`
	Pending     []string        `json:"pending" nullable:"false" doc:"What the close waits for: day (over for five minutes), sums (computed by the worker), statement (read after the day), tie (statement match), breaks (open breaks of the day), unexplained (differences without a break), entries (ledger entries that do not add up to the change of the balances)."`
	From        Stamp           `json:"from" doc:"The first moment of the day."`
	To          Stamp           `json:"to" doc:"The first moment of the next day."`
	At          Stamp           `json:"at" doc:"The moment of the closing balances: to, or now while the day is not over."`
	FinalAt     Nullable[Stamp] `json:"final_at" doc:"When the close became final."`
	Entries     int64           `json:"entries" minimum:"0" doc:"Ledger entries of the day."`
	Funded      Sums            `json:"funded" doc:"Charged to senders on the day."`
	Claimed     Sums            `json:"claimed" doc:"Claimed on the day."`
	Paid        Sums            `json:"paid" doc:"Paid to recipients by the provider on the day."`
	Returned    Sums            `json:"returned" doc:"Returned by recipients on the day."`
	Refunded    Sums            `json:"refunded" doc:"Refunded to senders on the day."`
	Holding     TotalFen        `json:"holding" doc:"In packets and not claimed at the end."`
	Owed        Sums            `json:"owed" doc:"Claimed and not paid at the end."`
	Refunding   Sums            `json:"refunding" doc:"Refunds that are not complete at the end."`
	Checked     Nullable[bool]  `json:"checked" doc:"true: opening balances plus all ledger entries of the day give the closing balances; null before the check."`
	Differences Nullable[int64] `json:"differences" doc:"How many movements differ between our records and the statement; null before the statement match."`
	OpenBreaks  Nullable[int64] `json:"open_breaks" doc:"Open breaks of the day; null before the statement match."`
	Ties        Nullable[bool]  `json:"ties" doc:"true: our records and the statement agree, apart from explained differences; null before the statement match."`
}

// Closes is a page of days.
type Closes struct {
	Items      []CloseSummary   `json:"items" nullable:"false" doc:"Newest first: every day since the first ledger entry."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// Close is the day-end close: the ledger of a day beside the provider's statement.
type Close struct {
	CloseSummary
	Accounts  []AccountDay           `json:"accounts" nullable:"false" doc:"Every account: opening - debits + credits = closing."`
	Movements []KindSum              `json:"movements" nullable:"false" doc:"Ledger entries of the day by kind, including kinds without entries."`
	Apps      []AppDay               `json:"apps" nullable:"false" doc:"The figures by app."`
	Statement Nullable[StatementTie] `json:"statement" doc:"The statement match of the day; null before it."`
}

// AccountDay is a day of one account.
type AccountDay struct {
	Account  string          `json:"account" enum:"provider,holding,owed,refunding,outside,suspense,house" doc:"The account, as in balances."`
	Opening  NetFen          `json:"opening" doc:"The balance at the beginning of the day."`
	Debits   TotalFen        `json:"debits" doc:"Debits of the day."`
	Credits  TotalFen        `json:"credits" doc:"Credits of the day."`
	Closing  NetFen          `json:"closing" doc:"The balance at the end."`
	Payments Nullable[int64] `json:"payments" doc:"How many payments the closing balance of owed or refunding consists of; null for other accounts."`
}

// KindSum is the sum of the ledger entries of one kind.
type KindSum struct {
	Kind   string   `json:"kind" doc:"charge, claim, paid, returned, paid_outside, cancel, close, refunded, refund_returned, refund_outside, honoured, voided, second_success, second_returned, charge_returned, refund_kept or refund_dropped; docs/finance.md lists all kinds." example:"paid"`
	Debit  string   `json:"debit" doc:"The debited account." example:"owed"`
	Credit string   `json:"credit" doc:"The credited account." example:"provider"`
	Count  int64    `json:"count" minimum:"0" doc:"The count."`
	Amount TotalFen `json:"amount" doc:"The sum."`
}

// AppDay is a day of one app.
type AppDay struct {
	AppID     string       `json:"app_id" doc:"The app of the packets."`
	Accounts  []AccountDay `json:"accounts" nullable:"false" doc:"Every account."`
	Movements []KindSum    `json:"movements" nullable:"false" doc:"Ledger entries of the day by kind, including kinds without entries."`
}

// StatementTie is the statement match of a day: the ledger beside the provider's statement. Its
// name is part of the OpenAPI document.
type StatementTie struct {
	Provider         string          `json:"provider" doc:"The provider of the statement." example:"sandbox"`
	ReconciliationID string          `json:"reconciliation_id" doc:"The last reconciliation that read the statement."`
	ReadAt           Stamp           `json:"read_at" doc:"The statement covers movements before this time."`
	ComparedAt       Stamp           `json:"compared_at" doc:"When the statement match ran."`
	Operations       []TieOp         `json:"operations" nullable:"false" doc:"Both sides by operation: theirs = ours + explained, in count and amount."`
	ByKind           []DifferenceSum `json:"by_kind" nullable:"false" doc:"The sums of all differences by kind and operation."`
	Differences      []DayDifference `json:"differences" nullable:"false" doc:"Single differences in the order of time; the first 1,000."`
	Unexplained      int64           `json:"unexplained" minimum:"0" doc:"How many differences need a break and have none."`
}

// TieOp is one operation on both sides of a day.
type TieOp struct {
	Op        string  `json:"op" doc:"The provider's operation: charge, transfer, refund, return." example:"transfer"`
	Ours      Sums    `json:"ours" doc:"Recorded on the day."`
	Theirs    Sums    `json:"theirs" doc:"In the statement of the day."`
	Explained NetSums `json:"explained" doc:"theirs minus ours, as explained by the single differences."`
}

// NetSums is a difference in count and amount.
type NetSums struct {
	Count  int64  `json:"count" doc:"The difference in count; negative: fewer."`
	Amount NetFen `json:"amount" doc:"The difference in amount; negative: less."`
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
	Kind     string          `json:"kind" doc:"booked_later, booked_earlier: in the statement of the day, recorded on another day. moved_earlier, moved_later: recorded on the day, in the statement of another day. theirs_only, ours_only: on one side only. amount_differs: on both sides with different amounts. other: the amounts agree; a break describes the difference." example:"booked_later"`
	Op       string          `json:"op" doc:"The provider's operation." example:"transfer"`
	OrderNo  string          `json:"order_no" doc:"The order number; it may be unknown to us."`
	Ours     TotalFen        `json:"ours" doc:"The amount in our records of the day."`
	Theirs   TotalFen        `json:"theirs" doc:"The amount in the statement of the day."`
	BookedAt Nullable[Stamp] `json:"booked_at" doc:"When it was recorded, on any day; null: not recorded."`
	MovedAt  Nullable[Stamp] `json:"moved_at" doc:"When it moved, by the statement of any day; null: in no statement."`
	Breaks   []CloseBreak    `json:"breaks" nullable:"false" doc:"The breaks about the order number."`
}

// CloseBreak is a break that explains a difference.
type CloseBreak struct {
	ID   string `json:"id" doc:"The id." example:"b4711"`
	Kind string `json:"kind" doc:"The kind of difference." example:"not_in_statement"`
	Open bool   `json:"open" doc:"true: it was not resolved at the time of the statement match."`
}

func renderSum(s staff.Sum) Sums { return Sums{Count: s.Count, Amount: TotalFen(s.Amount)} }

func renderAccounts(opening, closing staff.Totals) []AccountDay {
	day := closing.Minus(opening)
	out := make([]AccountDay, 0, len(payout.Accounts))
	for _, a := range payout.Accounts {
		balance := closing.Balance(a)
		debits, credits := day.Turnover(a)
		out = append(out, AccountDay{Account: string(a), Opening: NetFen(opening.Balance(a).Amount), Debits: TotalFen(debits),
			Credits: TotalFen(credits), Closing: NetFen(balance.Amount), Payments: paymentsOf(a, balance)})
	}
	return out
}

func renderMovements(t staff.Totals) []KindSum {
	byKind := t.ByKind()
	out := make([]KindSum, 0, len(payout.TransferKinds))
	for _, kind := range payout.TransferKinds {
		debit, credit := kind.Accounts()
		sum := byKind[kind]
		out = append(out, KindSum{Kind: string(kind), Debit: string(debit), Credit: string(credit), Count: sum.Count,
			Amount: TotalFen(sum.Amount)})
	}
	return out
}

func renderCloseSummary(c staff.DayClose) CloseSummary {
	day := c.Movements()
	kinds := day.ByKind()
	out := CloseSummary{Date: Date(c.Day), Status: closeProvisional, Pending: []string{}, From: Stamp(c.From), To: Stamp(c.To),
		At:      Stamp(c.At),
		FinalAt: stampOrNull(c.FinalAt), Entries: day.Entries(), Funded: renderSum(kinds[payout.PostCharge]),
		Claimed: renderSum(kinds[payout.PostClaim]), Paid: renderSum(kinds[payout.PostPaid]), Returned: renderSum(kinds[payout.PostReturned]),
		Refunded: renderSum(kinds[payout.PostRefunded]), Holding: TotalFen(c.Closing.Balance(payout.AccountHolding).Amount),
		Owed: renderSum(c.Closing.Balance(payout.AccountOwed)), Refunding: renderSum(c.Closing.Balance(payout.AccountRefunding)),
		Checked: orNull(c.EntriesMatch())}
	switch {
	case !c.FinalAt.IsZero():
		out.Status = closeFinal
	case c.At.Before(c.To):
		out.Status = closeOpen
	}
	for _, p := range c.Blockers {
		out.Pending = append(out.Pending, string(p))
	}
	if c.Match != nil {
		agrees := c.Match.Agrees()
		out.Differences, out.OpenBreaks, out.Ties = orNull(&c.Match.Count), orNull(&c.Match.OpenBreaks), orNull(&agrees)
	}
	return out
}

func renderClose(c staff.DayClose) Close {
	out := Close{CloseSummary: renderCloseSummary(c), Accounts: renderAccounts(c.Opening, c.Closing),
		Movements: renderMovements(c.Movements()), Apps: []AppDay{}}
	for _, app := range c.Closing.Apps() {
		opening, closing := c.Opening.OfApp(app), c.Closing.OfApp(app)
		out.Apps = append(out.Apps, AppDay{AppID: app, Accounts: renderAccounts(opening, closing),
			Movements: renderMovements(closing.Minus(opening))})
	}
	if c.Match != nil {
		match := renderStatementMatch(c.Match)
		out.Statement = orNull(&match)
	}
	return out
}

func renderStatementMatch(m *staff.StatementMatch) StatementTie {
	out := StatementTie{Provider: m.Provider, ReconciliationID: m.ReconciliationID, ReadAt: Stamp(m.ReadAt), ComparedAt: Stamp(m.MatchedAt),
		Operations: []TieOp{}, ByKind: []DifferenceSum{}, Differences: []DayDifference{}, Unexplained: m.Unexplained}
	for _, o := range m.Ops {
		out.Operations = append(out.Operations, TieOp{Op: string(o.Op), Ours: renderSum(o.Ours), Theirs: renderSum(o.Theirs),
			Explained: NetSums{Count: o.Differ.Count, Amount: NetFen(o.Differ.Amount)}})
	}
	for _, s := range m.Sums {
		out.ByKind = append(out.ByKind, DifferenceSum{Kind: string(s.Kind), Op: string(s.Op), Ours: renderSum(s.Ours),
			Theirs: renderSum(s.Theirs)})
	}
	for _, d := range m.Differences {
		one := DayDifference{Kind: string(d.Kind), Op: string(d.Op), OrderNo: d.OrderNo, Ours: TotalFen(d.Ours), Theirs: TotalFen(d.Theirs),
			BookedAt: stampOrNull(d.BookedAt), MovedAt: stampOrNull(d.MovedAt), Breaks: []CloseBreak{}}
		for _, b := range d.Breaks {
			one.Breaks = append(one.Breaks, CloseBreak{ID: breakPrefix + strconv.FormatInt(b.ID, 10), Kind: string(b.Kind), Open: b.Open})
		}
		out.Differences = append(out.Differences, one)
	}
	return out
}

func listCloses(r *request) (answer, error) {
	_, given, after, limit, err := readList(r, func(*query) struct{} { return struct{}{} })
	if err != nil {
		return answer{}, err
	}
	if after.ID != "" && checkDay(after.ID) != nil {
		return answer{}, badCursor()
	}
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	p := r.server.cfg.Provider
	found, err := r.server.cfg.Store.DayCloses(ctx, p.Name(), p.Zone(), payout.Day(after.ID), limit+1)
	if err != nil {
		return answer{}, err
	}
	var page Closes
	page.Items, page.NextCursor = pageOf(found, limit, func(k staff.DayClose) listCursor {
		return listCursor{Filters: given, At: k.From, ID: string(k.Day)}
	}, renderCloseSummary)
	return answer{status: http.StatusOK, body: page}, nil
}

// dayNotFound refuses a day without a close.
func dayNotFound() *refusal {
	return &refusal{code: CodeNotFound, detail: "The ledger has no such day: there is no entry until its end, it is in the future, or it " +
		"is not written YYYY-MM-DD."}
}

// readClose reads the close of a day; it is not found for a day that has none.
func (r *request) readClose(date string) (staff.DayClose, error) {
	if checkDay(date) != nil {
		return staff.DayClose{}, dayNotFound()
	}
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	p := r.server.cfg.Provider
	c, err := r.server.cfg.Store.DayClose(ctx, p.Name(), payout.Day(date), p.Zone())
	if errors.Is(err, packet.ErrNotFound) {
		return c, dayNotFound()
	}
	return c, err
}

func getClose(r *request) (answer, error) {
	date, err := url.PathUnescape(r.c.Params("date"))
	if err != nil {
		return answer{}, dayNotFound()
	}
	c, err := r.readClose(date)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: renderClose(c)}, nil
}
