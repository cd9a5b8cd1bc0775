package simulate

import (
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/workflow"

	"hongbao/internal/packet"
)

// Rule R9: Redis lost data, and the loss was noticed.

// claimKey identifies an acknowledged claim.
type claimKey struct {
	user  string
	share int
}

func keyOf(c packet.Claim) claimKey { return claimKey{c.UserID, c.ShareIndex} }

// booked reports whether an acknowledged claim is recorded: the user has the share, or a share
// conflict exists.
func (b *database) booked(c packet.Claim) bool {
	return c.ShareIndex < len(b.shares) && b.shares[c.ShareIndex].user == c.UserID ||
		slices.ContainsFunc(b.shareConflicts, func(p shareConflict) bool { return keyOf(p.claim) == keyOf(c) })
}

// noticeLoss closes the fence of the lane after Redis lost its last `lost` claims; below 0 it lost
// none. Hand-offs that a relay has read are still relayed; late ones arrive after the rebuild.
func (w *world) noticeLoss(lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pool
	if p.fenceClosed || p.retired || !w.db.recorded {
		return
	}
	p.fenceClosed = true
	w.note("the fence is closed, Redis lacks %d of %d claims", lost, len(p.winners))
	if lost < 0 {
		return
	}
	w.reached["a loss was noticed"]++
	from := max(len(p.winners)-lost, 0)
	gone := p.winners[from:]
	p.winners = slices.Clone(p.winners[:from])
	for _, c := range gone {
		delete(p.byUser, c.UserID)
	}
	p.handoffs = slices.DeleteFunc(p.handoffs, func(c packet.Claim) bool {
		if !slices.ContainsFunc(gone, func(g packet.Claim) bool { return keyOf(g) == keyOf(c) }) {
			return false
		}
		switch w.dice.n("hand-off lost", 4) {
		case 0, 1:
			return true
		case 2:
			w.lateHandoffs = append(w.lateHandoffs, c)
			return true
		}
		return false
	})
}

// rebuildPool rebuilds the pool from MySQL behind a closed fence, and opens it. Acknowledged
// claims that MySQL lacks are reported as lost: a repeated grab is a new one.
// running reports whether a claim has a run, for which the rebuild no longer waits.
func (w *world) rebuildPool(running func(packet.Claim) bool) error {
	return w.do("rebuild", func() error {
		b, p := w.db, w.pool
		for _, c := range slices.Concat(p.handoffs, p.claims()) {
			if !b.accountedFor(c) && !running(c) {
				w.violated("rebuilt, and the lane held share %d of %s, which is not recorded", c.ShareIndex, c.UserID)
			}
		}
		for _, c := range w.acknowledged {
			if !b.booked(c) && !w.lost[keyOf(c)] {
				w.lost[keyOf(c)] = true
				w.reached["acknowledged, lost and reported"]++
				w.note("reported as lost: share %d of %s", c.ShareIndex, c.UserID)
			}
		}
		p.fenceClosed, p.gone, p.signal, p.reason, p.claimed = false, false, "", "", 0
		p.shares, p.free, p.winners, p.byUser, p.withoutShare = nil, nil, nil, map[string]packet.Claim{}, map[string]bool{}
		p.action = nil
		p.epoch++
		p.restricted, p.eligible = b.rec.EligibleCount > 0, map[string]bool{}
		for _, user := range b.rec.Eligible {
			p.eligible[user] = true
		}
		for i, s := range b.shares {
			p.shares = append(p.shares, s.amount)
			if s.user == "" {
				p.free = append(p.free, i)
				continue
			}
			c := packet.Claim{PacketID: w.packet.ID, UserID: s.user, ShareIndex: i, Amount: s.amount, ClaimedAt: w.now()}
			p.winners, p.byUser[s.user] = append(p.winners, c), c
			p.claimed += s.amount
		}
		for _, x := range b.shareConflicts {
			if _, has := p.byUser[x.claim.UserID]; !has { // a claim with a share wins
				p.byUser[x.claim.UserID], p.withoutShare[x.claim.UserID] = x.claim, true
			}
		}
		switch b.rec.Stored {
		case packet.StatusFunding:
			if p.state != packet.PoolRejected { // rejected after the backup: only Redis has it
				p.state = packet.PoolFunding
			}
		case packet.StatusRejected:
			p.state = packet.PoolRejected
		case packet.StatusOpen:
			if p.state = packet.PoolOpen; len(p.free) == 0 {
				p.signal = packet.CloseSoldOut // the watch repeats it
			}
		default:
			p.state, p.reason, p.retired = packet.PoolClosing, b.rec.Reason, b.rec.Stored == packet.StatusClosed
		}
		w.note("rebuilt: %s, %d winners, %d free", p.state, len(p.winners), len(p.free))
		w.reached["rebuilt"]++
		return nil
	})
}

