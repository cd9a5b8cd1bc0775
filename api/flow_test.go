package api_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"

	"hongbao/packet"
	"hongbao/payout"
)

// create creates a packet that is funded as a worker would.
func (h *house) create(o owner, key, body string) (string, result) {
	h.t.Helper()
	id := packet.NewID(o.app.Salt, key)
	answered := make(chan result, 1)
	go func() { answered <- h.post(o, key, body) }()
	var early *result
	h.eventually("staged or answered", func() bool {
		select {
		case r := <-answered:
			early = &r
		default:
		}
		_, err := h.pool.View(h.t.Context(), id)
		return err == nil || early != nil
	})
	if early != nil {
		return id, *early
	}
	h.fund(id)
	return id, <-answered
}

// open creates a packet that can be grabbed.
func (h *house) open(o owner, body string) string {
	h.t.Helper()
	id, r := h.create(o, rand.Text(), body)
	if r.status != http.StatusCreated {
		h.t.Fatalf("create: %s", r)
	}
	return id
}

func (h *house) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Error(err)
	}
}

// fund does what the packet workflow does until the pool is open or rejected.
func (h *house) fund(id string) {
	h.t.Helper()
	ctx := h.t.Context()
	view, err := h.pool.View(ctx, id)
	h.check(err)
	p := view.Packet
	seed := packet.DeriveSeed(h.cfg.SeedKey, id)
	sealed, err := packet.SealSeed(h.cfg.SeedKey, id, seed)
	h.check(err)
	guests, err := h.pool.Eligible(ctx, id)
	h.check(err)
	if len(guests) == 0 {
		guests = nil
	}
	if _, err := h.store.RecordPacket(ctx, p, sealed, guests, "sandbox"); err != nil {
		h.t.Error(err)
		return
	}
	charge := h.drive(payout.ID(payout.KindCharge, id, 0))
	if charge.Status != payout.StatusPaid {
		f := packet.Failure{Code: charge.Failure.Code, Message: charge.Failure.Message}
		h.check(h.store.RejectPacket(ctx, id, f))
		h.check(h.pool.Reject(ctx, id, f))
		return
	}
	shares, err := packet.Split(seed, p.SplitParams())
	h.check(err)
	_, err = h.store.Fund(ctx, id, shares)
	h.check(err)
	h.check(h.pool.OpenPool(ctx, id, shares, nil))
}

// drive moves a payment until nothing is left to do.
func (h *house) drive(paymentID string) payout.State {
	h.t.Helper()
	ctx := h.t.Context()
	for range 100 {
		st, err := h.store.PaymentState(ctx, paymentID)
		if err != nil {
			h.t.Error(err)
			return st
		}
		var o payout.Observation
		asked := st.Step.OrderNo
		switch st.Step.Do {
		case payout.ActionEnd:
			return st
		case payout.ActionSend:
			begun, err := h.store.BeginSend(ctx, paymentID, h.sandbox.Limits(), h.sandbox.EncodeRequest)
			if err != nil {
				h.t.Error(err)
				return st
			}
			if begun.Order == nil {
				continue
			}
			asked = begun.Order.OrderNo
			o = h.sandbox.Send(ctx, *begun.Order)
		case payout.ActionAsk:
			parts, err := payout.Parse(paymentID)
			h.check(err)
			o = h.sandbox.Ask(ctx, payout.OpOf(parts.Kind), asked)
		case payout.ActionCarryOut:
			if _, err := h.store.CarryOut(ctx, paymentID); err != nil {
				h.t.Error(err)
				return st
			}
			continue
		}
		if _, err := h.store.Settle(ctx, o, asked); err != nil {
			h.t.Error(err)
			return st
		}
	}
	h.t.Errorf("payment %s does not end", paymentID)
	return payout.State{}
}

// grab grabs for a user.
func (h *house) grab(o owner, id, user string) result {
	h.t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": user})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.as(o, "POST", "/v1/packets/"+id+"/grabs", string(body))
}

// record books every claim of the pool and pays it.
func (h *house) record(id string) {
	h.t.Helper()
	claims, err := h.pool.Claims(h.t.Context(), id)
	h.check(err)
	for _, c := range claims {
		st, err := h.store.RecordClaim(h.t.Context(), c, "sandbox")
		h.check(err)
		h.drive(st.PaymentID)
	}
}

// finish closes a packet as its workflow would, refund included, and retires its pool.
func (h *house) finish(id string, reason packet.CloseReason) {
	h.t.Helper()
	ctx := h.t.Context()
	_, err := h.store.BeginClosing(ctx, id, reason)
	h.check(err)
	_, err = h.pool.ClosePool(ctx, id, reason)
	h.check(err)
	h.record(id)
	rest, err := h.store.CloseBooks(ctx, id, "sandbox")
	h.check(err)
	if rest > 0 {
		h.drive(payout.ID(payout.KindRefund, id, 0))
	}
	view, err := h.pool.View(ctx, id)
	h.check(err)
	closed, err := h.store.FinishPacket(ctx, id, view.First)
	h.check(err)
	if !closed {
		h.t.Errorf("packet %s is not closed", id)
	}
	h.check(h.pool.Retire(ctx, id))
}
