package api_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/test/wait"
)

// proofFixture is a packet of four shares of 250 in a proof test.
type proofFixture struct {
	*fixture
	id string
}

// sums are the parts of a proof, in fen.
type sums struct{ paid, owed, remaining, refunding, refunded, inFlight int64 }

// shows compares a proof, which has to be balanced: its parts are the total, and
// no source disagrees.
func (p proofFixture) shows(step string, want sums) {
	p.t.Helper()
	got := p.proof(p.app, p.id)
	if have := (sums{got.Paid, got.Owed, got.Remaining, got.Refunding, got.Refunded, got.InFlight}); have != want || !got.Balanced ||
		len(got.Differences) != 0 || got.Total != got.Paid+got.Owed+got.Remaining+got.Refunding+got.Refunded {
		p.t.Errorf("%s: %+v, want %+v", step, got, want)
	}
}

// payoutOf returns the id of a user's payout after the grab was recorded and paid.
func (p proofFixture) payoutOf(user string) string {
	p.t.Helper()
	p.grab(p.app, p.id, user)
	p.record(p.id)
	c, found, err := p.pool.Claim(p.t.Context(), p.id, user)
	p.check(err)
	if !found {
		p.t.Fatalf("%s has no claim", user)
	}
	return payout.ID(payout.KindPayout, p.id, c.ShareIndex)
}

// ask asks about the first number of a payment and books the answer.
func (p proofFixture) ask(paymentID string) payout.Status {
	p.t.Helper()
	parts, err := payout.Parse(paymentID)
	p.check(err)
	no := payout.OrderNo(paymentID, 1)
	o := p.sandbox.Query(p.t.Context(), payout.OpOf(parts.Kind), no)
	o.ID = rand.Text()
	st, err := p.store.Settle(p.t.Context(), o, no)
	p.check(err)
	return st.Status
}

// agreed has two persons decide about a payment.
func (p proofFixture) agreed(path, body string) {
	p.t.Helper()
	d := p.decided(p.write(p.finance, path, rand.Text(), body), "waiting")
	if r := p.write(p.colleague(), "approvals/"+d.Approval.ID+"/approve", "yes", because); r.status != 202 {
		p.t.Fatalf("approve: %s", r)
	}
}

// closeBooks leaves a packet with its remainder on its way.
func (p proofFixture) closeBooks() (refund string) {
	p.t.Helper()
	ctx := p.t.Context()
	_, err := p.store.BeginClosing(ctx, p.id, packet.CloseRecalled)
	p.check(err)
	_, err = p.pool.ClosePool(ctx, p.id, packet.CloseRecalled)
	p.check(err)
	_, err = p.store.CloseBooks(ctx, p.id, "")
	p.check(err)
	return payout.ID(payout.KindRefund, p.id, 0)
}

