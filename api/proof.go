package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Proof is where the money of a packet is, by three independent sources.
type Proof struct {
	PacketID  string `json:"packet_id" doc:"The packet."`
	Total     Fen    `json:"total" doc:"The amount charged to the sender: total_amount, or 0 while the packet is funding or rejected." example:"10000"`
	Paid      Fen    `json:"paid" doc:"Paid to recipients, including payments by other means and cancelled payouts that reached them after all, without returned amounts." example:"1288"`
	Owed      Fen    `json:"owed" doc:"Claimed and not paid: pending, sending, unknown, awaiting_recipient, failed, returned."`
	Remaining Fen    `json:"remaining" doc:"In the packet: not claimed, or claimed and not recorded yet (then also in in_flight)." example:"8712"`
	Refunding Fen    `json:"refunding" doc:"Being refunded to the sender: remainder and cancelled payouts."`
	Refunded  Fen    `json:"refunded" doc:"Refunded to the sender, or returned with the charge."`
	Balanced  bool   `json:"balanced" doc:"true: the ledger adds up to total, and Redis and the provider agree with it; differences is empty."`
	InFlight  Fen    `json:"in_flight" doc:"What running steps explain: claims in Redis that are not recorded yet, money that the provider moved for payments without an answer, and returned amounts that are recent or being queried."`

	Promises    ProofPromises `json:"promises" doc:"Share conflicts: acknowledged claims that could not be recorded. They are not money of the packet and count in no other figure."`
	Sources     ProofSources  `json:"sources" doc:"The figures of each source."`
	Differences []Difference  `json:"differences" nullable:"false" doc:"Differences that no running step explains; empty when balanced."`
}

// ProofPromises are the share conflicts of a packet: acknowledged claims that could not be
// recorded, because the share is taken or the books are closed. Honoured ones are paid with
// our own money: honoured = owed + paid + voided.
type ProofPromises struct {
	Count    int64 `json:"count" doc:"The count, in any status." example:"0"`
	Amount   Fen   `json:"amount" doc:"The sum of the acknowledged amounts." example:"0"`
	Honoured Fen   `json:"honoured" doc:"The part that is paid with our own money."`
	Owed     Fen   `json:"owed" doc:"Of honoured: not paid yet."`
	Paid     Fen   `json:"paid" doc:"Of honoured: paid, including payments by other means, without returned amounts."`
	Voided   Fen   `json:"voided" doc:"Of honoured: voided later."`
}

// ProofSources are the figures of each source.
type ProofSources struct {
	Ledger   LedgerFigures         `json:"ledger" doc:"The ledger in MySQL."`
	Redis    Nullable[PoolFigures] `json:"redis" doc:"The pool; null: it is no longer in Redis."`
	Provider ProviderFigures       `json:"provider" doc:"The provider's figures."`
}

// LedgerFigures are balances of the packet's accounts and sums of its ledger entries.
type LedgerFigures struct {
	Holding   int64 `json:"holding" doc:"Account balance: charged, neither claimed nor being refunded." example:"8712"`
	Owed      int64 `json:"owed" doc:"Account balance: claimed, neither paid nor cancelled."`
	Refunding int64 `json:"refunding" doc:"Account balance: being refunded."`
	Outside   int64 `json:"outside" doc:"Account balance: paid by other means."`
	Suspense  int64 `json:"suspense" doc:"Account balance: moved twice; 0, or negative with a break."`
	Provider  int64 `json:"provider" doc:"Account balance: minus the money that we hold." example:"-8712"`
	Charged   Fen   `json:"charged" doc:"Sum of the ledger entries." example:"10000"`
	Claimed   Fen   `json:"claimed" doc:"Sum of the ledger entries." example:"1288"`
	Paid      Fen   `json:"paid" doc:"Sum of the ledger entries, by the provider." example:"1288"`
	Returned  Fen   `json:"returned" doc:"Sum of the ledger entries: returned after success, including returned refunds and charges."`
	Refunded  Fen   `json:"refunded" doc:"Sum of the ledger entries."`
}

