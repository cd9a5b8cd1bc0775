package api_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// create creates a packet that is funded as a worker would.
func (h *fixture) create(o owner, key, body string) (string, result) {
	h.t.Helper()
	id := packet.NewID(o.app.Salt, key)
	answered := make(chan result, 1)
	go func() { answered <- h.post(o, key, body) }()
	var early *result
	wait.Until(h.t, "staged or answered", func() bool {
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
func (h *fixture) open(o owner, body string) string {
	h.t.Helper()
	id, r := h.create(o, rand.Text(), body)
	if r.status != http.StatusCreated && r.status != http.StatusAccepted { // it is open by now, even when that took long
		h.t.Fatalf("create: %s", r)
	}
	return id
}

func (h *fixture) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Error(err)
	}
}

// fund does what the packet workflow does until the pool is open or rejected.
func (h *fixture) fund(id string) {
	h.t.Helper()
	h.check(h.stack.Fund(h.t.Context(), id))
}

// drive moves a payment until nothing is left to do.
func (h *fixture) drive(paymentID string) payout.State {
	h.t.Helper()
	st, err := h.stack.Drive(h.t.Context(), paymentID)
	h.check(err)
	return st
}

// grab grabs for a user.
func (h *fixture) grab(o owner, id, user string) result {
	h.t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": user})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.as(o, "POST", "/v1/packets/"+id+"/grabs", string(body))
}

// record books every claim of the pool and pays it.
func (h *fixture) record(id string) {
	h.t.Helper()
	_, err := h.stack.Record(h.t.Context(), id)
	h.check(err)
}

// finish closes a packet as its workflow would, refund included, and retires its pool.
func (h *fixture) finish(id string, reason packet.CloseReason) {
	h.t.Helper()
	h.check(h.stack.Finish(h.t.Context(), id, reason))
}
