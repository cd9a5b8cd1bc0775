package staff

import (
	"context"
	"strconv"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// RenderBalance renders the balance of an app.
func RenderBalance(b payout.AppBalance) wire.Balance {
	return wire.Balance{Available: b.Available, Reserved: b.Reserved, Currency: b.Currency}
}

// renderAppBalances returns the balance of every app.
func (s *API) renderAppBalances(ctx context.Context) ([]wire.AppBalance, error) {
	found, err := s.cfg.Store.AppBalances(ctx, "")
	out := make([]wire.AppBalance, len(found))
	for i, b := range found {
		out[i] = wire.AppBalance{App: b.App, Name: b.Name, Balance: RenderBalance(b)}
	}
	return out, err
}

// appBalanceEntries is the history of an app's balance, for staff.
func (s *API) appBalanceEntries() rest.Listing[wire.AppBalanceFilter, wire.BalanceEntry] {
	return rest.Listing[wire.AppBalanceFilter, wire.BalanceEntry]{Name: "balance-movements", ID: "balance entry",
		Read: func(ctx context.Context, a rest.Selection[wire.AppBalanceFilter]) ([]wire.BalanceEntry, *rest.Position, error) {
			return s.BalanceEntries(ctx, a.Filter.App, a.Filter.Kind, a.After, a.Limit)
		}}
}

// BalanceEntries returns up to limit entries of the balance of an app, newest first, and the position of the last if there
// are more.
func (s *API) BalanceEntries(ctx context.Context, app, kind string, after rest.Position, limit int) ([]wire.BalanceEntry,
	*rest.Position, error) {
	rows, err := s.cfg.Store.BalanceEntries(ctx, staff.BalanceFilter{App: app, Kind: payout.TransferKind(kind),
		AfterID: rest.NumberOf("", after.ID), Limit: limit + 1})
	return rest.Cut(rows, err, limit, func(e staff.BalanceEntry) rest.Position {
		return rest.Position{At: e.At, ID: strconv.FormatInt(e.ID, 10)}
	},
		renderBalanceEntry)
}

func renderBalanceEntry(e staff.BalanceEntry) wire.BalanceEntry {
	return wire.BalanceEntry{ID: strconv.FormatInt(e.ID, 10), At: wire.At(e.At), Kind: string(e.Kind), Amount: e.Amount,
		Available: e.Available, Currency: packet.CurrencyCNY, PacketID: rest.TextOrNull(e.PacketID), Reference: rest.TextOrNull(e.Reference)}
}

type moveBalanceIn struct {
	rest.Change
	App  string           `path:"app" of:"app"`
	Body wire.MoveBalance `in:"body"`
}

func (in *moveBalanceIn) Check(o *rest.Object) {
	if in.Body.Reference == "" && !o.Faulty("reference") {
		in.Body.Reference = in.Body.Evidence // the same request as with the member
	}
}

// moveBalance returns the operation that asks for a credit or debit.
func (s *API) moveBalance(kind payout.TransferKind) rest.Operation[moveBalanceIn, rest.Stored[wire.DecidedMovement]] {
	return func(ctx context.Context, in *moveBalanceIn) (*rest.Stored[wire.DecidedMovement], error) {
		m := staff.BalanceMovement{App: in.App, Kind: kind, Amount: in.Body.Amount, Reference: in.Body.Reference}
		return rest.StoredAs[wire.DecidedMovement](s.cfg.Store.MoveBalance(ctx, in.Write, m, in.Body.Evidence, renderMoved(in.Request)))
	}
}

// renderMoved returns the answer that is stored with the decision about a movement.
func renderMoved(r *rest.Request) staff.DecisionAnswer {
	return func(d *staff.Decision, _ staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		out := wire.DecidedMovement{Movement: *renderMovement(d.Movement)}
		out.Decision, out.Approval = renderDecided(*d)
		return rest.Accept(out)
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

func (s *API) balanceRoutes() []*rest.Route {
	const tag = "staff balances"
	move := func(kind payout.TransferKind, summary, about string, problems ...wire.Code) *rest.Route {
		return rest.Post(rest.Route{
			ID: string(kind) + "Balance", Path: wire.PathBalances + "/{app}/" + string(kind), Roles: []access.Role{access.RoleFinance},
			Tag: tag, Summary: summary, About: about + " A second person has to approve: until then nothing has moved.",
			Answers: rest.Accepted("The decision waits for a second person."), Problems: append(problems, wire.CodeReferenceUsed),
		}, s.moveBalance(kind))
	}
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listAppBalanceMovements", Path: wire.PathBalances + "/movements", Tag: tag, Summary: "List the history of an app's balance",
			About: "Newest first, each entry with the available balance after it.", Answers: rest.OK("A page of entries."),
		}, s.appBalanceEntries().Page()),
		move(payout.PostCredit, "Credit an app's balance", "Records money that the app has paid in."),
		move(payout.PostDebit, "Debit an app's balance", "Records money that the app is paid out. 409 insufficient_balance above what is "+
			"available, 409 held while the provider balance is held; the approval checks both again.",
			wire.CodeInsufficientBalance, wire.CodeHeld),
	}
}