// TestProofOfEveryEnd: the proof names the right account for each way in which a packet ends.
func TestProofOfEveryEnd(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	start := func(t *testing.T) proofFixture {
		t.Helper()
		h.t = t
		return proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	}
	t.Run("returned, then cancelled", func(t *testing.T) {
		p := start(t)
		id := p.payoutOf("w~returned")
		wait.Until(p.t, "returned", func() bool { return p.ask(id) == payout.StatusReturned })
		p.shows("returned", sums{owed: 250, remaining: 750})
		p.agreed("payouts/"+id+"/cancel", because)
		p.shows("decided", sums{owed: 250, remaining: 750})
		p.drive(id)
		p.shows("cancelled", sums{refunding: 250, remaining: 750})
		parts, err := payout.Parse(id)
		p.check(err)
		p.drive(payout.ID(payout.KindRefund, p.id, parts.Number+1))
		p.shows("back with the sender", sums{refunded: 250, remaining: 750})
	})
	t.Run("failed, then paid outside", func(t *testing.T) {
		p := start(t)
		id := p.payoutOf("w~declined")
		p.shows("failed", sums{owed: 250, remaining: 750})
		p.agreed("payouts/"+id+"/mark-paid", `{"reason":"r","evidence":"e"}`)
		p.shows("paid outside", sums{paid: 250, remaining: 750})
	})
	t.Run("refund failed, then made outside", func(t *testing.T) {
		p := start(t)
		p.payoutOf("w")
		refund := p.closeBooks()
		p.shows("pending", sums{paid: 250, refunding: 750})
		p.faults(`{"op":"refund","kind":"decline","rate":1}`)
		p.drive(refund)
		p.faults("")
		p.shows("refused", sums{paid: 250, refunding: 750})
		p.agreed("refunds/"+refund+"/mark-paid", `{"reason":"r","evidence":"e"}`)
		p.shows("made outside", sums{paid: 250, refunded: 750})
	})
	t.Run("paid twice", func(t *testing.T) {
		p := start(t)
		id := p.payoutOf("w~declined")
		p.agreed("payouts/"+id+"/mark-paid", `{"reason":"r","evidence":"e"}`)
		// The provider moves it after all: here under a number of its own.
		order := payout.OrderNo(id, 2)
		request, err := p.sandbox.EncodeRequest(payout.Instruction{Op: payout.OpTransfer, OrderNo: order, Account: "w", Amount: 250,
			Currency: "CNY"})
		p.check(err)
		p.sandbox.Send(t.Context(), payout.Order{Op: payout.OpTransfer, OrderNo: order, Request: request})
		if got := p.proof(p.app, p.id); got.Balanced || len(got.Differences) != 1 ||
			got.Differences[0].Actual-got.Differences[0].Expected != 250 {
			t.Errorf("money that nobody has booked: %+v", got)
		}
		no := payout.OrderNo(id, 1)
		for range 2 { // after a refusal it has to be said twice
			o := payout.Observation{ID: rand.Text(), Adapter: p.stack.Provider.Adapter(), Source: payout.SourceQuery, Kind: payout.ObsSucceeded,
				OrderNo: no, Account: "w~declined", Amount: 250}
			if _, err := p.store.Settle(t.Context(), o, no); err != nil {
				t.Fatal(err)
			}
		}
		p.shows("booked as suspense", sums{paid: 250, remaining: 750})
		b, err := p.store.Balances(t.Context(), p.id)
		if p.check(err); b.ByAccount[payout.AccountSuspense] != -250 {
			t.Errorf("%+v", b)
		}
	})
	t.Run("on its way", func(t *testing.T) {
		p := start(t)
		p.grab(p.app, p.id, "w")
		p.shows("claimed in Redis", sums{remaining: 1000, inFlight: 250})
		c, _, err := p.pool.Claim(t.Context(), p.id, "w")
		p.check(err)
		st, err := p.store.RecordClaim(t.Context(), c)
		p.check(err)
		p.shows("owed", sums{owed: 250, remaining: 750})
		begun, err := p.store.BeginSend(t.Context(), st.PaymentID, p.sandbox.Limits(), p.sandbox.EncodeRequest)
		p.check(err)
		p.sandbox.Send(t.Context(), *begun.Order)
		p.shows("moved, and not heard of", sums{owed: 250, remaining: 750, inFlight: 250})
		p.drive(st.PaymentID)
		p.shows("booked", sums{paid: 250, remaining: 750})
	})
}

// paying pays one more winner whenever the ledger was read.
type paying struct {
	api.Store
	pay func()
}

func (s *paying) Balances(ctx context.Context, packetID string) (payout.Balances, error) {
	b, err := s.Store.Balances(ctx, packetID)
	if s.pay != nil {
		s.pay()
	}
	return b, err
}

// TestProofWhileItIsPaid: what was paid and booked while the sources were read is in
// flight, however fast payments end and however long it takes to read the ledger.
func TestProofWhileItIsPaid(t *testing.T) {
	t.Parallel()
	books := &paying{}
	h := newFixture(t, parts{change: func(c *api.Config) { books.Store, c.Store = c.Store, books }})
	p := proofFixture{h, h.open(h.app, with("share_count", "40", "split", `"equal"`))}
	n := 0
	books.pay = func() {
		n++
		p.payoutOf(fmt.Sprint("crowd", n))
	}
	got := p.proof(p.app, p.id)
	books.pay = nil
	if !got.Balanced || len(got.Differences) != 0 || got.InFlight == 0 {
		t.Errorf("while winners are paid: %+v", got)
	}
	p.shows("at rest", sums{paid: int64(n) * 25, remaining: 1000 - int64(n)*25})
}

