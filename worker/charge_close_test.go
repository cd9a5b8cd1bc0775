package worker_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// unpaid creates a packet whose sender has to pay in an app, and returns it with its client data.
func (r *rig) unpaid(t *testing.T, within int64) (packet.Packet, payout.ClientAction) {
	t.Helper()
	p := r.create(t, spec{total: 1000, count: 2, method: "sandbox_app", within: within})
	return p, r.action(t, p.ID)
}

// action waits for the client data of a packet's sender.
func (r *rig) action(t *testing.T, packetID string) (action payout.ClientAction) {
	t.Helper()
	wait.Until(t, "client data", func() bool {
		v, err := r.pool.View(t.Context(), packetID)
		if err != nil || len(v.Action) == 0 {
			return false
		}
		plain, err := packet.Open(r.seedKey, packetID, v.Action)
		if err != nil {
			t.Fatal(err)
		}
		return json.Unmarshal(plain, &action) == nil
	})
	return action
}

func chargeNo(p packet.Packet) string {
	return payout.OrderNo(payout.ID(payout.KindCharge, p.ID, 0), 1)
}

// TestSenderPaysInApp: the packet waits with the sender's client data, and opens once the sender has paid.
func TestSenderPaysInApp(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	p, action := r.unpaid(t, 600)
	if action.URL == "" || !action.ValidUntil.After(time.Now()) {
		t.Errorf("%+v", action)
	}
	wait.Until(t, "awaiting payer", func() bool {
		row, err := r.store.PaymentRow(t.Context(), payout.ID(payout.KindCharge, p.ID, 0))
		return err == nil && row.Status == payout.StatusAwaitingPayer
	})
	r.call(t, http.MethodPost, "/_pay/"+chargeNo(p), nil, nil)
	r.awaitNotification(t, p)
	r.awaitOpen(t, p.ID)
}

// TestLostActionIsObtainedAgain: Redis loses the client data of a sender, as a rebuild of the lane does. The worker obtains
// it again, soon and without a request for it, under the same order number, and the sender pays with it.
func TestLostActionIsObtainedAgain(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	p, _ := r.unpaid(t, 600)
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	wait.Until(t, "awaiting payer", func() bool {
		row, err := r.store.PaymentRow(t.Context(), charge)
		return err == nil && row.Status == payout.StatusAwaitingPayer
	})
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	for _, key := range must(rdb.Keys(t.Context(), "hb:{*}:packet:"+p.ID).Result())(t) {
		if n := must(rdb.HDel(t.Context(), key, "action").Result())(t); n != 1 {
			t.Fatalf("%s had no client data", key)
		}
	}
	action := r.action(t, p.ID)
	if action.URL == "" || !action.ValidUntil.After(time.Now()) {
		t.Errorf("%+v", action)
	}
	var sends int
	db := r.sql(t)
	wait.Until(t, "the second answer is settled", func() bool {
		err := db.QueryRowContext(t.Context(), "SELECT sends FROM attempts WHERE payment_id = ? AND renew_at IS NOT NULL", charge).Scan(&sends)
		return err == nil
	})
	if sends != 2 {
		t.Errorf("sent %d times", sends)
	}
	r.call(t, http.MethodPost, "/_pay/"+chargeNo(p), nil, nil)
	r.awaitNotification(t, p)
	r.awaitOpen(t, p.ID)
	if n := r.moved(t, p.ID, "charge"); n != 1 {
		t.Errorf("%d charges", n)
	}
}

// awaitNotification does what the API does with the provider's notification.
func (r *rig) awaitNotification(t *testing.T, p packet.Packet) {
	t.Helper()
	if err := r.store.RecordNotification(t.Context(), r.provider.Limits().Adapter, "paid/"+p.ID, chargeNo(p), nil); err != nil {
		t.Fatal(err)
	}
}

// TestUnpaidPacketIsRejected: at the deadline the charge is closed at the provider, queried, and the packet is
// rejected; withdrawn before, likewise. MySQL keeps the first answer to its create, so that a repeat gets the same
// without Redis.
func TestUnpaidPacketIsRejected(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	late, _ := r.unpaid(t, 3)
	withdrawn, _ := r.unpaid(t, 600)
	first := packet.FirstAnswer{HTTPStatus: http.StatusAccepted, RequestID: "req_1"}
	must(r.pool.StoreFirstAnswer(t.Context(), withdrawn.ID, first))(t)
	if err := r.store.WithdrawCharge(t.Context(), withdrawn.ID); err != nil {
		t.Fatal(err)
	}
	for id, code := range map[string]string{late.ID: payout.FailureFundingExpired, withdrawn.ID: payout.FailureFundingCancelled} {
		rec := r.awaitStatus(t, id, packet.StatusRejected)
		if rec.Failure == nil || rec.Failure.Code != code {
			t.Errorf("%+v, want %s", rec.Failure, code)
		}
		wait.Until(t, "no client data", func() bool {
			v, err := r.pool.View(t.Context(), id)
			return err == nil && v.State == packet.PoolRejected && len(v.Action) == 0
		})
	}
	wait.Until(t, "its first answer in MySQL", func() bool {
		rec, err := r.store.Packet(t.Context(), withdrawn.ID)
		return err == nil && rec.First != nil && *rec.First == first
	})
}
