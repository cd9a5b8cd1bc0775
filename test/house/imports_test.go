// Package house holds the rules of this repository as tests: which package may import which, what
// code may not do, and which money rule has its test. Each rule has its reason, and a sample that
// it must refuse.
package house

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "hongbao"

// layers lists every package and which packages of the module it may import. Imports point one way,
// so that each package can be read, tested and replaced by itself. A new package needs an entry.
var layers = map[string][]string{
	"money":      {},
	"access":     {},
	"ticket":     {},
	"visible":    {},
	"sentence":   {},
	"risk":       {},
	"failpoint":  {}, // standard library alone, so that every layer may have failpoints
	"observe":    {},
	"health":     {"money", "observe", "wire"},
	"dataformat": {}, // the version number that MySQL and Redis store
	"migrations": {"dataformat"},
	"packet":     {"money"},
	"fence":      {},
	"payout":     {"money", "sentence"},
	"staff":      {"money", "payout"},
	"campaign":   {"packet", "payout"},
	"pool":       {"failpoint", "dataformat", "money", "fence", "packet", "payout", "access", "observe"},
	// store writes, report reads for staff; neither sees the other. mysql is what both share.
	"store/mysql":               {"failpoint", "money", "packet", "payout", "staff", "access"},
	"store/storetest":           {"access", "money", "packet", "payout", "staff", "store/mysql", "observe"}, // fixtures of both
	"store/report":              {"campaign", "failpoint", "money", "fence", "packet", "payout", "staff", "access", "observe", "store/mysql"},
	"store":                     {"campaign", "failpoint", "money", "fence", "packet", "payout", "staff", "access", "store/mysql"},
	"provider":                  {"money", "packet", "payout", "observe"},
	"provider/providercheck":    {"packet", "payout"},
	"provider/providertest":     {"money", "payout", "provider/providercheck"}, // knows adapters only by their interface
	"provider/sandbox":          {},                                            // another company's system: it shares no code with us
	"provider/wechat":           {"money", "payout", "observe"},
	"provider/wechat/simulator": {}, // another company's system
	"api": {"api/rest", "api/staff", "campaign", "money", "packet", "payout", "staff", "access", "ticket", "observe", "health",
		"wire"},
	"api/rest":   {"campaign", "money", "packet", "payout", "staff", "access", "ticket", "observe", "wire"}, // no server, no store
	"api/staff":  {"api/rest", "money", "packet", "payout", "staff", "access", "ticket", "observe", "health", "wire"},
	"activities": {"campaign", "failpoint", "money", "fence", "packet", "payout", "staff", "observe", "reconcile"},
	"workflows":  {"campaign", "money", "packet", "payout", "staff", "activities"},
	// pool: see workerSees
	"worker": {"campaign", "failpoint", "money", "packet", "payout", "staff", "observe", "health", "activities", "workflows", "pool",
		"pause", "relay",
		"reconcile/watch", "reconcile/rebuild"},
	"pause":              {},
	"reconcile":          {"packet", "payout"},
	"reconcile/watch":    {"fence", "packet", "payout", "activities", "workflows", "pause", "reconcile"},
	"reconcile/rebuild":  {"failpoint", "fence", "packet", "activities", "pool", "pause", "reconcile"}, // reads the pool behind its fence
	"relay":              {"failpoint", "packet", "activities", "pool", "pause"},
	"recovery":           {"money", "fence", "packet", "payout", "staff", "activities", "pool", "pause", "reconcile"}, // likewise
	"devstack":           {"observe"},
	"devstack/stacktest": {"devstack", "migrations", "test/wait"}, // a database with the schema
	"wire":               {"money"},                               // the HTTP contract
	"client":             {"money", "wire"},                       // also for programs outside this module
	// The console reads and writes through the staff API only.
	"console":         {"access", "client", "money", "packet", "sentence", "visible", "wire"},
	"console/browser": {},                                       // the console in a browser, all of it in test files
	"cmd/hongbao":     {"*"},                                    // the only package that wires the others
	"test/bench":      {},                                       // measurements, all of them in test files
	"test/bench/bulk": {"money", "packet"},                      // rows for large tables; only tests import it
	"test/chaos":      {},                                       // uses the product from outside, all of it in test files
	"test/e2e":        {"client", "money", "wire"},              // uses the product from outside
	"test/simulate":   {},                                       // lifetimes in memory, all of it in test files
	"test/house":      {},                                       // these tests
	"test/compose":    {"client", "money", "test/wait", "wire"}, // docker-compose.yml from outside, all of it in test files
	"test/harness": {"access", "api", "devstack/stacktest", "health", "packet", "payout", "pool", "provider", "provider/sandbox", "staff",
		"store",
		"store/report", "test/wait"},
	"test/logs":  {}, // imported by test files alone
	"test/night": {}, // likewise
	"test/wait":  {}, // likewise
}

