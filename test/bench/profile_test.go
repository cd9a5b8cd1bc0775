package bench

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"hongbao/internal/devstack/stacktest"
)

// The groups into which processor time of this process falls.
const (
	groupLoad     = "load generator"
	groupHTTP     = "fasthttp and Fiber"
	groupAPI      = "ours: api"
	groupPool     = "ours: pool"
	groupDomain   = "ours: the rest"
	groupRedis    = "go-redis"
	groupSockets  = ", system calls"
	groupSchedule = "Go: scheduling and polling"
	groupGC       = "Go: garbage collection"
	groupOther    = "anything else"
)

// owners finds the group of a function by how its name begins.
var owners = []struct{ prefix, group string }{
	{"hongbao/bench.", groupLoad},
	{"hongbao/api.", groupAPI},
	{"hongbao/pool.", groupPool},
	{"hongbao/", groupDomain},
	{"github.com/redis/go-redis/", groupRedis},
	{"github.com/gofiber/fiber/", groupHTTP},
	{"github.com/valyala/fasthttp", groupHTTP},
}

// groupOf returns the group of a sample from its functions, the innermost first. Work of the
// standard library counts for its caller.
func groupOf(stack []string) string {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(stack, func(f string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f, p) })
		})
	}
	if has("runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart",
		"runtime.deductSweepCredit") {
		return groupGC
	}
	group := ""
	for _, f := range stack {
		if group != "" {
			break
		}
		for _, o := range owners {
			if strings.HasPrefix(f, o.prefix) {
				group = o.group
				break
			}
		}
	}
	switch {
	case group == "" && has("runtime."):
		return groupSchedule
	case group == "":
		return groupOther
	case has("syscall.", "internal/runtime/syscall."):
		return group + groupSockets
	}
	return group
}

// shares adds up a profile: the part of each group, of 1.
func shares(p *profile.Profile) map[string]float64 {
	const nanoseconds = 1 // of the two values of a CPU profile's sample
	out, all := map[string]float64{}, 0.0
	for _, s := range p.Sample {
		var stack []string
		looking := false
		for _, l := range s.Location {
			for _, n := range l.Line {
				stack = append(stack, n.Function.Name)
				looking = looking || strings.HasPrefix(n.Function.Name, "hongbao/bench.meter")
			}
		}
		if looking {
			continue // the profile is not of itself
		}
		v := float64(s.Value[nanoseconds])
		out[groupOf(stack)] += v
		all += v
	}
	for g := range out {
		out[g] /= all
	}
	return out
}

// profiled holds the profile and the counters of some runs.
type profiled struct {
	name  string
	done  int
	parts map[string]float64
	usage
}

// lookAt runs a subject p.rounds times with a CPU profile and all counters.
func lookAt(t *testing.T, name string, s subject, server *stacktest.Server, callers int, p plan) *profiled {
	t.Helper()
	l := &profiled{name: name}
	var all []*profile.Profile
	samples := 0
	for n := 0; n < p.rounds || samples == 0; n++ { // a tiny run may end between two samples
		var raw bytes.Buffer
		got := watched(t, s, callers, p.length, func() func(int) {
			stop := meter(t, server)
			if err := pprof.StartCPUProfile(&raw); err != nil {
				t.Fatal(err)
			}
			return func(int) {
				pprof.StopCPUProfile()
				l.add(stop())
			}
		})
		l.done += got.done
		one, err := profile.Parse(&raw)
		if err != nil {
			t.Fatal(err)
		}
		samples += len(one.Sample)
		all = append(all, one)
	}
	merged, err := profile.Merge(all)
	if err != nil {
		t.Fatal(err)
	}
	l.parts = shares(merged)
	return l
}

// measureProfile measures where the processor time goes: of pool.Grab with few and with many callers, on one packet and on several,
// and of the API.
func measureProfile(t *testing.T, p plan, say func(string, ...any)) []result {
	few, most, spread := p.callers[0], p.callers[len(p.callers)-1], p.packets[len(p.packets)-1]
	server := stacktest.FreshRedis(t, noRewrite...)
	h := newInstallation(t, server.Addr)
	var all []*profiled
	for _, run := range []struct {
		name    string
		subject subject
		callers int
	}{
		{fmt.Sprintf("engine, %d callers", few), engine(server.Addr, 1), few},
		{fmt.Sprintf("engine, %d callers", most), engine(server.Addr, 1), most},
		{fmt.Sprintf("engine, %d callers on %s", most, packetCount(spread)), engine(server.Addr, spread), most},
		{fmt.Sprintf("HTTP, %d connections", p.conns), h.httpGrabs(), p.conns},
		{fmt.Sprintf("HTTP, sold out, %d connections", p.conns), h.soldOutGrabs(), p.conns},
	} {
		say("%s", run.name)
		all = append(all, lookAt(t, run.name, run.subject, server, run.callers, p))
	}
	return []result{whereTimeGoes(all...), whatTheMachineDoes(all...)}
}