// counting counts how often the claims of a packet are counted.
type counting struct {
	api.Store
	n atomic.Int32
}

func (s *counting) Packet(ctx context.Context, id string) (packet.Record, error) {
	s.n.Add(1)
	return s.Store.Packet(ctx, id)
}

// TestClosingIsNotCounted: until the books of a packet are closed, Redis and the ledger have
// the claimed amount. Counting a million claims for every read would cost MySQL a second each
// time.
func TestClosingIsNotCounted(t *testing.T) {
	t.Parallel()
	books := &counting{}
	h := newFixture(t, parts{change: func(c *api.Config) { books.Store, c.Store = c.Store, books }})
	p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	p.payoutOf("w")
	_, err := p.store.BeginClosing(t.Context(), p.id, packet.CloseRecalled)
	p.check(err)
	_, err = p.pool.ClosePool(t.Context(), p.id, packet.CloseRecalled)
	p.check(err)
	books.n.Store(0)
	if got := p.packet(p.app, p.id); got.Status != "closing" || got.ClaimedCount != 1 || got.ClaimedAmount != 250 {
		t.Errorf("%+v", got)
	}
	p.shows("closing", sums{paid: 250, remaining: 750})
	if n := books.n.Load(); n != 0 {
		t.Errorf("claims were counted %d times", n)
	}
}

// agedReturns is a provider that lists returns as older than they are.
type agedReturns struct {
	*provider.Sandbox
	by time.Duration
}

func (p *agedReturns) Returns(ctx context.Context, kind payout.Kind, packetID, after string) (payout.ReturnPage, error) {
	page, err := p.Sandbox.Returns(ctx, kind, packetID, after)
	page.At = page.At.Add(p.by)
	return page, err
}

// foreignReturn is a provider that has given back money under a number that begins as ours do.
type foreignReturn struct{ *provider.Sandbox }

func (p foreignReturn) Totals(ctx context.Context, packetID string) (payout.ProviderTotals, error) {
	totals, err := p.Sandbox.Totals(ctx, packetID)
	totals.Returned += 7
	return totals, err
}

func (p foreignReturn) Returns(ctx context.Context, kind payout.Kind, packetID, after string) (payout.ReturnPage, error) {
	page, err := p.Sandbox.Returns(ctx, kind, packetID, after)
	page.Lines = append(page.Lines, payout.StatementLine{OrderNo: string(kind) + packetID + "zz", Amount: 7})
	return page, err
}

// TestProofOfForeignReturns: a return under a number that is none of ours is a difference.
func TestProofOfForeignReturns(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Providers = payout.OnlyProvider(foreignReturn{sandboxOf(c)}) }})
	id := h.open(h.app, with())
	if got := (proofFixture{h, id}).proof(h.app, id); got.Balanced || len(got.Differences) != 1 || got.Differences[0].Actual != 7 {
		t.Errorf("%+v", got)
	}
}

