package house

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var runMutants = flag.Bool("mutants", false, "run the test of every patch in testdata/mutants with the patch applied; the test has to fail")

const (
	mutantsDir = "test/house/testdata/mutants"
	// mutantsPerRule is the smallest number of mutants of each rule.
	mutantsPerRule = 3
	// mutantTimeout bounds the tests of one run, mutantBuild their build.
	mutantTimeout = 5 * time.Minute
	mutantBuild   = 5 * time.Minute
)

// mutant is a patch of the product that breaks a rule, and the test that must fail then. Its file
// begins with three lines:
//
//	Rule: R4 unknown is not failed
//	Package: ./payout
//	Test: TestR4_Something
//
// The test may be a subtest, after a slash, when the whole test takes long.
type mutant struct {
	file, rule, pkg, test string
	hunks                 []hunk
}

// hunk is one change of a patch: the lines to find, with their context, and the
// lines that replace them.
type hunk struct{ path, before, after string }

func (m mutant) name() string { return strings.TrimSuffix(filepath.Base(m.file), ".patch") }

// topTest returns the test without its subtest.
func (m mutant) topTest() string {
	test, _, _ := strings.Cut(m.test, "/")
	return test
}

func readMutants(t *testing.T) []mutant {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(mutantsDir, "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	var out []mutant
	for _, path := range paths {
		m, err := parseMutant(readText(t, path))
		if m.file = path; err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		out = append(out, m)
	}
	return out
}

// remark reports whether a line of a patch changes nothing.
var remark = regexp.MustCompile(`^(diff --git |index |\\ No newline)`)

var mutantHeader = regexp.MustCompile(`(?m)^(Rule|Package|Test): (\S.*)$`)

// parseMutant reads a patch file: the header, then what `diff -u` writes.
func parseMutant(text string) (mutant, error) {
	var m mutant
	head, patch, _ := strings.Cut(text, "\n--- ")
	for _, match := range mutantHeader.FindAllStringSubmatch(head, -1) {
		*map[string]*string{"Rule": &m.rule, "Package": &m.pkg, "Test": &m.test}[match[1]] = match[2]
	}
	if m.rule == "" || m.pkg == "" || m.test == "" {
		return m, fmt.Errorf("the header lacks Rule, Package or Test")
	}
	path := ""
	for line := range strings.Lines(patch) {
		last := len(m.hunks) - 1
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			path = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
		case strings.HasPrefix(line, "@@"):
			m.hunks = append(m.hunks, hunk{path: path})
		case last < 0 || strings.HasPrefix(line, "--- a/") || remark.MatchString(line):
		case line[0] == '-':
			m.hunks[last].before += line[1:]
		case line[0] == '+':
			m.hunks[last].after += line[1:]
		case line[0] == ' ':
			m.hunks[last].before += line[1:]
			m.hunks[last].after += line[1:]
		default:
			return m, fmt.Errorf("not a line of a patch: %q", line)
		}
	}
	if len(m.hunks) == 0 {
		return m, fmt.Errorf("changes nothing")
	}
	return m, nil
}

// apply replaces the hunk's lines in a source, at any line. Lines that occur twice are refused,
// because the patch could change the wrong place.
func (h hunk) apply(source string) (string, error) {
	if n := strings.Count(source, h.before); n != 1 || h.before == h.after {
		return "", fmt.Errorf("%d places in %s fit\n%s", n, h.path, h.before)
	}
	return strings.Replace(source, h.before, h.after, 1), nil
}

// overlay applies the patch to copies of the files and returns the file for `go test -overlay`. It
// writes to dir only, not to the checkout.
func (m mutant) overlay(t *testing.T, dir string) string {
	t.Helper()
	sources := map[string]string{}
	for _, h := range m.hunks {
		source, changed := sources[h.path]
		if !changed {
			source = readText(t, h.path)
		}
		after, err := h.apply(source)
		if err != nil {
			t.Fatalf("%s does not apply; adapt it to the current source: %v", m.file, err)
		}
		sources[h.path] = after
	}
	replace := map[string]string{}
	for path, source := range sources {
		from, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		writeText(t, to, source)
		replace[from] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	writeText(t, file, string(raw))
	return file
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runTests runs the tests of a package that match a pattern, with a mutant where overlay is set.
func runTests(t *testing.T, pkg, overlay, pattern string) (passed bool, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mutantBuild+mutantTimeout)
	defer cancel()
	args := []string{"test", "-count=1", "-v", "-vet=off", "-timeout", mutantTimeout.String(), "-run", pattern}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	out, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput()
	return err == nil, "\n" + string(out)
}

// TestMutants checks that the tests of the rules can fail: each patch breaks a rule in the product,
// and its test must fail.
func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("takes long: make mutants")
	}
	var chosen []mutant // by -run
	for _, m := range readMutants(t) {
		t.Run(m.name(), func(*testing.T) { chosen = append(chosen, m) })
	}
	overlays := map[string]string{}
	for _, m := range chosen {
		overlays[m.name()] = m.overlay(t, t.TempDir())
	}
	catch(t, chosen, overlays)
}

// TestMutantsApply checks that every patch applies to the current source and names an existing
// test.
func TestMutantsApply(t *testing.T) {
	for _, m := range readMutants(t) {
		t.Run(m.name(), func(t *testing.T) {
			m.overlay(t, t.TempDir())
			if !m.testExists(t) {
				t.Errorf("%s names %s in %s, which does not exist", m.file, m.test, m.pkg)
			}
		})
	}
}

