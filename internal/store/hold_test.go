package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

// staffKey is a write of a person with a key of its own.
func (h *holdCase) staff(owner string) staff.Write {
	return storetest.StaffWrite(h.t, h.s, owner)
}

// holdCase is a packet with everything that a hold may stop about it.
type holdCase struct {
	t *testing.T
	s *testStore
}

// releaseByTwo has two persons release a hold.
func releaseByTwo(t *testing.T, s *testStore, id int64) {
	t.Helper()
	h := &holdCase{t: t, s: s}
	for _, owner := range []string{"first", "second"} {
		w := h.staff(owner)
		w.Key = fmt.Sprint("release ", id)
		must(t, storetest.ErrOnly(s.ReleaseHold(t.Context(), w, id, renderHold)))
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM holds WHERE id = ? AND released_at IS NOT NULL", id); n != 1 {
		t.Fatalf("hold %d is still active", id)
	}
}

// attempt is an action on a subject of its own.
type attempt struct {
	action                payout.HoldAction
	packetID, paymentName string
	do                    func() error
}

func (h *holdCase) decide(id string, kind payout.DecisionKind) error {
	var refused error
	_, err := h.s.Decide(h.t.Context(), h.staff("f"), id, payout.DecisionRequest{Kind: kind, ApproveFrom: 1 << 40, Evidence: "e"},
		func(_ *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
			refused = err
			return 202, []byte("{}")
		})
	return errors.Join(err, refused)
}

func (h *holdCase) failedPayout() (packet.Packet, string) {
	p := funded(h.t, h.s, 100, 2)
	claim(h.t, h.s, p, 0, "u")
	id := payoutID(p, 0)
	fail(h.t, h.s, id)
	return p, id
}

// waitingCancel is a cancellation that waits for approval.
func (h *holdCase) waitingCancel() (p packet.Packet, id, approval string) {
	p, id = h.failedPayout()
	must(h.t, h.decide(id, payout.DecisionCancel))
	return p, id, storetest.Query[string](h.t, h.s, "SELECT approval_id FROM decisions WHERE payment_id = ?", id)
}

func (h *holdCase) answer(approval string, agree bool) error {
	var refused error
	_, err := h.s.AnswerApproval(h.t.Context(), h.staff("g"), approval, agree, func(_ *staff.Decision, _ staff.PaymentRow, err error) (int,
		[]byte) {
		refused = err
		return 202, []byte("{}")
	})
	return errors.Join(err, refused)
}

func (h *holdCase) attempts() map[string]attempt {
	t, s, ctx := h.t, h.s, h.t.Context()
	out := map[string]attempt{}
	add := func(name string, action payout.HoldAction, packetID, payment string, do func() error) {
		out[name] = attempt{action, packetID, payment, do}
	}
	p := funded(t, s, 100, 2)
	add("record a claim", payout.ActionRecordClaim, p.ID, payoutID(p, 0), func() error {
		return storetest.ErrOnly(s.RecordClaim(ctx, claimOf(p, 0, "u")))
	})
	add("record and send", payout.ActionSendPayment, p.ID, payoutID(p, 1), func() error {
		return held(s.BeginClaim(ctx, claimOf(p, 1, "v"), limits, encode))
	})
	sent := funded(t, s, 100, 2)
	claim(t, s, sent, 0, "u")
	add("send", payout.ActionSendPayment, sent.ID, payoutID(sent, 0), func() error {
		return held(s.BeginSend(ctx, payoutID(sent, 0), limits, encode))
	})
	charged, refused, late, closing := recorded(t, s, samplePacket(100, 2)), recorded(t, s, samplePacket(100, 2)),
		recorded(t, s, samplePacket(100, 2)), funded(t, s, 100, 2)
	pay(t, s, chargeID(charged))
	pay(t, s, chargeID(late))
	failAs(t, s, chargeID(refused), "declined")
	must(t, storetest.ErrOnly(s.BeginClosing(ctx, closing.ID, packet.CloseExpired)))
	add("write shares", payout.ActionOpenPacket, charged.ID, chargeID(charged), func() error {
		return storetest.ErrOnly(s.Fund(ctx, charged.ID,
			even(charged)))
	})
	add("reject", payout.ActionEndUnopened, refused.ID, chargeID(refused), func() error {
		return s.RejectPacket(ctx, refused.ID, packet.Failure{Code: "declined"})
	})
	add("close unopened", payout.ActionEndUnopened, late.ID, chargeID(late), func() error {
		return storetest.ErrOnly(s.BeginClosing(ctx, late.ID, packet.CloseUnopened))
	})
	add("close the books", payout.ActionCloseBooks, closing.ID, chargeID(closing), func() error {
		return storetest.ErrOnly(s.CloseBooks(ctx, closing.ID, ""))
	})
	h.addDecisions(add)
	add("recall", payout.ActionChangePool, p.ID, chargeID(p), func() error {
		return storetest.ErrOnly(s.PlanRecall(ctx, h.staff("f"), p.ID, func(context.Context) (staff.Recall, error) {
			return staff.Recall{Before: "open", After: "closing"}, nil
		}))
	})
	return out
}

