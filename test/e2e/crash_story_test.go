package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/test/wait"
	"hongbao/wire"
)

// crashTotal is the total of each story's packet, in fen.
const crashTotal = 1000

// recalled is the ordinary story: three shares, two claims, and the sender recalls the rest.
func recalled(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	l.grabbed(t, name+"-a", name+"-b")
	l.recall(t)
	l.settled(t)
}

// recalledByStaff is recalled by staff with that permission instead of its sender.
func recalledByStaff(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	l.grabbed(t, name+"-a", name+"-b")
	c.decided(t, "OPS", "/packets/"+l.id+"/recall", name, 202, map[string]any{"reason": "the sender was deceived"})
	l.settled(t)
	if n := count(t, c.mysql(t), "SELECT COUNT(*) FROM audit WHERE action = 'recall' AND subject = ?", "packet/"+l.id); n != 1 {
		t.Errorf("%d entries of the recall in the audit", n)
	}
}

// soldOut closes because its last share is claimed.
func soldOut(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 2)
	l.grabbed(t, name+"-a", name+"-b")
	l.settled(t)
}

// notified pays a recipient whose provider answers later, by a notification.
func notified(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 2)
	l.grabbed(t, name+"~pending", name+"-b")
	l.settled(t)
}

// declined is a packet whose charge is declined: no money moves, no shares exist, and every repeat
// returns the same answer.
func declined(t *testing.T, c *crashes, name string) {
	r := wire.CreatePacket{SenderID: name + "~broke", TotalAmount: crashTotal, ShareCount: 3}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit())
	defer cancel()
	var ids []string
	for range 2 {
		_, err := c.app.CreateAndWait(ctx, r, client.Key(name))
		problem, ok := errors.AsType[*client.Problem](err)
		if !ok || problem.Code != wire.CodeFundingDeclined {
			t.Fatalf("create: %v", err)
		}
		ids = append(ids, problem.PacketID)
	}
	if ids[0] != ids[1] || ids[0] == "" {
		t.Errorf("one key made the packets %q", ids)
	}
	if moved := c.movements(t, ids[0]); len(moved) != 0 {
		t.Errorf("money moved for a rejected packet: %v", moved)
	}
	c.awaitStatus(t, ids[0], wire.PacketRejected)
}

// withdrawn is a packet whose sender has to pay in an app, and that is closed before: the charge is
// closed at the provider, and no money moves.
func withdrawn(t *testing.T, c *crashes, name string) {
	r := wire.CreatePacket{SenderID: name, TotalAmount: crashTotal, ShareCount: 3, Funding: &wire.CreateFunding{Method: "sandbox_app"}}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit())
	defer cancel()
	p, err := c.app.Create(ctx, r, client.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the sender can pay "+p.ID, func() bool {
		seen, err := c.app.Packet(t.Context(), p.ID)
		return err == nil && seen.Funding.NextAction != nil
	})
	if a := c.post(t, c.api("/v1/packets/"+p.ID+"/close"), c.env("HONGBAO_APP_KEY"), nil); a.status != 202 {
		t.Fatalf("close: %d %s", a.status, a.raw)
	}
	c.awaitStatus(t, p.ID, wire.PacketRejected)
	if moved := c.movements(t, p.ID); len(moved) != 0 {
		t.Errorf("money moved for a rejected packet: %v", moved)
	}
}

// refused is a packet with two winners, one with a frozen account; that payout has failed.
func refused(t *testing.T, c *crashes, name string) (l *packetLife, user, payoutID string) {
	l = c.newPacketLife(t, name, 3)
	user = name + "~frozen"
	l.grabbed(t, user, name+"-b")
	return l, user, l.payoutOf(t, user, wire.PayoutFailed)
}

func (c *crashes) unfreeze(t *testing.T, account string) {
	t.Helper()
	if a := c.post(t, c.env("HONGBAO_PROVIDER_URL")+"/_unfreeze/"+account, "", nil); a.status/100 != 2 {
		t.Fatalf("unfreeze: %d %s", a.status, a.raw)
	}
}

