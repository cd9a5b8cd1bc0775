package house

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var listGuarantees = flag.Bool("guarantees", false, "print the tests and mutants of each rule, and the failpoints of each path")

const (
	guarantees = "docs/guarantees.md"
	disaster   = "docs/disaster.md"
	// mostLines and mostColumns bound the length of the guarantees.
	mostLines   = 200
	mostColumns = 200
)

var (
	testNamed   = regexp.MustCompile(`^Test[A-Z]\w*$`)
	ruleNamed   = regexp.MustCompile(`\bR\d+\b`)
	testDefined = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
	stepDefined = regexp.MustCompile(`\bstep\(Path(\w+), "(\w+)", "([^"]+)"`)
)

// testsIn returns the tests that a document names in its code.
func testsIn(text string) (out []string) {
	for _, m := range code.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		if testNamed.MatchString(m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// unlike returns the faults of a text of guarantees: too long, or without one of the rules.
func unlike(text string) (out []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > mostLines {
		out = append(out, fmt.Sprintf("has %d lines, at most %d are allowed", len(lines), mostLines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > mostColumns {
			out = append(out, fmt.Sprintf("line %d has %d columns, at most %d are allowed", i+1, n, mostColumns))
		}
	}
	named := ruleNamed.FindAllString(text, -1)
	for _, rule := range moneyRules {
		if !slices.Contains(named, rule.number) {
			out = append(out, "does not name rule "+rule.number)
		}
	}
	return out
}

// TestGuaranteesNameWhatIsThere checks that the tests named in docs/guarantees.md and
// docs/disaster.md exist, and that the guarantees are short and name each rule.
func TestGuaranteesNameWhatIsThere(t *testing.T) {
	var there []string
	for _, f := range files(t, ".go") {
		if strings.HasSuffix(f.path, "_test.go") {
			for _, m := range testDefined.FindAllStringSubmatch(f.text, -1) {
				there = append(there, m[1])
			}
		}
	}
	for _, doc := range []string{guarantees, disaster} {
		named := testsIn(readText(t, doc))
		if len(named) == 0 {
			t.Errorf("%s names no test", doc)
		}
		for _, name := range named {
			if !slices.Contains(there, name) {
				t.Errorf("%s names the test %s, which does not exist", doc, name)
			}
		}
	}
	for _, wrong := range unlike(readText(t, guarantees)) {
		t.Errorf("%s %s", guarantees, wrong)
	}
	if got := testsIn("`TestR1_X`, `payout/x.go`, `make mutants`\n```\n`TestY`\n```\n"); !slices.Equal(got, []string{"TestR1_X"}) {
		t.Errorf("tests found: %q", got)
	}
	if got := unlike(strings.Repeat("R1\n", mostLines+1) + strings.Repeat("x", mostColumns+1)); len(got) != 2+len(moneyRules)-1 {
		t.Errorf("a long text without most rules: %q", got)
	}
}

// TestGuarantees prints the evidence of each rule: make guarantees.
func TestGuarantees(t *testing.T) {
	if !*listGuarantees {
		t.Skip("prints the lists of evidence: make guarantees")
	}
	tests, mutants := testsOfRules(t), map[string][]string{}
	for _, m := range readMutants(t) {
		number, says, _ := strings.Cut(m.rule, " ")
		mutants[number] = append(mutants[number], fmt.Sprintf("%s: %s (%s)", m.name(), says, m.test))
	}
	for _, rule := range moneyRules {
		fmt.Printf("%s: %s\n", rule.number, rule.says)
		printList("tests", tests[rule.number])
		printList("mutants", mutants[rule.number])
	}
	fmt.Println("Failpoints: TestCrashPoints and TestCrashPointsOfRebuilds kill the process before and after each step")
	var paths []string
	steps := map[string][]string{}
	for _, m := range stepDefined.FindAllStringSubmatch(readText(t, "internal/failpoint/steps.go"), -1) {
		if path := m[1]; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		steps[m[1]] = append(steps[m[1]], m[2]+": "+m[3])
	}
	if len(paths) == 0 {
		t.Fatal("no failpoint is found")
	}
	for _, path := range paths {
		printList(path, steps[path])
	}
}

func printList(title string, items []string) {
	fmt.Printf("  %s\n", title)
	for _, item := range items {
		fmt.Printf("    %s\n", item)
	}
}