// atRoot are the folders of packages that are not under internal/.
var atRoot = []string{"migrations", "api", "activities", "workflows", "worker", "wire", "client", "console", "cmd", "test"}

// forTests are packages for test files only.
var forTests = []string{"devstack/stacktest", "provider/providertest", "provider/wechat/simulator", "store/storetest", "test"}

// workerSees are the names of pool that worker may use: the content of streams. Writes to Redis go
// through interfaces that cmd implements.
var workerSees = []string{"Batch", "Undecodable", "Consumer", "Slot", "ErrLeaseLost", "ErrTorn"}

// owners lists which packages may import a library or a package below it.
var owners = []struct {
	library string
	by      []string
	why     string
}{
	{"github.com/redis/go-redis", []string{"pool"}, "one package holds every call to Redis"},
	{"gorm.io", []string{"store", "store/mysql", "store/report", "store/storetest"}, "MySQL is accessed by store and report"},
	{"github.com/go-sql-driver/mysql", []string{"store/mysql", "devstack", "devstack/stacktest", "cmd/hongbao"},
		"one package connects to MySQL; devstack creates databases, cmd checks a flag"},
	{"database/sql", []string{"store", "store/mysql", "store/report", "store/storetest", "migrations", "devstack", "devstack/stacktest",
		"test/bench/bulk",
		"cmd/hongbao"}, "MySQL is accessed by store and report"},
	{"github.com/pressly/goose", []string{"migrations"}, "the schema changes by migrations only"},
	{"github.com/gofiber/fiber", []string{"api", "api/rest"}, "only the API uses HTTP frameworks"},
	{"github.com/valyala/fasthttp", []string{"api"}, "only the API uses HTTP frameworks"},
	{"github.com/danielgtaylor/huma", []string{"api/rest"}, "only the API uses HTTP frameworks"},
	{"go.temporal.io/sdk/workflow", []string{"workflows", "worker"}, "workflows are in one folder; worker registers them"},
	{"go.temporal.io/sdk/activity", []string{"activities", "worker"}, "activities are in one folder; worker registers them"},
	{"go.temporal.io/sdk/worker", []string{"worker"}, "one package runs workflows"},
	{"go.temporal.io/sdk/client", []string{"worker", "cmd/hongbao", "devstack"}, "one package starts workflows; cmd and devstack " +
		"only connect"},
	{"go.temporal.io/sdk/contrib", []string{"worker"}, "one package sets options of every run"},
	{"go.opentelemetry.io/otel/sdk", []string{"cmd/hongbao"}, "cmd configures tracing"},
	{"go.opentelemetry.io/otel/exporters", []string{"cmd/hongbao"}, "cmd configures tracing"},
	{"github.com/spf13/cobra", []string{"cmd/hongbao"}, "one package reads flags"},
	{"github.com/golang-jwt/jwt", []string{"ticket", "client"}, "one package verifies tickets; client signs them"},
	{"filippo.io/edwards25519", []string{"ticket"}, "one package checks public keys of tickets"},
	{"github.com/wechatpay-apiv3/wechatpay-go", []string{"provider/wechat"}, "one package speaks to WeChat Pay"},
	{"go.etcd.io/bbolt", []string{"provider/sandbox"}, "only the sandbox stores its data in a file"},
}

// pure packages depend on the standard library, each other and Unicode tables only, so that every money
// rule in them can be tested without a server.
var pure = []string{"money", "sentence", "access", "failpoint", "packet", "fence", "payout", "staff"}

// driverless packages depend on no driver, directly or indirectly, so that a workflow or an
// activity cannot do I/O by accident.
var driverless = []string{"workflows", "activities"}

var drivers = []string{"github.com/redis/go-redis", "gorm.io", "github.com/go-sql-driver/mysql", "database/sql", "github.com/gofiber/fiber"}

// pkg is the part of the output of `go list` that the rules use.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// name returns the package's folder, without internal/.
func (p pkg) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"), "internal/")
}

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func within(path, library string) bool {
	return path == library || strings.HasPrefix(path, library+"/")
}

