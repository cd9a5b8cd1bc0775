package bench

import (
	"fmt"
	"testing"

	"hongbao/internal/devstack/stacktest"
)

// noRewrite disables rewrites of Redis' log: one during a run would slow only one side.
var noRewrite = []string{"--auto-aof-rewrite-percentage", "0"}

// alone are further numbers of callers of the baseline, to find its best one.
var alone = []int{64, 256, 512, 2000}

// measureEngine compares pool.Grab with the well-known script, each round on a
// Redis of its own that both share: appendfsync always.
func measureEngine(t *testing.T, p plan, say func(string, ...any)) []result {
	var all []*comparison
	bases := map[int][]sample{} // further runs of the baseline with one packet, by callers
	for _, packets := range p.packets {
		var these []*comparison
		for _, callers := range p.callers {
			these = append(these, &comparison{title: packetCount(packets), callers: callers})
			if packets == 1 {
				these = append(these, &comparison{title: batchedTitle, callers: callers})
			}
		}
		for round := range p.rounds {
			t.Run(fmt.Sprintf("%s, round %d", packetCount(packets), round+1), func(t *testing.T) {
				addr := stacktest.FreshRedis(t, noRewrite...).Addr
				for _, c := range these {
					c.baseline, c.ours = s0(addr, packets), engine(addr, packets)
					if c.title == batchedTitle {
						c.baseline = s0Batched(addr)
					}
					say("%s, %d callers, round %d of %d", c.title, c.callers, round+1, p.rounds)
					c.compare(t, p.length, 1)
				}
				if packets > 1 || !p.full {
					return
				}
				for _, callers := range alone {
					say("the baseline alone, %d callers, round %d of %d", callers, round+1, p.rounds)
					bases[callers] = append(bases[callers], run(t, s0(addr, 1), callers, p.length))
				}
			})
		}
		all = append(all, these...)
	}
	if t.Failed() {
		return nil
	}
	best, at := 0.0, 0
	for _, c := range all {
		if c.title == packetCount(1) {
			bases[c.callers] = c.baseRuns
		}
	}
	for callers, runs := range bases {
		if m := spread(runs, perSecond).Median; m > best || m == best && callers < at {
			best, at = m, callers
		}
	}
	out := compared("grabs a second in Redis, one script of ours beside S0", all, p)
	rates := &out[0]
	rates.columns = append(rates.columns, "of S0's best")
	for i := range rates.rows {
		cell, c := "", all[i/2]
		if c.title == packetCount(1) && i%2 == 1 {
			cell = fmt.Sprintf("%.2f", spread(c.times, perSecond).Median/best)
		}
		rates.rows[i] = append(rates.rows[i], cell)
	}
	rates.notes = append(rates.notes,
		"S0 is the well-known script (`test/bench/s0.lua`), by EVAL with a connection for each caller; both run on the same Redis, and a new "+
			"one for each round.",
		fmt.Sprintf("S0 in batches sends the grabs that wait, at most %d in one call (`test/bench/s0_batch.lua`), over %d connections.",
			s0BatchUsers, s0BatchSenders),
		fmt.Sprintf("S0 has its best median, %s/s, at %d callers; it was tried at %s.", figure(best), at, keysOf(bases)))
	return out
}

// batchedTitle is of the comparisons with S0 in batches.
const batchedTitle = "one packet, S0 in batches"

func packetCount(n int) string {
	if n == 1 {
		return "one packet"
	}
	return figure(float64(n)) + " packets"
}