// remainingClaims returns the claims that the lane still holds and that no run records.
func (w *world) remainingClaims() (claims []packet.Claim) {
	w.look(func() {
		claims, w.pool.handoffs = w.pool.handoffs, nil
		for _, c := range w.pool.claims() {
			if !w.db.accountedFor(c) && !slices.ContainsFunc(claims, func(h packet.Claim) bool { return keyOf(h) == keyOf(c) }) {
				claims = append(claims, c)
			}
		}
	})
	return claims
}

// rebuild takes one step of a rebuild. It starts runs for the claims that the lane holds, mostly
// waits for them, then makes the pool. After a crash another process begins again.
func (m *model) rebuild() {
	if !m.pool.fenceClosed {
		return
	}
	m.startClaims(m.remainingClaims())
	waiting := slices.ContainsFunc(m.runs, func(r *run) bool {
		return r.claim != nil && !m.db.booked(*r.claim) && !m.db.accounted(r.claim.UserID)
	})
	if waiting && (m.calm || m.dice.n("patience", 8) < 7) {
		return
	}
	m.take(func() error { return m.rebuildPool(m.openClaim) })
}

// relayLate delivers a hand-off that a relay had read before Redis lost it.
func (m *model) relayLate() {
	if n := len(m.lateHandoffs); n > 0 {
		c := m.lateHandoffs[0]
		m.lateHandoffs = m.lateHandoffs[1:]
		m.startClaim(c)
	}
}

// rebuild does the same for the real workflows.
func (t *workflowModel) rebuild(ctx workflow.Context) {
	if !t.pool.fenceClosed {
		return
	}
	t.startClaims(ctx, t.remainingClaims())
	running := func(c packet.Claim) bool { return t.open[c.UserID] > 0 }
	waiting := false
	t.look(func() {
		waiting = slices.ContainsFunc(t.acknowledged, func(c packet.Claim) bool { return running(c) && !t.db.accounted(c.UserID) })
	})
	if waiting && (t.calm || t.dice.n("patience", 8) < 7) {
		return
	}
	t.mayDie(func() error { return t.rebuildPool(running) })
}

// TestRebuildSees checks that a wrong rebuild is reported: one makes the pool while the lane holds
// an unrecorded claim, one deals a recorded share again.
func TestRebuildSees(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(m *model)
		want  string
	}{
		"in order":                       {func(*model) {}, ""},
		"a claim of the lane is dropped": {func(m *model) { _ = m.rebuildPool(m.openClaim) }, "rebuilt, and the lane held share 0"},
		"dealt again": {func(m *model) { m.rebuilt(); m.pool.free = append([]int{0}, m.pool.free...); m.pool.grab(user(2)) },
			"share 0 was dealt to user2, and is user0's"},
		"a claim is forgotten": {func(m *model) {
			m.rebuilt()
			delete(m.pool.byUser, user(0))
			m.acknowledged = m.acknowledged[:0]
			m.pool.grab(user(0))
		},
			"share 0 of 500 fen is recorded"},
		"a stale claim is not kept in the pool": {func(m *model) {
			c := m.pool.winners[0]
			m.pool.winners, m.pool.handoffs = nil, nil
			_ = m.rebuildPool(func(packet.Claim) bool { return true })
			_, _ = m.db.RecordShareConflict(ctx, c, "stale")
			m.pool.grab(user(0))
		},
			"user0 won share 0, and a claim of share 0 is recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(ordinaryDice{})
			m.packet.ShareCount, m.packet.TotalAmount, m.packet.Split = 4, 2000, packet.SplitEqual
			for m.pool.state != packet.PoolOpen {
				m.ready()[0]()
			}
			m.pool.grab(user(0))
			m.noticeLoss(-1)
			if m.pool.grab(user(1)) {
				t.Error("a grab while the fence is closed")
			}
			tc.spoil(m)
			m.live(0)
			if got := strings.Join(m.wrong, "\n"); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("want %q, got %q\n%s", tc.want, got, strings.Join(m.story, "\n"))
			}
		})
	}
}

// rebuilt takes the steps of a rebuild to its end.
func (m *model) rebuilt() {
	for m.rebuild(); m.pool.fenceClosed; m.rebuild() {
		for _, step := range m.ready() {
			step()
		}
	}
}
