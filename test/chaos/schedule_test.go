package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// action is what a fault does.
type action string

const (
	kill action = "kill" // SIGKILL; the supervisor starts the process again
	stop action = "stop" // SIGSTOP, and SIGCONT after the fault's length

	// Faults of a link; each lasts for the fault's length.
	latency     action = "latency"      // every answer comes late
	reset       action = "reset"        // connections are reset at the first byte
	lostReplies action = "lost replies" // requests arrive, answers do not
	cutReplies  action = "cut replies"  // answers end after some bytes
	refuse      action = "refuse"       // a visible partition: connections are cut and refused
	silence     action = "silence"      // a silent partition: nothing arrives, in either direction

	misbehave action = "misbehave" // the provider gets other fault rules
)

// parts are the processes of the stack, links the connections between them.
var (
	parts = []string{"api", "worker", "provider", "redis", "mysql", "temporal"}
	links = []string{"api-redis", "api-mysql", "api-temporal", "api-provider",
		"worker-redis", "worker-mysql", "worker-temporal", "worker-provider", "provider-api"}
	// wechatLinks are those of the simulator of WeChat Pay. HONGBAO_LINKS does not know them.
	wechatLinks = []string{"worker-wechat", "wechat-api"}
	linkFaults  = []action{latency, reset, lostReplies, cutReplies, refuse, silence}
)

// fault is one scheduled fault.
type fault struct {
	at     time.Duration // since the load began
	length time.Duration // 0: instantaneous
	action action
	target string        // a part or a link
	delay  time.Duration // of latency
	bytes  int           // of cut replies
	rules  []rule        // of misbehave: all rules from now on
	pair   bool          // at the same time as the fault before it
}

// String describes a fault on one line, without its time.
func (f fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.action, f.target)
	switch f.action {
	case latency:
		fmt.Fprintf(&b, " by %v", f.delay)
	case cutReplies:
		fmt.Fprintf(&b, " after %d bytes", f.bytes)
	case misbehave:
		for _, r := range f.rules {
			fmt.Fprintf(&b, " %s/%s=%.2f", r.Op, r.Kind, r.Rate)
		}
	}
	if f.length > 0 {
		fmt.Fprintf(&b, " for %v", f.length)
	}
	return b.String()
}

// printed returns a whole schedule, one moment per line.
func printed(schedule []fault) string {
	var b strings.Builder
	for i, f := range schedule {
		switch {
		case f.pair:
			b.WriteString("  +  ")
		case i > 0:
			b.WriteString("\n")
			fallthrough
		default:
			fmt.Fprintf(&b, "%7.1fs  ", f.at.Seconds())
		}
		b.WriteString(f.String())
	}
	return b.String() + "\n"
}

// rule is a fault rule of the sandbox provider.
type rule struct {
	Op            string  `json:"op"`
	Kind          string  `json:"kind"`
	Rate          float64 `json:"rate"`
	AccountPrefix string  `json:"account_prefix"`
	DelayMS       int64   `json:"delay_ms"`
}

// ruleKinds are the kinds of the provider's faults by the operation that they can affect. The
// contradiction of a query is left out: when the true answer was lost before, the false one is the
// only answer about the order, and nothing can detect it before the day's statement.
var ruleKinds = map[string][]string{
	"charge": sendKinds, "transfer": sendKinds, "refund": sendKinds,
	"query": {"error_before", "error_after", "timeout_before", "timeout_after", "rate_limit", "pending", "not_found_yet"},
}

var sendKinds = []string{"error_before", "error_after", "timeout_before", "timeout_after", "rate_limit", "decline", "pending",
	"pending_forever", "notify_never", "notify_twice", "notify_late", "contradict", "low_balance"}

// wechatKinds are those of WeChat Pay. A forged or dated signature is an answer that does not count.
var wechatKinds = map[string][]string{
	"transfer": {"error_before", "error_after", "error_late", "timeout_before", "timeout_after", "rate_limit", "low_balance", "bad_signature",
		"unsigned", "clock_behind"},
	"query": {"error_before", "timeout_before", "rate_limit", "not_found_yet", "bad_signature", "unsigned"},
}

// The short form's seed, length, rate, and longest life of a packet.
const (
	shortSeed   = 4
	shortLength = 24 * time.Second
	shortRate   = 25
	shortLife   = 15 * time.Second
)

// dice draws random values from the seed.
type dice struct{ *rand.Rand }

// throw returns the dice of one purpose; other purposes do not change what it draws.
func throw(seed, purpose uint64) dice { return dice{rand.New(rand.NewPCG(seed, purpose))} }

// between draws a duration, in steps of 100 ms.
func (d dice) between(low, high time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	return low + time.Duration(d.Int64N(int64((high-low)/step)+1))*step
}

// chance is true in p percent of the draws.
func (d dice) chance(p int) bool { return d.IntN(100) < p }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