// retried pays a frozen account after a retry by finance.
func retried(t *testing.T, c *crashes, name string) {
	l, user, id := refused(t, c, name)
	c.unfreeze(t, user)
	c.decided(t, "FINANCE", "/payouts/"+id+"/retry", name, 202, map[string]any{"reason": "account was unfrozen"})
	l.recall(t)
	l.settled(t)
}

// bulkRetried is retried by one decision about all payouts of the packet.
func bulkRetried(t *testing.T, c *crashes, name string) {
	l, user, _ := refused(t, c, name)
	c.unfreeze(t, user)
	filter := map[string]any{"packet_id": l.id, "status": "failed"}
	a := c.decided(t, "FINANCE", "/payouts/retry", name, 200, map[string]any{"filter": filter, "reason": "accounts were unfrozen",
		"dry_run": false})
	if a.num("count") != 1 {
		t.Errorf("bulk retry: %s", a.raw)
	}
	l.recall(t)
	l.settled(t)
}

// cancelled returns a refused payout to the sender: one person decides, a second approves.
func cancelled(t *testing.T, c *crashes, name string) {
	l, user, id := refused(t, c, name)
	a := c.decided(t, "FINANCE", "/payouts/"+id+"/cancel", name, 202, map[string]any{"reason": "the account stays frozen"})
	c.decided(t, "FINANCE2", "/approvals/"+a.str("approval", "id")+"/approve", name+"-2", 202, map[string]any{"reason": "agreed"})
	l.payoutOf(t, user, wire.PayoutCancelled)
	l.cancelled = user
	l.recall(t)
	l.settled(t)
}

// held pays a recipient whose claim was made while the provider was held.
func held(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	defer c.decided(t, "OPS", "/providers/sandbox/release", name+"-last", 200, map[string]any{"reason": "the end of the test"})
	c.decided(t, "OPS", "/providers/sandbox/hold", name, 200, map[string]any{"reason": "the provider is down"})
	l.grabbed(t, name+"-a", name+"-b")
	c.decided(t, "OPS", "/providers/sandbox/release", name+"-2", 200, map[string]any{"reason": "the provider is back"})
	l.recall(t)
	l.settled(t)
}

// recordedWhileHeld records a claim without a send, because the provider is held. Other stories
// release the hold at any time, so users claim until one payout was seen waiting for its first
// send.
func recordedWhileHeld(t *testing.T, c *crashes, name string) {
	const most = 25
	l := c.newPacketLife(t, name, most+1)
	db := c.mysql(t)
	defer c.decided(t, "OPS", "/providers/sandbox/release", name+"-last", 200, map[string]any{"reason": "the end of the test"})
	for n := range most {
		user := fmt.Sprintf("%s-%d", name, n)
		c.decided(t, "OPS", "/providers/sandbox/hold", user, 200, map[string]any{"reason": "the provider is down"})
		l.grabbed(t, user)
		booked, waits := "SELECT COUNT(*) FROM payments WHERE kind = 'p' AND packet_id = ? AND user_id = ?", " AND attempt = 0"
		waited := 0
		wait.Until(t, "the claim is booked", func() bool {
			waited = count(t, db, booked+waits, l.id, user)
			return count(t, db, booked, l.id, user) == 1
		})
		if waited == 1 {
			break
		}
	}
	c.decided(t, "OPS", "/providers/sandbox/release", name+"-2", 200, map[string]any{"reason": "the provider is back"})
	l.recall(t)
	l.settled(t)
}

// decided makes a decision, repeats it until it is answered, and once more: the answer to one key
// never changes.
func (c *crashes) decided(t *testing.T, role, path, key string, status int, body any) answer {
	t.Helper()
	var first answer
	for try := range 2 {
		a := c.post(t, c.env("HONGBAO_STAFF_URL")+"/v1/staff"+path, c.env("HONGBAO_"+role+"_KEY"), body, "Idempotency-Key", key)
		if a.status != status {
			t.Fatalf("%s: %d %s", path, a.status, a.raw)
		}
		if try == 0 {
			first = a
		} else if string(a.raw) != string(first.raw) {
			t.Errorf("%s was answered %s, then %s", path, first.raw, a.raw)
		}
	}
	return first
}

