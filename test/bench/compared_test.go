package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compared reports comparisons in two tables, each with a plot: how many a
// second, and how long one took. The title is that of the rates.
func compared(title string, all []*comparison, p plan) []result {
	note := fmt.Sprintf("Medians of %s of %v each, ours and the baseline in turn, with the least and the most.", runs(p.rounds), p.length)
	rates := result{title: title, columns: []string{"load", "who", "per second", "least", "most", "of the baseline"}, notes: []string{note},
		plot: &plot{title: title, unit: "a second"}}
	times := result{title: "how long one of them takes", columns: []string{"load", "who", "p50 ms", "p99 ms", "least p99", "most p99"},
		plot: &plot{title: title + ": how long one takes, p99", unit: "ms", log: true},
		notes: []string{"From the request to the answer, including the time in which the load generator waited for a core of the " +
			"same machine."}}
	early := 0
	for _, c := range all {
		for _, s := range slices.Concat(c.baseRuns, c.times) {
			if s.early {
				early++
			}
		}
		load := fmt.Sprintf("%s, %d callers", c.title, c.callers)
		side := func(who string, runs []sample, ratio float64) {
			m := measured(c.title, c.callers, who, runs, ratio)
			rates.rows = append(rates.rows, []string{load, who, figure(m.PerSecond.Median), figure(m.PerSecond.Min), figure(m.PerSecond.Max),
				fmt.Sprintf("%.2f", ratio)})
			rates.plot.bars = append(rates.plot.bars, m.PerSecond.bar(load, who))
			rates.numbers = append(rates.numbers, m)
			times.rows = append(times.rows, []string{load, who, fmt.Sprintf("%.2f", m.P50Millis.Median), fmt.Sprintf("%.2f", m.P99Millis.Median),
				fmt.Sprintf("%.2f", m.P99Millis.Min), fmt.Sprintf("%.2f", m.P99Millis.Max)})
			times.plot.bars = append(times.plot.bars, m.P99Millis.bar(load, who))
		}
		side(c.baseline.name, c.baseRuns, 1)
		side(c.ours.name, c.times, c.ratio())
	}
	if early > 0 {
		rates.notes = append(rates.notes, fmt.Sprintf("%s ended early, with the last share; the rate is that of the time until "+
			"then.", runs(early)))
	}
	return []result{rates, times}
}

// runs counts them in words.
func runs(n int) string {
	if n == 1 {
		return "one run"
	}
	return fmt.Sprintf("%d runs", n)
}

// keysOf lists numbers, rising, for a sentence.
func keysOf[V any](m map[int]V) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		words = append(words, fmt.Sprint(k))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
