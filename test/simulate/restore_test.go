package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/recovery"
	"hongbao/internal/staff"
)

// Rule R13: MySQL is restored from a backup, and the product's own recovery (recovery.Recovery) runs
// with the same provider, pool and runs.

// unnoticed is the age up to which a restored backup may miss no heartbeat.
const unnoticed = 10 * time.Second

// backup is a copy of MySQL at one moment.
type backup struct {
	db *database
	at time.Time
}

func (s sums) clone() sums { return sums{maps.Clone(s.balance), maps.Clone(s.byKind)} }

func (b *database) clone() *database {
	c := *b
	c.rows = make(map[string]*row, len(b.rows))
	for id, r := range b.rows {
		kept := *r
		kept.attempts = slices.Clone(r.attempts)
		c.rows[id] = &kept
	}
	c.decisions = nil
	for _, d := range b.decisions {
		kept := *d
		c.decisions = append(c.decisions, &kept)
	}
	c.ids, c.shares, c.transfers, c.breaks = slices.Clone(b.ids), slices.Clone(b.shares), slices.Clone(b.transfers), slices.Clone(b.breaks)
	c.outbox, c.shareConflicts = slices.Clone(b.outbox), slices.Clone(b.shareConflicts)
	c.holds, c.left, c.posted, c.heard, c.sums, c.honours = slices.Clone(b.holds), maps.Clone(b.left), maps.Clone(b.posted),
		maps.Clone(b.heard), b.sums.clone(),
		b.honours.clone()
	return &c
}

// restored reports whether MySQL is restored and not recovered. The lock is held.
func (b *database) restored() bool { return b.state.State == payout.MySQLRestored }

// backups is the number of backups that are kept.
const backups = 3

// keepBackup copies MySQL. The heartbeat of a MySQL that is not restored rises at that moment.
func (m *model) keepBackup() {
	m.look(func() {
		b := m.db
		if !b.recorded {
			return
		}
		if !b.restored() {
			b.state.Heartbeat, b.state.HeartbeatAt, b.state.State = b.state.Heartbeat+1, m.clock, payout.MySQLNormal
		}
		m.kept = append(m.kept[max(len(m.kept)-backups+1, 0):], &backup{b.clone(), m.clock})
		m.note("backup %d", b.state.Heartbeat)
	})
}

// restore puts MySQL back to one of its backups, possibly a second time: after the recovery or
// before it.
func (m *model) restore() {
	if len(m.kept) == 0 {
		return
	}
	to := m.kept[m.dice.n("backup", len(m.kept))]
	m.look(func() { m.restoreTo(to) })
}

// restoreTo puts MySQL back to a backup, unless something has happened that no store can show
// again: a payment by other means, a changed share conflict, or a loss of Redis after which a share
// was acknowledged twice and paid once. The lock is held.
func (m *model) restoreTo(to *backup) {
	b := m.db
	if m.clock.Sub(to.at) < unnoticed || m.limits.Remembers != remembersLong {
		return
	}
	if m.reached["redis restored"]+m.reached["redis emptied"] > 0 {
		m.reached["not restored: no store would show it"]++
		return
	}
	twice := slices.ContainsFunc(m.acknowledged, func(c packet.Claim) bool {
		o := m.bank.orders[payout.OrderNo(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), 1)]
		return m.lost[keyOf(c)] && o != nil
	})
	invisible := slices.ContainsFunc(b.decisions, func(d *decision) bool { return d.Kind == payout.DecisionMarkPaid && d.at.After(to.at) })
	// A restore after the charge was returned is left out: nothing says whether the packet was open.
	charge := m.bank.orders[b.chargeNo()]
	cameBack := charge != nil && (charge.kind == payout.ObsReturned || charge.then == payout.ObsReturned)
	if twice || invisible || cameBack || len(b.shareConflicts) != len(to.db.shareConflicts) ||
		!maps.Equal(b.honours.byKind, to.db.honours.byKind) {
		m.reached["not restored: no store would show it"]++
		return
	}
	m.countAgain(to)
	m.putBack(to)
	if b.charged() != nil {
		m.reached["MySQL restored, not charged yet"]++
	}
	m.judge("restore")
}