// forTest reports whether a package is for test files.
func forTest(path string) bool {
	return slices.ContainsFunc(forTests, func(dir string) bool { return within(pkg{ImportPath: path}.name(), dir) })
}

// driver reports whether path can do I/O on a store or the network. database/sql/driver holds
// interfaces only, which many value types implement.
func driver(path string) bool {
	return path != "database/sql/driver" && slices.ContainsFunc(drivers, func(d string) bool { return within(path, d) })
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && !ours(path)
}

// importOffences checks one package against the tables above.
func importOffences(p pkg) []string {
	var out []string
	offend := func(format string, args ...any) { out = append(out, p.ImportPath+" "+fmt.Sprintf(format, args...)) }
	may, known := layers[p.name()]
	if !known {
		offend("is not in the table of layers: add what it may import")
		return out
	}
	for _, path := range p.Imports {
		if forTest(path) && !forTest(p.ImportPath) {
			offend("imports %s, which is for tests", path)
			continue
		}
		if own := (pkg{ImportPath: path}).name(); ours(path) && !slices.Contains(may, own) && !slices.Contains(may, "*") {
			offend("imports %s; it may import %q", path, may)
		}
		for _, o := range owners {
			if within(path, o.library) && !slices.Contains(o.by, p.name()) {
				offend("imports %s, which only %q may: %s", path, o.by, o.why)
			}
		}
	}
	for _, path := range p.Deps {
		if slices.Contains(pure, p.name()) && !slices.Contains(pure, pkg{ImportPath: path}.name()) && !standard(path) &&
			!within(path, "golang.org/x/text") {
			offend("is pure, but depends on %s", path)
		}
		if slices.Contains(driverless, p.name()) && driver(path) {
			offend("reaches the driver %s", path)
		}
	}
	return out
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, offence := range importOffences(p) {
			t.Error(offence)
		}
	}
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list knows %d packages only", len(all))
	}
	return all
}

func TestImportsAreCaught(t *testing.T) {
	for _, tc := range []pkg{
		{ImportPath: "hongbao/unheard_of"},
		{ImportPath: "hongbao/internal/packet", Imports: []string{"hongbao/internal/payout"}},
		{ImportPath: "hongbao/internal/store", Imports: []string{"hongbao/internal/pool"}},
		{ImportPath: "hongbao/api", Imports: []string{"hongbao/internal/store"}},
		{ImportPath: "hongbao/internal/provider/sandbox", Imports: []string{"hongbao/internal/money"}},
		{ImportPath: "hongbao/activities", Imports: []string{"hongbao/workflows"}},
		{ImportPath: "hongbao/internal/devstack", Imports: []string{"hongbao/internal/store"}},
		{ImportPath: "hongbao/api", Imports: []string{"github.com/redis/go-redis/v9"}},
		{ImportPath: "hongbao/worker", Imports: []string{"gorm.io/gorm"}},
		{ImportPath: "hongbao/activities", Imports: []string{"go.temporal.io/sdk/workflow"}},
		{ImportPath: "hongbao/api", Imports: []string{"go.temporal.io/sdk/client"}},
		{ImportPath: "hongbao/cmd/hongbao", Imports: []string{"hongbao/test/harness"}},
		{ImportPath: "hongbao/worker", Imports: []string{"hongbao/internal/devstack/stacktest"}},
		{ImportPath: "hongbao/internal/packet", Deps: []string{"github.com/google/uuid"}},
		{ImportPath: "hongbao/workflows", Deps: []string{"database/sql"}},
	} {
		if len(importOffences(tc)) != 1 {
			t.Errorf("%+v: %q", tc, importOffences(tc))
		}
	}
	fine := pkg{ImportPath: "hongbao/internal/pool", Imports: []string{"context", "github.com/redis/go-redis/v9", "hongbao/internal/money"},
		Deps: []string{"net"}}
	if got := importOffences(fine); got != nil {
		t.Errorf("refused without reason: %q", got)
	}
}

// TestFolderNames checks that a folder is named after its content. The refused names fit any
// content.
func TestFolderNames(t *testing.T) {
	for _, dir := range folders(t) {
		if vague(filepath.Base(dir)) {
			t.Errorf("%s: name it after what it holds", dir)
		}
	}
	if !vague("utils") || vague("money") {
		t.Error("the rule does not know a vague name from a good one")
	}
}

func vague(name string) bool {
	return slices.Contains([]string{"util", "utils", "common", "model", "models", "service", "services", "helper", "helpers", "misc", "shared",
		"lib", "base"}, name)
}