func (h *holdCase) addDecisions(add func(name string, action payout.HoldAction, packetID, payment string, do func() error)) {
	for name, kind := range map[string]payout.DecisionKind{"retry": payout.DecisionRetry, "cancel": payout.DecisionCancel,
		"mark paid": payout.DecisionMarkPaid} {
		p, id := h.failedPayout()
		add(name, kind.Action(payout.KindPayout), p.ID, id, func() error { return h.decide(id, kind) })
	}
	asked, askedID := h.failedPayout()
	add("query", payout.DecisionQuery.Action(payout.KindPayout), asked.ID, askedID,
		func() error { return h.decide(askedID, payout.DecisionQuery) })
	yes, yesID, approval := h.waitingCancel()
	add("approve", payout.ActionDecide, yes.ID, yesID, func() error { return h.answer(approval, true) })
	no, noID, rejected := h.waitingCancel()
	add("reject an approval", payout.ActionResolve, no.ID, noID, func() error { return h.answer(rejected, false) })
	done, doneID, cancelled := h.waitingCancel()
	must(h.t, h.answer(cancelled, true))
	for range 2 {
		settle(h.t, h.s, payout.SourceQuery, payout.OrderNo(doneID, 1), payout.ObsDeclined)
	}
	open, openID, given := h.waitingCancel()
	must(h.t, h.answer(given, true))
	add("withdraw an open cancel", payout.ActionResolve, open.ID, openID, func() error {
		return storetest.ErrOnly(h.s.WithdrawCancel(h.t.Context(), cancelWithdrawal(h.t, h.s, openID), openID, render))
	})
	add("carry out", payout.ActionDecide, done.ID, doneID, func() error { return storetest.ErrOnly(h.s.CarryOut(h.t.Context(), doneID)) })
	h.addNotMoved(add)
}

// addNotMoved adds the statement of two persons that no money has moved, from a break to its end.
func (h *holdCase) addNotMoved(add func(name string, action payout.HoldAction, packetID, payment string, do func() error)) {
	undecided := func() (packet.Packet, string, func() error) {
		p := funded(h.t, h.s, 100, 2)
		claim(h.t, h.s, p, 0, "u")
		o := begin(h.t, h.s, payoutID(p, 0))
		settle(h.t, h.s, payout.SourceSend, o.OrderNo, payout.ObsPending)
		broken := aboutOrder(h.t, h.s, o.OrderNo)
		_, err := h.s.db.SQL.ExecContext(h.t.Context(), "UPDATE attempts SET ask_until = started_at WHERE order_no = ?", o.OrderNo)
		must(h.t, err)
		return p, payoutID(p, 0), func() error {
			var refused error
			_, err := h.s.DecideBreak(h.t.Context(), h.staff("f"), broken, payout.DecisionRequest{Kind: payout.DecisionNotMoved, Evidence: "e"},
				func(_ *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
					refused = err
					return 202, []byte("{}")
				})
			return errors.Join(err, refused)
		}
	}
	p, id, state := undecided()
	add("state that no money has moved", payout.ActionResolve, p.ID, id, state)
	p, id, state = undecided()
	must(h.t, state())
	must(h.t, h.answer(storetest.Query[string](h.t, h.s, "SELECT approval_id FROM decisions WHERE payment_id = ?", id), true))
	settle(h.t, h.s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsPending)
	add("carry out that no money has moved", payout.ActionResolve, p.ID, id,
		func() error { return storetest.ErrOnly(h.s.CarryOut(h.t.Context(), id)) })
}

// held returns an error for a send that a hold stopped.
func held(b payout.SendStart, err error) error {
	if err == nil && b.Hold != nil && b.Order == nil {
		return &payout.HeldError{Hold: *b.Hold}
	}
	return err
}

