package worker_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/test/night"
)

var (
	// A fixed seed by default, so that every run has the same result.
	mixSeed = flag.Uint64("mix-seed", 20261120, "seed of TestFaultMixtures; 0: another one at each run")
	mixRows = flag.Int("mix-rows", 36, "packets of TestFaultMixtures")
)

// What mixtures are drawn from. The rest of the kinds act on notifications, too,
// and are in sendKinds.
var (
	sendKinds = []string{"error_before", "error_after", "error_late", "timeout_before", "timeout_after", "rate_limit", "decline", "pending",
		"pending_forever",
		"notify_never", "notify_twice", "notify_late", "not_found_yet", "contradict", "low_balance"}
	askKinds = []string{"error_before", "error_after", "timeout_before", "rate_limit", "pending", "pending_forever", "not_found_yet",
		"contradict"}
	mixSuffix = map[payout.Op][]string{
		payout.OpCharge: {"", "", "~declined", "~frozen", "~flaky", "~lost_reply", "~lost_request", "~pending", "~confirm", "~broke"},
		payout.OpTransfer: {"", "", "~declined", "~frozen", "~flaky", "~lost_reply", "~lost_request", "~pending", "~confirm", "~returned",
			"~broke"},
		payout.OpRefund: {"", "", "~flaky", "~lost_reply", "~lost_request", "~pending"},
	}
)

// mixture is one packet's bad luck.
func mixture(random *rand.Rand) (faultRow, payout.Op) {
	op := everyOp[random.IntN(len(everyOp))]
	row := faultRow{suffix: mixSuffix[op][random.IntN(len(mixSuffix[op]))]}
	for range 2 + random.IntN(3) {
		r := fault("", sendKinds[random.IntN(len(sendKinds))], 1+random.IntN(3))
		if random.IntN(2) == 0 {
			r = fault("query", askKinds[random.IntN(len(askKinds))], 1+random.IntN(3))
		}
		r.Rate = []float64{1, 0.6, 0.3}[random.IntN(3)]
		row.rules = append(row.rules, r)
	}
	var rules []string
	for _, r := range row.rules {
		rules = append(rules, r.String())
	}
	row.what = fmt.Sprintf("%s of %q: %s", op, "recipient"+row.suffix, strings.Join(rules, ", "))
	return row, op
}

// TestFaultMixtures: whatever faults a provider combines, each order number moves money at most
// once and a payment keeps at most one success. Its status says where the money is, and the
// ledger matches the provider.
func TestFaultMixtures(t *testing.T) {
	night.Only(t, "each fault by itself is a row of TestFaultTable")
	t.Parallel()
	seed := *mixSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed: go test ./worker -run TestFaultMixtures -mix-seed=%d -mix-rows=%d", seed, *mixRows)
	random := rand.New(rand.NewPCG(seed, 1))
	r := newFaultRig(t, patiently)
	r.work(t, r.provider)
	type played struct {
		t   *rowT
		row faultRow
	}
	var all []played
	var wg sync.WaitGroup
	slots := make(chan struct{}, rowsAtOnce/2)
	for range *mixRows {
		row, op := mixture(random)
		retries := random.IntN(3)
		p := played{&rowT{TB: t}, row}
		all = append(all, p)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r.playMixture(p.t, row, op, retries)
		})
	}
	wg.Wait()
	for i, p := range all {
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) {
			t.Log(p.row.what)
			for _, line := range p.t.lines {
				t.Error(line)
			}
		})
	}
}

// playMixture runs one packet; finance retries failures so often.
func (r *faultRig) playMixture(t testing.TB, row faultRow, op payout.Op, retries int) {
	s := r.newScene(t, row, op)
	s.line.between = s.noUnheardLie
	r.begin(s, faultRow{})
	lift := time.Now().Add(10 * time.Second) // what lasts for ever ends here
	confirmed := 0
	s.until("the payment has ended", func() bool {
		p := s.payment()
		if time.Now().After(lift) {
			s.line.setRules(s, nil)
			lift = lift.Add(time.Hour)
		}
		switch {
		case p.Status == payout.StatusAwaitingRecipient && confirmed < p.Attempt: // each number once
			confirmed = p.Attempt
			s.line.control(s, http.MethodPost, "/_confirm/"+s.orderNo(p.Attempt), nil)
		case p.Status == "" || p.Status.Open() || !s.quiet():
		case op != payout.OpCharge && (p.Status == payout.StatusFailed || p.Status == payout.StatusReturned) && retries > 0:
			retries--
			s.unfreeze()
			s.mustRetry()
		case p.Status == payout.StatusPaid && strings.HasSuffix(s.account, "~returned"): // its money is on its way back
		default:
			s.checkMixture(p)
			return true
		}
		return false
	})
}

// noUnheardLie loses an answer that falsely says succeeded if no final answer about the order
// arrived before. A provider contradicts itself like that when its refusal was lost on a busy
// machine. The only answer that arrives is then false and is accepted, as a row of the fault
// table shows. Here it would depend on the load.
func (s *scene) noUnheardLie(x *exchange, forward func() reply) reply {
	a := forward()
	if x.Send || a.says() != "succeeded" || s.line.heardFinal(x.OrderNo) {
		return a
	}
	for _, m := range s.line.moved(s, s.packet.ID, x.OrderNo[:payout.IDLen]) {
		if m.OrderNo == x.OrderNo {
			return a
		}
	}
	return silence
}

// heardFinal reports whether a call about an order was answered with a final status.
func (l *line) heardFinal(orderNo string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.calls, func(x *exchange) bool {
		return x.OrderNo == orderNo && slices.Contains([]string{"succeeded", "declined", "returned"}, x.label)
	})
}

// checkMixture: the property that holds whatever happened.
func (s *scene) checkMixture(p payout.Payment) {
	s.Helper()
	s.checkMoney(1)
	moves := s.line.moved(s, s.packet.ID, s.id)
	stayed := 0
	for _, m := range moves {
		if m.Op == "return" {
			stayed--
		} else {
			stayed++
		}
	}
	want := map[payout.Status]int{payout.StatusPaid: 1}[p.Status]
	if stayed != want || p.Status == payout.StatusFailed && len(moves) > 0 || p.Status == payout.StatusReturned && len(moves) == 0 {
		s.Errorf("%s, and moved %v; calls %q, breaks %q", p.Status, moves, s.line.seen(s.id), s.breaks())
	}
	if s.op == payout.OpCharge && p.Status != payout.StatusPaid {
		return // rejected: there is nothing to tie
	}
	if s.op == payout.OpTransfer || p.Status == payout.StatusPaid {
		s.checkClosed(faultRow{})
	}
}