// moneyRules are the money rules R1 to R13. Each has at least one test whose name begins with its
// number: `go test ./... -run TestR4_`.
var moneyRules = []struct{ number, says string }{
	{"R1", "names are derived, never random: a repeat finds the same keys, rows, workflows and order numbers"},
	{"R2", "funding ends: an unknown charge is queried and opens nothing, a charge without an open packet is refunded"},
	{"R3", "the row is the program counter: a run has no authority, and any start may be repeated"},
	{"R4", "failed means confirmed: silence and disagreement are unknown, and no number of retries changes that"},
	{"R5", "a new order number needs a confirmed failure of every earlier one"},
	{"R6", "the remainder is fixed once, and no claim is recorded after it; a flag in Redis, not a signal, ends grabbing"},
	{"R7", "writes to a pool are repeatable; a retired pool leaves a tombstone, so that no create makes the pool again"},
	{"R8", "ids are bytes and amounts are integers, in every store and script"},
	{"R9", "a Redis that lost grabs is noticed: its lanes are fenced, then rebuilt from MySQL in a new epoch"},
	{"R10", "an acknowledged claim that cannot be recorded is kept: a decision with an approval lets the house pay it, once"},
	{"R11", "the winners in Redis are the truth: each of them gets a payout, with or without a hand-off"},
	{"R12", "the ledger is append-only and balanced; a notification moves nothing, it causes a query"},
	{"R13", "a MySQL older than reality moves nothing until everything since its backup is recovered"},
}

var testOfRule = regexp.MustCompile(`(?m)^func (Test(R\d+)_\w+)\(\w+ \*testing\.T\)`)

// TestMoneyRulesAreTested checks that the rules are exactly R1 to R13, and that each has a test.
func TestMoneyRulesAreTested(t *testing.T) {
	const count = 13
	if len(moneyRules) != count {
		t.Errorf("%d rules, want R1 to R%d", len(moneyRules), count)
	}
	tests := testsOfRules(t)
	for i, rule := range moneyRules {
		if want := fmt.Sprintf("R%d", i+1); rule.number != want {
			t.Errorf("rule %q has the place of %s", rule.number, want)
		}
		if len(tests[rule.number]) == 0 {
			t.Errorf("no test is named Test%s_...: %s", rule.number, rule.says)
		}
		delete(tests, rule.number)
	}
	for number, names := range tests {
		t.Errorf("%s is no rule, but has tests: %q", number, names)
	}
	got := rulesTestedIn("func TestR4_Unknown(t *testing.T) {}\nfunc TestR40(t *testing.T) {}\n// func TestR5_X(t *testing.T)\n")
	if len(got) != 1 || !slices.Equal(got["R4"], []string{"TestR4_Unknown"}) {
		t.Errorf("tests found where there are none: %v", got)
	}
}

// testsOfRules returns the tests of the whole repository, each with its file, by the rule in its name.
func testsOfRules(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, f := range files(t, ".go") {
		if strings.HasSuffix(f.path, "_test.go") {
			for number, names := range rulesTestedIn(f.text) {
				for _, name := range names {
					out[number] = append(out[number], name+" ("+f.path+")")
				}
			}
		}
	}
	return out
}

// rulesTestedIn returns the names of a file's tests by the rule number in their names.
func rulesTestedIn(text string) map[string][]string {
	out := map[string][]string{}
	for _, m := range testOfRule.FindAllStringSubmatch(text, -1) {
		out[m[2]] = append(out[m[2]], m[1])
	}
	return out
}

// file is one text file of the repository; path has slashes and begins at the root.
type file struct{ path, text string }

// files returns the files of the repository with one of the endings; without endings, all.
func files(t *testing.T, endings ...string) []file {
	t.Helper()
	var out []file
	walk(t, func(path string, d fs.DirEntry) {
		if d.IsDir() || len(endings) > 0 && !slices.Contains(endings, filepath.Ext(path)) {
			return
		}
		out = append(out, file{filepath.ToSlash(path), readText(t, path)})
	})
	return out
}

func folders(t *testing.T) (out []string) {
	t.Helper()
	walk(t, func(path string, d fs.DirEntry) {
		if d.IsDir() {
			out = append(out, path)
		}
	})
	return out
}

// walk visits the files of the repository, without its history and build output.
func walk(t *testing.T, visit func(path string, d fs.DirEntry)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{".git", ".cache", ".hongbao", "node_modules", "build"}, d.Name()) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil // a worktree's .git is a file, and its .cache may be a link
		}
		if err == nil {
			visit(path, d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
