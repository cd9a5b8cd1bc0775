package api

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

const (
	// returnAnswered is how long an answer of the provider stands against its list: repeated
	// reads of a proof must not use up the provider's rate limit.
	returnAnswered = time.Minute
	// returnPages bounds how many pages of returns of each kind are looked through, and
	// returnAsks how many of them one look has the provider asked about. The next sees to more.
	returnPages = 20
	returnAsks  = 50
)

// returns sums what is booked as having come back.
func returns(by map[payout.TransferKind]money.Fen) money.Fen {
	return by[payout.PostReturned] + by[payout.PostRefundReturned] + by[payout.PostSecondReturned]
}

// explainReturns reports whether running steps explain that more has come back than is booked:
// the provider is about to be asked about it, the payment itself still waits for an answer,
// or it came back a moment ago, and the news is on its way. What came back of a charge is
// a matter for people from the start.
func (a *proofCheck) explainReturns(ctx context.Context, ahead money.Fen) (bool, error) {
	if a.look != 1 && a.look != proofLooks { // the provider is called outside its pace
		return false, nil
	}
	var sum, own money.Fen // own: not in flight already as what has moved
	for _, kind := range []payout.Kind{payout.KindPayout, payout.KindRefund} {
		after := ""
		for range returnPages {
			page, err := a.server.cfg.Provider.Returns(ctx, kind, a.id, after)
			if err != nil {
				return false, unavailable(err)
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
	if sum < ahead { // as in underway: what was booked since the ledger was read
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
	a.proof.InFlight += Fen(min(own, ahead))
	return true, nil
}

// pendingReturns sums what of a page of returns is not booked and explained; waiting is the
// part whose payments wait for the provider's answer. The first look has the provider asked
// about what nothing explains: at the last that does.
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
			// Its news was lost, or comes late: the proof is told what a notification tells.
			a.asks++
			if _, err := a.server.cfg.Store.RequestReturnQuery(ctx, line.OrderNo, returnAnswered); err != nil {
				return 0, 0, fmt.Errorf("proof of packet %s: %w", a.id, err)
			}
		}
	}
	return explained, waiting, nil
}
