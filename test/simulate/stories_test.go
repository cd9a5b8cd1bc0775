package simulate

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/recovery"
)

// Restores of MySQL that random lifetimes reach rarely or never. Each story fixes what happens
// before and after the backup, and the product's own recovery has to find it.

// story is what happens before a backup of MySQL and after it.
type story struct {
	dice          fixedDice
	before, after func(m *model)
	// lost removes what is lost besides MySQL; nil: nothing.
	lost func(m *model)
	// want reports whether the recovery found everything; nil: it only has to end. left is the start
	// of the one case that staff has to decide; nil: none, and the packet ends by itself.
	want func(m *model, result recovery.Report) bool
	left func(m *model) string
}

func (s story) play(t *testing.T) *model {
	m := newModel(s.dice)
	m.t = t
	m.packet.ShareCount, m.packet.TotalAmount, m.packet.Split = 4, 2000, packet.SplitEqual
	m.packet.ExpiresAt = m.packet.OpensAt.Add(24 * time.Hour)
	if s.before(m); len(m.kept) == 0 {
		m.keepBackup()
	}
	m.pass(2 * unnoticed)
	s.after(m)
	m.look(func() { m.putBack(m.kept[0]) })
	if s.lost != nil {
		s.lost(m)
	}
	result := m.recovers()
	_ = m.db.setHold(false) // operations release the provider
	if !result.Ended || s.want != nil && !s.want(m, result) {
		m.violated("not recovered: %+v", result)
	}
	left := ""
	if s.left != nil {
		left = s.left(m)
	}
	if got := strings.Join(result.Undecided, "\n"); (got == "") != (left == "") || !strings.HasPrefix(got, left) || len(result.Undecided) > 1 {
		m.violated("undecided: %q, want %q", got, left)
	}
	if len(m.wrong) == 0 && left == "" {
		clear(s.dice)
		m.live(0)
	}
	return m
}

// opens opens the pool.
func opens(m *model) {
	for m.pool.state != packet.PoolOpen {
		m.ready()[0]()
	}
}

// runUntilIdle runs everything that is due, the outbox too, until nothing is.
func (m *model) runUntilIdle() {
	for range 4 {
		m.dispatch()
		m.settles()
		m.pass(time.Minute)
	}
}

// pays makes users grab and be paid.
func (m *model) pays(users ...int) {
	for _, u := range users {
		m.pool.grab(user(u))
		m.runUntilIdle()
	}
}

// closes recalls the packet and waits for its end.
func (m *model) closes() {
	m.pool.recall()
	m.runUntilIdle()
}

// comes delivers a claim that Redis had lost. Its user keeps the acknowledged amount (R10).
func (m *model) comes(u, share int) {
	c := packet.Claim{PacketID: m.packet.ID, UserID: user(u), ShareIndex: share, Amount: 500, ClaimedAt: m.clock}
	m.acknowledged = append(m.acknowledged, c)
	m.startClaim(c)
	m.runUntilIdle()
}

// hasShareConflict reports whether a user has the only share conflict, and no share.
func (m *model) hasShareConflict(u int) bool {
	return len(m.db.shareConflicts) == 1 && m.db.shareConflicts[0].claim.UserID == user(u) &&
		!slices.ContainsFunc(m.db.shares, func(s share) bool { return s.user == user(u) })
}

// paid reports whether a user has a share and is paid.
func (m *model) paid(u, share int) bool {
	r := m.db.rows[payout.ID(payout.KindPayout, m.packet.ID, share)]
	return r != nil && r.UserID == user(u) && r.Status == payout.StatusPaid
}

func (m *model) refund() *row { return m.db.rows[payout.ID(payout.KindRefund, m.packet.ID, 0)] }

// twoDecide makes a decision about a payment and has a second member of staff approve it.
func (m *model) twoDecide(id string, kind payout.DecisionKind) {
	m.take(func() error { return m.db.decide(id, kind, financeUsers[0], "slip") })
	m.take(func() error { return m.db.approve(m.db.decisions[len(m.db.decisions)-1], financeUsers[1], true) })
	m.runUntilIdle()
}

// turns changes the outcome of an order at the provider, which notifies of it.
func (m *model) turns(no string, kind payout.ObservationKind) {
	m.look(func() {
		o := m.bank.orders[no]
		o.turned = o.turned || o.kind == payout.ObsDeclined
		o.kind = kind
		m.bank.moves(o)
		m.bank.notices = append(m.bank.notices, no)
	})
	m.notify()
	m.runUntilIdle()
}

// loseRuns loses Temporal, and losePool Redis too.
func loseRuns(m *model) {
	m.emptied, m.runs, m.packetRuns = true, nil, nil
}

func losePool(m *model) {
	loseRuns(m)
	m.pool.gone, m.pool.winners = true, nil
	clear(m.pool.byUser)
}

