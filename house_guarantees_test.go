package house

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	guarantees = "docs/guarantees.md"
	disaster   = "docs/disaster.md"
)

var (
	testNamed   = regexp.MustCompile(`^Test[A-Z]\w*$`)
	mutantNamed = regexp.MustCompile(`^r\d+-[a-z0-9-]+$`)
	pointNamed  = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$|^decide$`)
	testDefined = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
	stepDefined = regexp.MustCompile(`\bstep\(Path\w+, "(\w+)"`)
)

// proofs are the names of what shows a promise.
type proofs struct{ tests, mutants, points []string }

// namedIn returns what a document names, in the code of its text.
func namedIn(text string) (p proofs) {
	for _, m := range code.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		switch word := m[1]; {
		case testNamed.MatchString(word):
			p.tests = append(p.tests, word)
		case mutantNamed.MatchString(word):
			p.mutants = append(p.mutants, word)
		case pointNamed.MatchString(word):
			p.points = append(p.points, word)
		}
	}
	return p
}

// TestGuaranteesNameWhatIsThere: every test, mutant and crash point that the
// document names exists, and it leaves out no mutant and no crash point: what was
// tried is part of what is promised.
func TestGuaranteesNameWhatIsThere(t *testing.T) {
	var there proofs
	for _, f := range files(t, ".go") {
		if strings.HasSuffix(f.path, "_test.go") {
			for _, m := range testDefined.FindAllStringSubmatch(f.text, -1) {
				there.tests = append(there.tests, m[1])
			}
		}
	}
	for _, m := range readMutants(t) {
		there.mutants = append(there.mutants, m.name())
	}
	for _, m := range stepDefined.FindAllStringSubmatch(readText(t, filepath.Join("crash", "steps.go")), -1) {
		there.points = append(there.points, m[1])
	}
	for _, name := range namedIn(readText(t, disaster)).tests {
		if !slices.Contains(there.tests, name) {
			t.Errorf("%s names the test %s, which is not there", disaster, name)
		}
	}
	named := namedIn(readText(t, guarantees))
	for _, kind := range []struct {
		what         string
		named, there []string
		all          bool
	}{{"test", named.tests, there.tests, false}, {"mutant", named.mutants, there.mutants, true}, {"crash point", named.points, there.points, true}} {
		if len(kind.there) == 0 {
			t.Fatalf("no %s is found at all", kind.what)
		}
		for _, name := range kind.named {
			if !slices.Contains(kind.there, name) {
				t.Errorf("%s names the %s %s, which is not there", guarantees, kind.what, name)
			}
		}
		for _, name := range kind.there {
			if kind.all && !slices.Contains(kind.named, name) {
				t.Errorf("%s does not name the %s %s", guarantees, kind.what, name)
			}
		}
	}
	got := namedIn("`TestR1_X`, `r1-x-y`, `close_books` and `payout/x.go`, `make mutants`\n```\n`TestY`\n```\n")
	if !slices.Equal(got.tests, []string{"TestR1_X"}) || !slices.Equal(got.mutants, []string{"r1-x-y"}) || !slices.Equal(got.points, []string{"close_books"}) {
		t.Errorf("names found: %+v", got)
	}
}