// putBack replaces MySQL by a backup. The lock is held.
func (m *model) putBack(to *backup) {
	b := m.db
	known := max(b.state.Heartbeat, m.copied) + 1
	*b = *to.db.clone()
	m.kept = slices.DeleteFunc(m.kept, func(k *backup) bool { return k.at.After(to.at) }) // copies of a MySQL that is lost now
	m.complete = b.state.HeartbeatAt
	m.copied, b.state = known, b.state.CheckRestored(known, false, m.clock)
	m.held = nil // the sends of the lost MySQL do not count
	charge := b.rows[b.chargeID()]
	m.withdrawn = m.withdrawn && charge != nil && charge.Withdrawn() // no other store shows it
	m.note("MySQL restored: its backup is of %s", to.at.Sub(born))
	m.reached["MySQL restored"]++
}

// countAgain counts how a MySQL is restored that was restored before.
func (m *model) countAgain(to *backup) {
	if to.db.restored() {
		m.reached["MySQL restored to a restored backup"]++
	}
	switch {
	case m.recovering:
		m.reached["MySQL restored again, while they were recovered"]++
	case m.db.restored():
		m.reached["MySQL restored again, not recovered yet"]++
	case m.reached["MySQL recovered"] > 0:
		m.reached["MySQL restored again"]++
		if m.firstLoss.After(to.at) {
			m.reached["MySQL restored again, to before the first loss"]++
		}
		if m.goneOn() {
			m.reached["MySQL restored again, orders and claims between"]++
		}
	}
	if m.firstLoss.IsZero() {
		m.firstLoss = m.clock
	}
}

// goneOn reports whether claims and orders followed the last recovery.
func (m *model) goneOn() bool {
	return len(m.bank.numbers) > m.recovered.orders && len(m.acknowledged) > m.recovered.claims
}

// marks is the progress of a lifetime.
type marks struct{ orders, claims int }

// newRecovery returns the product's recovery of MySQL.
func (m *model) newRecovery() *recovery.Recovery {
	return &recovery.Recovery{Store: restoredDatabase{m.db}, Pools: unfencedPool{m.pool},
		Providers: payout.OnlyProvider(m.bank), Starter: past{m}, Lanes: 1,
		SeedKey: seedKey, By: "ops", Logger: slog.New(slog.DiscardHandler)}
}

// recovers runs the product's recovery, which may be killed, once no send can be open.
func (m *model) recovers() (result recovery.Report) {
	m.lands()
	if m.bank.mute.After(m.clock) {
		return result
	}
	m.diesAfter = 0
	if !m.calm && m.dice.n("recovery is killed", 2) == 1 {
		m.diesAfter = 1 + m.dice.n("after", 8)
	}
	if n := len(m.kept); !m.calm && n > 0 && m.dice.n("restored during recovery", 6) == 5 {
		to := m.kept[m.dice.n("backup", n)]
		m.losesAfter = 1 + m.dice.n("after", 8)
		m.loses = func() {
			m.clock = m.clock.Add(time.Millisecond) // a distinct moment
			m.restoreTo(to)
		}
	}
	result, err := m.runRecovery(m.newRecovery())
	m.recovering, m.losesAfter = false, 0
	m.look(func() {
		switch again := m.db.state.RestoredAt.After(m.began); {
		case err == nil && again:
			m.violated("the recovery ended although MySQL was restored again while it ran")
		case err == nil && !result.Ended:
			m.violated("the recovery found nothing to recover: %+v", result)
		case err == nil:
			m.note("recovered: %d claims, %d numbers, %d cancels, %d closed; left to staff: %q", result.Claims, result.Numbers, result.Cancels,
				result.Closed, result.Undecided)
			for what, n := range map[string]int{"MySQL recovered": 1, "recovered claims": result.Claims, "recovered numbers": result.Numbers,
				"recovered cancels":  result.Cancels,
				"recovered closings": result.Closed, "left to staff by the recovery": len(result.Undecided)} {
				if n > 0 {
					m.reached[what] += n
				}
			}
			m.leaves(result)
			m.recovered = marks{len(m.bank.numbers), len(m.acknowledged)}
			m.judge("recovery")
		case errors.Is(err, errDied):
			m.note("the recovery was killed")
			m.reached["a recovery was killed"]++
		case again && m.db.restored():
			m.note("the recovery ended: %v", err)
		default:
			m.violated("recovery: %v", err)
		}
	})
	return result
}

// releases makes two persons release what a recovery left to staff.
func (m *model) releases() {
	m.look(func() {
		if !m.db.needsRecovery() {
			m.db.release(payout.HoldPacket)
		}
	})
}

