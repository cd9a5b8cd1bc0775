package house

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is made from the tables of this package")

const lintConfig = ".golangci.yml"

// depguardRules renders the tables of imports_test.go for golangci-lint, so that an editor shows a
// forbidden import at once. It checks less than TestImports: no tests, and no indirect imports.
func depguardRules() string {
	const indent = "        "
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		b.WriteString(indent + strings.Repeat("  ", depth) + fmt.Sprintf(format, args...) + "\n")
	}
	inFolder := func(name string) string { return "**/" + strings.TrimPrefix(folderOf(name), module+"/") + "/*.go" }
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		may := layers[name]
		if slices.Contains(may, "*") {
			continue
		}
		line(0, "%s:", strings.ReplaceAll(name, "/", "-"))
		line(1, "list-mode: lax")
		line(1, "files: [%q, %q]", inFolder(name), "!$test")
		if len(may) > 0 {
			line(1, "allow: [%s]", strings.Join(quoted(may, func(own string) string { return folderOf(own) + "$" }), ", "))
		}
		line(1, "deny: [{pkg: %q, desc: %q}]", module+"/", "not in the layers of test/house")
	}
	for _, o := range owners {
		line(0, "%s:", strings.NewReplacer("/", "-", ".", "-").Replace(o.library))
		line(1, "list-mode: lax")
		line(1, "files: [%s, %q]", strings.Join(quoted(o.by, func(by string) string { return "!" + inFolder(by) }), ", "), "!$test")
		line(1, "deny: [{pkg: %q, desc: %q}]", o.library, fmt.Sprintf("only in %s: %s", strings.Join(o.by, ", "), o.why))
	}
	return b.String()
}

// folderOf returns the import path of a package of the table.
func folderOf(name string) string {
	if root, _, _ := strings.Cut(name, "/"); slices.Contains(atRoot, root) {
		return module + "/" + name
	}
	return module + "/internal/" + name
}

func quoted(names []string, form func(string) string) (out []string) {
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", form(name)))
	}
	return out
}

// TestDepguard checks that golangci-lint has the tables of imports_test.go. With -update it writes
// them.
func TestDepguard(t *testing.T) {
	text := readText(t, lintConfig)
	head, rest, ok := strings.Cut(text, "# begin: ")
	about, rest, ok2 := strings.Cut(rest, "\n")
	was, tail, ok3 := strings.Cut(rest, "        # end\n")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("%s lacks the marks around the generated rules", lintConfig)
	}
	want := depguardRules()
	if was == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the tables of imports_test.go: go test ./test/house -run TestDepguard -update", lintConfig)
	}
	made := head + "# begin: " + about + "\n" + want + "        # end\n" + tail
	if err := os.WriteFile(lintConfig, []byte(made), 0o644); err != nil {
		t.Fatal(err)
	}
}
