package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"hongbao/internal/health"
	"hongbao/internal/observe"
)

// Verdicts of a check.
const (
	verdictOK      = "ok"
	verdictWarning = "warning" // needs attention
	verdictWrong   = "wrong"   // grabs or payments are affected
	verdictSkipped = "skipped" // not checked; the finding says why
)

// finding is the result of one check.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`
	Do      string `json:"do,omitempty"` // next step
}

// doctor checks the parts of an installation and changes nothing.
type doctor struct {
	config   config
	wrong    map[string]error // errors of settings, by flag
	timeout  time.Duration    // of each part
	now      func() time.Time
	findings []finding
}

// partTimeout is the time in which a part has to answer.
const partTimeout = 5 * time.Second

func doctorCommand() command {
	asJSON := false
	return command{
		use:   "doctor",
		short: "Check a running installation and name the next steps",
		long: `Check a running installation and name each fault with the next step: settings, Redis
(version, durability, lanes, replicas), MySQL (version, isolation, durability,
migrations), clocks, Temporal (namespace, search attributes, workers), the payment
provider, the API, and work that is overdue. The command changes nothing; run it at any
time.

Use the settings of the worker and of the API. Beside "hongbao dev":

  HONGBAO_ENV_FILE=.hongbao/dev.env hongbao doctor

Checks whose secrets are not set are skipped.

Exit code: 0 no fault, warnings are possible; 1 faults.`,
		flags: func(flags *pflag.FlagSet) {
			addSettings(flags, cmdDoctor)
			flags.BoolVar(&asJSON, "json", false, `print the findings as JSON: {"healthy":...,"findings":[...]}`)
		},
		run: func(ctx context.Context, t *call) error {
			c, wrong, unknown := gatherConfig(t.cmd, cmdDoctor, t.env)
			d := &doctor{config: c, wrong: wrong, timeout: partTimeout, now: time.Now}
			d.checkSettings(unknown)
			d.examine(ctx)
			return d.report(t.out, asJSON)
		},
	}
}

// examine checks all parts concurrently: a part that hangs does not delay the others.
func (d *doctor) examine(ctx context.Context) {
	parts := []func(*doctor, context.Context){(*doctor).checkRedis, (*doctor).checkMySQL, (*doctor).checkTemporal, (*doctor).checkProvider,
		(*doctor).checkAPI}
	found := make([]doctor, len(parts))
	ctx, cancel := context.WithTimeout(ctx, 3*d.timeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, look := range parts {
		found[i] = doctor{config: d.config, wrong: d.wrong, timeout: d.timeout, now: d.now}
		wg.Go(func() { look(&found[i], ctx) })
	}
	wg.Wait()
	for _, part := range found {
		d.findings = append(d.findings, part.findings...)
	}
}

func (d *doctor) add(check, verdict, do, format string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Verdict: verdict, Says: fmt.Sprintf(format, args...), Do: do})
}

// judge adds the findings of the list of package health about the figures of a source. Durability is checked
// by the settings of each server.
func (d *doctor) judge(v observe.HealthSnapshot, source health.Source) {
	for _, c := range health.Checks() {
		if c.Source != source || c.Name == "durable" {
			continue
		}
		f, do := c.Judge(v, d.now()), ""
		if f.Verdict != health.OK {
			do = c.Do
		}
		d.add(c.Title, string(f.Verdict), do, "%s", f.Says(d.now()))
	}
}

func (d *doctor) ok(check, format string, args ...any) { d.add(check, verdictOK, "", format, args...) }

// configured reports whether the settings of a check are valid. Otherwise it adds a skipped finding.
func (d *doctor) configured(check string, flags ...string) bool {
	for _, flag := range flags {
		if d.wrong[flag] != nil {
			for _, s := range settingsOf(cmdDoctor) {
				if s.flag == flag {
					d.add(check, verdictSkipped, "Set "+s.name()+".", "Not checked: a setting is missing or wrong.")
				}
			}
			return false
		}
	}
	return true
}

