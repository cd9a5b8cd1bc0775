package staff

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func renderSum(s staff.Sum) wire.Sums { return wire.Sums{Count: s.Count, Amount: s.Amount} }

func renderAccounts(opening, closing staff.Totals) []wire.AccountDay {
	day := closing.Minus(opening)
	out := make([]wire.AccountDay, 0, len(payout.Accounts))
	for _, a := range payout.Accounts {
		balance := closing.Balance(a)
		debits, credits := day.Turnover(a)
		out = append(out, wire.AccountDay{Account: string(a), Opening: opening.Balance(a).Amount, Debits: debits,
			Credits: credits, Closing: balance.Amount, Payments: paymentsOf(a, balance)})
	}
	return out
}

func renderMovements(t staff.Totals) []wire.KindSum {
	byKind := t.ByKind()
	out := make([]wire.KindSum, 0, len(payout.TransferKinds))
	for _, kind := range payout.TransferKinds {
		debit, credit := kind.Accounts()
		sum := byKind[kind]
		out = append(out, wire.KindSum{Kind: string(kind), Debit: string(debit), Credit: string(credit), Count: sum.Count,
			Amount: sum.Amount})
	}
	return out
}

func renderCloseSummary(c staff.DayClose) wire.CloseSummary {
	day := c.Movements()
	kinds := day.ByKind()
	out := wire.CloseSummary{Date: wire.Date(c.Day), Status: wire.CloseProvisional, Pending: []string{}, From: wire.At(c.From),
		To:      wire.At(c.To),
		At:      wire.At(c.At),
		FinalAt: rest.TimeOrNull(c.FinalAt), Entries: day.Entries(), Funded: renderSum(kinds[payout.PostCharge]),
		Claimed: renderSum(kinds[payout.PostClaim]), Paid: renderSum(kinds[payout.PostPaid]), Returned: renderSum(kinds[payout.PostReturned]),
		Refunded: renderSum(kinds[payout.PostRefunded]), Holding: c.Closing.Balance(payout.AccountHolding).Amount,
		Owed: renderSum(c.Closing.Balance(payout.AccountOwed)), Refunding: renderSum(c.Closing.Balance(payout.AccountRefunding)),
		Checked: c.EntriesMatch()}
	switch {
	case !c.FinalAt.IsZero():
		out.Status = wire.CloseFinal
	case c.At.Before(c.To):
		out.Status = wire.CloseOpen
	}
	for _, p := range c.Blockers {
		out.Pending = append(out.Pending, string(p))
	}
	if c.Match != nil {
		agrees, differences, open := c.Match.Agrees(), c.Match.Differences(), c.Match.OpenBreaks()
		out.Differences, out.OpenBreaks, out.Ties = &differences, &open, &agrees
	}
	return out
}

func renderClose(c staff.DayClose) wire.Close {
	out := wire.Close{CloseSummary: renderCloseSummary(c), Accounts: renderAccounts(c.Opening, c.Closing),
		Movements: renderMovements(c.Movements()), Providers: renderProviders(c.Opening, c.Closing), Apps: []wire.AppDay{},
		Statements: []wire.StatementTie{}}
	for _, app := range c.Closing.Apps() {
		opening, closing := c.Opening.OfApp(app), c.Closing.OfApp(app)
		out.Apps = append(out.Apps, wire.AppDay{AppID: app, Accounts: renderAccounts(opening, closing),
			Movements: renderMovements(closing.Minus(opening))})
	}
	if c.Match != nil {
		for _, m := range c.Match.Statements {
			out.Statements = append(out.Statements, renderStatementMatch(m, c.Match.MatchedAt))
		}
	}
	return out
}

// renderProviders renders the account of each provider that transfers have changed until the end of a day.
func renderProviders(opening, closing staff.Totals) []wire.ProviderDay {
	out := []wire.ProviderDay{}
	for _, name := range closing.Providers() {
		before, after := opening.OfProvider(name), closing.OfProvider(name)
		debits, credits := after.Minus(before).Turnover(payout.AccountProvider)
		out = append(out, wire.ProviderDay{Provider: name, Opening: before.Balance(payout.AccountProvider).Amount, Debits: debits,
			Credits: credits, Closing: after.Balance(payout.AccountProvider).Amount})
	}
	return out
}

