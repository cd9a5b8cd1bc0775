package history

import (
	"fmt"
	"time"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// maker lives one packet through.
type maker struct {
	Config
	chance
	left int // payouts that are still wanted
	*Packet
	late []*Payment // refunds of cancelled payouts, which come after everything else
}

// How often something happens, of a thousand packets.
const (
	declinedCharges = 8
	leftovers       = 220 // not everything is grabbed
	recalls         = 60  // of the leftovers
)

// live makes a packet and lets it live until it is closed, or rejected.
func (m *maker) live(key string, created time.Time) (*Packet, error) {
	if err := m.create(key, created); err != nil {
		return nil, err
	}
	funded, err := m.charge()
	if err != nil || funded.IsZero() {
		return m.Packet, err
	}
	seed := packet.DeriveSeed(m.SeedKey, m.ID)
	if m.Shares, err = packet.Split(seed, m.SplitParams()); err != nil {
		return nil, err
	}
	closes := m.grabs(funded)
	for i := range m.Claims {
		if err := m.payOut(m.Claims[i]); err != nil {
			return nil, fmt.Errorf("share %d: %w", i, err)
		}
	}
	if err := m.close(closes); err != nil {
		return nil, err
	}
	m.Payments = append(m.Payments, m.late...)
	return m.Packet, nil
}

func (m *maker) create(key string, created time.Time) error {
	id := packet.NewID(m.Salt, key)
	seed := packet.DeriveSeed(m.SeedKey, id)
	sealed, err := packet.SealSeed(m.SeedKey, id, seed)
	if err != nil {
		return err
	}
	count := min(m.size(), max(1, m.left+m.left/10))
	life := pick(m.chance, []time.Duration{packet.DefaultLife, packet.DefaultLife, packet.DefaultLife, time.Hour, 10 * time.Minute, 3 * packet.DefaultLife})
	sender := m.user()
	if m.in(declinedCharges) {
		sender += pick(m.chance, []string{"~broke", "~broke", "~declined"})
	}
	m.Packet = &Packet{
		Packet: packet.Packet{
			ID: id, App: m.App, SenderID: sender, Currency: packet.CurrencyCNY, TotalAmount: m.total(count), ShareCount: count,
			Split:    pick(m.chance, []packet.SplitMode{packet.SplitRandom, packet.SplitRandom, packet.SplitRandom, packet.SplitEqual, packet.SplitEven, packet.SplitNormal}),
			MinShare: packet.DefaultMinShare, Greeting: pick(m.chance, greetings), Metadata: map[string]string{}, BodyHash: m.id(32),
			Commitment: packet.Commitment(seed), CreatedAt: created, OpensAt: created, ExpiresAt: created.Add(life),
		},
		SealedSeed: sealed, First: packet.FirstAnswer{HTTPStatus: 201, RequestID: "req_" + m.id(12)},
	}
	if m.in(300) {
		group := fmt.Sprintf("group%05d", m.IntN(5000))
		m.GroupID = &group
	}
	return nil
}

// charge takes the sender's money. It returns when the packet is open; zero: the
// charge was declined and the packet rejected.
func (m *maker) charge() (time.Time, error) {
	p := m.newPayment(payout.KindCharge, 0, m.SenderID, m.TotalAmount, m.CreatedAt.Add(m.between(2*time.Millisecond, 9*time.Millisecond)))
	m.Payments = append(m.Payments, p)
	course := m.courseOf(p.Account, payout.KindCharge)
	at, err := m.run(p, course, p.CreatedAt)
	if err != nil {
		return at, err
	}
	if p.Status != payout.StatusFailed {
		return at.Add(m.between(2*time.Millisecond, 9*time.Millisecond)), nil
	}
	m.Status, m.Failure = packet.StatusRejected, &packet.Failure{Code: p.Failure.Code, Message: p.Failure.Message}
	m.First.HTTPStatus, m.LastMoveAt = 402, at.Add(m.between(2*time.Millisecond, 9*time.Millisecond))
	return time.Time{}, nil
}

// grabs lets users claim shares. It returns when the packet stops taking grabs,
// and sets why.
func (m *maker) grabs(open time.Time) time.Time {
	ends := m.ExpiresAt
	m.Reason = packet.CloseExpired
	count := m.ShareCount
	overdue := !ends.Before(m.Until.Add(-recent))
	if m.in(leftovers) {
		count = m.IntN(m.ShareCount) // never all of them
		if overdue || m.in(recalls) {
			m.Reason = packet.CloseRecalled
		}
	}
	// Most are gone within minutes; a packet of the last minutes has no more time.
	span := min(m.about(4*time.Minute), m.Until.Sub(open)*4/5, ends.Sub(open)*4/5)
	at, taken := open.Add(m.between(time.Millisecond, span/8+time.Millisecond)), map[string]bool{}
	pause := max(time.Millisecond, (span*7/8)/time.Duration(max(count, 1)+1))
	for i := range count {
		user := m.claimer()
		for taken[user] {
			user = m.claimer()
		}
		taken[user] = true
		c := packet.Claim{PacketID: m.ID, UserID: user, ShareIndex: i, Amount: m.Shares[i], ClaimedAt: at}
		if m.in(700) {
			name := pick(m.chance, nicknames)
			c.Nickname = &name
		}
		m.Claims = append(m.Claims, c)
		at = at.Add(m.between(0, 2*pause-time.Millisecond)).Truncate(time.Millisecond)
	}
	last := open
	if n := len(m.Claims); n > 0 {
		last = m.Claims[n-1].ClaimedAt
	}
	switch {
	case count == m.ShareCount:
		m.Reason = packet.CloseSoldOut
		return last.Add(m.between(time.Millisecond, 30*time.Millisecond))
	case m.Reason == packet.CloseRecalled:
		return last.Add(m.between(time.Second, time.Minute))
	}
	return ends.Add(m.between(time.Millisecond, 30*time.Millisecond))
}

// close closes the books and gives back what nobody took.
func (m *maker) close(at time.Time) error {
	at = at.Add(m.between(5*time.Millisecond, 60*time.Millisecond))
	var claimed money.Fen
	for i, c := range m.Claims {
		claimed += c.Amount
		if m.BestShare == nil || packet.Luckier(c, m.Claims[*m.BestShare]) {
			m.BestShare = &i
		}
		m.LastShare = &i
		// Every winner's payout is in the books before they are closed.
		if booked := m.Payments[i+1].CreatedAt; booked.After(at) {
			at = booked.Add(time.Millisecond)
		}
	}
	m.BooksClosedAt, m.Remainder, m.Status = at, m.TotalAmount-claimed, packet.StatusClosed
	if m.Remainder > 0 {
		refund := m.newPayment(payout.KindRefund, 0, m.SenderID, m.Remainder, at)
		m.post(refund, at, payout.NewPosting(payout.PostClose, refund.ID, m.Remainder))
		m.Payments = append(m.Payments, refund)
		done, err := m.run(refund, courseOK, at.Add(m.between(5*time.Millisecond, 40*time.Millisecond)))
		if err != nil {
			return fmt.Errorf("refund: %w", err)
		}
		at = done
	}
	m.ClosedAt = at.Add(m.between(time.Millisecond, 20*time.Millisecond))
	m.LastMoveAt = m.ClosedAt
	return nil
}
