package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// A difference is reported when the last of proofLooks reads still has it: the sources cannot
// be read at one instant, and a step may run between two reads.
const (
	proofLooks = 5
	proofPause = 150 * time.Millisecond
)

// getProof computes the proof until it is balanced, at most proofLooks times.
func (s *Server) getProof(ctx context.Context, in *packetIn) (*wire.Proof, error) {
	if _, err := in.owned(in.ID); err != nil {
		return nil, err
	}
	for look := 1; ; look++ {
		p, err := s.prove(ctx, in.ID, look)
		if err != nil || p.Balanced || look == proofLooks {
			return &p, err
		}
		timer := time.NewTimer(proofPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, rest.Unavailable(ctx.Err())
		case <-timer.C:
		}
	}
}

// evidence is the data of one read of all sources.
type evidence struct {
	id        string
	rec       packet.Record // zero: not written yet
	ledger    payout.Balances
	view      *packet.PoolView // nil: not in Redis
	conflicts staff.ShareConflicts
	provider  payout.ProviderTotals // the sum of parts
	parts     []wire.ProviderPart
	confirmed bool // every part is the provider's own word, and no statement differs from the ledger
}

// prove reads all sources once. It reads row and ledger before Redis and the provider, so that
// the latter can only be ahead.
func (s *Server) prove(ctx context.Context, id string, look int) (wire.Proof, error) {
	e := evidence{id: id, parts: []wire.ProviderPart{}, confirmed: true}
	var err error
	if e.rec, err = s.row(ctx, id); err != nil && !errors.Is(err, packet.ErrNotFound) {
		return wire.Proof{}, err
	}
	if e.ledger, err = s.cfg.Store.Balances(ctx, id); err != nil {
		return wire.Proof{}, err
	}
	if e.conflicts, err = s.cfg.Store.ShareConflicts(ctx, id); err != nil {
		return wire.Proof{}, err
	}
	view, err := s.cfg.Pool.View(ctx, id)
	switch {
	case err == nil && !view.Retired:
		e.view = &view
	case err != nil && !errors.Is(err, packet.ErrNotFound):
		return wire.Proof{}, err
	}
	if err := s.readProviders(ctx, &e); err != nil {
		return wire.Proof{}, err
	}
	a := proofCheck{server: s, look: look, evidence: e}
	a.promises = promisesOf(e.conflicts, e.ledger.Honours)
	a.ledger = e.ledger.Own() // the other figures cover the packet's own money only
	a.proof = a.figures()
	a.checkLedger()
	a.checkPool()
	if err := a.checkProvider(ctx); err != nil {
		return wire.Proof{}, err
	}
	a.proof.Balanced = len(a.proof.Differences) == 0
	return a.proof, nil
}

// proofCheck compares the sources.
type proofCheck struct {
	evidence
	server *Server
	proof  wire.Proof

	promises wire.ProofPromises
	look     int // number of the read within the request, from 1
	asks     int // see pendingReturns
}

// promisesOf renders the share conflicts of a packet with their ledger entries.
func promisesOf(m staff.ShareConflicts, by map[payout.TransferKind]money.Fen) wire.ProofPromises {
	p := wire.ProofPromises{Count: m.Count, Amount: m.Amount, Honoured: by[payout.PostHonoured], Voided: by[payout.PostVoided]}
	p.Paid = by[payout.PostPaid] - by[payout.PostReturned] + by[payout.PostPaidOutside]
	p.Owed = p.Honoured - p.Paid - p.Voided
	return p
}

func (a *proofCheck) figures() wire.Proof {
	by, of := a.ledger.ByKind, a.ledger.ByAccount
	p := wire.Proof{
		PacketID: a.id, Total: a.ledger.Charged(),
		Paid: a.ledger.Paid(), Owed: of[payout.AccountOwed],
		Remaining: of[payout.AccountHolding], Refunding: of[payout.AccountRefunding],
		Refunded: a.ledger.Refunded(), Promises: a.promises, ProviderConfirmed: a.confirmed,
		Differences: []wire.Difference{},
	}
	p.Sources = wire.ProofSources{
		Ledger: wire.LedgerFigures{
			Holding: int64(of[payout.AccountHolding]), Owed: int64(of[payout.AccountOwed]), Refunding: int64(of[payout.AccountRefunding]),
			Outside: int64(of[payout.AccountOutside]), Suspense: int64(of[payout.AccountSuspense]), Provider: int64(of[payout.AccountProvider]),
			Charged: a.ledger.Charged(), Claimed: by[payout.PostClaim], Paid: by[payout.PostPaid],
			Returned: returns(by), Refunded: by[payout.PostRefunded] + by[payout.PostRelease],
		},
		Provider: wire.ProviderFigures{Charged: a.provider.Charged, Transferred: a.provider.Transferred,
			Returned: a.provider.Returned, Refunded: a.provider.Refunded,
			Parts: a.parts},
	}
	if a.view != nil {
		p.Sources.Redis = &wire.PoolFigures{Claimed: a.view.ClaimedAmount,
			Remaining: a.view.Packet.TotalAmount - a.view.ClaimedAmount}
	}
	return p
}

func (a *proofCheck) differ(what string, expected, actual money.Fen) {
	if expected != actual {
		a.proof.Differences = append(a.proof.Differences, wire.Difference{What: what, Expected: int64(expected), Actual: int64(actual)})
	}
}