// PoolFigures are the figures of Redis.
type PoolFigures struct {
	Claimed   Fen `json:"claimed" doc:"The sum of all claims."`
	Remaining Fen `json:"remaining" doc:"total_amount - claimed."`
}

// ProviderFigures are the sums of the provider's own movements.
type ProviderFigures struct {
	Charged     Fen `json:"charged" doc:"Charged to the sender." example:"10000"`
	Transferred Fen `json:"transferred" doc:"Paid to recipients." example:"1288"`
	Returned    Fen `json:"returned" doc:"Returned transfers, refunds and charges."`
	Refunded    Fen `json:"refunded" doc:"Refunded to the sender."`
}

// Difference is a difference that no running step explains.
type Difference struct {
	What     string `json:"what" doc:"The two figures." example:"provider transferred, ledger paid"`
	Expected int64  `json:"expected" doc:"The figure of the ledger, or the computed figure."`
	Actual   int64  `json:"actual" doc:"The figure found."`
}

// A difference is reported when the last of proofLooks reads still has it: the sources cannot
// be read at one instant, and a step may run between two reads.
const (
	proofLooks = 5
	proofPause = 150 * time.Millisecond
)

func getProof(r *request) (answer, error) {
	id, err := r.packetID()
	if err != nil {
		return answer{}, err
	}
	if _, err := r.owned(id); err != nil {
		return answer{}, err
	}
	return r.proofOf(id)
}

// proofOf computes the proof until it is balanced, at most proofLooks times.
func (r *request) proofOf(id string) (answer, error) {
	for look := 1; ; look++ {
		p, err := r.server.prove(r.ctx, id, look)
		if err != nil {
			return answer{}, err
		}
		if p.Balanced || look == proofLooks {
			return answer{status: http.StatusOK, body: p}, nil
		}
		timer := time.NewTimer(proofPause)
		select {
		case <-r.ctx.Done():
			timer.Stop()
			return answer{}, unavailable(r.ctx.Err())
		case <-timer.C:
		}
	}
}

// evidence is the data of one read of all sources.
type evidence struct {
	rec      packet.Record // zero: not written yet
	ledger   payout.Balances
	view     *packet.PoolView // nil: not in Redis
	promised payout.ShareConflicts
	provider payout.ProviderTotals
}

// prove reads all sources once. It reads row and ledger before Redis and the provider, so that
// the latter can only be ahead.
func (s *Server) prove(ctx context.Context, id string, look int) (Proof, error) {
	var e evidence
	var err error
	if e.rec, err = s.row(ctx, id); err != nil && !errors.Is(err, packet.ErrNotFound) {
		return Proof{}, err
	}
	if e.ledger, err = s.cfg.Store.Balances(ctx, id); err != nil {
		return Proof{}, err
	}
	if e.promised, err = s.cfg.Store.ShareConflicts(ctx, id); err != nil {
		return Proof{}, err
	}
	view, err := s.cfg.Pool.View(ctx, id)
	switch {
	case err == nil && !view.Retired:
		e.view = &view
	case err != nil && !errors.Is(err, packet.ErrNotFound):
		return Proof{}, err
	}
	if e.provider, err = s.cfg.Provider.Totals(ctx, id); err != nil {
		return Proof{}, unavailable(err)
	}
	a := proofCheck{server: s, id: id, look: look, evidence: e}
	a.promises = promisesOf(e.promised, e.ledger.Honours)
	a.ledger = e.ledger.Own() // the other figures cover the packet's own money only
	a.proof = a.figures()
	a.checkLedger()
	a.checkPool()
	if err := a.checkProvider(ctx); err != nil {
		return Proof{}, err
	}
	a.proof.Balanced = len(a.proof.Differences) == 0
	return a.proof, nil
}

