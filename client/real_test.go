package client_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/wire"
)

func TestAgainstAPI(t *testing.T) {
	shared := newBank(t)
	for name, test := range map[string]func(*bank, *testing.T){
		"Life": (*bank).testLife, "Funding": (*bank).testFunding, "Declined": (*bank).testDeclined, "Refusals": (*bank).testRefusals,
		"Users": (*bank).testUsers, "Payouts": (*bank).testPayouts, "StaffReads": (*bank).testStaffReads, "Providers": (*bank).testProviders,
		"Keys": (*bank).testKeys, "Campaigns": (*bank).testCampaigns, "Tickets": (*bank).testTickets,
	} {
		t.Run(name, func(t *testing.T) {
			own := *shared
			own.t = t
			test(&own, t)
		})
	}
}

// names are user ids that a careless client would send wrong.
var names = []string{"bob", "a/b", "a%2Fb", "..", ".", "a b", "a+b", "a?b#c", "张三", "a&b=c;d", "Bob", "bob "}

func (b *bank) testLife(t *testing.T) {
	ctx := t.Context()
	p := b.open(wire.CreatePacket{SenderID: "u1", TotalAmount: 1200, ShareCount: len(names) + 2, Metadata: map[string]string{"k": "v"},
		GroupID: "g"})
	if p.Status != wire.PacketOpen || p.TotalAmount != 1200 || *p.GroupID != "g" || p.Metadata["k"] != "v" || p.MaxShare != nil ||
		p.Fairness.Seed != nil || p.CreatedAt.IsZero() {
		t.Fatalf("packet %+v", p)
	}
	won := map[string]money.Fen{}
	for _, name := range names {
		claim, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: name, Nickname: "N"})
		b.must(err)
		again, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: name})
		b.must(err)
		read, err := b.client.Claim(ctx, p.ID, name)
		b.must(err)
		if claim.UserID != name || claim.Replayed || !again.Replayed || again.Amount != claim.Amount || read.Amount != claim.Amount ||
			read.UserID != name || *read.Nickname != "N" {
			t.Errorf("%q: %+v, %+v, %+v", name, claim, again, read)
		}
		won[name] = claim.Amount
	}
	listed := 0
	for claim, err := range b.client.Grabs(ctx, p.ID) {
		b.must(err)
		listed++
		if claim.Amount != won[claim.UserID] {
			t.Errorf("list: %+v", claim)
		}
	}
	if listed != len(names) {
		t.Errorf("%d claims listed", listed)
	}
	page, err := b.client.ListGrabs(ctx, p.ID, client.Page{Limit: 5})
	b.must(err)
	next, err := b.client.ListGrabs(ctx, p.ID, client.Page{Limit: 200, Cursor: *page.NextCursor})
	b.must(err)
	if len(page.Items) != 5 || len(next.Items) != len(names)-5 || next.NextCursor != nil {
		t.Errorf("pages of %d and %d", len(page.Items), len(next.Items))
	}
	closing, err := b.client.ClosePacket(ctx, p.ID)
	b.must(err)
	if closing.Status != wire.PacketClosing {
		t.Errorf("recalled: %s", closing.Status)
	}
	b.finish(ctx, p.ID, packet.CloseRecalled)
	closed, err := b.client.AwaitPacket(ctx, p.ID, (*wire.Packet).Ended)
	b.must(err)
	if closed.ClosedAt == nil || closed.Fairness.Seed == nil || closed.ClaimedAmount+closed.RefundedAmount != 1200 {
		t.Fatalf("closed: %+v", closed)
	}
	b.recompute(closed, won)
	proof, err := b.client.Proof(ctx, p.ID)
	b.must(err)
	if !proof.Balanced || proof.Total != 1200 || proof.Paid != closed.ClaimedAmount || proof.Sources.Redis != nil {
		t.Errorf("proof %+v", proof)
	}
}

// recompute: with what the client hands out, the shares can be computed again.
func (b *bank) recompute(p *wire.Packet, won map[string]money.Fen) {
	b.t.Helper()
	var seed [32]byte
	_, err := hex.Decode(seed[:], []byte(*p.Fairness.Seed))
	b.must(err)
	shares, err := packet.Split(seed, packet.SplitParams{PacketID: p.ID, Mode: packet.SplitMode(p.Split), Total: p.TotalAmount,
		Count: p.ShareCount, Min: p.MinShare})
	b.must(err)
	for claim, err := range b.client.Grabs(b.t.Context(), p.ID) {
		b.must(err)
		if claim.Amount != shares[claim.ShareIndex] || claim.Amount != won[claim.UserID] {
			b.t.Errorf("share %d is %d, claimed %d", claim.ShareIndex, shares[claim.ShareIndex], claim.Amount)
		}
	}
}