// TestProofOfReturns: an unrecorded return is in flight for a moment after it happens and
// while a query is due. Without a notification the proof causes the query; if that does not
// help, the return is a difference.
func TestProofOfReturns(t *testing.T) {
	t.Parallel()
	late := &agedReturns{}
	h := newFixture(t, parts{change: func(c *api.Config) { late.Sandbox, c.Providers = sandboxOf(c), payout.OnlyProvider(late) }})
	back := func(h *fixture, paymentID string) func() bool {
		return func() bool {
			return h.sandbox.Query(h.t.Context(), payout.OpTransfer, payout.OrderNo(paymentID, 1)).Kind == payout.ObsReturned
		}
	}
	t.Run("paid", func(t *testing.T) {
		h.t, late.by = t, 0
		p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
		id := p.payoutOf("w~returned")
		wait.Until(p.t, "it is returned", back(h, id))
		p.shows("a moment ago", sums{paid: 250, remaining: 750, inFlight: 250})
		if r := h.notify(id, time.Now()); r.status != 204 {
			t.Fatalf("notification: %s", r)
		}
		late.by = time.Minute
		p.shows("notified", sums{paid: 250, remaining: 750, inFlight: 250})
		if st := p.ask(id); st != payout.StatusReturned {
			t.Fatalf("asked: %s", st)
		}
		p.shows("booked", sums{owed: 250, remaining: 750})
	})
	t.Run("paid, no notification", func(t *testing.T) {
		h.t, late.by = t, time.Minute
		p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
		id := p.payoutOf("w~returned")
		no := payout.OrderNo(id, 1)
		wait.Until(p.t, "it is returned", back(h, id))
		asked := func(want bool) {
			t.Helper()
			st, err := p.store.PaymentState(t.Context(), id)
			if p.check(err); (st.Step.Do == payout.ActionQuery && st.Step.OrderNo == no) != want {
				t.Errorf("next: %+v", st.Step)
			}
		}
		asked(false)
		p.shows("the proof has the provider asked", sums{paid: 250, remaining: 750, inFlight: 250})
		asked(true)
		// The provider, asked, knows nothing of what it lists: that is a difference, and is not
		// asked about at every look.
		o := payout.Observation{ID: rand.Text(), Adapter: p.stack.Provider.Adapter(), Source: payout.SourceQuery, Kind: payout.ObsSucceeded,
			OrderNo: no, Account: "w~returned", Amount: 250, StartedAt: time.Now()}
		_, err := p.store.Settle(t.Context(), o, no)
		p.check(err)
		if got := p.proof(p.app, p.id); got.Balanced || got.InFlight != 0 || len(got.Differences) != 1 ||
			got.Differences[0].Actual-got.Differences[0].Expected != 250 {
			t.Errorf("a return that the provider does not confirm: %+v", got)
		}
		asked(false)
		p.exec(p.dsn, "UPDATE attempts SET asked_at = asked_at - INTERVAL 2 MINUTE WHERE order_no = '"+no+"'")
		p.shows("after a minute it is asked again", sums{paid: 250, remaining: 750, inFlight: 250})
		asked(true)
		if st := p.ask(id); st != payout.StatusReturned {
			t.Fatalf("asked: %s", st)
		}
		p.shows("booked", sums{owed: 250, remaining: 750})
	})
	t.Run("not heard of at all", func(t *testing.T) {
		h.t, late.by = t, time.Minute
		p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
		p.grab(p.app, p.id, "w~returned")
		c, _, err := p.pool.Claim(t.Context(), p.id, "w~returned")
		p.check(err)
		st, err := p.store.RecordClaim(t.Context(), c)
		p.check(err)
		begun, err := p.store.BeginSend(t.Context(), st.PaymentID, p.sandbox.Limits(), p.sandbox.EncodeRequest)
		p.check(err)
		p.sandbox.Send(t.Context(), *begun.Order)
		wait.Until(p.t, "it is returned", back(h, st.PaymentID))
		p.shows("moved and returned, once in flight", sums{owed: 250, remaining: 750, inFlight: 250})
		for range 2 { // what had not been heard of has to be said twice
			p.ask(st.PaymentID)
		}
		p.shows("booked", sums{owed: 250, remaining: 750})
	})
	t.Run("many, recorded during the read", func(t *testing.T) {
		h.t, late.by = t, 0
		p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
		first, second := p.payoutOf("v~returned"), p.payoutOf("w~returned")
		wait.Until(p.t, "both are returned", func() bool { return back(h, first)() && back(h, second)() })
		if st := p.ask(first); st != payout.StatusReturned {
			t.Fatalf("asked: %s", st)
		}
		p.shows("one is booked", sums{paid: 250, owed: 250, remaining: 500, inFlight: 250})
	})
}