// packetLife is a packet of a story.
type packetLife struct {
	*crashes
	id     string
	create wire.CreatePacket
	key    client.Key
	won    map[string]claim
	// cancelled is the user whose payout is cancelled and refunded to the sender.
	cancelled string
}

// newPacketLife creates a packet, repeats the create as a client does, and waits until the packet
// is open.
func (c *crashes) newPacketLife(t *testing.T, name string, shares int, change ...func(*wire.CreatePacket)) *packetLife {
	t.Helper()
	r := wire.CreatePacket{SenderID: "sender-" + name, TotalAmount: crashTotal, ShareCount: shares}
	for _, f := range change {
		f(&r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit())
	defer cancel()
	p, err := c.app.CreateAndWait(ctx, r, client.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	return &packetLife{crashes: c, id: p.ID, create: r, key: client.Key(name), won: map[string]claim{}}
}

// grabbed makes users grab one after the other; each of them wins.
func (l *packetLife) grabbed(t *testing.T, users ...string) {
	t.Helper()
	for _, user := range users {
		c, ok := l.grab(t, l.id, user)
		if !ok {
			t.Fatalf("%s won nothing", user)
		}
		l.won[user] = c
	}
}

// recall recalls the packet, and repeats that until it is answered.
func (l *packetLife) recall(t *testing.T) {
	t.Helper()
	a := l.post(t, l.api("/v1/packets/"+l.id+"/close"), l.env("HONGBAO_APP_KEY"), nil)
	if a.status != 202 {
		t.Fatalf("recall: %d %s", a.status, a.raw)
	}
}

// settled repeats every request of the packet, which must return the same answer, and checks the
// end of the packet.
func (l *packetLife) settled(t *testing.T) {
	t.Helper()
	for user, first := range l.won {
		if again, ok := l.grab(t, l.id, user); !ok || again != first {
			t.Errorf("%s got %+v, then %+v", user, first, again)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit())
	defer cancel()
	if p, err := l.app.Create(ctx, l.create, l.key); err != nil || p.ID != l.id {
		t.Errorf("the repeated create made %+v, not %s: %v", p, l.id, err)
	}
	var proof *wire.Proof
	wait.Until(t, "all money of "+l.id+" has come to its end", func() bool {
		proof, _ = l.app.Proof(ctx, l.id)
		return proof != nil && proof.Balanced && proof.InFlight == 0 && proof.Remaining == 0 && proof.Owed == 0 && proof.Refunding == 0
	})
	if len(proof.Differences) != 0 || proof.Paid+proof.Refunded != crashTotal {
		t.Errorf("proof: %+v", proof)
	}
	delete(l.won, l.cancelled)
	l.stack.settled(t, l.id, crashTotal, l.won)
	var sum money.Fen
	for _, w := range l.won {
		sum += w.amount
	}
	// A closing packet is shown without its refund while MySQL does not answer.
	wait.Until(t, fmt.Sprintf("%d of %d are refunded, %d were won", crashTotal-sum, crashTotal, sum), func() bool {
		return l.packet(t, l.id).RefundedAmount == crashTotal-sum
	})
}

// payoutOf waits until the payout of a user has a status and returns its id.
func (l *packetLife) payoutOf(t *testing.T, user string, status wire.PayoutStatus) (id string) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("payout of %s is %s", user, status), func() bool {
		a, err := l.try(t.Context(), "GET", l.api("/v1/packets/"+l.id+"/grabs/"+user), l.env("HONGBAO_APP_KEY"), nil)
		id = a.str("payout", "id")
		return err == nil && a.str("payout", "status") == string(status)
	})
	return id
}

// post repeats a request until the answer is not 503.
func (c *crashes) post(t *testing.T, url, key string, body any, header ...string) answer {
	t.Helper()
	var a answer
	wait.Until(t, "an answer of "+url, func() bool {
		var err error
		a, err = c.stack.try(t.Context(), "POST", url, key, body, header...)
		return err == nil && a.status != 503 && a.str("code") != "request_in_progress"
	})
	return a
}