func whereTimeGoes(all ...*profiled) result {
	r := result{title: "where the processor time of the Go process goes", columns: []string{"part"},
		notes: []string{"Runs with a CPU profile. Work of the standard library counts for its caller.",
			"API and load generator are one process here; on two machines the generator's part is free for grabs."}}
	var groups []string
	for _, l := range all {
		r.columns = append(r.columns, l.name)
		for g, part := range l.parts {
			if part >= 0.001 && !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
		r.numbers = append(r.numbers, map[string]any{"run": l.name, "parts": l.parts})
	}
	slices.Sort(groups)
	for _, g := range groups {
		row := []string{g}
		for _, l := range all {
			row = append(row, fmt.Sprintf("%.1f%%", 100*l.parts[g]))
		}
		r.rows = append(r.rows, row)
	}
	r.plot = &plot{title: "Processor time of the Go process", unit: "% of it"}
	for _, l := range all {
		for _, g := range groups {
			if v := 100 * l.parts[g]; v >= 0.1 {
				r.plot.bars = append(r.plot.bars, bar{l.name, g, v, v, v})
			}
		}
	}
	return r
}

func whatTheMachineDoes(all ...*profiled) result {
	r := result{title: "what the machine does during the run", columns: []string{"what"},
		notes: []string{"Waiting for the disk is what Redis' main thread was found at by a look every 2 ms: the fsync of `appendfsync " +
			"always`. Idle is what remains."}}
	lines := []struct {
		what string
		of   func(l *profiled) string
	}{
		{"grabs a second", func(l *profiled) string { return figure(l.perSecond()) }},
		{"grabs in one script call", func(l *profiled) string { return fmt.Sprintf("%.1f", float64(l.done)/float64(max(1, l.calls))) }},
		{"processor time of the Go process, a grab, µs", func(l *profiled) string { return fmt.Sprintf("%.1f", l.each(l.self)) }},
		{"processor time of Redis' main thread, a grab, µs", func(l *profiled) string { return fmt.Sprintf("%.1f", l.each(l.main)) }},
		{"processor time of the other threads of Redis, a grab, µs", func(l *profiled) string { return fmt.Sprintf("%.1f", l.each(l.others)) }},
		{"cores busy", func(l *profiled) string { return percent(l.coresBusy()) }},
		{"  the Go process", func(l *profiled) string { return percent(l.self.Seconds() / l.wall.Seconds() / float64(l.cores)) }},
		{"  Redis", func(l *profiled) string {
			return percent((l.main + l.others).Seconds() / l.wall.Seconds() / float64(l.cores))
		}},
		{"  anything else on this machine", func(l *profiled) string {
			return percent(max(0, (l.busy-l.self-l.main-l.others).Seconds()/l.wall.Seconds()/float64(l.cores)))
		}},
		{"Redis' main thread works", func(l *profiled) string { return percent(l.works()) }},
		{"  waits for a core", func(l *profiled) string { return percent(l.waits()) }},
		{"  waits for the disk", func(l *profiled) string { return percent(l.onDisk()) }},
		{"  is idle", func(l *profiled) string { return percent(max(0, 1-l.works()-l.waits()-l.onDisk())) }},
	}
	for _, line := range lines {
		row := []string{line.what}
		for _, l := range all {
			row = append(row, line.of(l))
		}
		r.rows = append(r.rows, row)
	}
	for _, l := range all {
		r.columns = append(r.columns, l.name)
		r.notes = append(r.notes, l.limit())
		r.numbers = append(r.numbers, map[string]any{"run": l.name, "per_second": l.perSecond(), "go_us": l.each(l.self),
			"redis_main_us": l.each(l.main), "redis_other_us": l.each(l.others),
			"script_calls": l.calls, "cores_busy": l.coresBusy(), "redis_works": l.works(), "redis_waits_for_core": l.waits(),
			"redis_waits_for_disk": l.onDisk()})
	}
	return r
}

// percent formats a part of a whole, at most 100%. Both come from different clocks, which may differ by a tick.
func percent(part float64) string { return fmt.Sprintf("%.0f%%", 100*min(1, part)) }

// each returns a time per grab in microseconds.
func (l *profiled) each(d time.Duration) float64 {
	return float64(d.Microseconds()) / float64(max(1, l.done))
}
func (l *profiled) perSecond() float64 { return float64(l.done) / l.wall.Seconds() }
func (l *profiled) works() float64     { return l.main.Seconds() / l.wall.Seconds() }
func (l *profiled) waits() float64     { return l.waiting.Seconds() / l.wall.Seconds() }

// coresBusy returns the part of all cores that was busy. It is at least the known usage, because /proc/stat counts only whole ticks.
func (l *profiled) coresBusy() float64 {
	return max(l.busy, l.self+l.main+l.others).Seconds() / l.wall.Seconds() / float64(l.cores)
}

// limit names the resource that bounds the rate. Redis uses one thread: when it is never idle, it
// is the bound; otherwise the scarcest resource is.
func (l *profiled) limit() string {
	occupied := l.works() + l.waits() + l.onDisk()
	parts := []struct {
		part float64
		what string
	}{
		{l.works(), "the work of Redis' main thread"},
		{l.waits(), "the number of cores, for which Redis has to wait"},
		{l.onDisk(), "the disk, at each fsync of Redis"},
	}
	largest := slices.MaxFunc(parts, func(a, b struct {
		part float64
		what string
	}) int {
		return int(1e6 * (a.part - b.part))
	})
	switch {
	case occupied >= 0.9:
		return fmt.Sprintf("The limit of %s: Redis' main thread is taken %s of the time, most of all by %s.", l.name, percent(occupied),
			largest.what)
	case l.coresBusy() >= 0.9:
		return fmt.Sprintf("The limit of %s: the cores, busy %s of the time; Redis' main thread is taken only %s of it.", l.name,
			percent(l.coresBusy()), percent(occupied))
	}
	if l.waits() >= l.works() {
		return fmt.Sprintf("The limit of %s: the cores, busy %s of the time; Redis' main thread waits for one %s of it, and works %s.", l.name,
			percent(l.coresBusy()), percent(l.waits()), percent(l.works()))
	}
	return fmt.Sprintf("The limit of %s: neither Redis' main thread (taken %s of the time) nor the cores (busy %s); callers wait for each "+
		"other's round trips, of %s grabs a script call.",
		l.name, percent(occupied), percent(l.coresBusy()), figure(float64(l.done)/float64(max(1, l.calls))))
}
