package api

import (
	"context"
	"fmt"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
)

const (
	// returnAnswered is how long an answer of the provider is preferred to its list of returns:
	// repeated proofs must not use up the provider's rate limit.
	returnAnswered = time.Minute
	// returnPages bounds the pages of returns of each kind, returnAsks the queries that one
	// read causes. Later reads continue.
	returnPages = 20
	returnAsks  = 50
)

// returns sums the returns in the ledger.
func returns(by map[payout.TransferKind]money.Fen) money.Fen {
	return by[payout.PostReturned] + by[payout.PostRefundReturned] + by[payout.PostSecondReturned] +
		by[payout.PostChargeReturned]
}

// explainReturns reports whether running steps explain that the provider has more returns than
// the ledger: a query is due, the payment itself waits for an answer, or the return is recent.
// A returned charge is a difference until its return is booked.
func (a *proofCheck) explainReturns(ctx context.Context, ahead money.Fen) (bool, error) {
	if a.look != 1 && a.look != proofLooks { // these calls are not throttled
		return false, nil
	}
	var sum, own money.Fen // own: not counted in flight already
	for _, kind := range []payout.Kind{payout.KindPayout, payout.KindRefund} {
		from, after := a.returning(kind), ""
		if from == nil {
			continue
		}
		for range returnPages {
			page, err := from.Returns(ctx, kind, a.id, after)
			if err != nil {
				return false, rest.Unavailable(err)
			}
			explained, waiting, err := a.pendingReturns(ctx, page)
			if err != nil {
				return false, err
			}
			sum, own = sum+explained, own+explained-waiting
			if after = page.Next; after == "" || sum >= ahead {
				break
			}
		}
	}
	if sum < ahead { // as in inFlight: recorded since the ledger was read
		now, err := a.server.cfg.Store.Balances(ctx, a.id)
		if err != nil {
			return false, fmt.Errorf("proof of packet %s: %w", a.id, err)
		}
		since := returns(now.Own().ByKind) - returns(a.ledger.ByKind)
		sum, own = sum+since, own+since
	}
	if sum < ahead {
		return false, nil
	}
	a.proof.InFlight += min(own, ahead)
	return true, nil
}

// pendingReturns sums the explained returns of a page that are not in the ledger; waiting is
// the part whose payments wait for an answer. The first read causes queries about unexplained
// returns, which the last read counts as explained.
func (a *proofCheck) pendingReturns(ctx context.Context, page payout.ReturnPage) (explained, waiting money.Fen, err error) {
	numbers := make([]string, len(page.Lines))
	for i, line := range page.Lines {
		numbers[i] = line.OrderNo
	}
	known, err := a.server.cfg.Store.RecordedReturns(ctx, numbers)
	if err != nil {
		return 0, 0, fmt.Errorf("proof of packet %s: %w", a.id, err)
	}
	for _, line := range page.Lines {
		switch k := known[line.OrderNo]; {
		case k.Booked: // in the ledger
		case k.Waiting:
			explained, waiting = explained+line.Amount, waiting+line.Amount
		case k.QueryRequested, page.At.Sub(line.At) < payout.ReturnNotificationDelay:
			explained += line.Amount
		case a.look == 1 && a.asks < returnAsks:
			// Its notification was lost or is late: the query has the same effect.
			a.asks++
			if _, err := a.server.cfg.Store.RequestReturnQuery(ctx, line.OrderNo, returnAnswered); err != nil {
				return 0, 0, fmt.Errorf("proof of packet %s: %w", a.id, err)
			}
		}
	}
	return explained, waiting, nil
}