// mended continues with a restored MySQL or an item that was left to staff. It reports whether it
// did anything.
func (m *model) mended() bool {
	switch {
	case m.db.restored():
		m.recovers()
	case m.db.held(payout.HoldPacket) && (m.provable() || m.db.needsRecovery()):
		m.recoversAgain()
	case m.db.held(payout.HoldPacket):
		m.releases()
	case m.db.held(payout.HoldProvider):
		_ = m.db.setHold(false)
	case m.calm && m.db.held(payout.HoldPayment):
		m.staffReleases()
	case m.calm:
		return m.cancelsRefunds(func(id string) bool { return m.db.rows[id].Status.Open() })
	default:
		return false
	}
	return true
}

// errDied is the error of a recovery that is killed.
var errDied = fmt.Errorf("killed: %w", packet.ErrUnavailable)

// restoredDatabase is MySQL as the recovery uses it, after package store.
type restoredDatabase struct{ *database }

func (b restoredDatabase) CompareHeartbeat(_ context.Context, known int64) (st payout.MySQLState, err error) {
	b.world.look(func() {
		b.state = b.state.CheckRestored(known, false, b.world.now())
		st = b.state
	})
	return st, nil
}

func (b restoredDatabase) DeclareRestored(_ context.Context, _ staff.Write, known int64, until time.Time) (st payout.MySQLState,
	err error) {
	err = b.world.do("declare restored", func() error {
		if st = b.state; st.State == payout.MySQLRestored {
			return nil
		}
		st.State, st.Known, st.RestoredAt, st.HeartbeatAt = payout.MySQLRestored, max(known, st.Heartbeat), b.world.now(), until
		b.state = st
		return nil
	})
	return st, err
}

func (b restoredDatabase) EndRecovery(_ context.Context, _ staff.Write, found payout.MySQLState, known int64, _ []string,
	_ []staff.StatementDay, _ any) (st payout.MySQLState, err error) {
	err = b.world.do("end of the recovery", func() error {
		if !b.state.RestoredAt.Equal(found.RestoredAt) {
			return fmt.Errorf("MySQL was restored again during the recovery: %w", errMoved)
		}
		b.state = b.state.Recovered(known, b.world.now())
		st = b.state
		b.place(payout.RecoveredHold(simulatedProvider, st))
		return nil
	})
	return st, err
}

// RecoverReserve: every packet is charged at the provider.
func (restoredDatabase) RecoverReserve(context.Context, string) error { return nil }

func (b restoredDatabase) RecoverFund(_ context.Context, _ string, amounts []money.Fen) (packet.Status, error) {
	return b.fund(amounts, b.chargeMoved)
}

func (b restoredDatabase) RecoverClaim(_ context.Context, c packet.Claim) (payout.State, error) {
	return b.recordClaim(c, true)
}

func (b restoredDatabase) RecoverShareConflict(_ context.Context, c packet.Claim, detail string) (payout.State, error) {
	return b.noteShareConflict(c, detail, true)
}

func (b restoredDatabase) NoteUndecided(_ context.Context, packetID, subject, detail string) error {
	return b.world.do("left to staff", func() error {
		b.left[subject] = b.world.now()
		b.place(payout.RecoveryHold(packetID, subject, detail, b.state))
		b.breaks = append(b.breaks, payout.Break{Kind: payout.BreakRestored, OrderNo: subject, Detail: detail})
		b.world.note("left to staff: %s: %s", subject, detail)
		return nil
	})
}

// Packet fills in the claimed sums also while the packet is open, as the store does.
func (b restoredDatabase) Packet(context.Context, string) (rec packet.Record, err error) {
	b.world.look(func() {
		if !b.recorded {
			err = packet.ErrNotFound
			return
		}
		if rec = b.rec; rec.BooksClosedAt.IsZero() {
			rec.ClaimedCount, rec.ClaimedAmount = b.claimed()
		}
	})
	return rec, err
}

// put stores a payment that moved several states at once.
func (b restoredDatabase) put(r *row, p payout.Payment) {
	b.world.note("%s: %s ->> %s", p.ID, r.Status, p.Status)
	r.settled = time.Time{}
	if !p.Status.Open() {
		r.settled = b.world.now()
	}
	r.Payment = p
}