// testFunding: the charge takes longer than the API waits.
func (b *bank) testFunding(t *testing.T) {
	r, key := wire.CreatePacket{SenderID: "slow", TotalAmount: 100, ShareCount: 2}, rand.Text()
	p, err := b.client.Create(t.Context(), r, client.Key(key))
	b.must(err)
	if p.Status != wire.PacketFunding {
		t.Fatalf("status %s", p.Status)
	}
	if _, err := b.client.ClosePacket(t.Context(), p.ID); !client.IsCode(err, wire.CodeNotOpenYet) {
		t.Errorf("close: %v", err)
	}
	again, err := b.createFunded(r, key)
	b.must(err)
	if again.ID != p.ID || again.Status != wire.PacketOpen {
		t.Errorf("%s %s, want %s open", again.ID, again.Status, p.ID)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	// Nobody funds this one.
	if p, err := b.client.CreateAndWait(ctx, r); !errors.Is(err, context.DeadlineExceeded) || p == nil || p.Status != wire.PacketFunding ||
		p.ID == again.ID {
		t.Errorf("%+v %v", p, err)
	}
}

func (b *bank) testDeclined(t *testing.T) {
	r, key := wire.CreatePacket{SenderID: "u~broke", TotalAmount: 100, ShareCount: 2}, rand.Text()
	_, err := b.createFunded(r, key)
	var p *client.Problem
	if !client.IsCode(err, wire.CodeFundingDeclined) || !errors.As(err, &p) || p.PacketID != packet.NewID(b.app.Salt, key) ||
		p.Failure == nil || p.Failure.Code == "" {
		t.Errorf("%v %+v", err, p)
	}
}

func (b *bank) testRefusals(t *testing.T) {
	ctx := t.Context()
	p := b.open(wire.CreatePacket{SenderID: "u1", TotalAmount: 2, ShareCount: 1, Split: wire.SplitEqual})
	_, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: "fast"})
	b.must(err)
	reused, key := wire.CreatePacket{SenderID: "u", TotalAmount: 1, ShareCount: 1}, rand.Text()
	_, err = b.createFunded(reused, key)
	b.must(err)
	reused.SenderID = "other"
	soon := b.open(wire.CreatePacket{SenderID: "u1", TotalAmount: 2, ShareCount: 1, OpensAt: time.Now().Add(time.Hour)})
	for code, do := range map[wire.Code]func() error{
		wire.CodeSoldOut:        func() error { _, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: "late"}); return err },
		wire.CodeNotOpenYet:     func() error { _, err := b.client.Grab(ctx, soon.ID, wire.Grab{UserID: "early"}); return err },
		wire.CodeClaimNotFound:  func() error { _, err := b.client.Claim(ctx, p.ID, "late"); return err },
		wire.CodePacketNotFound: func() error { _, err := b.client.Packet(ctx, "0123456789abcdefghij"); return err },
		wire.CodeInvalidRequest: func() error { _, err := b.client.Create(ctx, wire.CreatePacket{SenderID: "u"}); return err },
		wire.CodeKeyReused:      func() error { _, err := b.client.Create(ctx, reused, client.Key(key)); return err },
		wire.CodeKeyRequired: func() error {
			_, err := b.client.Create(ctx, wire.CreatePacket{SenderID: "u", TotalAmount: 1, ShareCount: 1}, client.Key("a b"))
			return err
		},
		wire.CodePayoutNotFound: func() error { _, err := b.staff.Payout(ctx, "../packets"); return err },
	} {
		err := do()
		var problem *client.Problem
		if !client.IsCode(err, code) || !errors.As(err, &problem) || problem.RequestID == "" {
			t.Errorf("%s: %v", code, err)
			continue
		}
		if code == wire.CodeNotOpenYet && (problem.OpensAt == nil || !problem.OpensAt.Equal(soon.OpensAt.Time) ||
			problem.RetryAfter < time.Minute) {
			t.Errorf("not open yet: %+v", problem)
		}
		if code == wire.CodeInvalidRequest && (len(problem.Errors) != 2 || problem.Errors[0].Field == "") {
			t.Errorf("invalid request: %+v", problem)
		}
	}
}

// testUsers: lists of a user with a name that needs encoding.
func (b *bank) testUsers(t *testing.T) {
	ctx, sender := t.Context(), "s/张 ../三?"
	for i := range 3 {
		p := b.open(wire.CreatePacket{SenderID: sender, TotalAmount: money.Fen(100 + i), ShareCount: 1, Split: wire.SplitEqual,
			Greeting: "恭喜"})
		_, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: sender})
		b.must(err)
		b.finish(ctx, p.ID, packet.CloseSoldOut)
	}
	amounts := map[string]money.Fen{}
	for p, err := range b.client.Packets(ctx, wire.PacketFilter{SenderID: sender, Status: wire.PacketClosed}) {
		b.must(err)
		amounts["packets"] += p.TotalAmount
	}
	for p, err := range b.client.UserPackets(ctx, sender) {
		b.must(err)
		amounts["sent"] += p.TotalAmount
	}
	for c, err := range b.client.UserClaims(ctx, sender) {
		b.must(err)
		amounts["received"] += c.Amount
		if c.UserID != sender || c.SenderID != sender || c.Greeting != "恭喜" || !c.BestLuck {
			t.Errorf("claim %+v", c)
		}
	}
	if fmt.Sprint(amounts) != "map[packets:3.03 received:3.03 sent:3.03]" {
		t.Errorf("amounts %v", amounts)
	}
	s, err := b.client.UserSummary(ctx, sender, time.Now().UTC().Year(), time.UTC)
	b.must(err)
	if s.UserID != sender || s.TZ != "UTC" || s.Sent.Count != 3 || s.Sent.Amount != 303 || s.Received.Count != 3 || s.Received.Amount != 303 ||
		s.Received.BestLuck != 3 {
		t.Errorf("summary %+v", s)
	}
}