// TestHoldStops: for every scope and action, on real rows, a hold stops what payout.Hold.Stops says
// and lets the rest go on. Once it is released, everything goes on.
func TestHoldStops(t *testing.T) {
	for _, scope := range payout.HoldScopes {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			h := &holdCase{t: t, s: s}
			attempts := h.attempts()
			var ids []int64
			for _, name := range slices.Sorted(maps.Keys(attempts)) {
				a := attempts[name]
				on := map[payout.HoldScope]string{payout.HoldAll: "", payout.HoldProvider: provider, payout.HoldPacket: a.packetID,
					payout.HoldPayment: a.paymentName}[scope]
				must(t, storetest.ErrOnly(s.PlaceHold(t.Context(), h.staff("ops"), scope, on, func(h payout.Hold, _ staff.Releases) (int, []byte) {
					if h.Scope != scope || h.Name != on || h.By != "ops" || h.ID == 0 {
						t.Errorf("placed %+v", h)
					}
					ids = append(ids, h.ID)
					return 200, []byte("{}")
				})))
				want := payout.Hold{Scope: scope, Kind: payout.HoldStaff}.Stops(a.action)
				err := a.do()
				if got := errors.Is(err, payout.ErrHeld); got != want || !want && err != nil {
					t.Errorf("%s: %v, stopped should be %t", name, err, want)
				}
				if want {
					continue
				}
				delete(attempts, name)
			}
			slices.Sort(ids)
			for _, id := range slices.Compact(ids) {
				releaseByTwo(t, s, id)
			}
			for name, a := range attempts {
				if err := a.do(); err != nil {
					t.Errorf("%s after the release: %v", name, err)
				}
			}
		})
	}
}

// TestReleaseByTwo: a release that lets money go needs two persons who are shown the same.
func TestReleaseByTwo(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	h := &holdCase{t: t, s: s}
	p := funded(t, s, 300, 3)
	claim(t, s, p, 0, "u")
	var id int64
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, h.staff("ops"), payout.HoldPacket, p.ID, func(got payout.Hold, r staff.Releases) (int, []byte) {
		id = got.ID
		if r.What() != "1.00 in 1 payment is paid to winners; 2.00 goes to winners or back to the sender" {
			t.Errorf("%+v", r)
		}
		return 200, []byte("{}")
	})))
	release := func(who string) (after payout.Hold, err error) {
		_, err = s.ReleaseHold(ctx, h.staff(who), id, func(h payout.Hold, _ staff.Releases) (int, []byte) {
			after = h
			return 200, []byte("{}")
		})
		return after, err
	}
	for range 2 {
		if got, err := release("anna"); err != nil || got.Release == nil || got.Release.By != "anna" || !got.ReleasedAt.IsZero() {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	claim(t, s, p, 1, "v") // now more is paid to winners than anna was shown
	_, err := release("ben")
	wantErr(t, err, payout.ErrDecisionChanged)
	c.Pass(mysql.ApprovalLife) // what anna asked for has expired: ben has to ask
	if got, err := release("ben"); err != nil || got.Release == nil || got.Release.By != "ben" {
		t.Fatalf("%+v, %v", got, err)
	}
	must(t, storetest.ErrOnly(release("anna")))
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, h.staff("ops"), payout.HoldPacket, p.ID, func(got payout.Hold, _ staff.Releases) (int, []byte) {
		id = got.ID
		return 200, []byte("{}")
	})))
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, h.staff("second ops"), payout.HoldPacket, p.ID, renderHold)))
	if n := storetest.Query[int](t, s, `SELECT COUNT(*) FROM audit WHERE action = 'hold' AND JSON_VALUE(before_is, '$.by') = 'ops'`); n != 1 {
		t.Errorf("%d entries say that it was held before", n)
	}
	must(t, storetest.ErrOnly(release("anna")))
	if got, err := release("ben"); err != nil || got.ReleasedBy != "ben" || got.ReleasedAt.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM outbox WHERE kind = 'begin'"); n != 2 {
		t.Errorf("%d payments woken", n)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM audit WHERE action IN ('hold', 'ask_release', 'release')"); n != 9 {
		t.Errorf("%d audit entries", n)
	}
	if got, err := release("cora"); err != nil || got.ReleasedBy != "ben" {
		t.Errorf("released again: %+v, %v", got, err)
	}
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, h.staff("ops"), payout.HoldPacket, p.ID, renderHold)))
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM holds WHERE released_at IS NULL"); n != 1 {
		t.Errorf("%d active holds after another one", n)
	}
}

// TestSameCause: the observation that placed a hold does not place it again after its release.
func TestSameCause(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	h := &holdCase{t: t, s: s}
	_, id, approval := h.waitingCancel()
	must(t, h.answer(approval, true))
	for range 2 {
		settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsDeclined)
	}
	must(t, storetest.ErrOnly(s.CarryOut(t.Context(), id)))
	success := func() { settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsSucceeded) }
	success()
	success()
	refund := storetest.Query[string](t, s, "SELECT id FROM payments WHERE kind = 'r'")
	hold := storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = 'payment' AND name = ? AND kind = 'second_success'", refund)
	wantErr(t, held(s.BeginSend(t.Context(), refund, limits, encode)), payout.ErrHeld)
	releaseByTwo(t, s, hold)
	success()
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM holds WHERE released_at IS NULL"); n != 0 {
		t.Errorf("%d active holds", n)
	}
	must(t, held(s.BeginSend(t.Context(), refund, limits, encode)))
}
