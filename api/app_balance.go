package api

import (
	"context"
	"strconv"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func renderBalance(b payout.AppBalance) wire.Balance {
	return wire.Balance{Available: b.Available, Reserved: b.Reserved, Currency: b.Currency}
}

// renderAppBalances returns the balance of every app.
func (s *API) renderAppBalances(ctx context.Context) ([]wire.AppBalance, error) {
	found, err := s.cfg.Store.AppBalances(ctx, "")
	out := make([]wire.AppBalance, len(found))
	for i, b := range found {
		out[i] = wire.AppBalance{App: b.App, Name: b.Name, Balance: renderBalance(b)}
	}
	return out, err
}

// appBalanceEntries is the history of an app's balance, for staff.
func (s *API) appBalanceEntries() listing[wire.AppBalanceFilter, wire.BalanceEntry] {
	return listing[wire.AppBalanceFilter, wire.BalanceEntry]{"balance-movements", "balance entry",
		func(ctx context.Context, a selection[wire.AppBalanceFilter]) ([]wire.BalanceEntry, *position, error) {
			return s.balanceEntries(ctx, a.filter.App, a.filter.Kind, a.after, a.limit)
		}}
}

func (s *API) balanceEntries(ctx context.Context, app, kind string, after position, limit int) ([]wire.BalanceEntry, *position, error) {
	rows, err := s.cfg.Store.BalanceEntries(ctx, staff.BalanceFilter{App: app, Kind: payout.TransferKind(kind),
		AfterID: numberOf("", after.ID), Limit: limit + 1})
	return cut(rows, err, limit, func(e staff.BalanceEntry) position { return position{e.At, strconv.FormatInt(e.ID, 10)} },
		renderBalanceEntry)
}

func renderBalanceEntry(e staff.BalanceEntry) wire.BalanceEntry {
	return wire.BalanceEntry{ID: strconv.FormatInt(e.ID, 10), At: wire.At(e.At), Kind: string(e.Kind), Amount: e.Amount,
		Available: e.Available, Currency: packet.CurrencyCNY, PacketID: textOrNull(e.PacketID), Reference: textOrNull(e.Reference)}
}

type moveBalanceIn struct {
	Change
	App  string           `path:"app" of:"app"`
	Body wire.MoveBalance `in:"body"`
}

func (in *moveBalanceIn) Check(o *object) {
	if in.Body.Reference == "" && !o.faulty("reference") {
		in.Body.Reference = in.Body.Evidence // the same request as with the member
	}
}

// moveBalance returns the operation that asks for a credit or debit.
func (s *API) moveBalance(kind payout.TransferKind) operation[moveBalanceIn, stored[wire.DecidedMovement]] {
	return func(ctx context.Context, in *moveBalanceIn) (*stored[wire.DecidedMovement], error) {
		m := staff.BalanceMovement{App: in.App, Kind: kind, Amount: in.Body.Amount, Reference: in.Body.Reference}
		return storedAs[wire.DecidedMovement](s.cfg.Store.MoveBalance(ctx, in.Write, m, in.Body.Evidence, renderMoved(in.Request)))
	}
}

// renderMoved returns the answer that is stored with the decision about a movement.
func renderMoved(r *Request) staff.DecisionAnswer {
	return func(d *staff.Decision, _ staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		out := wire.DecidedMovement{Movement: *renderMovement(d.Movement)}
		out.Decision, out.Approval = renderDecided(*d)
		return accept(out)
	}
}

// renderMovement renders what a decision about a balance moves; nil: the decision is about a payment.
func renderMovement(m *staff.BalanceMovement) *wire.BalanceMovement {
	if m == nil {
		return nil
	}
	return &wire.BalanceMovement{ID: m.ID, App: m.App, Kind: string(m.Kind), Amount: m.Amount, Currency: packet.CurrencyCNY,
		Reference: m.Reference, Available: m.Available}
}

func (s *API) balanceRoutes() []*route {
	const tag = "staff balances"
	move := func(kind payout.TransferKind, summary, about string, problems ...wire.Code) *route {
		return post(route{
			id: string(kind) + "Balance", path: wire.PathBalances + "/{app}/" + string(kind), roles: []access.Role{access.RoleFinance},
			tag: tag, summary: summary, about: about + " A second person has to approve: until then nothing has moved.",
			answers: accepted("The decision waits for a second person."), problems: append(problems, wire.CodeReferenceUsed),
		}, s.moveBalance(kind))
	}
	return []*route{
		get(route{
			id: "listAppBalanceMovements", path: wire.PathBalances + "/movements", tag: tag, summary: "List the history of an app's balance",
			about: "Newest first, each entry with the available balance after it.", answers: ok("A page of entries."),
		}, s.appBalanceEntries().page()),
		move(payout.PostCredit, "Credit an app's balance", "Records money that the app has paid in."),
		move(payout.PostDebit, "Debit an app's balance", "Records money that the app is paid out. 409 insufficient_balance above what is "+
			"available; the approval checks it again.", wire.CodeInsufficientBalance),
	}
}