// catch runs the tests without a mutant first, package by package; each must pass. Then it runs the
// test of each mutant.
func catch(t *testing.T, chosen []mutant, overlays map[string]string) {
	t.Helper()
	began := time.Now()
	tests := map[string][]string{}
	for _, m := range chosen {
		if !slices.Contains(tests[m.pkg], m.topTest()) {
			tests[m.pkg] = append(tests[m.pkg], m.topTest())
		}
	}
	unsound := map[string]bool{} // tests that fail without a mutant, by package and name
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		start := time.Now()
		_, out := runTests(t, pkg, "", "^("+strings.Join(tests[pkg], "|")+")$")
		for _, test := range tests[pkg] {
			if !strings.Contains(out, "\n--- PASS: "+test+" ") {
				unsound[pkg+" "+test] = true
				t.Errorf("%s of %s does not pass without a mutant\n%s", test, pkg, out)
			}
		}
		fmt.Printf("sound  %5.1f s %-44s %d tests\n", time.Since(start).Seconds(), pkg, len(tests[pkg]))
	}
	caught := 0
	for _, m := range chosen {
		if unsound[m.pkg+" "+m.topTest()] {
			continue
		}
		start := time.Now()
		if err := m.seen(runTests(t, m.pkg, overlays[m.name()], "^"+strings.ReplaceAll(m.test, "/", "$/^")+"$")); err != nil {
			fmt.Printf("SURVIVED       %-44s %s: %s\n", m.name(), m.test, m.rule)
			t.Error(err)
			continue
		}
		caught++
		fmt.Printf("caught %5.1f s %-44s %s: %s\n", time.Since(start).Seconds(), m.name(), m.test, m.rule)
	}
	fmt.Printf("%d of %d mutants caught in %s\n", caught, len(chosen), time.Since(began).Round(time.Second))
}

// seen returns nil when the named test failed with the mutant. A mutant that does not compile, or
// that ends the process before the test, counts as not caught.
func (m mutant) seen(passed bool, output string) error {
	switch {
	case passed:
		return fmt.Errorf("%s: %s passes although this rule is broken: %s", m.name(), m.test, m.rule)
	case !strings.Contains(output, "--- FAIL: "+m.test+" "):
		return fmt.Errorf("%s: %s neither passed nor failed\n%s", m.name(), m.test, output)
	}
	return nil
}

// testExists looks for the named test in the package's files.
func (m mutant) testExists(t *testing.T) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(m.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		return strings.Contains(readText(t, path), "\nfunc "+m.topTest()+"(t *testing.T)")
	})
}

// TestMutantsOfEveryRule checks that each mutant names a rule of moneyRules, in its Rule line and
// its file name, and that every rule has enough mutants.
func TestMutantsOfEveryRule(t *testing.T) {
	found := map[string]int{}
	for _, m := range readMutants(t) {
		number, _, _ := strings.Cut(m.rule, " ")
		found[number]++
		if !strings.HasPrefix(m.name(), strings.ToLower(number)+"-") {
			t.Errorf("%s is a mutant of %q: its name has to begin with the rule", m.file, number)
		}
	}
	for _, rule := range moneyRules {
		if found[rule.number] < mutantsPerRule {
			t.Errorf("%d mutants break %s, want at least %d: %s", found[rule.number], rule.number, mutantsPerRule, rule.says)
		}
		delete(found, rule.number)
	}
	for number := range found {
		t.Errorf("%q is not a rule", number)
	}
}

func TestMutantsAreRead(t *testing.T) {
	const patch = "Rule: R1 names\nPackage: ./x\nTest: TestX\n\n--- a/x/x.go\n+++ b/x/x.go\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -8,1 +8,0 @@\n-d\n"
	m, err := parseMutant(patch)
	if err != nil || m.rule != "R1 names" || m.pkg != "./x" || m.test != "TestX" {
		t.Fatalf("%+v, %v", m, err)
	}
	if want := []hunk{{"x/x.go", "a\nb\n", "a\nc\n"}, {"x/x.go", "d\n", ""}}; !slices.Equal(m.hunks, want) {
		t.Errorf("hunks %q, want %q", m.hunks, want)
	}
	if got, err := m.hunks[0].apply("0\na\nb\n1\n"); got != "0\na\nc\n1\n" || err != nil {
		t.Errorf("applied: %q, %v", got, err)
	}
	for _, source := range []string{"a\n", "a\nb\na\nb\n"} {
		if got, err := m.hunks[0].apply(source); err == nil {
			t.Errorf("%q made %q", source, got)
		}
	}
	for _, bad := range []string{"", "Rule: R1 x\nPackage: ./x\n\n--- a/x\n+++ b/x\n@@ @@\n-b\n", "Rule: R1 x\nPackage: ./x\nTest: TestX\n"} {
		if _, err := parseMutant(bad); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
	for _, tc := range []struct {
		passed bool
		output string
		seen   bool
	}{
		{true, "--- PASS: TestX", false}, {false, "x.go:1: undefined", false},
		{false, "--- FAIL: TestY (0.1s)", false}, {false, "--- FAIL: TestX (0.1s)", true},
	} {
		if err := m.seen(tc.passed, tc.output); (err == nil) != tc.seen {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