// refuses takes the steps of a packet whose charge is refused until its run is to take a step, and
// keeps the first backup from there.
func refuses(until packet.Step) func(m *model) {
	return func(m *model) {
		for l := m.packetRuns[0]; !l.before(until) || !m.db.recorded; {
			m.take(l.step)
		}
		m.keepBackup()
	}
}

// rejects takes the steps of a run until its packet is rejected.
func rejects(m *model) {
	for l := m.packetRuns[0]; !l.over; {
		m.take(l.step)
	}
}

// chargesAfterAll rejects a packet; then its charge succeeds.
func chargesAfterAll(m *model) {
	rejects(m)
	m.packetRuns = nil
	m.look(func() {
		o := m.bank.orders[m.db.chargeNo()]
		o.turned, o.kind = true, payout.ObsSucceeded
		m.bank.moves(o)
	})
}

// goesBack reports whether a packet is rejected and its charge fully refunded.
func goesBack(m *model, _ recovery.Report) bool {
	return m.db.rec.Stored == packet.StatusRejected && m.refund() != nil && m.refund().Amount == m.packet.TotalAmount
}

// payoutOf returns the id of a share's payout.
func payoutOf(m *model, share int) string { return payout.ID(payout.KindPayout, m.packet.ID, share) }

// refused makes the provider refuse what is sent during a call.
func (m *model) refused(do func()) {
	m.dice.(fixedDice)["fate"] = 6
	do()
	m.dice.(fixedDice)["fate"] = 0
}

// chargeStories: a charge was refused, and executed after all.
func chargeStories() map[string]story {
	return map[string]story{
		"charged after it was rejected, backup from before the refusal": {dice: fixedDice{"charged": 1, "fate": 6}, before: refuses(packet.StepCharge),
			after: chargesAfterAll, want: goesBack},
		"charged after it was rejected, backup from between": {dice: fixedDice{"charged": 1, "fate": 6}, before: refuses(packet.StepReject),
			after: chargesAfterAll, want: goesBack},
		"charged after it was rejected, backup from after the rejection": {dice: fixedDice{"charged": 1, "fate": 6}, before: rejects,
			after: chargesAfterAll, want: goesBack},
		"charged before it was rejected": {dice: fixedDice{"charged": 1, "fate": 6}, before: refuses(packet.StepReject), after: func(m *model) {
			runs := m.packetRuns
			m.packetRuns = nil
			clear(m.dice.(fixedDice))
			m.turns(m.db.chargeNo(), payout.ObsSucceeded)
			m.packetRuns = runs
			m.runUntilIdle()
			m.pays(0, 1, 2, 3)
		}, want: func(m *model, result recovery.Report) bool {
			return result.Claims == 4 && result.Closed == 1 && m.refund() == nil && m.paid(3, 3)
		}},
	}
}

// awaitsPayer takes the steps of a run until the charge waits for its sender, who pays a second later.
func awaitsPayer(m *model) {
	for m.db.rows[m.db.chargeID()] == nil || m.db.rows[m.db.chargeID()].Status != payout.StatusAwaitingPayer {
		m.take(m.packetRuns[0].step)
	}
}

// payerStories: the sender pays in an app, and the packet may not open.
func payerStories() map[string]story {
	returned := func(m *model, _ recovery.Report) bool {
		return len(m.db.shares) == 0 && m.db.rows[m.db.chargeID()].Withdrawn()
	}
	return map[string]story{
		"withdrawn, and paid before the close": {dice: fixedDice{"payer": 3}, before: func(m *model) {
			awaitsPayer(m)
			m.take(m.db.withdrawCharge)
		}, after: func(*model) {}, want: returned},
		"paid with a coupon that is refused": {dice: fixedDice{"payer": 3, "pays": 7, "pays twice": 1}, before: awaitsPayer,
			after: func(*model) {}, want: returned},
	}
}

// paidUnderTheEarlier has two attempts of a payout refused; then the first one succeeds after all,
// and is returned.
func paidUnderTheEarlier(m *model) {
	opens(m)
	m.refused(func() {
		m.pays(0)
		m.take(func() error { return m.db.decide(payoutOf(m, 0), payout.DecisionRetry, financeUsers[0], "slip") })
		m.runUntilIdle()
	})
	for _, kind := range []payout.ObservationKind{payout.ObsSucceeded, payout.ObsReturned} {
		m.turns(payout.OrderNo(payoutOf(m, 0), 1), kind)
	}
}

