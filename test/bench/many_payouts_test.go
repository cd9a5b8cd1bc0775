package bench

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
	"hongbao/workflows"
)

// smallWins are grabs of small packets and the times of their answers.
type smallWins struct {
	prefix   string // of the users' names, which end in a number
	answered []time.Time
	owed     map[string]money.Fen
}

// giantPayouts is one measurement of payouts of small packets: the time from claim to payment, by
// whether the packet is in the giant's lane.
type giantPayouts struct {
	same, other sample
	waiting     int           // payouts of the giant that waited when the small grabs began
	drained     time.Duration // from the giant's first grab until its last payout; 0 without one
}

// measureGiantPayouts grabs from small packets at a steady rate, once alone and once while a giant packet has a backlog of payouts, and
// compares the times until the payments.
func measureGiantPayouts(t *testing.T, p plan, say func(string, ...any)) []result {
	r := newRig(t)
	w := spawn(t, r.settings("worker"))
	defer w.end()
	giant, grabs := p.sized(4000, 40), p.sized(200, 8)
	var alone, beside []giantPayouts
	for round := range p.rounds {
		say("payouts of small packets alone, round %d of %d", round+1, p.rounds)
		alone = append(alone, r.giantPayouts(t, fmt.Sprintf("a%d", round), 0, grabs))
		say("payouts of small packets beside a giant's backlog of %d, round %d of %d", giant, round+1, p.rounds)
		beside = append(beside, r.giantPayouts(t, fmt.Sprintf("b%d", round), giant, grabs))
	}
	out := result{title: "from the grab of a small packet to the money, with and without a giant's backlog",
		columns: []string{"small packets", "where", "p50 ms", "p99 ms", "least p99", "most p99", "the giant's backlog", "drained after s"},
		plot:    &plot{title: "From the grab of a small packet to the money, p99", unit: "ms", log: true},
		notes: []string{
			fmt.Sprintf("%d grabs, one every %v, of %d packets, half of them in the giant's lane; from the answer to the movement at the provider.",
				grabs, payoutEvery, smallPackets),
			fmt.Sprintf("Medians of %s, with and without the giant in turn.", runs(p.rounds)),
		}}
	for _, side := range []struct {
		name string
		runs []giantPayouts
	}{{"alone", alone}, {"beside a giant", beside}} {
		var same, other []sample
		var drained, waiting []float64
		for _, one := range side.runs {
			same, other = append(same, one.same), append(other, one.other)
			drained, waiting = append(drained, one.drained.Seconds()), append(waiting, float64(one.waiting))
		}
		for _, where := range []struct {
			name string
			runs []sample
		}{{"in the giant's lane", same}, {"in other lanes", other}} {
			m := measured("payouts of small packets "+side.name, 1, where.name, where.runs, 1)
			out.rows = append(out.rows, []string{side.name, where.name, figure(m.P50Millis.Median), figure(m.P99Millis.Median),
				figure(m.P99Millis.Min), figure(m.P99Millis.Max),
				figure(rateOf(waiting).Median), figure(rateOf(drained).Median)})
			out.plot.bars = append(out.plot.bars, m.P99Millis.bar(side.name, where.name))
			out.numbers = append(out.numbers, m)
		}
	}
	return []result{out}
}

const (
	smallPackets = 20
	payoutEvery  = 50 * time.Millisecond
)

// giantPayouts runs one round, without a giant when giant is 0, and returns when everything is paid.
func (r *rig) giantPayouts(t *testing.T, prefix string, giant, grabs int) (out giantPayouts) {
	t.Helper()
	lane := packet.Lane(packet.NewID([]byte("bench"), prefix), pool.DefaultLanes)
	inLane := func(lane int, w wanted) string {
		for {
			id := packet.NewID([]byte("bench"), rand.Text())
			if packet.Lane(id, pool.DefaultLanes) != lane {
				continue
			}
			if _, err := r.stageAs(t.Context(), id, w); err != nil {
				t.Fatal(err)
			}
			return id
		}
	}
	var ids []string
	for i := range smallPackets { // one share more than is grabbed, so that none closes
		of := lane
		if i%2 == 1 {
			of = (lane + 1 + i%(pool.DefaultLanes-1)) % pool.DefaultLanes
		}
		ids = append(ids, inLane(of, wanted{sender: "sender", shares: grabs/smallPackets + 2, life: time.Hour}))
	}
	all := ids
	if giant > 0 {
		all = append(all, inLane(lane, wanted{sender: "sender", shares: giant + 1, life: time.Hour}))
	}
	r.awaitOpen(t, all)
	began, crowd := time.Now(), map[string]money.Fen{}
	if giant > 0 {
		var err error
		if crowd, err = r.grabAll(t.Context(), all[smallPackets:], prefix+"giant", giant); err != nil {
			t.Fatal(err)
		}
	}
	out.waiting = giant - len(r.movedOf(t, "transfer", prefix+"giant"))
	small := r.grabSmall(t, ids, prefix+"small", grabs)
	await(t, "the small packets' winners are paid", func() bool { return len(r.movedOf(t, "transfer", small.prefix)) >= grabs })
	r.paidOnce(t, "transfer", small.prefix, small.owed)
	var times [2][]time.Duration
	for _, m := range r.movedOf(t, "transfer", small.prefix) {
		i, err := strconv.Atoi(m.Account[len(small.prefix):])
		if err != nil {
			t.Fatal(err)
		}
		times[i%smallPackets%2] = append(times[i%smallPackets%2], max(10*time.Microsecond, m.At.Sub(small.answered[i])))
	}
	elapsed := time.Since(began)
	out.same, out.other = sampled(times[0], elapsed), sampled(times[1], elapsed)
	if giant > 0 {
		await(t, "the giant's winners are paid", func() bool { return len(r.movedOf(t, "transfer", prefix+"giant")) >= giant })
		r.paidOnce(t, "transfer", prefix+"giant", crowd)
		moved := r.movedOf(t, "transfer", prefix+"giant")
		out.drained = moved[len(moved)-1].At.Sub(began)
	}
	await(t, "all runs ended", func() bool { return r.running(t, workflows.PayoutWorkflow) == 0 })
	return out
}

// grabSmall grabs at fixed times, from the packets in turn.
func (r *rig) grabSmall(t *testing.T, ids []string, prefix string, n int) smallWins {
	t.Helper()
	wins := smallWins{prefix: prefix, owed: map[string]money.Fen{}}
	began := time.Now()
	for i := range n {
		<-time.After(time.Until(began.Add(time.Duration(i) * payoutEvery)))
		user := prefix + strconv.Itoa(i)
		got, err := r.pool.Grab(t.Context(), ids[i%len(ids)], user, packet.Profile{})
		if err != nil || got.Result != packet.GrabWon {
			t.Fatalf("%s: %v, %v", user, got.Result, err)
		}
		wins.answered, wins.owed[user] = append(wins.answered, time.Now()), got.Claim.Amount
	}
	return wins
}
