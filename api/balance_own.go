package api

import (
	"context"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// getBalance returns the balance of the calling app.
func (s *Server) getBalance(ctx context.Context, in *Asked) (*wire.Balance, error) {
	found, err := s.cfg.Store.AppBalances(ctx, in.caller.app.ID)
	if err != nil {
		return nil, err
	}
	out := wire.Balance{Currency: packet.CurrencyCNY}
	if len(found) > 0 {
		out = renderBalance(found[0])
	}
	return &out, nil
}

// ownBalanceEntries is the history of the calling app's balance.
func (s *Server) ownBalanceEntries() listing[wire.BalanceFilter, wire.BalanceEntry] {
	return listing[wire.BalanceFilter, wire.BalanceEntry]{"balance-movements", "balance entry",
		func(ctx context.Context, a selection[wire.BalanceFilter]) ([]wire.BalanceEntry, *position, error) {
			return s.api.balanceEntries(ctx, a.caller.app.ID, a.filter.Kind, a.after, a.limit)
		}}
}

func (s *Server) ownBalanceRoutes() []*route {
	return []*route{
		get(route{
			id: "getBalance", path: wire.PathBalance, tag: "balance", summary: "Get the balance of the app",
			about:   "Returns the money that the app has paid in for its own packets, and what of it is in packets.",
			answers: ok("The balance."),
		}, s.getBalance),
		get(route{
			id: "listBalanceMovements", path: wire.PathBalance + "/movements", tag: "balance", summary: "List the history of the app's balance",
			about: "Newest first, each entry with the available balance after it.", answers: ok("A page of entries."),
		}, s.ownBalanceEntries().page()),
	}
}