// numberStories: a payment has a new order number, or was cancelled.
func numberStories() map[string]story {
	return map[string]story{
		"paid under the earlier number": {dice: fixedDice{}, before: paidUnderTheEarlier, after: func(*model) {},
			want: func(m *model, _ recovery.Report) bool {
				r := m.db.rows[payoutOf(m, 0)]
				return len(r.attempts) == 2 && r.Attempt == 1 && r.Status == payout.StatusReturned
			}},
		"paid under a number after one that MySQL has": {dice: fixedDice{}, before: paidUnderTheEarlier, after: func(m *model) {
			m.take(func() error { return m.db.decide(payoutOf(m, 0), payout.DecisionRetry, financeUsers[0], "slip") })
			m.runUntilIdle()
		}, want: func(m *model, result recovery.Report) bool {
			r := m.db.rows[payoutOf(m, 0)]
			return result.Numbers == 1 && len(r.attempts) == 3 && m.paid(0, 0)
		}},
		"cancelled": {dice: fixedDice{}, before: func(m *model) {
			opens(m)
			m.refused(func() { m.pays(0) })
		}, after: func(m *model) { m.twoDecide(payoutOf(m, 0), payout.DecisionCancel) },
			want: func(m *model, result recovery.Report) bool { return result.Cancels == 1 }},
		"paid, and only the provider has it": {before: opens, after: func(m *model) { m.pays(0) }, lost: losePool,
			want: func(m *model, result recovery.Report) bool { return result.Guessed == 1 && m.paid(0, 0) }},
	}
}

// shareConflictStories: claims that Redis had lost are delivered (R10).
func shareConflictStories() map[string]story {
	closed := func(m *model, result recovery.Report) bool {
		return result.Closed == 1 && m.hasShareConflict(0) && m.refund().Status == payout.StatusPaid
	}
	return map[string]story{
		"a share conflict after the end": {before: func(m *model) { opens(m); m.pays(1); m.closes() }, after: func(m *model) { m.comes(0, 1) },
			want: func(m *model, _ recovery.Report) bool { return m.hasShareConflict(0) }},
		"a stale claim and the paid one": {before: opens, after: func(m *model) { m.pays(1); m.closes(); m.comes(0, 1) },
			want: closed},
		"refunded in full, under a new number": {dice: fixedDice{}, before: opens, after: func(m *model) {
			m.refused(m.closes)
			m.twoDecide(payout.ID(payout.KindRefund, m.packet.ID, 0), payout.DecisionRetry)
			m.comes(0, 0)
		}, want: func(m *model, result recovery.Report) bool { return closed(m, result) && m.refund().Attempt == 2 }},
		"one share acknowledged twice": {before: opens, after: func(m *model) {
			m.pays(1)
			m.comes(0, 0)
			m.pool.byUser[user(0)] = m.db.shareConflicts[0].claim // as after a rebuild of the lane
		}, want: func(m *model, _ recovery.Report) bool { return m.hasShareConflict(0) && m.paid(1, 0) }},
		"one share acknowledged twice, and only Temporal has it": {before: opens, after: func(m *model) { m.pays(1); m.comes(0, 0) },
			lost: func(m *model) {
				m.pool.gone, m.pool.winners = true, nil
				slices.Reverse(m.started)
			}, want: func(m *model, _ recovery.Report) bool { return m.hasShareConflict(0) && m.paid(1, 0) }},
	}
}

// unrecorded keeps a backup from before the packet.
func unrecorded(m *model) {
	b := newDatabase(m.world)
	b.state = payout.MySQLState{Heartbeat: 1, State: payout.MySQLNormal, HeartbeatAt: m.clock}
	m.kept, m.copied = append(m.kept, &backup{b, m.clock}), 2
}

// listStories: a packet for a list of users, user0 and user1, which the backup lacks.
func listStories() map[string]story {
	list := func() fixedDice { return fixedDice{"guests": 3, "invited": 1} }
	emptied := func(m *model) {
		m.pool.gone, m.pool.winners = true, nil
		clear(m.pool.byUser)
	}
	closedToOthers := func(m *model, status packet.Status) bool {
		m.rebuilt()
		return m.db.rec.Stored == status && m.db.rec.EligibleListLost() && !m.pool.grab(user(1)) && !m.pool.grab(user(5))
	}
	return map[string]story{
		"for a list that is lost, claimed": {dice: list(), before: unrecorded, after: func(m *model) { opens(m); m.pays(0) }, lost: emptied,
			want: func(m *model, _ recovery.Report) bool { return m.paid(0, 0) && closedToOthers(m, packet.StatusClosing) }},
		"for a list that is lost, not charged yet": {dice: list(), before: unrecorded, after: func(m *model) {
			m.take(func() error { _, err := m.packets.RecordPacket(ctx, m.packet, packet.Facts{}); return err })
		}, lost: emptied, want: func(m *model, _ recovery.Report) bool {
			return m.db.rec.Stored == packet.StatusRejected && m.refund() == nil
		}},
		"for a list that Redis has": {dice: list(), before: unrecorded, after: func(m *model) { opens(m); m.pays(0) },
			want: func(m *model, _ recovery.Report) bool {
				return m.db.rec.Stored == packet.StatusOpen && !m.db.rec.EligibleListLost() && !m.pool.grab(user(5)) && m.pool.grab(user(1))
			}},
	}
}

