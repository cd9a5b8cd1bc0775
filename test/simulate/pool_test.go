package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// pool simulates the packet in Redis: the first grabs win, and every claim appends a hand-off.
type pool struct {
	world   *world
	state   packet.PoolState
	retired bool
	shares  []money.Fen
	// eligible are the users who may grab a restricted packet.
	eligible   map[string]bool
	restricted bool
	winners    []packet.Claim
	byUser     map[string]packet.Claim
	claimed    money.Fen
	reason     packet.CloseReason
	handoffs   []packet.Claim // not acknowledged by the relay yet
	signal     packet.CloseReason
	free       []int // unclaimed shares, in dealing order
	// gone: Redis lost all data of the packet.
	gone bool
	// fenceClosed: a loss of the lane was noticed, or a rebuild is wanted (R9). Scripts refuse until
	// the rebuild.
	fenceClosed bool
	// epoch counts the rebuilds; withoutShare are the users in byUser whose claim has no share (R10).
	epoch        int64
	withoutShare map[string]bool
	action       []byte // sealed client data of the sender
}

// script makes one change, unless the fence of the lane is closed.
func (p *pool) script(what string, change func() error) error {
	return p.world.do(what, func() error {
		if p.fenceClosed {
			return errAway
		}
		return change()
	})
}

// grab simulates grab.lua.
func (p *pool) grab(user string) (won bool) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if p.state == packet.PoolOpen && p.restricted && !p.eligible[user] {
		w.reached["not on the list"]++
		return false
	}
	switch _, again := p.byUser[user]; {
	case again, p.gone, p.fenceClosed, w.hasAcknowledgedClaim(user), p.state != packet.PoolOpen, p.retired,
		now.Before(w.packet.OpensAt), len(p.free) == 0,
		!now.Before(w.packet.ExpiresAt):
		return false
	}
	i := p.free[0]
	p.free = p.free[1:]
	for _, other := range w.acknowledged {
		conflicting := w.db.accounted(other.UserID) && w.db.shares[i].user != other.UserID // a share conflict is no share
		if other.ShareIndex == i && !conflicting && !w.missed[other.UserID] && !w.lost[keyOf(other)] {
			w.violated("share %d was dealt to %s, and is %s's", i, user, other.UserID)
		}
	}
	for _, c := range w.acknowledged {
		if c.UserID == user && w.db.booked(c) && !w.missed[user] {
			w.violated("%s won share %d, and a claim of share %d is recorded", user, i, c.ShareIndex)
		}
	}
	c := packet.Claim{PacketID: w.packet.ID, UserID: user, ShareIndex: i, Amount: p.shares[i], ClaimedAt: now, Epoch: p.epoch}
	p.winners, p.byUser[user] = append(p.winners, c), c
	p.claimed += c.Amount
	p.handoffs = append(p.handoffs, c)
	w.acknowledged = append(w.acknowledged, c)
	if len(p.free) == 0 {
		p.signal = packet.CloseSoldOut
	}
	if w.note("%s won share %d of %d fen", user, i, c.Amount); w.guests != nil && !w.guests[user] {
		w.violated("%s won, and is not on the list", user)
	}
	return true
}

// recall simulates recall.lua: the flag is the truth, the signal only a wake-up.
func (p *pool) recall() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if p.state == packet.PoolOpen && !p.gone && !p.fenceClosed {
		p.state, p.reason, p.signal = packet.PoolClosing, packet.CloseRecalled, packet.CloseRecalled
		p.world.note("recalled")
	}
}

func (p *pool) OpenPool(_ context.Context, _ string, shares []money.Fen, _ func(int)) error {
	return p.script("open pool", func() error {
		if p.gone {
			return packet.ErrPoolGone
		}
		if p.state == packet.PoolFunding {
			p.state, p.shares, p.free = packet.PoolOpen, slices.Clone(shares), nil
			for i := range shares {
				p.free = append(p.free, i)
			}
		}
		return nil
	})
}

func (p *pool) Reject(context.Context, string, packet.Failure) error {
	return p.script("reject pool", func() error {
		if p.gone {
			return packet.ErrPoolGone
		}
		if p.state == packet.PoolFunding { // an open pool stays open
			p.state = packet.PoolRejected
		}
		return nil
	})
}

// ClosePool simulates close.lua.
func (p *pool) ClosePool(_ context.Context, _ string, reason packet.CloseReason) (rem packet.PoolCloseResult, err error) {
	err = p.script("close pool", func() error {
		w := p.world
		rem = packet.PoolCloseResult{}
		switch {
		case p.gone || p.retired || p.state == packet.PoolRejected:
			rem.Gone = true
			return nil
		case p.state != packet.PoolClosing:
			soldOut := p.state == packet.PoolOpen && len(p.free) == 0
			left := w.packet.ExpiresAt.Sub(w.now())
			switch {
			case p.state != packet.PoolOpen:
				reason = packet.CloseUnopened
			case reason == packet.CloseRecalled, reason == packet.CloseSoldOut && soldOut:
			case left > 0 && !soldOut:
				rem.NotYet = left
				return nil
			default:
				reason = packet.CloseExpired
			}
			p.state, p.reason = packet.PoolClosing, reason
		}
		rem = packet.PoolCloseResult{Reason: p.reason, ClaimedCount: len(p.winners), ClaimedAmount: p.claimed}
		return nil
	})
	return rem, err
}

