package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// Verdicts of a check.
const (
	verdictOK      = "ok"
	verdictWarning = "warning" // somebody should look
	verdictWrong   = "wrong"   // grabs, payments or promises suffer
	verdictSkipped = "skipped" // could not be looked at, for a reason that is told
)

// finding is what one check came to.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`
	Do      string `json:"do,omitempty"` // what to do about it
}

// doctor looks at an installation, part by part, and changes nothing.
type doctor struct {
	config   config
	wrong    map[string]error // settings that are wrong, by flag
	timeout  time.Duration    // of each part
	now      func() time.Time
	findings []finding
}

// partTimeout is how long one part may take to answer.
const partTimeout = 5 * time.Second

func newDoctorCommand(env environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a running installation: what is wrong, and what to do",
		Long: `Check a running installation and say for each part what is wrong and what to do:
settings, Redis (version, durability, lanes, replicas), MySQL (version, isolation,
durability, migrations), clocks, Temporal (namespace, search attributes, workers),
the payment provider, the API, and what waits for too long. It changes nothing, and
may run beside everything else at any time.

Give it the settings of the worker and of the API. Beside "hongbao dev":

  set -a; . .hongbao/dev.env; set +a
  hongbao doctor

Secrets that are not given leave their checks out: skipped.

Exit code: 0 nothing is wrong, though there may be warnings; 1 something is.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, wrong, unknown := gatherConfig(cmd, cmdDoctor, env)
			d := &doctor{config: c, wrong: wrong, timeout: partTimeout, now: time.Now}
			d.checkSettings(unknown)
			d.examine(cmd.Context())
			return d.report(cmd.OutOrStdout(), asJSON)
		},
	}
	addSettings(cmd, cmdDoctor)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print the findings as JSON: {"healthy":...,"findings":[...]}`)
	return cmd
}

// examine looks at every part at the same time: one that hangs holds up no other.
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

func (d *doctor) ok(check, format string, args ...any) { d.add(check, verdictOK, "", format, args...) }

// has reports whether settings are there and right; what needs them is skipped
// otherwise, which is noted.
func (d *doctor) configured(check string, flags ...string) bool {
	for _, flag := range flags {
		if d.wrong[flag] != nil {
			for _, s := range settingsOf(cmdDoctor) {
				if s.flag == flag {
					d.add(check, verdictSkipped, "Give "+s.name()+".", "Not looked at: a setting is missing or wrong.")
				}
			}
			return false
		}
	}
	return true
}

// optionalSettings are settings that only some checks need and that not everybody has.
var optionalSettings = map[string]bool{"seed-key": true, "provider-key": true, "provider-url": true}

// settings judges the settings themselves.
func (d *doctor) checkSettings(unknown error) {
	problems := append(unjoin(unknown), unjoin(d.config.contradictions())...)
	for _, s := range settingsOf(cmdDoctor) {
		if err := d.wrong[s.flag]; err != nil && !(errors.Is(err, errMissing) && optionalSettings[s.flag]) {
			problems = append(problems, err)
		}
	}
	for _, err := range problems {
		d.add("settings", verdictWrong, `Correct it; "hongbao api --help" and docs/configuration.md say what each is for.`, "%v", err)
	}
	if len(problems) == 0 {
		d.ok("settings", "Every HONGBAO_ variable is known and every value is valid.")
	}
}

// each takes apart what errors.Join has joined, also of what was joined before.
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

// tell prints the findings and turns them into the exit code.
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
	word := "Nothing is wrong"
	if !healthy {
		word = "NOT HEALTHY"
	}
	return printf(out, "%s: %d checks are well, %d warnings, %d wrong, %d skipped.\n", word, count[verdictOK], count[verdictWarning],
		count[verdictWrong], count[verdictSkipped])
}

// Differences of clocks. Opening and expiry go by the clock of Redis, pauses and
// deadlines by those of the machines that wrote them.
const (
	clockWarning = time.Second
	clockWrong   = 10 * time.Second
)

// clock judges how far a clock is ahead of this machine's.
func (d *doctor) checkClock(check, whose string, ahead time.Duration) {
	off, word := ahead.Abs(), "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	says := fmt.Sprintf("The clock of %s is %v %s this machine's.", whose, off.Round(time.Millisecond), word)
	do := "Let chrony or ntpd keep the clocks of all machines together, and see which one is off."
	switch {
	case off >= clockWrong:
		d.add(check, verdictWrong, do, "%s", says)
	case off >= clockWarning:
		d.add(check, verdictWarning, do, "%s", says)
	default:
		d.ok(check, "%s", says)
	}
}

// older compares version numbers, of which only leading digits and dots count.
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