func renderStatementMatch(m *staff.StatementMatch, at time.Time) wire.StatementTie {
	out := wire.StatementTie{Provider: m.Provider, ReconciliationID: m.ReconciliationID, ReadAt: wire.At(m.ReadAt),
		ComparedAt: wire.At(at), Ties: m.Agrees(), Count: m.Count,
		Operations: []wire.TieOp{}, ByKind: []wire.DifferenceSum{}, Differences: []wire.DayDifference{}, Unexplained: m.Unexplained}
	for _, o := range m.Ops {
		out.Operations = append(out.Operations, wire.TieOp{Op: string(o.Op), Ours: renderSum(o.Ours), Theirs: renderSum(o.Theirs),
			Explained: wire.NetSums{Count: o.Differ.Count, Amount: o.Differ.Amount}})
	}
	for _, s := range m.Sums {
		out.ByKind = append(out.ByKind, wire.DifferenceSum{Kind: string(s.Kind), Op: string(s.Op), Ours: renderSum(s.Ours),
			Theirs: renderSum(s.Theirs)})
	}
	for _, d := range m.Differences {
		one := wire.DayDifference{Kind: string(d.Kind), Op: string(d.Op), OrderNo: d.OrderNo, Ours: d.Ours, Theirs: d.Theirs,
			BookedAt: rest.TimeOrNull(d.BookedAt), MovedAt: rest.TimeOrNull(d.MovedAt), Breaks: []wire.CloseBreak{}}
		for _, b := range d.Breaks {
			one.Breaks = append(one.Breaks, wire.CloseBreak{ID: rest.BreakPrefix + strconv.FormatInt(b.ID, 10), Kind: string(b.Kind), Open: b.Open})
		}
		out.Differences = append(out.Differences, one)
	}
	return out
}

// statement returns the provider whose statement every day-end close is matched with, and the time zone of its
// days: that of payouts; UTC without a statement.
func statement(providers *payout.Registry) (name string, zone *time.Location) {
	if p := providers.Closing(); p != nil {
		return p.Name(), p.Zone()
	}
	return "", time.UTC
}

// closes is the list of day-end closes.
func (s *API) closes() rest.Listing[struct{}, wire.CloseSummary] {
	return rest.Listing[struct{}, wire.CloseSummary]{Name: "closes", ID: "day",
		Read: func(ctx context.Context, a rest.Selection[struct{}]) ([]wire.CloseSummary, *rest.Position, error) {
			name, zone := statement(s.cfg.Providers)
			rows, err := s.cfg.Store.DayCloses(ctx, name, zone, payout.Day(a.After.ID), a.Limit+1)
			return rest.Cut(rows, err, a.Limit, func(k staff.DayClose) rest.Position {
				return rest.Position{At: k.From, ID: string(k.Day)}
			}, renderCloseSummary)
		}}
}

// readClose reads the close of a day; it is not found for a day that has none.
func (s *API) readClose(ctx context.Context, date string) (staff.DayClose, error) {
	name, zone := statement(s.cfg.Providers)
	c, err := s.cfg.Store.DayClose(ctx, name, payout.Day(date), zone)
	if errors.Is(err, packet.ErrNotFound) {
		return c, rest.DayNotFound()
	}
	return c, err
}

type closeIn struct {
	Date wire.Date `path:"date" of:"day"`
}

func (s *API) getClose(ctx context.Context, in *closeIn) (*wire.Close, error) {
	c, err := s.readClose(ctx, string(in.Date))
	if err != nil {
		return nil, err
	}
	out := renderClose(c)
	return &out, nil
}

func (s *API) closeRoutes() []*rest.Route {
	const tag = "staff ledger"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "getBalances", Path: wire.PathBalances, Tag: tag, Summary: "Get the balances of the ledger at a moment",
			About: "Returns every account, in total and by app. Balances of a moment more than five minutes ago do not change: " +
				"the ledger is append-only.",
			Limit: rest.ListTimeout, Answers: rest.OK("The balances."),
		}, s.getBalances),
		rest.Get(rest.Route{
			ID: "listCloses", Path: wire.PathCloses, Tag: tag, Summary: "List the day-end closes",
			About: "Newest first, from today back to the day of the first transfer in the ledger.",
			Limit: rest.ListTimeout, Answers: rest.OK("A page of days."),
		}, s.closes().Page()),
		rest.Get(rest.Route{
			ID: "getClose", Path: wire.PathCloses + "/{date}", Tag: tag, Summary: "Get the day-end close of a day",
			About: "Returns balances and movements next to the provider's statement. A day is a day of the statement, in the " +
				"provider's time zone; a ledger entry belongs to the day on which it was recorded. The close is final once the day " +
				"is over, its statement was read and no break of it is open. A final close does not change.",
			Limit: rest.ListTimeout, Answers: rest.OK("The close."),
		}, s.getClose),
		rest.Get(rest.Route{
			ID: "exportClose", Path: wire.PathExports + "/close.csv", Tag: "staff exports",
			Summary: "Export the day-end close of a day as CSV",
			About: "RFC 4180 in UTF-8 with a header line. The columns are " + strings.Join(closeColumns, ", ") +
				". Sections: opening, movement and closing for all apps (app_id is empty) and for each app; provider_opening and " +
				"provider_closing for each provider; for each statement, by provider, statement, differences (sums by operation and kind), " +
				"difference (single differences, the first " + strconv.Itoa(staff.MatchDifferences) + "), and not_listed with the count of " +
				"the others if there are any. Amounts are given in whole fen and in yuan, times in UTC and at UTC+8; " +
				"cells that do not apply are empty. Text that a spreadsheet could read as a formula or a value is prefixed with an apostrophe, as " +
				"in the export of payouts.",
			Limit: rest.ListTimeout, Answers: rest.CSVAnswer(), Problems: []wire.Code{wire.CodeNotFound},
		}, s.exportClose),
	}
}
