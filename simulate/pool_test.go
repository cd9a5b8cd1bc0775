package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/money"
	"hongbao/packet"
)

// pool is the packet in Redis: who grabs first wins, and every win leaves a hand-off.
type pool struct {
	world    *world
	state    packet.PoolState
	retired  bool
	shares   []money.Fen
	winners  []packet.Claim
	byUser   map[string]packet.Claim
	claimed  money.Fen
	reason   packet.CloseReason
	handoffs []packet.Claim // not acknowledged yet
	signal   packet.CloseReason
}

// grab is grab.lua.
func (p *pool) grab(user string) (won bool) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	switch _, again := p.byUser[user]; {
	case again, p.state != packet.PoolOpen, p.retired, now.Before(w.packet.OpensAt), len(p.winners) == len(p.shares), !now.Before(w.packet.ExpiresAt):
		return false
	}
	i := len(p.winners)
	c := packet.Claim{PacketID: w.packet.ID, UserID: user, ShareIndex: i, Amount: p.shares[i], ClaimedAt: now}
	p.winners, p.byUser[user] = append(p.winners, c), c
	p.claimed += c.Amount
	p.handoffs = append(p.handoffs, c)
	if len(p.winners) == len(p.shares) {
		p.signal = packet.CloseSoldOut
	}
	w.note("%s won share %d of %d fen", user, i, c.Amount)
	return true
}

// recall is recall.lua: the flag is the truth, the signal only a wake-up.
func (p *pool) recall() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if p.state == packet.PoolOpen {
		p.state, p.reason, p.signal = packet.PoolClosing, packet.CloseRecalled, packet.CloseRecalled
		p.world.note("recalled")
	}
}

func (p *pool) OpenPool(_ context.Context, _ string, shares []money.Fen, _ func(int)) error {
	return p.world.do("open pool", func() error {
		if p.state == packet.PoolFunding {
			p.state, p.shares = packet.PoolOpen, slices.Clone(shares)
		}
		return nil
	})
}

func (p *pool) Reject(context.Context, string, packet.Failure) error {
	return p.world.do("reject pool", func() error { p.state = packet.PoolRejected; return nil })
}

// ClosePool is close.lua.
func (p *pool) ClosePool(_ context.Context, _ string, reason packet.CloseReason) (rem packet.Remainder, err error) {
	err = p.world.do("close pool", func() error {
		w := p.world
		rem = packet.Remainder{}
		switch {
		case p.retired || p.state == packet.PoolRejected:
			rem.Gone = true
			return nil
		case p.state != packet.PoolClosing:
			soldOut := p.state == packet.PoolOpen && len(p.winners) == len(p.shares)
			left := w.packet.ExpiresAt.Sub(w.now())
			if (reason == packet.CloseExpired || reason == packet.CloseSoldOut) && left > 0 && !soldOut {
				rem.NotYet = left
				return nil
			}
			if reason == packet.CloseSoldOut && !soldOut {
				reason = packet.CloseExpired
			}
			p.state, p.reason = packet.PoolClosing, reason
		}
		rem = packet.Remainder{Reason: p.reason, ClaimedCount: len(p.winners), ClaimedAmount: p.claimed}
		return nil
	})
	return rem, err
}

func (p *pool) Retire(context.Context, string) error {
	return p.world.do("retire pool", func() error { p.retired = true; return nil })
}

func (p *pool) View(context.Context, string) (v packet.PoolView, err error) {
	p.world.look(func() {
		v = packet.PoolView{Packet: p.world.packet, State: p.state, Retired: p.retired, ClaimedCount: len(p.winners), ClaimedAmount: p.claimed,
			RemainingCount: len(p.shares) - len(p.winners), Reason: p.reason, Now: p.world.now()}
	})
	return v, nil
}

func (p *pool) Claims(context.Context, string) (claims []packet.Claim, err error) {
	p.world.look(func() { claims = slices.Clone(p.winners) })
	return claims, nil
}

func (p *pool) Eligible(context.Context, string) ([]string, error) { return nil, nil }

// take gives one hand-off to the relay. It is acknowledged or stays, to come again.
func (p *pool) take(i int, acknowledge bool) packet.Claim {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c := p.handoffs[i]
	if acknowledge {
		p.handoffs = slices.Delete(p.handoffs, i, i+1)
	}
	return c
}

func user(i int) string { return fmt.Sprintf("user%d", i) }

// closesAt is when the packet's run has to look at the pool: at a signal, or at expiry.
func (p *pool) closesAt() (reason packet.CloseReason, at time.Time) {
	if p.signal != "" {
		return p.signal, time.Time{}
	}
	return packet.CloseExpired, p.world.packet.ExpiresAt
}
