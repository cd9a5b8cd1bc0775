package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"
)

// claim is what one user was told he won.
type claim struct {
	user   string
	index  int64
	amount int64
}

// crowd lets users grab until each has a final answer, trying again after 503
// and lost connections, and fails when one user is told two different things.
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
				a := s.grabUntilAnswered(t, id, user)
				<-limit
				if a.status != 200 && a.status != 201 {
					continue
				}
				c := claim{user: user, index: a.num("share_index"), amount: a.num("amount")}
				mu.Lock()
				if old, ok := won[user]; ok && old != c {
					t.Errorf("user %q was told %+v, then %+v", user, old, c)
				}
				won[user] = c
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return won
}

func (s *stack) grabUntilAnswered(t *testing.T, id, user string) answer {
	deadline := time.Now().Add(60 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		a, err := s.try(ctx, "POST", s.api("/v1/packets/"+id+"/grabs"), s.env("HONGBAO_APP_KEY"), map[string]any{"user_id": user})
		cancel()
		switch {
		case err == nil && a.status != 503:
			switch a.status {
			case 200, 201, 409, 410:
				return a
			}
			t.Errorf("grab of %q: %d %s", user, a.status, a.raw)
			return a
		case time.Now().After(deadline):
			t.Errorf("grab of %q had no answer within a minute: %v", user, err)
			return answer{}
		}
		<-time.After(time.Duration(20+rand.IntN(80)) * time.Millisecond)
	}
}

// settled checks that a packet of count shares came to its end: exactly the
// winners were paid, exactly once, exactly what they were told.
func (s *stack) settled(t *testing.T, id string, total int64, won map[string]claim) {
	t.Helper()
	s.awaitStatus(t, id, "closed", 120*time.Second)
	s.awaitBalanced(t, id)
	paid := map[string][]int64{}
	eventually(t, 120*time.Second, fmt.Sprintf("all %d winners are paid", len(won)), func() bool {
		paid = map[string][]int64{}
		n := 0
		for _, m := range s.movements(t, id) {
			if m.str("op") == "transfer" {
				paid[m.str("account")] = append(paid[m.str("account")], m.num("amount"))
				n++
			}
		}
		return n >= len(won)
	})
	var sum, refunded int64
	for user, c := range won {
		if got := paid[user]; len(got) != 1 || got[0] != c.amount {
			t.Errorf("user %q was told %d and paid %v", user, c.amount, got)
		}
		sum += c.amount
	}
	if len(paid) != len(won) {
		t.Errorf("%d people were paid, %d had won", len(paid), len(won))
	}
	charged := 0
	for _, m := range s.movements(t, id) {
		switch m.str("op") {
		case "charge":
			charged++
		case "refund":
			refunded += m.num("amount")
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

// TestCrowd: 400 users, 3 tries each, 120 shares.
func TestCrowd(t *testing.T) {
	s := running
	const total = 1_234_567
	p := s.create(t, map[string]any{"sender_id": "boss", "total_amount": total, "share_count": 120})
	began := time.Now()
	won := s.crowd(t, p.str("id"), users("crowd", 400), 3)
	t.Logf("1200 tries answered after %v", time.Since(began))
	if len(won) != 120 {
		t.Fatalf("%d winners of 120 shares", len(won))
	}
	s.settled(t, p.str("id"), total, won)
	t.Logf("closed and every winner paid after %v", time.Since(began))
	closed := s.packet(t, p.str("id"))
	if closed.num("refunded_amount") != 0 || closed.str("fairness", "seed") == "" {
		t.Errorf("closed packet: %s", closed.raw)
	}
	best := 0
	cursor := ""
	seen := 0
	for {
		path := "/v1/packets/" + p.str("id") + "/grabs?limit=50"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		page := s.do(t, "GET", s.api(path), s.env("HONGBAO_APP_KEY"), nil)
		if page.status != 200 {
			t.Fatalf("%s: %d %s", path, page.status, page.raw)
		}
		for _, c := range page.items() {
			seen++
			if c.body["best_luck"] == true {
				best++
			}
		}
		if cursor = page.str("next_cursor"); cursor == "" {
			break
		}
	}
	if seen != 120 || best != 1 {
		t.Errorf("%d claims listed, %d best luck", seen, best)
	}
}

// TestRefundWithinSeconds: exactly the remainder is back within 5 s of expiry.
func TestRefundWithinSeconds(t *testing.T) {
	s := running
	p := s.create(t, map[string]any{"sender_id": "sender", "total_amount": 1000, "share_count": 10, "expires_in_seconds": 10})
	won := s.crowd(t, p.str("id"), users("r", 3), 1)
	if len(won) != 3 {
		t.Fatalf("%d winners", len(won))
	}
	expires, err := time.Parse(time.RFC3339, p.str("expires_at"))
	if err != nil {
		t.Fatal(err)
	}
	closed := s.awaitStatus(t, p.str("id"), "closed", 30*time.Second)
	at, err := time.Parse(time.RFC3339, closed.str("closed_at"))
	if err != nil {
		t.Fatal(err)
	}
	if late := at.Sub(expires); late > 5*time.Second || late < 0 {
		t.Errorf("closed %v after expiry", late)
	}
	if closed.num("refunded_amount")+closed.num("claimed_amount") != 1000 {
		t.Errorf("refunded %d, claimed %d", closed.num("refunded_amount"), closed.num("claimed_amount"))
	}
	s.settled(t, p.str("id"), 1000, won)
}

// TestBytesAreBytes: `a`, `A` and `a ` are three people.
func TestBytesAreBytes(t *testing.T) {
	s := running
	p := s.create(t, map[string]any{"sender_id": "sender", "total_amount": 300, "share_count": 3, "split": "equal"})
	won := s.crowd(t, p.str("id"), []string{"a", "A", "a "}, 2)
	if len(won) != 3 {
		t.Fatalf("winners: %v", won)
	}
	s.settled(t, p.str("id"), 300, won)
	one := s.do(t, "GET", s.api("/v1/packets/"+p.str("id")+"/grabs/a%20"), s.env("HONGBAO_APP_KEY"), nil)
	if one.status != 200 || one.str("user_id") != "a " {
		t.Errorf("claim of `a `: %d %s", one.status, one.raw)
	}
}

// TestKillEachChild: kill -9 of each child during a crowd heals by itself.
func TestKillEachChild(t *testing.T) {
	s := running
	for _, child := range []string{"API", "WORKER", "PROVIDER", "REDIS", "MYSQL", "TEMPORAL"} {
		t.Run(child, func(t *testing.T) {
			const total = 50_000
			p := s.create(t, map[string]any{"sender_id": "sender", "total_amount": total, "share_count": 60})
			pid := s.pid(t, child)
			half := make(chan struct{})
			go func() {
				defer close(half)
				eventually(t, 30*time.Second, "some shares are taken", func() bool { return s.packet(t, p.str("id")).num("claimed_count") >= 5 })
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}()
			// A few at a time, so that the kill falls into the middle of the crowd.
			won := map[string]claim{}
			for part := range 12 {
				for user, c := range s.crowd(t, p.str("id"), users(fmt.Sprintf("%s%d-", child, part), 10), 1) {
					won[user] = c
				}
				if part == 1 {
					<-half
				}
			}
			if len(won) != 60 {
				t.Fatalf("%d winners of 60 shares", len(won))
			}
			s.settled(t, p.str("id"), total, won)
			if now := s.pid(t, child); now == pid {
				t.Errorf("%s was not started again", child)
			}
		})
	}
}
