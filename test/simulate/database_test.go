package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// errMoved is the error of a compare-and-set that finds another state.
var errMoved = fmt.Errorf("simulated: %w", packet.ErrMoved)

// errChargeReturned is the error of an opening after the charge was returned.
var errChargeReturned = fmt.Errorf("the charge was returned: %w", errMoved)

// errWithdrawn is the error of an opening after the charge was withdrawn.
var errWithdrawn = fmt.Errorf("the charge was withdrawn: %w", errMoved)

// row is a payment with its attempts.
type row struct {
	payout.Payment
	attempts []payout.Attempt
	settled  time.Time
}

func (r *row) state(now time.Time) payout.State {
	return payout.State{PaymentID: r.ID, Status: r.Status, Failure: r.Failure, Step: payout.NextDue(r.Payment, r.attempts, now), Clock: now}
}

type share struct {
	amount money.Fen
	user   string
}

// The kinds of outbox entries, as in the store.
const (
	wantBegin  = "begin"
	wantAsk    = "ask"
	wantDecide = "decide"
	wantFinish = "finish"
	wantClose  = "close"
)

type want struct{ payment, kind string }

// database simulates MySQL. Each method that writes is one transaction of package store and changes
// the rows as that method does.
type database struct {
	world          *world
	rec            packet.Record
	recorded       bool
	noted          int // claims recorded when the remainder was fixed
	shares         []share
	rows           map[string]*row
	ids            []string // of rows, in order of insertion
	transfers      []staff.StoredTransfer
	posted         map[string]bool
	sums                // of the packet
	honours        sums // of share conflicts
	breaks         []payout.Break
	outbox         []want
	shareConflicts []shareConflict
	decisions      []*decision
	holds          []payout.Hold
	state          payout.MySQLState                 // rule R13
	left           map[string]time.Time              // when a recovery left an order number to staff last
	heard          map[string]payout.ObservationKind // the last booked answer to a query, by order number
}

// sums are the totals of the transfers, in fen.
type sums struct {
	balance map[payout.Account]money.Fen
	byKind  map[payout.TransferKind]money.Fen
}

func newSums() sums {
	return sums{map[payout.Account]money.Fen{}, map[payout.TransferKind]money.Fen{}}
}

func newDatabase(w *world) *database {
	return &database{world: w, rows: map[string]*row{}, posted: map[string]bool{}, sums: newSums(), honours: newSums(),
		heard: map[string]payout.ObservationKind{}, left: map[string]time.Time{}}
}

func (b *database) insert(p payout.Payment, attempts ...payout.Attempt) {
	if b.rows[p.ID] != nil {
		b.world.violated("payment %s inserted twice", p.ID)
	}
	b.rows[p.ID] = &row{Payment: p, attempts: attempts}
	b.ids = append(b.ids, p.ID)
}

// save stores a payment that was decided, with the time of its final status.
func (b *database) save(r *row, p payout.Payment) {
	if p.Status != r.Status && !payout.CanMove(r.Status, p.Status) {
		b.world.violated("payment %s: %s to %s", p.ID, r.Status, p.Status)
	}
	switch {
	case p.Status.Open():
		r.settled = time.Time{}
	case r.settled.IsZero() || r.Status != p.Status:
		r.settled = b.world.now()
	}
	if r.Status != p.Status {
		b.world.note("%s: %s -> %s", p.ID, r.Status, p.Status)
	}
	r.Payment = p
}

func (b *database) post(postings ...payout.Transfer) {
	for _, p := range postings {
		if b.posted[p.Reference()] {
			b.world.violated("%s posted twice", p.Reference())
		}
		b.posted[p.Reference()] = true
		b.transfers = append(b.transfers, staff.StoredTransfer{ID: int64(len(b.transfers) + 1), PacketID: b.world.packet.ID, Transfer: p,
			Reference: p.Reference()})
		to := b.sums
		if p.OrderNo[0] == byte(payout.KindHonour) {
			to = b.honours
		}
		to.balance[p.Debit] -= p.Amount
		to.balance[p.Credit] += p.Amount
		to.byKind[p.Kind] += p.Amount
	}
}

func (b *database) wants(payment, kind string) {
	if !slices.Contains(b.outbox, want{payment, kind}) {
		b.outbox = append(b.outbox, want{payment, kind})
	}
}

