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
	"hongbao/internal/staff"
)

// Orders about which the provider gives no answer during a recovery. They are left to staff, who
// recover again once it answers, or release the packet.

// leftBehind reports whether the last recovery left an order number to staff. A further recovery
// gets an answer or leaves it again. The lock is held.
func (b *database) leftBehind(no string) bool {
	at, left := b.left[no]
	return left && !at.Before(b.state.RestoredAt)
}

// wasLeft reports whether a recovery left an order number or payment to staff. The lock is held.
func (b *database) wasLeft(subject string) bool { return !b.left[subject].IsZero() }

// unsure reports whether MySQL may lack something. An unnoticed loss of Redis would remove the rest
// of it. The lock is held.
func (b *database) unsure() bool { return b.restored() || len(b.left) > 0 }

func (b *database) chargeNo() string {
	return payout.OrderNo(payout.ID(payout.KindCharge, b.world.packet.ID, 0), 1)
}

// falls draws the orders about which the provider gives no answer in the next recovery.
func (m *model) falls() {
	m.bank.silent = map[string]bool{}
	if m.t == nil || m.calm && m.reached["left to staff: silent"] > 0 || m.dice.n("silent", 4) < 3 {
		return
	}
	numbers := slices.Clone(m.bank.numbers)
	numbers = append(numbers, m.db.chargeNo(), payout.OrderNo(payout.ID(payout.KindRefund, m.packet.ID, 0), 1))
	for _, id := range m.db.ids {
		if id[0] != byte(payout.KindCharge) { // a charge has one order number
			numbers = append(numbers, payout.OrderNo(id, len(m.db.rows[id].attempts)+1))
		}
	}
	for i := range m.db.shares {
		numbers = append(numbers, payout.OrderNo(payout.ID(payout.KindPayout, m.packet.ID, i), 1),
			payout.OrderNo(payout.ID(payout.KindRefund, m.packet.ID, i+1), 1))
	}
	for range 1 + m.dice.n("more silent", 2) {
		m.bank.silent[numbers[m.dice.n("which", len(numbers))]] = true
	}
}

// runRecovery runs a recovery as an operator does: orders without an answer are left to staff.
func (m *model) runRecovery(r *recovery.Recovery) (result recovery.Report, err error) {
	if m.falls(); len(m.bank.silent) == 0 {
		return m.recovery(r)
	}
	synctest.Test(m.t, func(*testing.T) { result, err = m.recovery(r) }) // on a clock that skips pauses
	m.look(func() { m.reached["an order without an answer"]++ })
	return result, err
}

// lands advances the time until no send that the restore lost can be open.
func (m *model) lands() {
	if wait := m.db.state.RestoredAt.Add(payout.LeaveWithin + landingWindow).Sub(m.clock); wait > 0 {
		m.pass(wait)
	}
	m.look(m.bank.advance)
}

// recovery runs the product's recovery once.
func (m *model) recovery(r *recovery.Recovery) (recovery.Report, error) {
	m.recovering = false
	m.lands()
	m.recovering, m.began, m.bank.asks = true, m.clock, 0
	return r.Run(ctx)
}

// leaves notes the orders without an answer that a recovery left to staff. The lock is held.
func (m *model) leaves(result recovery.Report) {
	m.silentLeft = nil
	for _, line := range result.Undecided {
		no, why, _ := strings.Cut(line, ": ")
		if !strings.Contains(why, "no usable answer") {
			continue
		}
		if !m.bank.silent[no] {
			m.violated("%s was left to staff, and the provider has answered", no)
		}
		m.silentLeft = append(m.silentLeft, no)
		m.reached["left to staff: silent"]++
		m.reached["left to staff: "+no[:1]]++
	}
}

// provable reports whether another recovery may find an order that MySQL lacks because the provider
// was silent about an order on which it depends. Staff look that up before they release a packet.
func (m *model) provable() (yes bool) {
	m.look(func() {
		yes = slices.ContainsFunc(m.bank.numbers, func(no string) bool { return m.db.lacks(no) && dependsOn(no, m.silentLeft) })
	})
	return yes
}

// behind reports whether an order was left to staff by the last recovery, or depends on one that
// was: another attempt of the same payment, the refund of its cancellation, or any payment of a
// packet whose charge was left. A resolution by staff stays until the next recovery or query.
func (w *world) behind(no string) bool {
	var last []string
	for left := range w.db.left {
		if w.db.leftBehind(left) {
			last = append(last, left)
		}
	}
	return dependsOn(no, last)
}