// chaosSchedule derives the faults of a run from its seed and length. Faults are taken from
// shuffled decks, each with every fault of a process and of a link, so that a run of a minute meets
// all of them.
func chaosSchedule(seed uint64, length time.Duration) []fault {
	d := throw(seed, 1)
	all := []fault{{action: misbehave, target: "provider", rules: d.rules(ruleKinds)}}
	at := d.between(time.Second, 3*time.Second)
	for {
		for _, moment := range d.deck() {
			if at >= length {
				return all
			}
			for i, f := range moment {
				f.at, f.pair = at, i > 0
				all = append(all, f)
			}
			at += d.between(800*time.Millisecond, 3500*time.Millisecond)
		}
	}
}

// wechatSchedule derives the faults of WeChat Pay, which are added to the others.
func wechatSchedule(seed uint64, length time.Duration) []fault {
	d := throw(seed, 2)
	all := []fault{{action: misbehave, target: "wechat", rules: d.rules(wechatKinds)}}
	at := d.between(time.Second, 3*time.Second)
	for {
		deck := []fault{d.stopPart("wechat"), d.stopPart("wechat"), {action: misbehave, target: "wechat", rules: d.rules(wechatKinds)}}
		for _, link := range wechatLinks {
			for _, how := range linkFaults {
				deck = append(deck, d.breakLink(link, how))
			}
		}
		d.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, f := range deck {
			if at >= length {
				return all
			}
			f.at = at
			all = append(all, f)
			at += d.between(2*time.Second, 5*time.Second)
		}
	}
}

// merged returns two schedules as one.
func merged(a, b []fault) []fault {
	return slices.SortedStableFunc(slices.Values(slices.Concat(a, b)), func(a, b fault) int { return cmp.Compare(a.at, b.at) })
}

// shortSchedule is the short form: every process killed once, one pair, two
// links broken in two ways, evenly over the length.
func shortSchedule(seed uint64, length time.Duration) []fault {
	d := throw(seed, 1)
	moments := [][]fault{d.pairOf()}
	for _, part := range parts {
		moments = append(moments, []fault{{action: kill, target: part}})
	}
	broken, faults := d.Perm(len(links)), d.Perm(len(linkFaults))
	for i := range 2 {
		moments = append(moments, []fault{d.breakLink(links[broken[i]], linkFaults[faults[i]])})
	}
	d.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
	all := []fault{{action: misbehave, target: "provider", rules: d.rules(ruleKinds)}}
	for n, moment := range moments {
		for i, f := range moment {
			f.at, f.pair = length*time.Duration(n+1)/time.Duration(len(moments)+1), i > 0
			all = append(all, f)
		}
	}
	return all
}

// deck returns every fault of a process and of a link once, shuffled, with four pairs of processes
// and two changes of the provider's rules.
func (d dice) deck() [][]fault {
	var moments [][]fault
	for _, part := range parts {
		moments = append(moments, []fault{{action: kill, target: part}}, []fault{d.stopPart(part)})
	}
	for range 4 {
		moments = append(moments, d.pairOf())
	}
	for i, link := range d.Perm(len(links)) {
		moments = append(moments, []fault{d.breakLink(links[link], linkFaults[i%len(linkFaults)])})
	}
	for range 2 {
		moments = append(moments, []fault{{action: misbehave, target: "provider", rules: d.rules(ruleKinds)}})
	}
	d.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
	return moments
}

func (d dice) stopPart(part string) fault {
	return fault{action: stop, target: part, length: d.between(time.Second, 8*time.Second)}
}

// pairOf returns faults of two processes at the same moment, each killed or stopped.
func (d dice) pairOf() []fault {
	two := d.Perm(len(parts))[:2]
	var out []fault
	for _, p := range two {
		f := fault{action: kill, target: parts[p]}
		if d.chance(40) {
			f = d.stopPart(parts[p])
		}
		out = append(out, f)
	}
	return out
}

func (d dice) breakLink(link string, how action) fault {
	f := fault{action: how, target: link, length: d.between(time.Second, 6*time.Second)}
	switch how {
	case latency:
		f.delay = d.between(100*time.Millisecond, 1500*time.Millisecond)
	case cutReplies:
		f.bytes = d.IntN(400)
	}
	return f
}

// rules draws a mixture of a provider's faults: for every op a few of its kinds at a few percent.
func (d dice) rules(of map[string][]string) []rule {
	var out []rule
	for _, op := range []string{"charge", "transfer", "refund", "query"} {
		kinds := slices.Clone(of[op])
		d.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds[:min(4, len(kinds))] {
			r := rule{Op: op, Kind: kind, Rate: float64(1+d.IntN(6)) / 100}
			if strings.HasPrefix(kind, "notify_") {
				r.DelayMS = int64(d.between(200*time.Millisecond, 4*time.Second) / time.Millisecond)
			}
			if op == "transfer" && kind == "notify_never" {
				r.AccountPrefix = notifiedLate
			}
			out = append(out, r)
		}
	}
	return out
}