func (b *bank) testPayouts(t *testing.T) {
	ctx := t.Context()
	p := b.open(wire.CreatePacket{SenderID: "u1", TotalAmount: 300, ShareCount: 3, Split: wire.SplitEqual})
	for _, user := range []string{"x", "y~declined", "z"} {
		_, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: user})
		b.must(err)
	}
	b.finish(ctx, p.ID, packet.CloseSoldOut)
	statuses := map[wire.PayoutStatus]int{}
	failed := ""
	for payout, err := range b.staff.Payouts(ctx, wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{PacketID: p.ID}}) {
		b.must(err)
		if statuses[payout.Status]++; payout.Status == wire.PayoutFailed {
			failed = payout.ID
		}
	}
	if statuses[wire.PayoutPaid] != 2 || statuses[wire.PayoutFailed] != 1 {
		t.Fatalf("payouts %v", statuses)
	}
	hour := int64(3600)
	none, err := b.staff.ListPayouts(ctx, wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{PacketID: p.ID, Status: wire.PayoutFailed,
		OlderThanSeconds: &hour, AmountMin: wire.NonZero[money.Fen](1), AmountMax: wire.NonZero[money.Fen](500), UserID: "y~declined"}},
		client.Page{})
	b.must(err)
	if len(none.Items) != 0 {
		t.Errorf("payouts of an hour ago: %v", none.Items)
	}
	detail, err := b.staff.Payout(ctx, failed)
	b.must(err)
	if detail.UserID != "y~declined" || detail.Failure == nil || len(detail.Attempts) != 1 || len(detail.Timeline) == 0 ||
		detail.Amount != 100 {
		t.Errorf("detail %+v", detail)
	}
	ofPacket := wire.BulkFilter{PaymentFilter: wire.PaymentFilter{PacketID: p.ID}}
	bulk, err := b.staff.RetryPayouts(ctx, wire.BulkRetry{Filter: ofPacket, Reason: "all of them",
		DryRun: true})
	b.must(err)
	if bulk.Count != 1 || !bulk.DryRun || len(bulk.Items) != 1 || bulk.Items[0].ID != failed || bulk.Items[0].Result != "would_retry" {
		t.Errorf("bulk %+v", bulk)
	}
	if asked, err := b.staff.AskPayout(ctx, failed, wire.Reason{Reason: "to be sure"}); err != nil || asked.Decision.Kind != "ask" {
		t.Errorf("ask: %+v, %v", asked, err)
	}
	b.decideByTwo(ctx, failed)
	decided, err := b.staff.RetryPayout(ctx, failed, wire.Retry{Reason: "unfrozen"})
	b.must(err)
	if decided.Decision.Kind != "retry" || decided.Approval != nil || decided.Payout.ID != failed {
		t.Errorf("decided %+v", decided)
	}
	if _, err := b.staff.RetryPayout(ctx, failed, wire.Retry{Reason: "again"}); !client.IsCode(err, wire.CodeNotRetryable) {
		t.Errorf("second retry: %v", err)
	}
}

// decideByTwo proposes a cancel, which nobody but another person can answer, and
// lets that one refuse it.
func (b *bank) decideByTwo(ctx context.Context, payoutID string) {
	b.t.Helper()
	decided, err := b.staff.CancelPayout(ctx, payoutID, wire.Reason{Reason: "recipient is gone"})
	b.must(err)
	if decided.Approval == nil || decided.Decision.Status != "waiting" {
		b.t.Fatalf("cancel %+v", decided)
	}
	if _, err := b.staff.Approve(ctx, decided.Approval.ID, wire.Reason{Reason: "I agree with myself"}); !client.IsCode(err,
		wire.CodeForbidden) {
		b.t.Errorf("approved by the person who decided: %v", err)
	}
	for item, err := range b.staff.Approvals(ctx, wire.ApprovalFilter{Status: "waiting"}) {
		b.must(err)
		if item.ID != decided.Approval.ID || item.Payout == nil || item.Payout.ID != payoutID || item.Refund != nil || item.AnsweredBy != nil {
			b.t.Errorf("approval %+v", item)
		}
	}
	answered, err := b.second.Reject(ctx, decided.Approval.ID, wire.Reason{Reason: "found another way"})
	b.must(err)
	if answered.Decision.Status != "rejected" || answered.Payout == nil || answered.Payout.Status != wire.PayoutFailed {
		b.t.Errorf("rejected %+v", answered)
	}
}
