package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"hongbao/devstack/stacktest"
	"hongbao/packet"
)

var (
	full   = flag.Bool("report", false, "measure in earnest and print the report")
	length = flag.Duration("length", 3*time.Second, "with -report: time of one run")
	rounds = flag.Int("rounds", 3, "with -report: runs of each side, of which the median is reported")
	rows   = flag.Int("rows", packet.MaxShares, "with -report: claimed shares in MySQL, and in Redis, that pages are read from; 0: no pages")
	lines  = flag.String("json", "", "also write JSON lines to this `file`, relative to the root of the checkout")
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the API logs that it drains
	os.Exit(stacktest.Main(m))
}

// plan says what is measured.
type plan struct {
	length  time.Duration
	rounds  int
	callers []int // that grab in Redis
	packets []int // over which they spread
	conns   int   // over HTTP
	rows    int   // that pages are read from
	calls   int   // of each page
}

// TestReport goes through every measurement. By default it takes so little time
// that the numbers say nothing: it shows that measuring works, and that every
// grab counted is a claim in Redis, once. With -report it is what `make bench` runs.
func TestReport(t *testing.T) {
	p := plan{length: 200 * time.Millisecond, rounds: 1, callers: []int{8}, packets: []int{1, 4}, conns: 8, rows: 2 * fewRows, calls: 3}
	out := io.Discard
	if *full {
		p = plan{length: *length, rounds: *rounds, callers: []int{20, 128, 1000}, packets: []int{1, 64}, conns: 256, rows: *rows, calls: 300}
		out = os.Stdout
	}
	if p.rows != 0 && (p.rows < fewRows || p.rows > packet.MaxShares) {
		t.Fatalf("%d rows: a packet has up to %d shares, and the baseline %d", p.rows, packet.MaxShares, fewRows)
	}
	env := environment(t, p)
	results := p.measure(t, func(c *comparison) {
		if *full {
			fmt.Fprintf(os.Stderr, "measured: %s, %d callers\n", c.title, c.callers)
		}
	})
	if want := len(p.callers)*len(p.packets) + 1; len(results) != want {
		t.Fatalf("%d comparisons, want %d", len(results), want)
	}
	for _, c := range results {
		for _, s := range append(c.baseRuns, c.times...) {
			if s.done <= 0 || s.perSecond <= 0 || s.p99 < s.p50 || s.p50 <= 0 {
				t.Errorf("%s, %d callers: %+v", c.title, c.callers, s)
			}
		}
	}
	writeTable(out, env, results)
	pages := &shelf{}
	if p.rows > 0 {
		if *full {
			fmt.Fprintf(os.Stderr, "filling MariaDB and Redis with %d claims each, for pages\n", p.rows)
		}
		t.Run("pages", func(t *testing.T) { pages = p.measurePages(t) })
		pages.write(out)
	}
	if *lines != "" {
		saveLines(t, *lines, env, results, pages)
	}
}

// measure makes all comparisons, each on a Redis of its own. Both sides of one
// share it: appendfsync always, and no rewriting of the log in between.
func (p plan) measure(t *testing.T, done func(*comparison)) (all []*comparison) {
	for _, packets := range p.packets {
		for _, callers := range p.callers {
			title := "grabs in Redis, one packet"
			if packets > 1 {
				title = fmt.Sprintf("grabs in Redis, %d packets", packets)
			}
			t.Run(fmt.Sprintf("%s, %d callers", title, callers), func(t *testing.T) {
				addr := stacktest.FreshRedis(t, "--auto-aof-rewrite-percentage", "0").Addr
				c := &comparison{title: title, callers: callers, baseline: s0(addr, packets), ours: engine(addr, packets)}
				c.compare(t, p.length, p.rounds)
				all = append(all, c)
				done(c)
			})
		}
	}
	t.Run("HTTP", func(t *testing.T) {
		h := newHouse(t, stacktest.FreshRedis(t, "--auto-aof-rewrite-percentage", "0").Addr)
		c := &comparison{title: "grabs over HTTP, one packet", callers: p.conns, baseline: idle(t), ours: h.httpGrabs()}
		c.compare(t, p.length, p.rounds)
		all = append(all, c)
		done(c)
	})
	return all
}