// dependsOn reports whether an order is of the payment of one of the others, refunds its
// cancellation, or is of a packet whose charge is one of them.
func dependsOn(no string, others []string) bool {
	parts, _ := payout.Parse(no)
	about := []string{parts.PaymentID, payout.ID(payout.KindCharge, parts.PacketID, 0)}
	if parts.Kind == payout.KindRefund && parts.Number > 0 {
		about = append(about, payout.ID(payout.KindPayout, parts.PacketID, parts.Number-1))
	}
	return slices.ContainsFunc(others, func(other string) bool { return slices.Contains(about, other[:payout.IDLen]) })
}

// unseen reports whether MySQL lacks an order of a payment because of what was left to staff. The
// lock is held.
func (w *world) unseen(payment string) bool {
	return slices.ContainsFunc(w.bank.numbers, func(no string) bool {
		return strings.HasPrefix(no, payment) && w.db.lacks(no) && w.behind(no)
	})
}

// lacks reports whether MySQL lacks an order number. The lock is held.
func (b *database) lacks(no string) bool {
	parts, _ := payout.Parse(no)
	r := b.rows[parts.PaymentID]
	return r == nil || len(r.attempts) < parts.Attempt
}

// recoversAgain declares MySQL restored again from the same backup time and recovers it once the
// provider answers.
func (m *model) recoversAgain() {
	b := restoredDatabase{m.db}
	m.recovering, m.diesAfter = true, 0
	if _, err := b.DeclareRestored(ctx, staff.Write{}, m.copied, m.complete); err != nil {
		m.look(func() { m.violated("declared: %v", err) })
	}
	m.recovering = false
	m.look(func() { m.reached["recovered again, what was left"]++ })
	m.recovers()
}

// TestUnresolvedSees checks that wrong handling of what was left to staff is reported. A claim was made
// and paid after the backup, and the provider gives no answer about its order. Staff recover again;
// or it is sent while it is held, or releases it and forgets it.
func TestUnresolvedSees(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(m *model, no string)
		want  string
	}{
		"in order": {func(*model, string) {}, ""},
		"sent while it is held": {func(m *model, no string) {
			m.bank.Send(ctx, payout.Order{Op: payout.OpTransfer, OrderNo: no, Request: m.bank.orders[no].raw})
		}, "or about a packet that was left to staff"},
		"left, and there is an answer": {func(m *model, _ string) {
			m.leaves(recovery.Report{Undecided: []string{m.bank.numbers[1] + ": no usable answer"}})
		}, "was left to staff, and the provider has answered"},
		"answered since, and not in MySQL": {func(m *model, no string) {
			m.db.left[no] = m.db.state.RestoredAt.Add(-time.Second)
			m.releases()
			m.pass(time.Second)
		}, "MySQL does not"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(fixedDice{"silent": 3, "which": 2})
			m.t = t
			m.packet.ShareCount, m.packet.TotalAmount, m.packet.Split = 4, 2000, packet.SplitEqual
			for m.pool.state != packet.PoolOpen {
				m.ready()[0]()
			}
			m.pool.grab(user(0))
			m.settles()
			m.keepBackup()
			m.pass(2 * unnoticed)
			m.pool.grab(user(1))
			m.settles()
			no := m.bank.numbers[2]
			m.restore()
			m.recovers()
			if len(m.wrong) == 0 && (!m.db.leftBehind(no) || len(m.db.left) != 1 || !m.db.held(payout.HoldPacket) || !m.provable()) {
				t.Fatalf("the setup failed: %v\n%s", m.db.left, strings.Join(m.story, "\n"))
			}
			tc.spoil(m, no)
			if len(m.wrong) == 0 {
				m.live(0)
			}
			if tc.want == "" && (m.reached["recovered again, what was left"] == 0 || m.db.rows[no[:payout.IDLen]].Status != payout.StatusPaid) {
				t.Errorf("not recovered again: %v", m.reached)
			}
			if got := strings.Join(m.wrong, "\n"); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("want %q, got %q\n%s", tc.want, got, strings.Join(m.story, "\n"))
			}
		})
	}
}