func (p *pool) Retire(context.Context, string) error {
	return p.script("retire pool", func() error { p.retired = true; return nil })
}

func (p *pool) View(context.Context, string) (v packet.PoolView, err error) {
	p.world.look(func() {
		if p.fenceClosed || p.gone {
			err = p.away()
			return
		}
		v = packet.PoolView{Packet: p.world.packet, State: p.state, Retired: p.retired, ClaimedCount: len(p.winners), ClaimedAmount: p.claimed,
			RemainingCount: len(p.free), Reason: p.reason, Action: p.action, Now: p.world.now()}
	})
	return v, err
}

// KeepStaleClaim simulates keep.lua.
func (p *pool) KeepStaleClaim(_ context.Context, c packet.Claim) (known packet.Claim, result packet.StaleResult, err error) {
	err = p.script("keep a stale claim", func() error {
		var found bool
		known, found = p.byUser[c.UserID]
		switch {
		case p.gone || p.retired:
			result = packet.StaleGone
		case found && keyOf(known) != keyOf(c):
			result = packet.StaleOther
		case found && !p.withoutShare[c.UserID]:
			result = packet.StaleRepeated
		default:
			known, result = c, packet.StaleKept
			p.byUser[c.UserID], p.withoutShare[c.UserID] = c, true
		}
		p.world.note("stale claim of %s, share %d: %s", c.UserID, c.ShareIndex, result)
		p.world.reached["stale claim: "+string(result)]++
		return nil
	})
	return known, result, err
}

// claims returns all claims, with and without a share. Their records have no epoch.
func (p *pool) claims() []packet.Claim {
	claims := slices.Clone(p.winners)
	for _, user := range slices.Sorted(maps.Keys(p.withoutShare)) {
		claims = append(claims, p.byUser[user])
	}
	for i := range claims {
		claims[i].Epoch = 0
	}
	return claims
}

func (p *pool) EachClaim(_ context.Context, _ string, each func([]packet.Claim) error) (err error) {
	var claims []packet.Claim
	p.world.look(func() {
		if claims = p.claims(); p.fenceClosed || p.gone {
			err = p.away()
		}
	})
	if err != nil || len(claims) == 0 {
		return err
	}
	return each(claims)
}

func (p *pool) Eligible(context.Context, string) (list []string, err error) {
	p.world.look(func() {
		switch {
		case p.fenceClosed:
			err = errAway
		case !p.gone:
			list = slices.Sorted(maps.Keys(p.eligible))
		}
	})
	return list, err
}

// away returns an error when the pool cannot be read.
func (p *pool) away() error {
	if p.fenceClosed {
		return errAway
	}
	return packet.ErrNotFound
}

// restored puts Redis back to a copy without the last grabs. Hand-offs that a relay has read are
// still relayed.
func (p *pool) restored(lost int) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if lost == 0 || lost > len(p.winners) || p.gone || p.fenceClosed || w.db.unsure() || p.state != packet.PoolOpen {
		return
	}
	w.note("Redis restored: it lacks the last %d of %d claims", lost, len(p.winners))
	w.reached["redis restored"]++
	var back []int
	for _, c := range p.winners[len(p.winners)-lost:] {
		w.missed[c.UserID] = true
		delete(p.byUser, c.UserID)
		p.claimed -= c.Amount
		back = append(back, c.ShareIndex)
	}
	p.free = append(back, p.free...)
	p.winners, p.signal = slices.Clone(p.winners[:len(p.winners)-lost]), ""
}

// emptied deletes everything that Redis held of the packet.
func (p *pool) emptied() {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.gone || p.fenceClosed || w.db.unsure() || p.retired || p.state != packet.PoolOpen && p.state != packet.PoolClosing {
		return
	}
	w.note("Redis emptied")
	w.reached["redis emptied"]++
	p.gone, p.eligible = true, nil
	for _, c := range p.winners {
		w.missed[c.UserID] = true
	}
	p.winners, p.signal = nil, ""
	clear(p.byUser)
	clear(p.withoutShare)
}

// take gives one hand-off to the relay, which acknowledges it or leaves it to be delivered again.
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

// closesAt returns when the packet's run has to read the pool: at a signal, or at expiry.
func (p *pool) closesAt() (reason packet.CloseReason, at time.Time) {
	if p.signal != "" {
		return p.signal, time.Time{}
	}
	return packet.CloseExpired, p.world.packet.ExpiresAt
}
