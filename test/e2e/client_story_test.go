package e2e

import (
	"crypto/rand"
	"testing"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/test/wait"
	"hongbao/wire"
)

// TestClientStory is the story of a packet by the Go client: a share that the provider refuses is sent
// back to the sender by two persons. typescript/story.ts is the same story in TypeScript.
func TestClientStory(t *testing.T) {
	t.Parallel()
	s, ctx := running, t.Context()
	staff := func(key string) *client.Staff {
		c := must(client.NewStaff(s.env("HONGBAO_STAFF_URL"), s.env(key), client.WithRetry(patience)))(t)
		t.Cleanup(c.Close)
		return c
	}
	finance, finance2 := staff("HONGBAO_FINANCE_KEY"), staff("HONGBAO_FINANCE2_KEY")
	r := wire.CreatePacket{SenderID: "alice", TotalAmount: 600, ShareCount: 3, Split: wire.SplitEqual}
	key := client.Key(rand.Text())
	p := must(s.app.CreateAndWait(ctx, r, key))(t)
	if again := must(s.app.Create(ctx, r, key))(t); again.ID != p.ID || p.Status != wire.PacketOpen {
		t.Fatalf("%s is %s; created again: %s", p.ID, p.Status, again.ID)
	}
	for _, user := range []string{"bob", "carol", "dave~declined"} {
		won := must(s.app.Grab(ctx, p.ID, wire.Grab{UserID: user}))(t)
		again := must(s.app.Grab(ctx, p.ID, wire.Grab{UserID: user}))(t)
		if won.Amount != 200 || again.Amount != 200 || !again.Replayed {
			t.Errorf("%s: %+v, %+v", user, won, again)
		}
	}
	if _, err := s.app.Grab(ctx, p.ID, wire.Grab{UserID: "erin"}); !client.IsCode(err, wire.CodeSoldOut) {
		t.Errorf("a grab of no share: %v", err)
	}
	if list := must(s.app.ListGrabs(ctx, p.ID, client.Page{Limit: 10}))(t); len(list.Items) != 3 || list.NextCursor != nil {
		t.Errorf("list of grabs: %+v", list)
	}

	var failed []wire.Payout
	wait.Until(t, "the failed payout", func() bool {
		list, err := finance.ListPayouts(ctx, wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{PacketID: p.ID,
			Status: wire.PayoutFailed}}, client.Page{})
		if err == nil {
			failed = list.Items
		}
		return len(failed) == 1
	})
	reason := wire.Reason{Reason: "the account is closed"}
	asked := must(finance.CancelPayout(ctx, failed[0].ID, reason))(t)
	if asked.Approval == nil || asked.Payout.Status != wire.PayoutFailed {
		t.Fatalf("cancel by one person: %+v", asked)
	}
	agreed := must(finance2.Approve(ctx, asked.Approval.ID, reason))(t)
	if agreed.Decision.Kind != asked.Decision.Kind || agreed.Payout == nil || agreed.Approval != nil {
		t.Fatalf("cancel by two persons: %+v", agreed)
	}
	wait.Until(t, "closed and refunded", func() bool {
		now := s.packet(t, p.ID)
		return now.Status == wire.PacketClosed && now.RefundedAmount == 200 && now.Fairness.Seed != nil
	})
	if payout := must(finance.Payout(ctx, failed[0].ID))(t); payout.Status != wire.PayoutCancelled {
		t.Errorf("the cancelled payout is %s", payout.Status)
	}
	s.awaitBalanced(t, p.ID)
	if proof := must(s.app.Proof(ctx, p.ID))(t); proof.Paid != money.Fen(400) || proof.Refunded != 200 {
		t.Errorf("proof %+v", proof)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
