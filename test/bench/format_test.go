package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

func TestPick(t *testing.T) {
	all := []section{{name: "engine"}, {name: "http"}, {name: "pages"}}
	for only, want := range map[string]string{
		"": "engine http pages", "http": "http", "pages,engine": "engine pages", "h.*, pages": "http pages", "http,http": "http",
		"htt": "error", "engine,": "error", "engine,gone": "error", "(": "error",
	} {
		picked, err := pick(all, only)
		got := strings.Join(names(picked), " ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("-only %q picks %s (%v), want %s", only, got, err, want)
		}
	}
}

// sampleFinding returns a finding with difficult output: XML metacharacters, two plots, an empty cell.
func sampleFinding() finding {
	runs := []sample{{done: 1, perSecond: 100, p50: time.Millisecond, p99: 2 * time.Millisecond},
		{done: 1, perSecond: 120, p50: time.Millisecond, p99: 3 * time.Millisecond}}
	ours := []sample{{done: 1, perSecond: 250, p50: time.Millisecond, p99: 2 * time.Millisecond},
		{done: 1, perSecond: 190, p50: time.Millisecond, p99: 2 * time.Millisecond}}
	c := &comparison{title: "one <packet>", callers: 20, baseline: subject{name: "old & slow"}, ours: subject{name: "new"}, baseRuns: runs,
		times: ours}
	return finding{section: "engine", env: surroundings{Kind: "environment", Cores: 2, Redis: "7.0"},
		results: compared("grabs", []*comparison{c}, plan{length: time.Second, rounds: 2})}
}

func TestCompared(t *testing.T) {
	f := sampleFinding()
	for _, r := range f.results {
		if err := r.check(); err != nil {
			t.Error(err)
		}
	}
	want := [][]string{{"one <packet>, 20 callers", "old & slow", "110", "100", "120", "1.00"},
		{"one <packet>, 20 callers", "new", "220", "190", "250", "2.00"}}
	if got := f.results[0].rows; !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("%q", got)
	}
	if got := f.results[1].plot.bars[0]; got != (bar{"one <packet>, 20 callers", "old & slow", 2.5, 2, 3}) {
		t.Errorf("%+v", got)
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	sampleFinding().print(&out)
	for _, want := range []string{"engine: grabs\n", "old & slow", "220", "2.00", "  Medians of 2 runs of 1s each"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	if err := sampleFinding().lines(&out); err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(all) != 5 { // environment, a table with two numbers, a table
		t.Fatalf("%d lines:\n%s", len(all), out.String())
	}
	l := struct {
		line
		Number measurement `json:"number"`
	}{}
	if err := json.Unmarshal([]byte(all[3]), &l); err != nil || l.Kind != "number" || l.Section != "engine" || l.Number.Who != "new" ||
		l.Number.Ratio != 2 || l.Number.PerSecond.Median != 220 {
		t.Errorf("%v: %s", err, all[3])
	}
	bad := finding{results: []result{{numbers: []any{func() {}}}}}
	if bad.lines(io.Discard) == nil {
		t.Error("a value that JSON cannot hold was written")
	}
}

// wellFormed reads XML to its end and returns the text in it.
func wellFormed(t *testing.T, text string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if c, ok := token.(xml.CharData); ok {
			b.Write(c)
		}
	}
}