// leftStories: what the recovery cannot find is left to staff.
func leftStories() map[string]story {
	charge := func(m *model) string { return payout.ID(payout.KindCharge, m.packet.ID, 0) + ":" }
	return map[string]story{
		"paid to another account": {before: func(m *model) { opens(m); m.pays(0) }, after: func(m *model) {
			m.pool.grab(user(1))
			m.pool.handoffs[0].Recipient = user(0)
			m.runUntilIdle()
		}, lost: losePool, left: func(m *model) string { return payout.OrderNo(payoutOf(m, 1), 1) }},
		"paid by other means": {dice: fixedDice{}, before: func(m *model) {
			opens(m)
			m.refused(func() { m.pays(0) })
		}, after: func(m *model) {
			id := payoutOf(m, 0)
			m.twoDecide(id, payout.DecisionMarkPaid)
			m.start(id, nil)
			m.runUntilIdle()
		}, left: func(m *model) string { return payoutOf(m, 0) + ":" }},
		"charged, and the terms are lost": {before: unrecorded, after: opens, lost: losePool, left: charge},
		"older than the provider's memory": {dice: fixedDice{"memory": 2, "life": 2}, before: opens,
			after: func(m *model) { m.pass(3 * time.Hour) },
			left:  charge},
	}
}

// TestRecoverStories checks that the recovery of a restored MySQL finds what happened and leaves to
// staff what it cannot find; the rest ends by itself.
func TestRecoverStories(t *testing.T) {
	for _, some := range []map[string]story{chargeStories(), payerStories(), numberStories(), shareConflictStories(), listStories(),
		leftStories()} {
		for name, s := range some {
			t.Run(name, func(t *testing.T) {
				if m := s.play(t); len(m.wrong) > 0 {
					t.Errorf("%q\n%s", m.wrong, strings.Join(m.story, "\n"))
				}
			})
		}
	}
}

// TestRecoverWaitsByMySQLClock checks that MySQL's clock decides how long sends after the backup
// may still be open, and which part of the statement is read. The machine's clock is a hundred
// years behind here.
func TestRecoverWaitsByMySQLClock(t *testing.T) {
	const window = payout.LeaveWithin + landingWindow
	for _, gone := range []time.Duration{0, window / 4, window} {
		m := newModel(ordinaryDice{})
		opens(m)
		m.keepBackup()
		m.pass(2 * unnoticed)
		m.restore()
		m.pass(gone)
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			result, err := m.newRecovery().Run(ctx)
			if waited := time.Since(began); err != nil || !result.Ended || waited != window-gone {
				t.Errorf("%s after the restore it waits %s, want %s: %+v, %v", gone, waited, window-gone, result, err)
			}
			if result.Lines != 1 {
				t.Errorf("%d lines of the statement were read, want that of the charge", result.Lines)
			}
		})
	}
}

// refusingDice draws the ordinary case, but the provider refuses the first payouts.
type refusingDice struct{ left *int }

func (d refusingDice) n(what string, _ int) int {
	if what == "fate" && *d.left > 0 {
		*d.left--
		return 6
	}
	return 0
}

// TestRefundDropped: a cancelled payout reaches its recipient while its refund waits. Two persons cancel
// the refund, and nothing is in suspense.
func TestRefundDropped(t *testing.T) {
	left := 1
	m := newModel(refusingDice{&left})
	opens(m)
	m.pays(0)
	id, refund := payout.ID(payout.KindPayout, m.packet.ID, 0), payout.ID(payout.KindRefund, m.packet.ID, 1)
	_ = m.db.setHold(true) // so that the refund is not sent before the success is known
	if m.twoDecide(id, payout.DecisionCancel); m.db.rows[id].Status != payout.StatusCancelled {
		t.Fatalf("%+v", m.db.rows[id])
	}
	m.turns(payout.OrderNo(id, 1), payout.ObsSucceeded)
	if r := m.db.rows[refund]; r == nil || r.Status != payout.StatusPending || m.db.balance[payout.AccountSuspense] == 0 {
		t.Fatalf("%+v", r)
	}
	if !m.cancelsRefunds(func(string) bool { return true }) {
		t.Fatal("it cannot be cancelled")
	}
	m.runUntilIdle()
	if r := m.db.rows[refund]; r.Status != payout.StatusCancelled || m.db.balance[payout.AccountSuspense] != 0 {
		t.Errorf("%+v, %v", r, m.db.balance)
	}
	if m.live(0); len(m.wrong) > 0 {
		t.Errorf("%q\n%s", m.wrong, strings.Join(m.story, "\n"))
	}
}
