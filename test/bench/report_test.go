package bench

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

var (
	full   = flag.Bool("report", false, "measure in earnest and print the report")
	only   = flag.String("only", "", "sections to measure: `names` or regular expressions, separated by commas")
	length = flag.Duration("length", 3*time.Second, "with -report: time of one run")
	rounds = flag.Int("rounds", 3, "with -report: runs of each side, of which the median is reported")
	rows   = flag.Int("rows", packet.MaxShares, "with -report: claimed shares in MySQL, and in Redis, that pages are read from, and "+
		"payouts that the console has; 0: neither")
	lines = flag.String("json", "", "also write JSON lines to this `file`, relative to the root of the checkout")
	docs  = flag.Bool("docs", false, "with -report: write the tables and plots of what was measured into docs/performance.md")
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the API logs that it drains
	flag.Parse()
	if *full {
		stacktest.OnDisk()
	}
	os.Exit(stacktest.Main(m))
}

// plan holds the sizes of the measurements.
type plan struct {
	full    bool // a full measurement; otherwise only a check that measuring works
	length  time.Duration
	rounds  int
	callers []int // that grab in Redis
	packets []int // over which they spread
	conns   int   // over HTTP
	rows    int   // that pages are read from, and payouts of the console
	calls   int   // of each page
}

// tiny returns the plan of `go test`, earnest that of `make bench`.
func tiny() plan {
	return plan{length: 100 * time.Millisecond, rounds: 1, callers: []int{4, 8}, packets: []int{1, 4}, conns: 8, rows: 2 * fewRows, calls: 3}
}

func earnest() plan {
	return plan{full: true, length: *length, rounds: *rounds, callers: []int{20, 128, 1000}, packets: []int{1, 64}, conns: 256, rows: *rows,
		calls: 300}
}

// TestReport runs every section. By default the runs are short: the test checks that the measurements work and that all counted
// calls are recorded, and the numbers are meaningless. With -report it is the run of `make bench`.
func TestReport(t *testing.T) {
	p, out, progress := tiny(), io.Discard, io.Discard
	if *full {
		p, out, progress = earnest(), os.Stdout, os.Stderr
	}
	if *docs && !*full {
		t.Fatal("-docs needs -report: numbers of tiny runs are not meaningful")
	}
	if p.rows != 0 && (p.rows < fewRows || p.rows > packet.MaxShares) {
		t.Fatalf("%d rows: a packet has up to %d shares, and the baseline %d", p.rows, packet.MaxShares, fewRows)
	}
	if *awake {
		keepAwake(t)
	}
	picked, err := pick(sections(), *only)
	if err != nil {
		t.Fatal(err)
	}
	keep := io.Discard
	if *lines != "" {
		file, err := os.Create(inCheckout(*lines))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		}()
		keep = file
	}
	began := time.Now()
	for i, s := range picked {
		t.Run(s.name, func(t *testing.T) {
			say := progressPrinter(progress, began, fmt.Sprintf("%d/%d %s", i+1, len(picked), s.name))
			f := s.measure(t, p, say)
			f.print(out)
			if err := f.lines(keep); err != nil {
				t.Fatal(err)
			}
			if *docs && len(f.results) > 0 {
				if err := f.save("../.."); err != nil {
					t.Fatal(err)
				}
				say("written: %s", document)
			}
		})
	}
	if !t.Failed() {
		_, _ = fmt.Fprintf(out, "\n%d sections in %v\n", len(picked), time.Since(began).Round(time.Second))
	}
}

// measure runs a section and checks the form of its results.
func (s section) measure(t *testing.T, p plan, say func(string, ...any)) finding {
	say("start")
	f := finding{section: s.name, env: environment(t)}
	f.results = s.run(t, p, say)
	if t.Failed() {
		t.Fatal("a check of the measurement failed: no report")
	}
	for _, r := range f.results {
		if err := r.check(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// progressPrinter returns a function that prints a step of a section with the section's place in the report and the time since
// the report began.
func progressPrinter(out io.Writer, began time.Time, where string) func(string, ...any) {
	return func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "[%s %6s] %s\n", where, time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}
}

// inCheckout finds a path that is relative to the root of the checkout; the
// package is two folders below.
func inCheckout(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("..", "..", path)
}

// surroundings is the environment of a measurement, without which a number means nothing.
type surroundings struct {
	Kind      string `json:"kind"`
	Cores     int    `json:"cores"`
	Processor string `json:"processor"`
	OS        string `json:"os"`
	Go        string `json:"go"`
	Redis     string `json:"redis"`
	Commit    string `json:"commit"`       // the measured commit, with "-dirty" when files differed
	Load      string `json:"load_average"` // before the section: other work of the machine
	At        string `json:"at"`
	Command   string `json:"command"` // that repeats it
}

func environment(t *testing.T) surroundings {
	t.Helper()
	version, err := redisVersion(t.Context(), stacktest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	return surroundings{
		Kind: "environment", Cores: runtime.GOMAXPROCS(0), Processor: processor(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Redis: version, Commit: commit(), Load: loadAverage(), At: time.Now().UTC().Format(time.RFC3339), Command: command(flag.CommandLine),
	}
}

// commit returns the commit of the checkout, with "-dirty" when files differed at the first
// section: -docs changes files. "unknown" outside a checkout.
var commit = sync.OnceValue(func() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
})

// command returns the command that repeats the measurement.
func command(flags *flag.FlagSet) string {
	var given []string
	flags.Visit(func(f *flag.Flag) {
		switch {
		case strings.HasPrefix(f.Name, "test."), f.Name == "report", f.Name == "json":
		case f.Name == "docs":
			given = append(given, "-docs")
		default:
			given = append(given, "-"+f.Name+" "+f.Value.String())
		}
	})
	if len(given) == 0 {
		return "make bench"
	}
	return "make bench BENCH='" + strings.Join(given, " ") + "'"
}

// loadAverage returns Linux' load of the last minute; "unknown" elsewhere.
func loadAverage() string {
	line, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(line), " ")
	return first
}

// processor returns the model name of the first processor on Linux; "unknown" elsewhere.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	_, rest, _ = strings.Cut(rest, ": ")
	if name, _, ok := strings.Cut(rest, "\n"); ok {
		return name
	}
	return "unknown"
}

func (s surroundings) String() string {
	return fmt.Sprintf("%s: %d cores (%s, %s) for load, servers and what is measured together; %s, Redis %s with appendfsync always; "+
		"commit %s; load average before: %s. `%s`",
		s.At, s.Cores, s.Processor, s.OS, s.Go, s.Redis, s.Commit, s.Load, s.Command)
}