func (b *database) RecordPacket(_ context.Context, p packet.Packet, sealed []byte, guests []string) (status packet.Status,
	err error) {
	err = b.world.do("record packet", func() error {
		if !b.recorded {
			b.recorded, b.rec = true, packet.Record{Packet: p, Stored: packet.StatusFunding, SealedSeed: sealed, Eligible: guests}
			if b.rec.EligibleListLost() {
				b.world.reached["a list was lost"]++
			}
			now := b.world.now()
			b.insert(payout.Payment{ID: payout.ID(payout.KindCharge, p.ID, 0), Kind: payout.KindCharge, PacketID: p.ID, App: p.App,
				UserID:     p.SenderID,
				ShareIndex: -1, Account: p.SenderID, Amount: p.TotalAmount, Currency: p.Currency, Provider: p.ChargeProvider,
				Status: payout.StatusPending, PayUntil: p.PayUntil(),
				CreatedAt: now, UpdatedAt: now})
		}
		status = b.rec.Stored
		return nil
	})
	return status, err
}

func (b *database) PacketRow(context.Context, string) (rec packet.Record, err error) {
	b.world.look(func() { rec = b.rec })
	return rec, nil
}

// move changes the packet's status by compare-and-set.
func (b *database) move(to packet.Status) {
	b.world.note("packet: %s -> %s", b.rec.Stored, to)
	b.rec.Stored = to
}

func (b *database) charged() error {
	if s := b.rows[b.chargeID()].Status; s == payout.StatusReturned {
		return errChargeReturned
	} else if s != payout.StatusPaid {
		return fmt.Errorf("charge is %s: %w", s, errMoved)
	}
	return nil
}

// chargeMoved is charged, also when the provider has returned the charge.
func (b *database) chargeMoved() error {
	switch r := b.rows[b.chargeID()]; {
	case r == nil:
		return errMoved
	case r.Status == payout.StatusReturned:
		return nil
	}
	return b.charged()
}

func (b *database) chargeID() string { return payout.ID(payout.KindCharge, b.world.packet.ID, 0) }

func (b *database) Fund(_ context.Context, _ string, amounts []money.Fen) (status packet.Status, err error) {
	return b.fund(amounts, func() error {
		if err := b.charged(); err != nil {
			return err
		}
		if b.rows[b.chargeID()].Withdrawn() {
			return errWithdrawn
		}
		return b.allow(payout.ActionOpenPacket, b.chargeID())
	})
}

// fund inserts the shares; allowed decides, which the recovery of a restored MySQL does
// differently.
func (b *database) fund(amounts []money.Fen, allowed func() error) (status packet.Status, err error) {
	err = b.world.do("fund", func() error {
		if b.rec.Stored == packet.StatusFunding {
			if err := allowed(); errors.Is(err, errChargeReturned) || errors.Is(err, errWithdrawn) {
				if err := b.allow(payout.ActionEndUnopened, b.chargeID()); err != nil {
					return err
				}
				b.rec.Reason, status = packet.CloseUnopened, packet.StatusClosing
				b.move(status)
				return nil
			} else if err != nil {
				return err
			}
			if b.move(packet.StatusOpen); b.rec.EligibleListLost() {
				b.rec.Reason = packet.CloseUnopened
				b.move(packet.StatusClosing)
			}
			for _, a := range amounts {
				b.shares = append(b.shares, share{amount: a})
			}
		}
		status = b.rec.Stored
		return nil
	})
	return status, err
}

func (b *database) RejectPacket(_ context.Context, _ string, f packet.Failure) error {
	return b.world.do("reject", func() error {
		switch b.rec.Stored {
		case packet.StatusRejected:
			return nil
		case packet.StatusFunding:
			charge := b.rows[payout.ID(payout.KindCharge, b.rec.ID, 0)]
			if charge.Status == payout.StatusFailed && charge.Failure.Code == f.Code {
				if err := b.allow(payout.ActionEndUnopened, b.chargeID()); err != nil {
					return err
				}
				b.rec.Failure = &f
				b.move(packet.StatusRejected)
				return nil
			}
		}
		return errMoved
	})
}

func (b *database) BeginClosing(_ context.Context, _ string, reason packet.CloseReason) (status packet.Status, err error) {
	err = b.world.do("begin closing", func() error {
		if s := b.rec.Stored; s == packet.StatusOpen || s == packet.StatusFunding {
			if err := b.chargeMoved(); err != nil {
				return err
			}
			if s == packet.StatusFunding {
				if err := b.allow(payout.ActionEndUnopened, b.chargeID()); err != nil {
					return err
				}
			}
			if s == packet.StatusFunding {
				if b.world.now().Before(b.rec.ExpiresAt) {
					b.world.violated("a charged packet ends unopened before it expires")
				}
				b.world.reached["charged when it was too late to open"]++
			}
			b.rec.Reason = reason
			b.move(packet.StatusClosing)
		}
		status = b.rec.Stored
		return nil
	})
	return status, err
}

func (b *database) claimed() (n int, sum money.Fen) {
	for _, s := range b.shares {
		if s.user != "" {
			n++
			sum += s.amount
		}
	}
	return n, sum
}