func (b restoredDatabase) RecoverRejected(_ context.Context, id string, f packet.Failure) error {
	return b.world.do("recover rejected", func() error {
		if b.rec.Stored != packet.StatusFunding {
			return nil
		}
		r := b.rows[payout.ID(payout.KindCharge, id, 0)]
		p := r.Payment
		if p.Status == payout.StatusPaid {
			b.rec.Failure = &f
			b.move(packet.StatusRejected)
			b.owesRefund(p.Amount)
			b.world.reached["charged after it was rejected, rejected again"]++
			return nil
		}
		if err := payout.FailRecovered(&p, payout.NewFailure(f.Code, f.Message), b.world.now()); err != nil {
			return err
		}
		b.put(r, p)
		b.rec.Failure = &f
		b.move(packet.StatusRejected)
		return nil
	})
}

func (b restoredDatabase) RecoverRemainder(_ context.Context, _ string, amount money.Fen, reason packet.CloseReason) error {
	return b.world.do("recover remainder", func() error {
		if !b.rec.BooksClosedAt.IsZero() {
			return nil
		}
		n, sum := b.claimed()
		left := b.rec.TotalAmount - sum
		if b.rec.Stored != packet.StatusClosing {
			if err := b.chargeMoved(); err != nil {
				return err
			}
		}
		if left != amount {
			return payout.ErrUndecided
		}
		if b.rec.Stored != packet.StatusClosing {
			b.rec.Reason = reason
			b.move(packet.StatusClosing)
		}
		now := b.world.now()
		b.noted, b.rec.ClaimedCount, b.rec.ClaimedAmount, b.rec.Remainder, b.rec.BooksClosedAt = n, n, sum, left, now
		if left == 0 {
			return nil
		}
		b.owesRefund(left)
		return nil
	})
}

func (b restoredDatabase) RecoverCancel(_ context.Context, id string) (refund string, err error) {
	err = b.world.do("recover cancel", func() error {
		r := b.rows[id]
		if r == nil { // MySQL was restored again
			return packet.ErrNotFound
		}
		p := r.Payment
		refund = payout.ID(payout.KindRefund, p.PacketID, p.ShareIndex+1)
		if p.Status == payout.StatusCancelled {
			return nil
		}
		if err := payout.CancelRecovered(&p, b.world.now()); err != nil {
			return err
		}
		b.put(r, p)
		b.post(payout.NewTransfer(payout.PostCancel, p.ID, p.Amount))
		made := payout.CancelRefund(p, b.rec.SenderID, b.world.now())
		made.Provider = b.rec.ChargeProvider
		b.insert(made)
		b.wants(refund, wantBegin)
		b.endOpen(id, payout.DecisionCarriedOut)
		return nil
	})
	return refund, err
}