// checkLedger checks that the parts add up to the total and no account is negative.
func (a *proofCheck) checkLedger() {
	p := &a.proof
	a.differ("ledger: total and its parts", p.Total, p.Paid+p.Owed+p.Remaining+p.Refunding+p.Refunded)
	for _, account := range []payout.Account{payout.AccountHolding, payout.AccountOwed, payout.AccountRefunding} {
		if balance := a.ledger.ByAccount[account]; balance < 0 {
			a.differ("ledger: "+string(account)+"  is below zero", 0, balance)
		}
	}
	if p.Promises.Owed < 0 {
		a.differ("ledger: owed for promises is below zero", 0, p.Promises.Owed)
	}
	switch a.rec.Stored {
	case packet.StatusOpen, packet.StatusClosing, packet.StatusClosed:
		a.differ("packet total_amount, ledger charged", a.rec.TotalAmount, a.ledger.Charged())
	}
}

// checkPool checks that Redis is not behind the ledger. It may be ahead by claims that are not
// recorded yet; after the books are closed, only by share conflicts.
func (a *proofCheck) checkPool() {
	if a.view == nil {
		return
	}
	booked, claimed := a.ledger.ByKind[payout.PostClaim], a.view.ClaimedAmount
	switch ahead := claimed - booked; {
	case ahead > 0 && a.rec.BooksClosedAt.IsZero():
		a.proof.InFlight += ahead
	case ahead < 0 || ahead > a.conflicts.Free:
		a.differ("ledger claimed, redis claimed", booked, claimed)
	}
	if a.view.RemainingCount+a.view.ClaimedCount != a.view.Packet.ShareCount {
		a.differ("share_count, redis claimed and remaining shares", money.Fen(a.view.Packet.ShareCount),
			money.Fen(a.view.RemainingCount+a.view.ClaimedCount))
	}
}

// checkProvider checks that the provider is not behind the ledger. It may be ahead by open
// payments and by returns that are being queried. Money under an abandoned order number is a
// second success in the ledger, moved by a transfer or a refund.
func (a *proofCheck) checkProvider(ctx context.Context) error {
	by, moved := a.ledger.ByKind, a.provider
	paid, refunded, second := by[payout.PostPaid], by[payout.PostRefunded], by[payout.PostSecondSuccess]
	asTransfer := min(max(moved.Transferred-paid, 0), second)
	paid, refunded = paid+asTransfer, refunded+second-asTransfer
	for _, side := range []struct {
		what          string
		kind          payout.Kind
		posting       payout.TransferKind
		booked, moved money.Fen
	}{
		{"ledger charged, provider charged", payout.KindCharge, payout.PostCharge, by[payout.PostCharge], moved.Charged},
		{"ledger paid, provider transferred", payout.KindPayout, payout.PostPaid, paid, moved.Transferred},
		{"ledger refunded, provider refunded", payout.KindRefund, payout.PostRefunded, refunded, moved.Refunded},
	} {
		ahead := side.moved - side.booked
		if ahead > 0 {
			explained, err := a.inFlight(ctx, side.kind, side.posting, ahead)
			if err != nil {
				return fmt.Errorf("proof of packet %s: %w", a.id, err)
			}
			if explained >= ahead {
				a.proof.InFlight += ahead
				continue
			}
		}
		a.differ(side.what, side.booked, side.moved)
	}
	returned := returns(by)
	if moved.Returned > returned {
		explained, err := a.explainReturns(ctx, moved.Returned-returned)
		if err != nil || explained {
			return err
		}
	}
	a.differ("ledger returned, provider returned", returned, moved.Returned)
	return nil
}

// inFlight sums what may explain that the provider is ahead: payments that wait for its
// answer, and answers recorded since the ledger was read, which takes seconds for a packet
// with a million shares. In this order no payment is missed.
func (a *proofCheck) inFlight(ctx context.Context, kind payout.Kind, posting payout.TransferKind, enough money.Fen) (money.Fen, error) {
	sum, err := a.open(ctx, kind, enough)
	if err != nil || sum >= enough {
		return sum, err
	}
	now, err := a.server.cfg.Store.Balances(ctx, a.id)
	if err != nil {
		return 0, err
	}
	return sum + now.Own().ByKind[posting] - a.ledger.ByKind[posting], nil
}

// openPage and openPages bound the open payments that are summed.
const (
	openPage  = 500
	openPages = 20
)

// open sums payments that wait for the provider's answer, until the sum is enough.
func (a *proofCheck) open(ctx context.Context, kind payout.Kind, enough money.Fen) (money.Fen, error) {
	var sum money.Fen
	for _, status := range payout.Statuses {
		if !status.Open() {
			continue
		}
		f := staff.PaymentFilter{Kind: kind, PacketID: a.id, Status: status, Limit: openPage}
		for range openPages {
			rows, err := a.server.cfg.Store.Payments(ctx, f)
			if err != nil {
				return 0, err
			}
			for _, row := range rows {
				if sum += row.Amount; sum >= enough {
					return sum, nil
				}
			}
			if len(rows) < openPage {
				break
			}
			last := rows[len(rows)-1]
			f.AfterTime, f.AfterID = last.CreatedAt, last.ID
		}
	}
	return sum, nil
}