// proofCheck compares the sources.
type proofCheck struct {
	evidence
	server *Server
	id     string
	proof  Proof

	promises ProofPromises
	look     int // number of the read within the request, from 1
	asks     int // see pendingReturns
}

// promisesOf renders the share conflicts of a packet with their ledger entries.
func promisesOf(m payout.ShareConflicts, by map[payout.TransferKind]money.Fen) ProofPromises {
	p := ProofPromises{Count: m.Count, Amount: Fen(m.Amount), Honoured: Fen(by[payout.PostHonoured]), Voided: Fen(by[payout.PostVoided])}
	p.Paid = Fen(by[payout.PostPaid] - by[payout.PostReturned] + by[payout.PostPaidOutside])
	p.Owed = p.Honoured - p.Paid - p.Voided
	return p
}

func (a *proofCheck) figures() Proof {
	by, of := a.ledger.ByKind, a.ledger.ByAccount
	p := Proof{
		PacketID: a.id, Total: Fen(by[payout.PostCharge]),
		Paid: Fen(a.ledger.Paid()), Owed: Fen(of[payout.AccountOwed]),
		Remaining: Fen(of[payout.AccountHolding]), Refunding: Fen(of[payout.AccountRefunding]),
		Refunded: Fen(a.ledger.Refunded()), Promises: a.promises,
		Differences: []Difference{},
	}
	p.Sources = ProofSources{
		Ledger: LedgerFigures{
			Holding: int64(of[payout.AccountHolding]), Owed: int64(of[payout.AccountOwed]), Refunding: int64(of[payout.AccountRefunding]),
			Outside: int64(of[payout.AccountOutside]), Suspense: int64(of[payout.AccountSuspense]), Provider: int64(of[payout.AccountProvider]),
			Charged: Fen(by[payout.PostCharge]), Claimed: Fen(by[payout.PostClaim]), Paid: Fen(by[payout.PostPaid]),
			Returned: Fen(returns(by)), Refunded: Fen(by[payout.PostRefunded]),
		},
		Provider: ProviderFigures{Charged: Fen(a.provider.Charged), Transferred: Fen(a.provider.Transferred),
			Returned: Fen(a.provider.Returned), Refunded: Fen(a.provider.Refunded)},
	}
	if a.view != nil {
		p.Sources.Redis = orNull(&PoolFigures{Claimed: Fen(a.view.ClaimedAmount),
			Remaining: Fen(a.view.Packet.TotalAmount - a.view.ClaimedAmount)})
	}
	return p
}

func (a *proofCheck) differ(what string, expected, actual money.Fen) {
	if expected != actual {
		a.proof.Differences = append(a.proof.Differences, Difference{What: what, Expected: int64(expected), Actual: int64(actual)})
	}
}

// checkLedger checks that the parts add up to the total and no account is negative.
func (a *proofCheck) checkLedger() {
	p := &a.proof
	a.differ("ledger: total and its parts", money.Fen(p.Total), money.Fen(p.Paid+p.Owed+p.Remaining+p.Refunding+p.Refunded))
	for _, account := range []payout.Account{payout.AccountHolding, payout.AccountOwed, payout.AccountRefunding} {
		if balance := a.ledger.ByAccount[account]; balance < 0 {
			a.differ("ledger: "+string(account)+"  is below zero", 0, balance)
		}
	}
	if p.Promises.Owed < 0 {
		a.differ("ledger: owed for promises is below zero", 0, money.Fen(p.Promises.Owed))
	}
	switch a.rec.Stored {
	case packet.StatusOpen, packet.StatusClosing, packet.StatusClosed:
		a.differ("packet total_amount, ledger charged", a.rec.TotalAmount, a.ledger.ByKind[payout.PostCharge])
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
		a.proof.InFlight += Fen(ahead)
	case ahead < 0 || ahead > a.promised.Free:
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
				a.proof.InFlight += Fen(ahead)
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
