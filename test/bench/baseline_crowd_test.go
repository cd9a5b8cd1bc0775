package bench

import (
	"fmt"
	"sync"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// barrier makes users wait at a step until every user without an answer has reached it: the worst contention.
type barrier struct {
	mu              sync.Mutex
	trying, waiting int
	gone            chan struct{} // closed when the current round continues
}

func newBarrier(users int) *barrier { return &barrier{trying: users, gone: make(chan struct{})} }

// wait returns when all other users without an answer wait too.
func (m *barrier) wait() {
	m.mu.Lock()
	m.waiting++
	gone := m.gone
	m.openIfFull()
	m.mu.Unlock()
	<-gone
}

// leave removes a user who has an answer.
func (m *barrier) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trying--
	m.openIfFull()
}

// openIfFull opens the barrier when all users without an answer wait. The caller holds mu.
func (m *barrier) openIfFull() {
	if m.waiting > 0 && m.waiting == m.trying {
		close(m.gone)
		m.waiting, m.gone = 0, make(chan struct{})
	}
}

// crowdedTrials makes as many users as shares grab at the same time, once each. Where several users can read the same state,
// all of them do, which is the worst case. Each user must get a share.
func crowdedTrials(t *testing.T, p place) {
	const users = 8
	for _, k := range kinds() {
		t.Run(k.number, func(t *testing.T) {
			p, m := p.apart(t), newBarrier(users)
			p.pick = func(int) int { return 0 }
			p.at = func(step string) {
				if step == k.contended {
					m.wait()
				}
			}
			tr := newTrial(t, p.opened(t, k), users)
			answers := make([]answer, users)
			errs := make([]error, users)
			var wg sync.WaitGroup
			for i := range users {
				wg.Go(func() {
					defer m.leave()
					answers[i], errs[i] = tr.grab(t.Context(), tr.packet, fmt.Sprint("u", i))
				})
			}
			wg.Wait()
			wins := 0
			for i, a := range answers {
				tr.must(errs[i])
				tr.recordAnswer(fmt.Sprint("u", i), a)
				if a.outcome == won {
					wins++
				}
			}
			tr.found[refused] = wins < users
			if k.contended != "" && wins != baselineRetries {
				t.Errorf("%d users won in %d rounds", wins, baselineRetries)
			}
			tr.must(tr.work(t.Context(), tr.packet))
			tr.shares = wins // the rest was refused, not lost
			tr.judge()
			tr.drop()
			tr.expect(k.crowded)
		})
	}
}

// splitFaults counts the shares below 1 in many splits of small totals.
func splitFaults(t *testing.T, split func(seed uint64, total int64, shares int) []int64) (below int) {
	t.Helper()
	for shares := 1; shares <= 6; shares++ {
		for total := int64(shares); total <= 20; total++ {
			for seed := range uint64(40) {
				sum := int64(0)
				for _, s := range split(seed, total, shares) {
					sum += s
					if s < 1 {
						below++
					}
				}
				if sum != total {
					t.Fatalf("%d in %d shares, seed %d: the sum is %d", total, shares, seed, sum)
				}
			}
		}
	}
	return below
}

// TestBaselineSplits checks that the published doubled mean yields shares of 0, which cannot be
// paid, and that ours does not.
func TestBaselineSplits(t *testing.T) {
	if splitFaults(t, s3Split) == 0 {
		t.Error("S3: no share is below the minimum")
	}
	id := newPacketID(t)
	ours := func(seed uint64, total int64, shares int) []int64 {
		amounts, err := packet.Split([32]byte{byte(seed)}, packet.SplitParams{PacketID: id, Mode: packet.SplitRandom, Total: money.Fen(total),
			Count: shares, Min: 1})
		if err != nil {
			t.Fatal(err)
		}
		out := make([]int64, len(amounts))
		for i, a := range amounts {
			out[i] = int64(a)
		}
		return out
	}
	if n := splitFaults(t, ours); n > 0 {
		t.Errorf("%d shares are below the minimum", n)
	}
}
