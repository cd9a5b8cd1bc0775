package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// section is one part of the report, chosen by -only, with its tables and plots.
type section struct {
	name string // short, lower case: of -only and of the files of its plots
	// run measures. By default it only checks that measuring works; with p.full it takes full
	// measurements. say prints its progress, one line per step.
	run func(t *testing.T, p plan, say func(format string, args ...any)) []result
}

// sections returns the sections of the report in their order. Each has its place in
// docs/performance.md, between marks with its name.
func sections() []section {
	return []section{
		{"engine", measureEngine},
		{"script", measureScript},
		{"lanes", measureLanes},
		{"http", measureHTTP},
		{"baselines", measureBaselines},
		{"profile", measureProfile},
		{"many", measureMany},
		{"big", measureBig},
		{"payouts", measurePayouts},
		{"latency", measureLatency},
		{"funding", measureFunding},
		{"timers", measureTimers},
		{"pages", measurePages},
		{"console", measureConsole},
	}
}

// result is one table of a section, with the plot of its numbers.
type result struct {
	title   string
	columns []string // the first one names the row
	rows    [][]string
	notes   []string // how the numbers were taken, one sentence each
	plot    *plot    // nil: none
	// numbers are the same measurements for programs, one line of JSON each.
	numbers []any
}

// plot is a chart of bars, each with the least and the most of its runs.
type plot struct {
	title string
	unit  string // of the values
	log   bool   // the axis is logarithmic
	bars  []bar
}

// bar is the median of several runs. Bars of one group stand together.
type bar struct {
	group, name      string
	median, min, max float64
}

// pick returns the sections whose whole name matches one of the regular expressions in only, which are separated by commas. An
// empty only picks all. An expression without a match is an error.
func pick(all []section, only string) ([]section, error) {
	if only == "" {
		return all, nil
	}
	wanted := make([]bool, len(all))
	for word := range strings.SplitSeq(only, ",") {
		whole, err := regexp.Compile("^(?:" + strings.TrimSpace(word) + ")$")
		if err != nil {
			return nil, fmt.Errorf("-only %s: %w", only, err)
		}
		found := false
		for i, s := range all {
			if whole.MatchString(s.name) {
				wanted[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("-only %s: no section is named %q; write some of %s", only, word, strings.Join(names(all), ", "))
		}
	}
	var out []section
	for i, s := range all {
		if wanted[i] {
			out = append(out, s)
		}
	}
	return out, nil
}

func names(all []section) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = s.name
	}
	return out
}

// check returns an error for a result that cannot be rendered.
func (r result) check() error {
	if r.title == "" || len(r.columns) == 0 || len(r.rows) == 0 {
		return fmt.Errorf("%q: no title, columns or rows", r.title)
	}
	for _, row := range r.rows {
		if len(row) != len(r.columns) {
			return fmt.Errorf("%s: row %q does not have the %d columns of the table", r.title, row, len(r.columns))
		}
	}
	if r.plot == nil {
		return nil
	}
	if len(r.plot.bars) == 0 {
		return fmt.Errorf("%s: a plot without bars", r.title)
	}
	for _, b := range r.plot.bars {
		if !(b.min <= b.median && b.median <= b.max) || b.min < 0 || r.plot.log && b.min == 0 {
			return fmt.Errorf("%s: bar %s, %s cannot be drawn: %v from %v to %v", r.title, b.group, b.name, b.median, b.min, b.max)
		}
	}
	return nil
}

// finding holds the results of a section and the environment of their measurement.
type finding struct {
	section string
	env     surroundings
	results []result
}

// plotFile names the plot of the result i among those of a section.
func (f finding) plotFile(i int) string {
	n := 0
	for _, r := range f.results[:i] {
		if r.plot != nil {
			n++
		}
	}
	if n == 0 {
		return f.section + ".svg"
	}
	return fmt.Sprintf("%s-%d.svg", f.section, n+1)
}

// numeric returns the columns of a table that hold only numbers; they are right-aligned.
func (r result) numeric(column int) bool {
	return column > 0 && !slices.ContainsFunc(r.rows, func(row []string) bool {
		return strings.ContainsFunc(row[column], func(c rune) bool { return !strings.ContainsRune("0123456789.,-+x% ", c) })
	})
}
