package console

import (
	"strconv"
	"time"

	"hongbao/internal/money"
	"hongbao/wire"
)

// healthView is the platform's health in one language.
type healthView struct {
	Tone, Key string
	Parts     []partView
	Attention []partView // parts with a warning or error, each with these checks only
}

type partView struct {
	Name, Label string
	Verdict     wire.Verdict
	Tone, Mark  string
	Checks      []checkView
}

type checkView struct {
	Name, Label, Text string
	Tone              string // "" if ok
	Do, Href          string
}

// verdictTones are the colours of verdicts, verdictMarks their signs, so that colour is not the
// only indication.
var (
	verdictTones = map[wire.Verdict]string{wire.VerdictOK: "good", wire.VerdictUnknown: "off", wire.VerdictWarning: "warn",
		wire.VerdictWrong: "bad"}
	verdictMarks = map[wire.Verdict]string{wire.VerdictOK: "✓", wire.VerdictUnknown: "?", wire.VerdictWarning: "!",
		wire.VerdictWrong: "✕"}
)

// unfinished links to the overview's payments in progress, which have a list for each kind and
// status. A check that counts payments of all kinds has no list of its own.
const unfinished = "#open-title"

// checkPages are the pages that list what a check counts.
var checkPages = map[string]string{"payout_failed": duePages["payout_failed"], "payout_returned": duePages["payout_returned"],
	"refund_failed": duePages["refund_failed"], "refund_returned": duePages["refund_returned"], "approval": duePages["approval"],
	"breaks": "/breaks", "suspense": "/breaks?kind=second_success", "under_way": unfinished,
	"unsent": unfinished, "provider_missing": unfinished,
	"low_balance": "/payouts?status=sending", "rate_limited": "/payouts?status=sending", "unknown_outcomes": unfinished,
	"last_run": "/reconciliations", "unreconciled": "/reconciliations?status=failed", "overdue": "/packets?overdue=true",
	"held": "#hold", "holds": "/holds", "release": "/holds", "campaigns": "/campaigns", "campaign_days": "/campaigns", "balances": "/balances"}

// viewHealth renders health in a language; nil means unavailable.
func viewHealth(l language, h *wire.Health) healthView {
	if h == nil {
		return healthView{Tone: verdictTones[wire.VerdictUnknown], Key: "verdict.unreadable"}
	}
	out := healthView{Tone: verdictTones[h.Status], Key: "verdict." + string(h.Status)}
	for _, p := range h.Parts {
		one := partView{Name: p.Name, Label: say(l, "part."+p.Name), Verdict: p.Status, Tone: verdictTones[p.Status],
			Mark: verdictMarks[p.Status]}
		bad := one
		for _, c := range p.Checks {
			check := checkView{Name: c.Name, Label: say(l, "check."+c.Name), Text: checkText(l, c)}
			if check.Href = checkPages[c.Name]; c.Count != nil && *c.Count == 0 || c.Name == "held" && c.Status == wire.VerdictOK {
				check.Href = ""
			}
			if c.Status != wire.VerdictOK {
				check.Tone = verdictTones[c.Status]
			}
			if c.Status == wire.VerdictWarning || c.Status == wire.VerdictWrong {
				check.Do = say(l, "do."+c.Name)
				bad.Checks = append(bad.Checks, check)
			}
			one.Checks = append(one.Checks, check)
		}
		out.Parts = append(out.Parts, one)
		if len(bad.Checks) > 0 {
			out.Attention = append(out.Attention, bad)
		}
	}
	return out
}

// say returns a message of the catalogue; "" if the key is unknown.
func say(l language, key string, args ...any) string {
	text, err := translate(l, key, args...)
	if err != nil {
		return ""
	}
	return text
}

// checkText describes the finding of a check.
func checkText(l language, c wire.HealthCheck) string {
	well := c.Status == wire.VerdictOK
	since := ""
	if c.Since != nil {
		since = age(l, time.Since(c.Since.Time))
	}
	switch {
	case c.LatencyUS != nil && well:
		return say(l, "health.milliseconds", milliseconds(*c.LatencyUS))
	case c.LatencyUS != nil:
		return say(l, "health.no_answer")
	case c.Name == "last_run" && since != "":
		return say(l, "health.ago", since)
	case c.Name == "last_run" && well:
		return say(l, "health.never")
	case c.Status == wire.VerdictUnknown:
		return say(l, "health.not_seen")
	case c.Name == "held" && since != "":
		return say(l, "health.for", since)
	case c.Name == "chain" && !well:
		return say(l, "health.broken")
	case c.Name == "chain" && c.Count != nil:
		return say(l, "health.checked", grouped(*c.Count))
	case c.Name == "polling" && c.Count != nil:
		return say(l, "health.workers", grouped(*c.Count))
	case c.Name == "suspense" && c.Count != nil && *c.Count > 0:
		return yuan(money.Fen(*c.Count))
	case c.Count != nil && *c.Count > 0 && since != "":
		return say(l, "health.some_since", grouped(*c.Count), since)
	case c.Count != nil && *c.Count > 0:
		return say(l, "health.some", grouped(*c.Count))
	case well:
		return say(l, "good."+c.Name)
	}
	return say(l, "poor."+c.Name)
}

// milliseconds formats microseconds as milliseconds, with one decimal below 10 ms.
func milliseconds(us int64) string {
	if us >= 10_000 {
		return grouped(us / 1000)
	}
	return strconv.FormatInt(us/1000, 10) + "." + strconv.FormatInt(us%1000/100, 10)
}
