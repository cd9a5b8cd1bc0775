package client

import (
	"context"
	"io"
	"iter"

	"hongbao/wire"
)

// Balance returns what the app has paid in for its own packets, and what of it is in packets.
func (c *Client) Balance(ctx context.Context) (*wire.Balance, error) {
	return get[wire.Balance](ctx, c.caller, wire.PathBalance, nil)
}

// BalanceFilter filters the history of a balance; zero members do not filter.
type BalanceFilter struct {
	Kind string `json:"kind,omitempty"`
}

// ListBalanceMovements returns one page of the history of the app's balance.
func (c *Client) ListBalanceMovements(ctx context.Context, f BalanceFilter, p Page) (*wire.List[wire.BalanceEntry], error) {
	return page[wire.BalanceEntry](ctx, c.caller, wire.PathBalance+"/movements", f, p)
}

// BalanceMovements iterates over the history of the app's balance, newest first.
func (c *Client) BalanceMovements(ctx context.Context, f BalanceFilter) iter.Seq2[*wire.BalanceEntry, error] {
	return each[wire.BalanceEntry](ctx, c.caller, wire.PathBalance+"/movements", f)
}

// AppBalanceFilter selects the history of the balance of an app.
type AppBalanceFilter struct {
	App  string `json:"app,omitempty"`
	Kind string `json:"kind,omitempty"` // "": all
}

// ListBalanceMovements returns one page of the history of an app's balance.
func (s *Staff) ListBalanceMovements(ctx context.Context, f AppBalanceFilter, p Page) (*wire.List[wire.BalanceEntry], error) {
	return page[wire.BalanceEntry](ctx, s.caller, wire.PathBalances+"/movements", f, p)
}

// BalanceMovements iterates over the history of an app's balance, newest first.
func (s *Staff) BalanceMovements(ctx context.Context, f AppBalanceFilter) iter.Seq2[*wire.BalanceEntry, error] {
	return each[wire.BalanceEntry](ctx, s.caller, wire.PathBalances+"/movements", f)
}

// ExportBalanceMovements writes the history of an app's balance to w as CSV, like ExportPayouts.
func (s *Staff) ExportBalanceMovements(ctx context.Context, f AppBalanceFilter, w io.Writer) error {
	return s.export(ctx, "balance-movements", f, w)
}

// CreditBalance asks to credit an app's balance; a second person has to approve, and nothing has moved before.
// Problems: CodeReferenceUsed, CodeNotFound.
func (s *Staff) CreditBalance(ctx context.Context, app string, r wire.MoveBalance, key ...Key) (*wire.DecidedMovement, error) {
	return decide[wire.DecidedMovement](ctx, s, wire.PathBalances+"/"+segment(app)+"/credit", r, key)
}

// DebitBalance asks to debit an app's balance, like CreditBalance; above what is available it is a problem
// with CodeInsufficientBalance.
func (s *Staff) DebitBalance(ctx context.Context, app string, r wire.MoveBalance, key ...Key) (*wire.DecidedMovement, error) {
	return decide[wire.DecidedMovement](ctx, s, wire.PathBalances+"/"+segment(app)+"/debit", r, key)
}