func TestSVG(t *testing.T) {
	for _, r := range sampleFinding().results {
		text := r.plot.svg()
		read := wellFormed(t, text)
		for _, want := range []string{"one <packet>, 20 callers", "old & slow", r.plot.unit} {
			if !strings.Contains(read, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		if text != r.plot.svg() {
			t.Error("the same numbers give another plot")
		}
		if bars := strings.Count(text, "<rect "); bars != 1+len(r.plot.bars) { // and the background
			t.Errorf("%d rectangles", bars)
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("not a number in\n%s", text)
		}
	}
	for name, p := range map[string]plot{
		"nothing": {bars: []bar{{"", "a", 0, 0, 0}}}, "one value, logarithmic": {log: true, bars: []bar{{"", "a", 10, 10, 10}}},
		"below one": {log: true, bars: []bar{{"", "a", 0.02, 0.01, 0.5}}},
	} {
		text := p.svg()
		wellFormed(t, text)
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, `width="-`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestScale(t *testing.T) {
	even := (&plot{bars: []bar{{max: 50, min: 10}, {max: 200, min: 20}}}).scale()
	all := even.width
	if even.x(0) != 0 || even.x(100) != all/2 || even.x(200) != all {
		t.Error(even.x(0), even.x(100), even.x(200))
	}
	if got := even.ticks(); !slices.Equal(got, []float64{0, 50, 100, 150, 200}) {
		t.Error(got)
	}
	log := (&plot{log: true, bars: []bar{{max: 50, min: 2}, {max: 900, min: 20}}}).scale()
	if got := log.ticks(); !slices.Equal(got, []float64{1, 10, 100, 1000}) {
		t.Error(got)
	}
	if log.x(1) != 0 || log.x(1000) != all || math.Abs(log.x(10)-all/3) > 0.1 {
		t.Error(log.x(1), log.x(10), log.x(1000))
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1: "1", 1.5: "1.5", 2.346: "2.35", 12.34: "12.3", 100: "100",
		123.9: "124", 1000: "1,000", 420123.4: "420,123", 1234567: "1,234,567"} {
		if got := figure(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := func() result {
		return result{title: "t", columns: []string{"a", "b"}, rows: [][]string{{"x", "1"}}, plot: &plot{bars: []bar{{"g", "n", 2, 1, 3}}}}
	}
	if err := good().check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*result){
		"no title":       func(r *result) { r.title = "" },
		"no rows":        func(r *result) { r.rows = nil },
		"a short row":    func(r *result) { r.rows[0] = r.rows[0][:1] },
		"no bars":        func(r *result) { r.plot.bars = nil },
		"median outside": func(r *result) { r.plot.bars[0].median = 4 },
		"log of nothing": func(r *result) { r.plot.log, r.plot.bars[0].min = true, 0 },
	} {
		r := good()
		spoil(&r)
		if r.check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestSave(t *testing.T) {
	f, root := sampleFinding(), t.TempDir()
	path := filepath.Join(root, document)
	begin, end := marks("engine")
	const head, tail = "# By hand\n", "the rest\n"
	if err := errors.Join(os.MkdirAll(filepath.Join(root, plots), 0o755), os.WriteFile(path, []byte(head+begin+"old\n"+end+tail), 0o644),
		os.WriteFile(filepath.Join(root, plots, "engine-9.svg"), nil, 0o644), os.WriteFile(filepath.Join(root, plots, "engineer.svg"), nil,
			0o644)); err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i := range texts {
		if err := f.save(root); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(b)
	}
	if texts[0] != texts[1] {
		t.Errorf("written twice:\n%s\n%s", texts[0], texts[1])
	}
	if text := texts[0]; !strings.HasPrefix(text, head+begin) || !strings.HasSuffix(text, end+tail) || strings.Contains(text, "old\n") ||
		!strings.Contains(text, "(plots/engine.svg)") || !strings.Contains(text, "(plots/engine-2.svg)") {
		t.Errorf("%s", text)
	}
	there, err := filepath.Glob(filepath.Join(root, plots, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range there {
		there[i] = filepath.Base(there[i])
	}
	if want := []string{"engine-2.svg", "engine.svg", "engineer.svg"}; !slices.Equal(there, want) {
		t.Errorf("%q, want %q", there, want)
	}
	for _, bad := range []string{"", begin, end + begin, begin + end + begin + end} {
		if _, err := f.place(bad); err == nil {
			t.Errorf("placed in %q", bad)
		}
	}
}

var placeName = regexp.MustCompile(`<!-- begin (.*): made by make bench -->`)

// TestDocument: the document has a place for every section, and for no other.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(inCheckout(document))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections() {
		if _, _, _, err := between(string(text), s.name); err != nil {
			t.Error(err)
		}
	}
	for _, m := range placeName.FindAllStringSubmatch(string(text), -1) {
		if _, inside, _, err := between(string(text), m[1]); err != nil || inside != "" && !slices.Contains(names(sections()), m[1]) {
			t.Errorf("section %s: no section measures what is shown (%v)", m[1], err)
		}
	}
	pictures, err := filepath.Glob(inCheckout(plots) + "/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		if !strings.Contains(string(text), "(plots/"+filepath.Base(p)+")") {
			t.Errorf("%s is not shown", p)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, string(b))
	}
}

func TestCommand(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.Bool("report", false, "")
	flags.Bool("docs", false, "")
	flags.String("only", "", "")
	flags.String("json", "", "")
	if got := command(flags); got != "make bench" {
		t.Error(got)
	}
	if err := flags.Parse([]string{"-report", "-only", "http", "-docs", "-json", "x"}); err != nil {
		t.Fatal(err)
	}
	if got := command(flags); got != "make bench BENCH='-docs -only http'" {
		t.Error(got)
	}
}

func TestProgressPrinter(t *testing.T) {
	var out bytes.Buffer
	progressPrinter(&out, time.Now().Add(-61*time.Second), "2/5 http")("round %d", 3)
	if got := out.String(); got != "[2/5 http   1m1s] round 3\n" {
		t.Errorf("%q", got)
	}
}

func TestPagesResult(t *testing.T) {
	ms := func(all ...int) (out times) {
		for _, n := range all {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	s := &pagesReport{MariaDB: "10.11", Rows: 2_000, Few: 1_000, results: []latency{
		{"claims, first page", ms(1, 2, 9), ms(2, 4, 8, 16)}, {"  last page", ms(1), ms(3)}}}
	r := s.result()
	if err := r.check(); err != nil {
		t.Error(err)
	}
	want := [][]string{{"claims, first page", "4.00", "8.00", "2.00", "16.00", "2.00", "2.00"},
		{"claims, last page", "3.00", "3.00", "3.00", "3.00", "1.00", "3.00"}}
	if !slices.EqualFunc(r.rows, want, slices.Equal[[]string]) {
		t.Errorf("%q", r.rows)
	}
	if numbers := []any{pageTime{"claims, first page", 4, 8, 2, 16, 2, 2}, pageTime{"claims, last page", 3, 3, 3, 3, 1, 3}}; !slices.Equal(
		r.numbers, numbers) {
		t.Errorf("%+v", r.numbers)
	}
	if !strings.Contains(r.notes[0], "MariaDB 10.11") {
		t.Errorf("%q", r.notes)
	}
}

func TestGroupOf(t *testing.T) {
	for want, stack := range map[string][]string{
		groupGC:   {"runtime.scanobject", "runtime.gcBgMarkWorker.func2"},
		groupPool: {"runtime.mallocgc", "strings.Clone", "hongbao/pool.(*Pool).Grab", "hongbao/bench.engine.func1"},
		groupRedis + groupSockets: {"internal/runtime/syscall.Syscall6", "syscall.write", "internal/poll.(*FD).Write",
			"github.com/redis/go-redis/v9/internal/proto.(*Writer).Flush", "hongbao/pool.(*lane).flush"},
		groupHTTP + groupSockets: {"syscall.read", "github.com/valyala/fasthttp.(*Server).serveConn"},
		groupLoad + groupSockets: {"syscall.read", "net.(*conn).Read", "hongbao/bench.(*caller).read", "hongbao/bench.(*caller).post"},
		groupLoad:                {"time.Now", "hongbao/bench.run.func1"},
		groupAPI:                 {"encoding/json.Marshal", "hongbao/api.(*Server).grab", "github.com/gofiber/fiber/v2.(*App).next"},
		groupDomain:              {"hongbao/packet.DecodeClaim", "hongbao/pool.(*Pool).Grab"},
		groupSchedule:            {"internal/runtime/syscall.EpollWait", "runtime.netpoll", "runtime.findRunnable"},
		groupOther:               {"main.main"},
	} {
		if got := groupOf(stack); got != want {
			t.Errorf("%q is of %q, want %q", stack, got, want)
		}
	}
}

func TestProfileShares(t *testing.T) {
	at := func(name string) []*profile.Location {
		return []*profile.Location{{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}}
	}
	got := shares(&profile.Profile{Sample: []*profile.Sample{
		{Value: []int64{1, 30}, Location: at("hongbao/pool.x")}, {Value: []int64{9, 10}, Location: at("runtime.mcall")}}})
	if len(got) != 2 || got[groupPool] != 0.75 || got[groupSchedule] != 0.25 {
		t.Error(got)
	}
}

// TestLimit: the sentence names the resource that bounds the rate.
func TestLimit(t *testing.T) {
	for want, u := range map[string]usage{
		"work of Redis' main thread": {main: 95 * time.Second, busy: 100 * time.Second},
		"number of cores":            {main: 20 * time.Second, waiting: 75 * time.Second, busy: 200 * time.Second},
		"the disk":                   {main: 20 * time.Second, looks: map[byte]int{'D': 75, 'S': 25}},
		"the cores, busy 100%":       {main: 20 * time.Second, busy: 200 * time.Second},
		"neither Redis' main thread": {main: 20 * time.Second, busy: 100 * time.Second},
	} {
		u.wall, u.cores = 100*time.Second, 2
		l := profiled{name: "x", usage: u}
		if got := l.limit(); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