func (b *database) CloseBooks(_ context.Context, _ string, reason packet.CloseReason) (remainder money.Fen, err error) {
	err = b.world.do("close books", func() error {
		if !b.rec.BooksClosedAt.IsZero() {
			remainder = b.rec.Remainder
			return nil
		}
		if b.rec.Stored != packet.StatusClosing {
			return errMoved
		}
		if err := b.allow(payout.ActionCloseBooks, ""); err != nil {
			return err
		}
		if b.world.pool.fenceClosed { // Redis may lack acknowledged claims (R9)
			return errAway
		}
		n, sum := b.claimed()
		now := b.world.now()
		remainder = b.rec.TotalAmount - sum
		b.rec.Reason = cmp.Or(reason, b.rec.Reason)
		b.noted, b.rec.ClaimedCount, b.rec.ClaimedAmount, b.rec.Remainder, b.rec.BooksClosedAt = n, n, sum, remainder, now
		b.world.note("claims fixed, %d fen remain", remainder)
		if remainder == 0 {
			return nil
		}
		b.owesRefund(remainder)
		return nil
	})
	return remainder, err
}

// owesRefund inserts the refund of the remainder. The lock is held.
func (b *database) owesRefund(amount money.Fen) {
	id, now := payout.ID(payout.KindRefund, b.rec.ID, 0), b.world.now()
	b.post(payout.NewTransfer(payout.PostClose, id, amount))
	b.insertRefund(payout.Payment{ID: id, Kind: payout.KindRefund, PacketID: b.rec.ID, App: b.rec.App, UserID: b.rec.SenderID, ShareIndex: -1,
		Account: b.rec.SenderID,
		Amount:  amount, Currency: b.rec.Currency, Status: payout.StatusPending, CreatedAt: now, UpdatedAt: now})
}

// insertRefund inserts a refund; one of a returned charge is cancelled at once. The lock is held.
func (b *database) insertRefund(p payout.Payment) {
	p.Provider = b.rec.ChargeProvider
	if b.rows[b.chargeID()].Status == payout.StatusReturned {
		p.Status = payout.StatusCancelled
		b.post(payout.NewTransfer(payout.PostRefundKept, p.ID, p.Amount))
		b.insert(p)
		b.rows[p.ID].settled = b.world.now()
		if p.ID == payout.ID(payout.KindRefund, b.rec.ID, 0) {
			b.wants(p.ID, wantFinish)
		}
		return
	}
	b.insert(p)
	b.wants(p.ID, wantBegin)
}

// giveBack refunds a charge that succeeded after its packet was rejected (R2). The lock is held.
func (b *database) giveBack(was payout.Status, now payout.Payment) {
	if !payout.ChargeSucceededLate(was, now) {
		return
	}
	_, known := b.rows[payout.ID(payout.KindRefund, b.rec.ID, 0)]
	switch rejected := b.rec.Stored == packet.StatusRejected; {
	case !rejected && was == payout.StatusFailed:
		b.world.reached["charged late, and not rejected yet"]++
	case rejected && !known:
		b.owesRefund(now.Amount)
		b.world.note("charged after it was rejected: refunded in full")
		b.world.reached["charged after it was rejected"]++
		if b.restored() {
			b.world.reached["charged after it was rejected, recovered"]++
		}
	}
}

func (b *database) FinishPacket(context.Context, string, *packet.FirstAnswer) (closed bool, err error) {
	err = b.world.do("finish packet", func() error {
		closed = b.rec.Stored == packet.StatusClosed
		if closed || b.rec.Stored != packet.StatusClosing || b.rec.BooksClosedAt.IsZero() {
			return nil
		}
		if b.rec.Remainder > 0 {
			if !b.rows[payout.ID(payout.KindRefund, b.rec.ID, 0)].Status.Final() {
				return nil
			}
		}
		closed = true
		b.rec.ClosedAt = b.world.now()
		b.move(packet.StatusClosed)
		return nil
	})
	return closed, err
}

func (b *database) CountClaims(context.Context, string) (shares, conflicts int, err error) {
	b.world.look(func() {
		shares, _ = b.claimed()
		conflicts = len(b.shareConflicts)
	})
	return shares, conflicts, nil
}

func (b *database) RecordedClaims(_ context.Context, _ string, claims []packet.Claim) (out packet.Recorded, _ error) {
	b.world.look(func() {
		for i, s := range b.shares {
			if s.user != "" {
				out.Claims, out.Taken = append(out.Claims, packet.RecordedClaim{UserID: s.user, ShareIndex: i}), append(out.Taken, i)
			}
		}
		for _, p := range b.shareConflicts {
			out.Claims = append(out.Claims, packet.RecordedClaim{UserID: p.claim.UserID, ShareIndex: p.claim.ShareIndex, Conflict: true})
		}
	})
	return out, nil
}

