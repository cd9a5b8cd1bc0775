package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/test/wait"
	"hongbao/wire"
)

// claim is a user's acknowledged claim.
type claim struct {
	user   string
	index  int
	amount money.Fen
}

// crowd makes users grab until each has a final answer, and repeats after 503 and lost connections.
// It fails when a user gets two different claims.
func (s *stack) crowd(t *testing.T, id string, users []string, tries int) map[string]claim {
	t.Helper()
	var mu sync.Mutex
	won := map[string]claim{}
	var wg sync.WaitGroup
	limit := make(chan struct{}, 200)
	for _, user := range users {
		wg.Go(func() {
			for range tries {
				limit <- struct{}{}
				c, ok := s.grab(t, id, user)
				<-limit
				if !ok {
					continue
				}
				mu.Lock()
				if old, ok := won[user]; ok && old != c {
					t.Errorf("user %q got %+v, then %+v", user, old, c)
				}
				won[user] = c
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return won
}

// grab grabs until there is a final answer. ok: the user has a claim.
func (s *stack) grab(t *testing.T, id, user string) (c claim, ok bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	got, err := s.app.Grab(ctx, id, wire.Grab{UserID: user})
	switch {
	case err == nil:
		return claim{user: user, index: got.ShareIndex, amount: got.Amount}, true
	case !client.IsCode(err, wire.CodeSoldOut, wire.CodeExpired, wire.CodeNotOpenYet):
		t.Errorf("grab of %q: %v", user, err)
	}
	return claim{}, false
}

// settled checks the end of a packet: exactly the acknowledged claims are paid, each exactly once,
// with its amount.
func (s *stack) settled(t *testing.T, id string, total money.Fen, won map[string]claim) {
	t.Helper()
	s.awaitStatus(t, id, wire.PacketClosed)
	s.awaitBalanced(t, id)
	paid := map[string][]money.Fen{}
	wait.Until(t, fmt.Sprintf("all %d winners are paid", len(won)), func() bool {
		paid = map[string][]money.Fen{}
		n := 0
		for _, m := range s.movements(t, id) {
			if m.str("op") == "transfer" {
				paid[m.str("account")] = append(paid[m.str("account")], money.Fen(m.num("amount")))
				n++
			}
		}
		return n >= len(won)
	})
	var sum, refunded money.Fen
	for user, c := range won {
		if got := paid[user]; len(got) != 1 || got[0] != c.amount {
			t.Errorf("user %q has a claim of %d and was paid %v", user, c.amount, got)
		}
		sum += c.amount
	}
	if len(paid) != len(won) {
		t.Errorf("%d users were paid, %d have claims", len(paid), len(won))
	}
	charged := 0
	for _, m := range s.movements(t, id) {
		switch m.str("op") {
		case "charge":
			charged++
		case "refund":
			refunded += money.Fen(m.num("amount"))
		}
	}
	if charged != 1 || sum+refunded != total {
		t.Errorf("%d charges; %d paid + %d refunded of %d", charged, sum, refunded, total)
	}
}

func users(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return out
}

// TestCrowd makes 400 users grab 3 times each from 120 shares.
func TestCrowd(t *testing.T) {
	s := running
	const total = 1_234_567
	p := s.create(t, wire.CreatePacket{SenderID: "boss", TotalAmount: total, ShareCount: 120})
	began := time.Now()
	won := s.crowd(t, p.ID, users("crowd", 400), 3)
	t.Logf("1200 tries answered after %v", time.Since(began))
	if len(won) != 120 {
		t.Fatalf("%d winners of 120 shares", len(won))
	}
	s.settled(t, p.ID, total, won)
	t.Logf("closed and every winner paid after %v", time.Since(began))
	closed := s.packet(t, p.ID)
	if closed.RefundedAmount != 0 || closed.Fairness.Seed == nil || *closed.Fairness.Seed == "" {
		t.Errorf("closed packet: %+v", closed)
	}
	best, seen, cursor := 0, 0, ""
	for {
		page, err := s.app.ListGrabs(t.Context(), p.ID, client.Page{Limit: 50, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Items {
			seen++
			if c.BestLuck {
				best++
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if seen != 120 || best != 1 {
		t.Errorf("%d claims listed, %d best luck", seen, best)
	}
}

// TestRefundWithinSeconds checks that exactly the remainder is refunded within 5 s of expiry.
func TestRefundWithinSeconds(t *testing.T) {
	s := running
	p := s.create(t, wire.CreatePacket{SenderID: "sender", TotalAmount: 1000, ShareCount: 10, ExpiresInSeconds: 10})
	won := s.crowd(t, p.ID, users("r", 3), 1)
	if len(won) != 3 {
		t.Fatalf("%d winners", len(won))
	}
	closed := s.awaitStatus(t, p.ID, wire.PacketClosed)
	if closed.ClosedAt == nil {
		t.Fatalf("closed packet: %+v", closed)
	}
	if late := closed.ClosedAt.Sub(p.ExpiresAt.Time); late > wait.Bound(5*time.Second) || late < 0 {
		t.Errorf("closed %v after expiry", late)
	}
	if closed.RefundedAmount+closed.ClaimedAmount != 1000 {
		t.Errorf("refunded %d, claimed %d", closed.RefundedAmount, closed.ClaimedAmount)
	}
	s.settled(t, p.ID, 1000, won)
}

// TestBytesAreBytes checks that `a`, `A` and `a ` are three users, and that 大伟 is paid too.
func TestBytesAreBytes(t *testing.T) {
	s := running
	p := s.create(t, wire.CreatePacket{SenderID: "sender", TotalAmount: 400, ShareCount: 4, Split: wire.SplitEqual})
	won := s.crowd(t, p.ID, []string{"a", "A", "a ", "大伟"}, 2)
	if len(won) != 4 {
		t.Fatalf("winners: %v", won)
	}
	s.settled(t, p.ID, 400, won)
	one, err := s.app.Claim(t.Context(), p.ID, "a ")
	if err != nil || one.UserID != "a " {
		t.Errorf("claim of `a `: %+v %v", one, err)
	}
}

// TestKillEachChild checks that the stack heals after kill -9 of each child during a crowd.
func TestKillEachChild(t *testing.T) {
	s := running
	for _, child := range []string{"API", "WORKER", "PROVIDER", "REDIS", "MYSQL", "TEMPORAL"} {
		t.Run(child, func(t *testing.T) {
			const total = 50_000
			p := s.create(t, wire.CreatePacket{SenderID: "sender", TotalAmount: total, ShareCount: 60})
			pid := s.pid(t, child)
			half := make(chan struct{})
			go func() {
				defer close(half)
				wait.Until(t, "some shares are taken", func() bool { return s.packet(t, p.ID).ClaimedCount >= 5 })
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}()
			// A few at a time, so that the kill happens in the middle of the crowd.
			won := map[string]claim{}
			for part := range 12 {
				for user, c := range s.crowd(t, p.ID, users(fmt.Sprintf("%s%d-", child, part), 10), 1) {
					won[user] = c
				}
				if part == 1 {
					<-half
				}
			}
			if len(won) != 60 {
				t.Fatalf("%d winners of 60 shares", len(won))
			}
			s.settled(t, p.ID, total, won)
			if now := s.pid(t, child); now == pid {
				t.Errorf("%s was not started again", child)
			}
		})
	}
}
