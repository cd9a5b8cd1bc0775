package failpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// declared returns the steps of the list by the name of their variable.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "steps.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if call, ok := spec.Values[0].(*ast.CallExpr); ok && len(call.Args) == 3 {
			names[spec.Names[0].Name] = true
		}
		return true
	})
	return names
}

// uses returns where a file uses the names of package failpoint, and violations of the rule that
// steps come only from the list.
func uses(path, source string, t *testing.T) (places map[string][]string, offences []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	places = map[string][]string{}
	at := func(n ast.Node) string { return fset.Position(n.Pos()).String() }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && isCrash(s.X) {
				offences = append(offences, at(n)+": makes a step of its own")
			}
		case *ast.SelectorExpr:
			switch {
			case isCrash(n.X):
				places[n.Sel.Name] = append(places[n.Sel.Name], at(n))
			case strings.HasPrefix(path, "internal/store/") && n.Sel.Name == "Transaction" && path != "internal/store/mysql/transaction.go":
				offences = append(offences, at(n)+": a transaction that is no step: use inTx")
			}
		}
		return true
	})
	return places, offences
}

func isCrash(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "failpoint"
}

// administration are the files whose transactions need no step. Campaigns hold no money: the packet
// of a day is charged, by the steps of creation.
var administration = []string{
	"internal/store/access.go", "internal/store/mysql_state.go", "internal/store/break.go", "internal/store/campaign.go",
	"internal/store/campaign_day.go", "internal/store/campaign_watch.go", "internal/store/report/close_sums.go", "internal/store/epoch.go",
	"internal/store/key.go", "internal/store/provider_account.go", "internal/store/rebuild.go", "internal/store/reconcile.go",
	"internal/store/reconciliation.go",
	"internal/store/recover.go", "internal/store/retention.go", "internal/store/return_watch.go", "internal/store/future_times.go",
	"internal/store/sign_in.go", "internal/store/statement.go", "internal/store/ticket.go", "internal/store/report/statement_match.go",
	"internal/store/withdraw.go", // of a cancel: nothing has moved
}

// TestEveryStepIsTakenInOnePlace: a kill test would wait for an unused step for ever; of a step in
// two places it would test only one.
func TestEveryStepIsTakenInOnePlace(t *testing.T) {
	list := declared(t)
	if len(list) != len(Steps()) {
		t.Fatalf("%d steps declared, %d known", len(list), len(Steps()))
	}
	places := map[string][]string{}
	for path, source := range sources(t) {
		found, offences := uses(path, source, t)
		for _, o := range offences {
			t.Error(o)
		}
		for name, at := range found {
			if name == "Administration" && !slices.Contains(administration, path) {
				t.Errorf("%v: what is there moves money, or promises some: give it a step", at)
			}
			places[name] = append(places[name], at...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if len(places[name]) != 1 {
			t.Errorf("failpoint.%s is taken in %d places: %v", name, len(places[name]), places[name])
		}
	}
}

func TestUsesAreFound(t *testing.T) {
	const source = "package x\nfunc f() {\n s.inTx(ctx, failpoint.GrabTake, run)\n s.inTx(ctx, failpoint.Step{}, run)\n " +
		"db.Transaction(run)\n}\n"
	places, offences := uses("internal/store/x.go", source, t)
	if len(places["GrabTake"]) != 1 || len(offences) != 2 {
		t.Errorf("found %v, offences %q", places, offences)
	}
}

// sources are the files of the product, by their path from the root.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "../.." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		path = filepath.ToSlash(path)
		if name := strings.TrimPrefix(path, "../../"); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
			!strings.HasPrefix(name, "internal/failpoint/") {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[name] = string(b)
		}
		return nil
	})
	if err != nil || len(out) < 100 {
		t.Fatalf("%d files: %v", len(out), err)
	}
	return out
}