// optionalSettings are settings that only some checks need.
var optionalSettings = map[string]bool{"seed-key": true, "provider-key": true, "provider-url": true}

// checkSettings checks the settings themselves.
func (d *doctor) checkSettings(unknown error) {
	problems := append(unjoin(unknown), unjoin(d.config.contradictions())...)
	for _, s := range settingsOf(cmdDoctor) {
		if err := d.wrong[s.flag]; err != nil && !(errors.Is(err, errMissing) && optionalSettings[s.flag]) {
			problems = append(problems, err)
		}
	}
	for _, err := range problems {
		d.add("settings", verdictWrong, `Correct it; docs/configuration.md and "hongbao api --help" describe each setting.`, "%v", err)
	}
	if len(problems) == 0 {
		d.ok("settings", "Every HONGBAO_ variable is known and every value is valid.")
	}
}

// unjoin returns the errors that errors.Join has joined, also those of nested joins.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, unjoin(one)...)
	}
	return all
}

// report prints the findings and returns errReported when one is a fault.
func (d *doctor) report(out io.Writer, asJSON bool) error {
	count := map[string]int{}
	for _, f := range d.findings {
		count[f.Verdict]++
	}
	healthy := count[verdictWrong] == 0
	err := d.print(out, asJSON, healthy, count)
	if err == nil && !healthy {
		err = errReported
	}
	return err
}

func (d *doctor) print(out io.Writer, asJSON, healthy bool, count map[string]int) error {
	if asJSON {
		return encodeJSON(out, struct {
			Healthy  bool      `json:"healthy"`
			Findings []finding `json:"findings"`
		}{healthy, d.findings})
	}
	for _, f := range d.findings {
		mark := map[string]string{verdictOK: "ok      ", verdictWarning: "WARNING ", verdictWrong: "WRONG   ",
			verdictSkipped: "skipped "}[f.Verdict]
		if err := printf(out, "%s %-20s %s\n", mark, f.Check, f.Says); err != nil {
			return err
		}
		if f.Do != "" {
			if err := printf(out, "%30s-> %s\n", "", f.Do); err != nil {
				return err
			}
		}
	}
	word := "HEALTHY"
	if !healthy {
		word = "NOT HEALTHY"
	}
	return printf(out, "%s: %d ok, %d warnings, %d wrong, %d skipped.\n", word, count[verdictOK], count[verdictWarning],
		count[verdictWrong], count[verdictSkipped])
}

// Limits of clock differences. Opening and expiry use the clock of Redis; pauses and deadlines use the clock of the
// machine that wrote them.
const (
	clockWarning = time.Second
	clockWrong   = 10 * time.Second
)

// checkClock checks how far a clock is ahead of this machine's.
func (d *doctor) checkClock(check, whose string, ahead time.Duration) {
	off, word := ahead.Abs(), "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	says := fmt.Sprintf("The clock of %s is %v %s this machine's.", whose, off.Round(time.Millisecond), word)
	do := "Synchronize the clocks of all machines with chrony or ntpd, and find the one that differs."
	switch {
	case off >= clockWrong:
		d.add(check, verdictWrong, do, "%s", says)
	case off >= clockWarning:
		d.add(check, verdictWarning, do, "%s", says)
	default:
		d.ok(check, "%s", says)
	}
}

// olderThan compares version numbers by their leading digits and dots.
func olderThan(version string, atLeast ...int) bool {
	for i, part := range strings.SplitN(version, ".", len(atLeast)+1) {
		if i == len(atLeast) {
			break
		}
		n := 0
		for _, r := range part {
			if r < '0' || r > '9' {
				break
			}
			n = 10*n + int(r-'0')
		}
		if n != atLeast[i] {
			return n < atLeast[i]
		}
	}
	return false
}
