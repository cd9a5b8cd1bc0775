// Package health is the list of checks of the figures that every process reads from the stores.
// Staff health in the API, `hongbao doctor` and alert rules are made from the same list.
package health

import (
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/observe"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Unknown Verdict = "unknown" // could not be checked
	Warning Verdict = "warning" // staff should look into it
	Wrong   Verdict = "wrong"   // grabs or payments are affected
)

var severity = map[Verdict]int{OK: 0, Unknown: 1, Warning: 2, Wrong: 3}

// Worse returns the worse of two verdicts.
func Worse(a, b Verdict) Verdict {
	if severity[b] > severity[a] {
		return b
	}
	return a
}

// Kind is what the figure of a check is.
type Kind int

// The kinds.
const (
	Backlog Kind = iota // waiting items, judged by the age of the oldest: a large backlog is fine while it moves
	State               // whether something is so, perhaps since when
	Age                 // the time since something was last done
)

// Source is the store that a figure is read from. Without an answer of the source a check is
// unknown.
type Source int

// The sources.
const (
	Redis Source = iota
	MySQL
	Temporal
	Providers
)

// readFrom reports whether the figures of the source were read.
func (s Source) readFrom(v observe.HealthSnapshot) bool {
	switch s {
	case Redis:
		return v.FromRedis
	case MySQL:
		return v.FromMySQL
	case Providers:
		return v.FromProviders
	default:
		return v.FromTemporal
	}
}

// Check is a figure, and from when on it needs attention.
type Check struct {
	Part, Name string // in staff health; the names are part of the API
	Title      string // in hongbao doctor
	Source     Source
	Kind       Kind
	// Figure reads the number of items and since when the oldest waits. A State or Age that needs no
	// attention is zero.
	Figure func(observe.HealthSnapshot) observe.Backlog
	// Fen is the money of the items; nil: not known.
	Fen func(observe.HealthSnapshot) int64
	// Limit is the age of the oldest item beyond which the verdict is Beyond; 0: any item.
	Limit  time.Duration
	Beyond Verdict
	// What names the items of a Backlog, in the plural. For a State or Age it is the sentence
	// for Beyond.
	What string
	Good string // the sentence for OK of a State or Age
	Do   string // next step
	// Alert is the rule of deploy/prometheus/alerts.yml with the same limit; "": none. Metric is the
	// left side of its expression.
	Alert, Metric string
}

// Finding is the result of a check.
type Finding struct {
	Check   *Check
	Verdict Verdict
	Count   int64
	Since   time.Time // zero: no item, or not known
	Fen     int64     // 0: not known
}

// Judge makes the check at a time. The verdict is Unknown when the figure was not read.
func (c *Check) Judge(v observe.HealthSnapshot, now time.Time) Finding {
	if !c.Source.readFrom(v) {
		return Finding{Check: c, Verdict: Unknown}
	}
	b := c.Figure(v)
	f := Finding{Check: c, Verdict: OK, Count: b.Waiting, Since: b.Oldest}
	if c.Fen != nil {
		f.Fen = c.Fen(v)
	}
	if b.Waiting > 0 && (c.Limit == 0 || b.Oldest.IsZero() || now.Sub(b.Oldest) > c.Limit) {
		f.Verdict = c.Beyond
	}
	return f
}

// Says describes the finding at a time in one sentence.
func (f Finding) Says(now time.Time) string {
	switch c := f.Check; {
	case f.Verdict == Unknown:
		return "Not read."
	case c.Kind != Backlog && f.Verdict == OK:
		return c.Good
	case c.Kind != Backlog && f.Since.IsZero():
		return c.What + "."
	case c.Kind != Backlog:
		return c.What + ", for " + age(f.Since, now) + "."
	case f.Count == 0:
		return "No " + c.What + "."
	}
	out := fmt.Sprintf("%d %s", f.Count, f.Check.What)
	if f.Fen > 0 {
		out += ", ¥" + money.Fen(f.Fen).String() + " in all"
	}
	if !f.Since.IsZero() {
		out += ", the oldest for " + age(f.Since, now)
	}
	return out + "."
}

// age is the time since since; clocks may differ, so it is never negative.
func age(since, now time.Time) string { return max(0, now.Sub(since)).Round(time.Second).String() }

// Expression returns the expression of the check's alert rule.
func (c *Check) Expression() string {
	return fmt.Sprintf("%s > %d", c.Metric, int64(c.Limit/time.Second))
}
