package bench

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/pool"
)

// laneCounts are the compared numbers of lanes; the last one is the baseline. One lane is the limit of what fewer lanes can gain.
var laneCounts = []int{1, pool.DefaultLanes, 16, pool.DefaultClusterLanes}

// laneRun is one run of pool.Grab with a number of lanes; the time is that of Redis' only thread in the script.
type laneRun struct{ perSecond, microseconds, grabsPerCall float64 }

// measureLanes compares numbers of lanes with grabs that spread over many packets.
func measureLanes(t *testing.T, p plan, say func(string, ...any)) []result {
	packets, callers := p.packets[len(p.packets)-1], p.callers[:len(p.callers)-1]
	r := result{title: "grabs of " + packetCount(packets) + " with more and fewer lanes",
		columns: []string{"callers", "lanes", "grabs a second", "least", "most", "of the baseline", "us of Redis a grab", "least", "most",
			"grabs a call"},
		plot: &plot{title: "Grabs a second of " + packetCount(packets), unit: "a second"},
		notes: []string{
			fmt.Sprintf("Each number of lanes has a Redis of its own. The baseline has %d lanes, the default of a Cluster; one server has %d.",
				pool.DefaultClusterLanes, pool.DefaultLanes),
			"Microseconds of Redis' only thread in the script, from its own `INFO commandstats`, without network and disk.",
			fmt.Sprintf("Medians of %s of %v, in turn.", runs(p.rounds), p.length),
		}}
	addrs := make([]string, len(laneCounts))
	for i := range addrs {
		addrs[i] = stacktest.FreshRedis(t, noRewrite...).Addr
	}
	for _, n := range callers {
		got := make([][]laneRun, len(laneCounts))
		for round := range p.rounds {
			say("%d callers, round %d of %d", n, round+1, p.rounds)
			for i, lanes := range laneCounts {
				got[i] = append(got[i], runLanes(t, addrs[i], packets, lanes, n, p))
			}
		}
		if t.Failed() {
			return nil
		}
		perSecond := func(l laneRun) float64 { return l.perSecond }
		base := spread(got[len(got)-1], perSecond).Median
		for i, lanes := range laneCounts {
			rate, cost := spread(got[i], perSecond), spread(got[i], func(l laneRun) float64 { return l.microseconds })
			r.rows = append(r.rows, []string{strconv.Itoa(n), strconv.Itoa(lanes), figure(rate.Median), figure(rate.Min), figure(rate.Max),
				fmt.Sprintf("%.2f", rate.Median/base), figure(cost.Median), figure(cost.Min), figure(cost.Max),
				figure(spread(got[i], func(l laneRun) float64 { return l.grabsPerCall }).Median)})
			r.plot.bars = append(r.plot.bars, rate.bar(fmt.Sprintf("%d callers", n), fmt.Sprintf("%d lanes", lanes)))
			r.numbers = append(r.numbers, map[string]any{"what": "lanes", "lanes": lanes, "callers": n, "per_second": rate, "us_per_grab": cost})
		}
	}
	return []result{r}
}

func runLanes(t *testing.T, addr string, packets, lanes, callers int, p plan) laneRun {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	var out laneRun
	out.perSecond = watched(t, engineWithLanes(addr, packets, lanes), callers, p.length, func() func(int) {
		if err := rdb.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return func(done int) {
			stats, err := rdb.InfoMap(t.Context(), "commandstats").Result()
			if err != nil {
				t.Fatal(err)
			}
			calls, took := commandStat(t, stats["Commandstats"]["cmdstat_evalsha"])
			out.microseconds, out.grabsPerCall = took/float64(done), float64(done)/calls
		}
	}).perSecond
	return out
}