func (b restoredDatabase) RecoverAttempt(_ context.Context, was payout.Payment, no int, sentAt time.Time, l payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (put bool, err error) {
	err = b.world.do("recover number", func() error {
		r := b.rows[was.ID]
		if r == nil { // MySQL was restored again
			return packet.ErrNotFound
		}
		p := r.Payment
		if p.Status != was.Status || p.Attempt != was.Attempt {
			return fmt.Errorf("simulated: %w", packet.ErrMoved)
		}
		attempts := slices.Clone(r.attempts)
		switch put = false; no - len(attempts) {
		case 0:
			if put, err = payout.RecordResent(&p, &attempts[no-1], l, b.world.now()); err != nil || !put {
				return err
			}
		case 1:
			a, err := b.newAttempt(p, no, encode)
			if err != nil {
				return err
			}
			if err := payout.RecordRecovered(&p, &a, l, sentAt, b.world.now()); err != nil {
				return err
			}
			attempts, put = append(attempts, a), true
		default:
			return nil
		}
		r.attempts = attempts
		b.put(r, p)
		b.endOpen(was.ID, payout.DecisionOvertaken)
		return nil
	})
	return put, err
}

func (b restoredDatabase) FindOrders(_ context.Context, numbers []string) (map[string]payout.KnownOrder, error) {
	out := map[string]payout.KnownOrder{}
	b.world.look(func() {
		for _, no := range numbers {
			parts, _ := payout.Parse(no)
			if r := b.rows[parts.PaymentID]; r != nil && parts.Attempt <= len(r.attempts) {
				a := r.attempts[parts.Attempt-1]
				out[no] = payout.KnownOrder{Booked: a.Booked, ReturnBooked: a.ReturnBooked}
			}
		}
	})
	return out, nil
}

func (b restoredDatabase) UnclaimedShares(_ context.Context, _ string, after, limit int) (out []payout.UnclaimedShare, err error) {
	b.world.look(func() {
		for i, s := range b.shares {
			if i > after && s.user == "" && len(out) < limit {
				out = append(out, payout.UnclaimedShare{Index: i, Amount: s.amount})
			}
		}
	})
	return out, nil
}

func (b restoredDatabase) UnsettledPayments(context.Context, string) (out []payout.Payment, err error) {
	b.world.look(func() {
		for _, id := range slices.Sorted(slices.Values(b.ids)) {
			switch r := b.rows[id]; r.Status {
			case payout.StatusPaid, payout.StatusCancelled, payout.StatusPaidOutside:
			default:
				out = append(out, r.Payment)
			}
		}
	})
	return out, nil
}

func (b restoredDatabase) WaitingLists(context.Context) (lists []payout.WaitingList, err error) {
	b.world.look(func() {
		for _, id := range b.ids {
			r := b.rows[id]
			if of := (payout.WaitingList{Kind: r.Kind, Status: r.Status}); !r.Status.Final() && !slices.Contains(lists, of) {
				lists = append(lists, of)
			}
		}
	})
	return lists, nil
}

func (b restoredDatabase) WaitingPayments(_ context.Context, kind payout.Kind, status payout.Status, after packet.Cursor,
	_ int) (out []payout.OpenPayment, err error) {
	b.world.look(func() {
		for _, id := range b.ids {
			if r := b.rows[id]; r.Kind == kind && r.Status == status && after == (packet.Cursor{}) {
				out = append(out, payout.OpenPayment{Payment: r.Payment})
			}
		}
	})
	return out, nil
}

func (b restoredDatabase) PaymentRow(_ context.Context, id string) (p payout.Payment, err error) {
	b.world.look(func() {
		if r := b.rows[id]; r != nil {
			p = r.Payment
		} else {
			err = packet.ErrNotFound
		}
	})
	return p, err
}

func (b restoredDatabase) PayoutOf(context.Context, string, string) (payout.Payment, error) {
	return payout.Payment{}, packet.ErrNotFound
}

func (b restoredDatabase) PacketStates(_ context.Context, ids []string) (map[string]packet.RowState, error) {
	out := map[string]packet.RowState{}
	b.world.look(func() {
		if b.recorded && slices.Contains(ids, b.rec.ID) {
			out[b.rec.ID] = packet.RowState{Stored: b.rec.Stored}
		}
	})
	return out, nil
}

func (b restoredDatabase) UnfinishedPackets(_ context.Context, status packet.Status, after packet.Cursor,
	_ int) (out []packet.UnfinishedPacket,
	err error) {
	b.world.look(func() {
		if b.recorded && b.rec.Stored == status && after == (packet.Cursor{}) {
			out = append(out, packet.UnfinishedPacket{Record: b.rec})
		}
	})
	return out, nil
}

func (b restoredDatabase) UnfinishedPacket(context.Context, string) (packet.UnfinishedPacket, bool, error) {
	return packet.UnfinishedPacket{}, false, nil
}

func (b restoredDatabase) RecordedUsers(_ context.Context, _ string, users []string) (map[string]bool, error) {
	out := map[string]bool{}
	b.world.look(func() {
		for _, u := range users {
			out[u] = b.accounted(u)
		}
	})
	return out, nil
}

func (b restoredDatabase) PacketsToEnd(context.Context) ([]string, error) { return nil, nil }

func (b restoredDatabase) PoolLanes(context.Context) (lanes []fence.LaneRow, err error) {
	b.world.look(func() { lanes = []fence.LaneRow{{Epoch: 1, State: fence.LaneOpen}} })
	return lanes, nil
}

func (b restoredDatabase) RecoverPoolLane(context.Context, fence.LaneRow) error { return nil }

// unfencedPool is the pool as a recovery reads it, without the fence.
type unfencedPool struct{ *pool }

func (p unfencedPool) HeartbeatNumber(context.Context) (n int64, err error) {
	p.world.look(func() { n = p.world.copied })
	return n, nil
}

func (p unfencedPool) RaiseHeartbeatNumber(_ context.Context, n int64) error {
	p.world.look(func() { p.world.copied = max(p.world.copied, n) })
	return nil
}

func (p unfencedPool) LivePageUnfenced(_ context.Context, _ int, from time.Time, _ int) (live []packet.LivePacket, err error) {
	p.world.look(func() {
		if !p.gone && !p.retired && from.IsZero() {
			live = []packet.LivePacket{{ID: p.world.packet.ID, CreatedAt: p.world.packet.CreatedAt}}
		}
	})
	return live, nil
}

func (p unfencedPool) ViewsUnfenced(_ context.Context, ids []string) (map[string]packet.PoolView, error) {
	out := map[string]packet.PoolView{}
	p.world.look(func() {
		if p.gone || !slices.Contains(ids, p.world.packet.ID) {
			return
		}
		v := packet.PoolView{Packet: p.world.packet, State: p.state, Retired: p.retired, ClaimedCount: len(p.winners), ClaimedAmount: p.claimed,
			RemainingCount: len(p.free), Reason: p.reason, Now: p.world.now()}
		if p.retired {
			v = packet.PoolView{Packet: packet.Packet{ID: p.world.packet.ID}, State: packet.PoolClosed, Retired: true, Now: v.Now}
		}
		out[p.world.packet.ID] = v
	})
	return out, nil
}

func (p unfencedPool) EligibleUnfenced(context.Context, string) (list []string, err error) {
	p.world.look(func() {
		if !p.gone {
			list = slices.Sorted(maps.Keys(p.eligible))
		}
	})
	return list, nil
}

// EachClaimUnfenced returns also the users with a share conflict that a rebuild has put into the
// pool.
func (p unfencedPool) EachClaimUnfenced(_ context.Context, _ string, each func([]packet.Claim) error) error {
	var claims []packet.Claim
	p.world.look(func() {
		for _, user := range slices.Sorted(maps.Keys(p.byUser)) {
			if !p.gone && !p.retired {
				claims = append(claims, p.byUser[user])
			}
		}
	})
	if len(claims) == 0 {
		return nil
	}
	return each(claims)
}

func (p unfencedPool) ReadEpoch(context.Context, int) (e fence.Epoch, err error) {
	p.world.look(func() {
		if e = (fence.Epoch{Number: 1, Fence: fence.Open}); p.fenceClosed {
			e.Fence = fence.Halted
		}
	})
	return e, nil
}

func (p unfencedPool) HaltFence(context.Context, int, int64, fence.LaneReason) error {
	p.world.look(func() {
		p.fenceClosed = true
		p.world.reached["a recovery closes the fence"]++
	})
	return nil
}

// past simulates the histories that Temporal keeps.
type past struct{ *model }

func (p past) ClaimsOf(_ context.Context, _ string, known func([]string) (map[string]bool, error)) (out []packet.Claim, err error) {
	var all []packet.Claim
	p.look(func() {
		if !p.emptied {
			all = slices.Clone(p.started)
		}
	})
	for _, c := range all {
		have, err := known([]string{c.UserID})
		if err != nil {
			return nil, err
		}
		if !have[c.UserID] && !slices.ContainsFunc(out, func(o packet.Claim) bool { return o.UserID == c.UserID }) {
			out = append(out, c)
		}
	}
	return out, nil
}

func (p past) PacketsSince(context.Context, time.Time) (ids []string, _ error) {
	if !p.emptied {
		ids = []string{p.packet.ID}
	}
	return ids, nil
}

func (p past) WinnersSince(context.Context, time.Time) (map[string][]string, error) {
	users := map[string][]string{}
	p.look(func() {
		for _, c := range p.started {
			if p.emptied {
				break
			}
			users[c.PacketID] = append(users[c.PacketID], c.UserID)
		}
	})
	return users, nil
}

func (p past) PacketOf(context.Context, string) (packet.Packet, bool, error) {
	return p.packet, !p.emptied, nil
}

func (p past) EndedAs(_ context.Context, pay payout.Payment) (s payout.Status, err error) {
	p.look(func() {
		if !p.emptied {
			s = p.ended[pay.ID]
		}
	})
	return s, nil
}

// Zone and Statement implement the provider's statement.
func (b *bank) Zone() *time.Location { return time.UTC }

func (b *bank) Statement(_ context.Context, day payout.Day, _ string) (page payout.StatementPage, err error) {
	b.world.look(func() {
		add := func(o *order, op payout.Op, at time.Time) {
			if !at.IsZero() && payout.DayOf(at, time.UTC) == day {
				page.Lines = append(page.Lines, payout.StatementLine{Ref: string(op) + o.no, Op: op, OrderNo: o.no, Account: o.ins.Account,
					Amount: o.ins.Amount, At: at})
			}
		}
		for _, no := range b.numbers {
			o := b.orders[no]
			add(o, o.ins.Op, o.movedAt)
			add(o, payout.OpReturn, o.backAt)
		}
	})
	return page, nil
}

// settles runs everything in progress to its end.
func (m *model) settles() {
	for range 100 {
		for len(m.pool.handoffs) > 0 {
			m.relay(0)
		}
		ready := m.ready()
		if len(ready) == 0 {
			return
		}
		for _, step := range ready {
			step()
		}
	}
}

// TestRestoreSees checks that faults of a restored MySQL are reported: a recovery that is skipped,
// a send, a missing fen, and a recovered attempt that is removed again.
func TestRestoreSees(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(m *model)
		want  string
	}{
		"in order":                  {func(*model) {}, ""},
		"used without a recovery":   {func(m *model) { m.db.state.State = payout.MySQLNormal; m.pass(time.Second) }, "MySQL does not"},
		"a fen is gone":             {func(m *model) { m.db.balance[payout.AccountHolding]--; m.pass(time.Second) }, "but its parts are"},
		"closed without a recovery": {func(m *model) { m.shareGoesBack() }, "MySQL does not"},
		"sent from a restored MySQL": {func(m *model) {
			m.bank.Send(ctx, payout.Order{OrderNo: m.bank.numbers[0], Request: m.bank.orders[m.bank.numbers[0]].raw})
		}, "from a restored MySQL"},
		"recovered and removed again": {func(m *model) {
			m.recovers()
			r := m.db.rows[payout.ID(payout.KindPayout, m.packet.ID, 1)]
			r.attempts = nil
			m.pass(time.Second)
		}, "MySQL does not"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(ordinaryDice{})
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
			m.restore()
			if !m.db.restored() || len(m.db.rows) != 2 {
				t.Fatalf("the setup failed: %v", m.db.ids)
			}
			tc.spoil(m)
			if len(m.wrong) == 0 {
				m.live(0)
			}
			if tc.want == "" && (m.reached["MySQL recovered"] != 1 || m.reached["recovered claims"] != 1 ||
				m.db.rows[payout.ID(payout.KindPayout, m.packet.ID, 1)].Status != payout.StatusPaid) {
				t.Errorf("not recovered: %v", m.reached)
			}
			if got := strings.Join(m.wrong, "\n"); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("want %q, got %q\n%s", tc.want, got, strings.Join(m.story, "\n"))
			}
		})
	}
}

