package api

import (
	"context"

	"hongbao/api/rest"
	staffapi "hongbao/api/staff"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// getBalance returns the balance of the calling app.
func (s *Server) getBalance(ctx context.Context, in *rest.Asked) (*wire.Balance, error) {
	found, err := s.cfg.Store.AppBalances(ctx, in.Caller.App.ID)
	if err != nil {
		return nil, err
	}
	out := wire.Balance{Currency: packet.CurrencyCNY}
	if len(found) > 0 {
		out = staffapi.RenderBalance(found[0])
	}
	return &out, nil
}

// ownBalanceEntries is the history of the calling app's balance.
func (s *Server) ownBalanceEntries() rest.Listing[wire.BalanceFilter, wire.BalanceEntry] {
	return rest.Listing[wire.BalanceFilter, wire.BalanceEntry]{Name: "balance-movements", ID: "balance entry",
		Read: func(ctx context.Context, a rest.Selection[wire.BalanceFilter]) ([]wire.BalanceEntry, *rest.Position, error) {
			return s.staffAPI.BalanceEntries(ctx, a.Caller.App.ID, a.Filter.Kind, a.After, a.Limit)
		}}
}

func (s *Server) ownBalanceRoutes() []*rest.Route {
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "getBalance", Path: wire.PathBalance, Tag: "balance", Summary: "Get the balance of the app",
			About:   "Returns the money that the app has paid in for its own packets, and what of it is in packets.",
			Answers: rest.OK("The balance."),
		}, s.getBalance),
		rest.Get(rest.Route{
			ID: "listBalanceMovements", Path: wire.PathBalance + "/movements", Tag: "balance", Summary: "List the history of the app's balance",
			About: "Newest first, each entry with the available balance after it.", Answers: rest.OK("A page of entries."),
		}, s.ownBalanceEntries().Page()),
	}
}