// surroundings is the line without which no number means anything.
type surroundings struct {
	Kind    string  `json:"kind"`
	Cores   int     `json:"cores"`
	OS      string  `json:"os"`
	Go      string  `json:"go"`
	Redis   string  `json:"redis"`
	Load    string  `json:"load_average"` // before the first run; what else the machine does
	Seconds float64 `json:"run_seconds"`
	Rounds  int     `json:"rounds"`
	At      string  `json:"at"`
}

func environment(t *testing.T, p plan) surroundings {
	t.Helper()
	version, err := redisVersion(t.Context(), stacktest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	return surroundings{
		Kind: "environment", Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Redis: version,
		Load: loadAverage(), Seconds: p.length.Seconds(), Rounds: p.rounds, At: time.Now().UTC().Format(time.RFC3339),
	}
}

// loadAverage is what Linux tells of the last minute; "unknown" elsewhere.
func loadAverage() string {
	line, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(line), " ")
	return first
}

func (s surroundings) String() string {
	return fmt.Sprintf("%d cores for load, server and Redis together (%s), %s, Redis %s with appendfsync always, load average before %s\n"+
		"medians of %d runs of %.1f s each, alternating, with the least and the most; times are of one ask, in milliseconds",
		s.Cores, s.OS, s.Go, s.Redis, s.Load, s.Rounds, s.Seconds)
}

func perSecond(s sample) float64 { return s.perSecond }
func p50(s sample) float64       { return s.p50.Seconds() * 1e3 }
func p99(s sample) float64       { return s.p99.Seconds() * 1e3 }

func writeTable(out io.Writer, env surroundings, results []*comparison) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"what", "callers", "who", "per second", "min", "max", "p50 ms", "p99 ms", "ratio"})
	right := []table.ColumnConfig{{Number: 2, Align: text.AlignRight}}
	for n := 4; n <= 9; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	row := func(what, callers any, who string, runs []sample, ratio string) {
		r := spread(runs, perSecond)
		t.AppendRow(table.Row{what, callers, who, fmt.Sprintf("%.0f", r.Median), fmt.Sprintf("%.0f", r.Min), fmt.Sprintf("%.0f", r.Max),
			fmt.Sprintf("%.2f", spread(runs, p50).Median), fmt.Sprintf("%.2f", spread(runs, p99).Median), ratio})
	}
	for _, c := range results {
		row(c.title, c.callers, c.baseline.name, c.baseRuns, "1")
		row("", "", c.ours.name, c.times, fmt.Sprintf("%.2f", c.ratio()))
		t.AppendSeparator()
	}
	_, _ = fmt.Fprintf(out, "%s\n%s\n", env, t.Render())
}

// ratio is our median over the baseline's.
func (c *comparison) ratio() float64 {
	return spread(c.times, perSecond).Median / spread(c.baseRuns, perSecond).Median
}

// measurement is one side of a comparison as a line of JSON.
type measurement struct {
	Kind      string  `json:"kind"`
	What      string  `json:"what"`
	Callers   int     `json:"callers"`
	Who       string  `json:"who"`
	PerSecond rate    `json:"per_second"`
	P50Millis rate    `json:"p50_ms"`
	P99Millis rate    `json:"p99_ms"`
	Ratio     float64 `json:"ratio"` // to the baseline of the same comparison
}

// saveLines writes the report for programs. Standard output is go test's: it
// would put its own lines in between.
func saveLines(t *testing.T, path string, env surroundings, results []*comparison, pages *shelf) {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join("..", path)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writeLines(t, file, env, results, pages)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeLines(t *testing.T, out io.Writer, env surroundings, results []*comparison, pages *shelf) {
	t.Helper()
	enc := json.NewEncoder(out)
	all := []any{env}
	for _, c := range results {
		line := func(who string, runs []sample, ratio float64) measurement {
			return measurement{Kind: "measurement", What: c.title, Callers: c.callers, Who: who, PerSecond: spread(runs, perSecond),
				P50Millis: spread(runs, p50), P99Millis: spread(runs, p99), Ratio: ratio}
		}
		all = append(all, line(c.baseline.name, c.baseRuns, 1), line(c.ours.name, c.times, c.ratio()))
	}
	for _, l := range append(all, pages.lines()...) {
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
}