// fixedDice returns fixed results by name, and otherwise the ordinary case.
type fixedDice map[string]int

func (d fixedDice) n(what string, _ int) int { return d[what] }

// TestRestoreBeforeTheChargeFailed checks that a run which is about to reject its packet continues
// from the row of a restored MySQL that does not have the refusal. It is rejected then; a charge that
// the provider never received is not sent after the restore.
func TestRestoreBeforeTheChargeFailed(t *testing.T) {
	for name, dice := range map[string]fixedDice{
		"refused":                         {"charged": 1, "fate": 6},
		"refused at the door, not stored": {"network": 100, "how": 6},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(dice)
			l := m.packetRuns[0]
			for !l.before(packet.StepReject) {
				if len(m.kept) == 0 {
					m.keepBackup()
				}
				if ready := m.ready(); len(ready) > 0 {
					ready[0]()
				} else {
					m.pass(m.next())
				}
			}
			m.pass(2 * unnoticed)
			m.restore()
			if m.take(l.step); m.reached["the row moved back before reject"] != 1 || m.db.rec.Stored != packet.StatusFunding ||
				m.pool.state != packet.PoolFunding {
				t.Errorf("%v, packet %s, pool %s", m.reached, m.db.rec.Stored, m.pool.state)
			}
			m.live(0)
			if m.db.rec.Stored != packet.StatusRejected || m.reached["MySQL recovered"] != 1 || len(m.wrong) > 0 {
				t.Errorf("packet %s: %q\n%s", m.db.rec.Stored, m.wrong, strings.Join(m.story, "\n"))
			}
		})
	}
}

// shareGoesBack closes a packet in a restored MySQL as if it were complete.
func (m *model) shareGoesBack() {
	m.db.state.State = payout.MySQLNormal
	_, _ = m.db.BeginClosing(ctx, m.packet.ID, packet.CloseRecalled)
	_, _ = m.db.CloseBooks(ctx, m.packet.ID, "")
}