func (b *database) ShareConflictUsers(context.Context, string) (users []string, err error) {
	b.world.look(func() {
		for _, p := range b.shareConflicts {
			users = append(users, p.claim.UserID)
		}
	})
	return users, nil
}

func (b *database) ClaimUsers(ctx context.Context, id string) ([]string, error) {
	users, err := b.ShareConflictUsers(ctx, id)
	b.world.look(func() {
		for _, s := range b.shares {
			if s.user != "" {
				users = append(users, s.user)
			}
		}
	})
	return users, err
}

// claim records a share for its user; nil when it is recorded already.
func (b *database) claim(c packet.Claim) (*payout.Payment, error) {
	if !b.recorded || c.ShareIndex >= len(b.shares) {
		return nil, packet.ErrNotFound
	}
	s := &b.shares[c.ShareIndex]
	switch {
	case s.amount != c.Amount, s.user != "" && s.user != c.UserID:
		return nil, packet.ErrConflict
	case s.user == c.UserID:
		return nil, nil
	case !b.rec.BooksClosedAt.IsZero():
		return nil, packet.ErrBooksClosed
	}
	for _, other := range b.shares {
		if other.user == c.UserID {
			return nil, packet.ErrConflict
		}
	}
	s.user = c.UserID
	now := b.world.now()
	return &payout.Payment{ID: payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), Kind: payout.KindPayout, PacketID: c.PacketID,
		App: b.rec.App, UserID: c.UserID,
		ShareIndex: c.ShareIndex, Account: c.Account(), Amount: c.Amount, Currency: b.rec.Currency, Provider: b.rec.PayoutProvider,
		Status: payout.StatusPending, CreatedAt: now, UpdatedAt: now}, nil
}

func (b *database) RecordClaim(_ context.Context, c packet.Claim) (payout.State, error) {
	return b.recordClaim(c, false)
}

// recordClaim records a claim; in a restored MySQL only the recovery may.
func (b *database) recordClaim(c packet.Claim, recovery bool) (st payout.State, err error) {
	err = b.world.do("book claim", func() error {
		p, err := b.claim(c)
		if err != nil {
			return err
		}
		if p != nil {
			if b.restored() != recovery {
				b.shares[c.ShareIndex].user = ""
				return payout.ErrMySQLRestored
			}
			b.insert(*p)
			b.post(payout.NewTransfer(payout.PostClaim, p.ID, p.Amount))
		}
		st = b.rows[payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)].state(b.world.now())
		return nil
	})
	return st, err
}

func (b *database) IsStaleClaim(_ context.Context, c packet.Claim) (stale bool, err error) {
	b.world.look(func() { stale = b.stale(c) })
	return stale, nil
}

// stale reports whether a claim is older than the last rebuild of the open lane, and its share is not
// recorded for its user.
func (b *database) stale(c packet.Claim) bool {
	p := b.world.pool
	return b.recorded && !p.fenceClosed && max(c.Epoch, 1) < p.epoch && c.ShareIndex < len(b.shares) && b.shares[c.ShareIndex].user != c.UserID
}

type encoder = func(payout.Instruction) ([]byte, error)

func (b *database) BeginClaim(_ context.Context, c packet.Claim, l payout.Limits, encode encoder) (out payout.SendStart,
	err error) {
	err = b.world.do("book claim, note send", func() error {
		hold := b.stopped(payout.ActionSendPayment, payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex))
		if out = (payout.SendStart{Hold: hold}); out.Hold != nil {
			return nil
		}
		stale := b.stale(c)
		p, err := b.claim(c)
		if err != nil {
			return err
		}
		if stale { // the transaction rolls back
			b.shares[c.ShareIndex].user = ""
			return packet.ErrStaleClaim
		}
		if p == nil {
			out.State = b.rows[payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)].state(b.world.now())
			return nil
		}
		first, err := b.newAttempt(*p, 1, encode)
		if err != nil {
			return err
		}
		if err := payout.RecordSend(p, &first, l, b.world.now()); err != nil {
			return err
		}
		b.insert(*p, first)
		b.post(payout.NewTransfer(payout.PostClaim, p.ID, p.Amount))
		out.State, out.Order = b.rows[p.ID].state(b.world.now()), orderOf(first)
		return nil
	})
	return out, err
}

func (b *database) SaveFirstAnswer(_ context.Context, _ string, first packet.FirstAnswer) error {
	if b.rec.First == nil {
		b.rec.First = &first
	}
	return nil
}
