package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	maxFileLines     = 600
	maxFunctionLines = 70
)

// source is one parsed Go file.
type source struct {
	file
	fset *token.FileSet
	tree *ast.File
}

// folder returns the file's folder, without internal/.
func (s source) folder() string {
	if i := strings.LastIndexByte(s.path, '/'); i >= 0 {
		return strings.TrimPrefix(s.path[:i], "internal/")
	}
	return ""
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) generated() bool { return ast.IsGenerated(s.tree) }

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// sourceRule is a rule about Go code. It must refuse bad at the path badAt, and accept good.
type sourceRule struct {
	name, why  string
	applies    func(s source) bool
	check      func(s source, offend func(n ast.Node, what string))
	badAt, bad string
	good       string
}

func product(s source) bool { return !s.test() && !s.generated() }

func productOf(folders ...string) func(source) bool {
	return func(s source) bool { return product(s) && slices.Contains(folders, s.folder()) }
}

var sourceRules = []sourceRule{
	{
		name: "files are short", why: "a file is read as a whole",
		applies: product,
		check: func(s source, offend func(ast.Node, string)) {
			if n := strings.Count(s.text, "\n"); n > maxFileLines {
				offend(s.tree, fmt.Sprintf("%d lines, %d are allowed", n, maxFileLines))
			}
		},
		badAt: "pool/x.go", bad: "package x\n" + strings.Repeat("//\n", maxFileLines), good: "package x\n" +
			strings.Repeat("//\n", maxFileLines-1),
	},
	{
		name: "functions are short", why: "a function fits on a screen",
		applies: product,
		check: func(s source, offend func(ast.Node, string)) {
			for _, d := range s.tree.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					if n := s.fset.Position(f.End()).Line - s.line(f) + 1; n > maxFunctionLines {
						offend(f, fmt.Sprintf("%s has %d lines, %d are allowed", f.Name.Name, n, maxFunctionLines))
					}
				}
			}
		},
		badAt: "pool/x.go", bad: "package x\nfunc f() {\n" + strings.Repeat("//\n", maxFunctionLines) + "}\n",
		good: "package x\nfunc f() {\n" + strings.Repeat("//\n", maxFunctionLines-2) + "}\n",
	},
	{
		name: "no floating point near money", why: "fen are integers; a float loses some of them from 2^53 on",
		applies: productOf("money", "packet", "payout", "pool"),
		check:   forbidIdents("float64", "float32"),
		badAt:   "money/x.go", bad: "package x\nvar a float64\n", good: "package x\nvar a int64 // not float64\n",
	},
	{
		name: "processes compare the data format", why: "openMigrated refuses the data of another build; only the doctor may read it",
		applies: func(s source) bool {
			return product(s) && s.folder() == "cmd/hongbao" && s.path != "cmd/hongbao/wire_store.go" && s.path != "cmd/hongbao/doctor_mysql.go"
		},
		check: forbidCalls("store.Open"),
		badAt: "cmd/hongbao/x.go", bad: "package x\nvar db, err = store.Open(c)\n", good: "package x\nvar db, err = openMigrated(ctx, c, " +
			"logger)\n",
	},
	{
		name: "tests wait by test/wait", why: "it polls until a generous deadline; a sleep is too short or too long",
		applies: waits,
		check:   forbidSleeps,
		badAt:   "pool/x_test.go", bad: "package x\nfunc f() { for { <-time.After(1) } }\n",
		good: "package x\nfunc f() { select { case <-time.After(1): case <-done: } }\n",
	},
	{
		name: "errors are distinguished by type, not by text", why: "the text changes with the driver; types and codes do not",
		applies: product,
		check:   forbidErrorText,
		badAt:   "store/x.go", bad: "package x\nfunc f(err error) bool { return strings.Contains(err.Error(), `gone`) }\n",
		good: "package x\nfunc f(err error) string { return err.Error() }\n",
	},
	{
		name: "handlers keep the request's context", why: "a cancelled request stops its work; only New makes the server's context",
		applies: productOf("api"),
		check: func(s source, offend func(ast.Node, string)) {
			for _, d := range s.tree.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "New" && f.Recv == nil {
					continue
				}
				forbidCallsIn(d, offend, "context.Background", "context.TODO")
			}
		},
		badAt: "api/x.go", bad: "package x\nfunc handle() { f(context.Background()) }\n",
		good: "package x\nfunc New() { f(context.Background()) }\n",
	},
	{
		name: "no code empties Redis", why: "Redis holds claims that are not in MySQL yet",
		applies: product,
		check: func(s source, offend func(ast.Node, string)) {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if strings.HasPrefix(n.Sel.Name, "FlushDB") || strings.HasPrefix(n.Sel.Name, "FlushAll") {
						offend(n, n.Sel.Name)
					}
				case *ast.BasicLit:
					if word := strings.ToLower(unquote(n)); word == "flushdb" || word == "flushall" {
						offend(n, word)
					}
				}
				return true
			})
		},
		badAt: "devstack/x.go", bad: "package x\nfunc f() { rdb.FlushAll(ctx) }\n", good: "package x\nfunc f() { rdb.Del(ctx) }\n",
	},
	{
		name: "Lua is in .lua files", why: "a script has a header, a caller and a test; a literal has none",
		applies: product,
		check: func(s source, offend func(ast.Node, string)) {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && slices.Contains([]string{"redis.NewScript", "rdb.Eval"}, selector(call.Fun)) {
					for _, arg := range call.Args {
						if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
							offend(lit, "script as a literal")
						}
					}
				}
				return true
			})
		},
		badAt: "pool/x.go", bad: "package x\nvar s = redis.NewScript(`return 1`)\n", good: "package x\nvar s = redis.NewScript(source)\n",
	},
	{
		name: "workflows take time and chance from their history", why: "a replay must take the same steps",
		applies: productOf("workflows"),
		check: func(s source, offend func(ast.Node, string)) {
			for _, i := range s.tree.Imports {
				if path := unquote(i.Path); strings.HasSuffix(path, "/rand") || strings.HasPrefix(path, "math/rand") ||
					strings.HasSuffix(path, "/uuid") || path == "sync" || path == "os" {
					offend(i, "imports "+path)
				}
			}
			forbidCalls("time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.NewTicker", "time.Sleep")(s, offend)
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					offend(g, "a goroutine; use workflow.Go")
				}
				return true
			})
		},
		badAt: "workflows/x.go", bad: "package x\nfunc f() { _ = time.Now() }\n", good: "package x\nfunc f() { _ = workflow.Now(ctx) }\n",
	},
	{
		name: "rows have one clock", why: "MySQL's: the clocks of two machines may differ by minutes",
		// examine.go reports the difference of both clocks to an operator.
		applies: func(s source) bool {
			return productOf("store", "store/mysql", "store/report", "payout", "packet")(s) && s.path != "internal/store/report/examine.go"
		},
		check: forbidCalls("time.Now", "time.Since", "time.Until"),
		badAt: "store/x.go", bad: "package x\nvar now = time.Now\n", good: "package x\nfunc f(tx tx) { _ = tx.now }\n",
	},
	{
		name: "a status changes by compare-and-set", why: "the loser of a race must notice; one function per table writes the column",
		applies: productOf("store", "store/mysql", "store/report"),
		check:   checkStatusWrites,
		badAt:   "store/x.go", bad: "package x\nfunc pay() { tx.Exec(`UPDATE payments SET status = ? WHERE id = ?`) }\n",
		good: "package x\nfunc casPayment() { r := tx.Exec(`UPDATE payments SET status = ? WHERE id = ? AND status = ?`); _ = r.RowsAffected }\n",
	},
	{
		name: "only a rebuild and a recovery read behind the fence",
		why:  "to others an empty page of a lost lane would say that nothing was claimed",
		applies: func(s source) bool {
			return product(s) && !slices.Contains([]string{"reconcile", "reconcile/rebuild", "recovery"}, s.folder())
		},
		check: func(s source, offend func(ast.Node, string)) {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Unfenced" {
					offend(sel, "Unfenced")
				}
				return true
			})
		},
		badAt: "reconcile/watch/x.go", bad: "package x\nvar from = reconcile.Unfenced{Pools: p}\n",
		good: "package x\nvar from = reconcile.Fenced{Pools: p}\n",
	},
	{
		name: "worker sees only the content of streams", why: "writes to Redis go through interfaces that cmd implements",
		applies: productOf("worker", "relay", "recovery", "reconcile/watch", "reconcile/rebuild"),
		check: func(s source, offend func(ast.Node, string)) {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == "pool" && !slices.Contains(workerSees, sel.Sel.Name) {
						offend(sel, "pool."+sel.Sel.Name)
					}
				}
				return true
			})
		},
		badAt: "worker/x.go", bad: "package x\nfunc f() { pool.Open(ctx) }\n", good: "package x\nfunc f(b pool.Batch) {}\n",
	},
	{
		name: "only main ends the process", why: "an exit elsewhere skips the cleanup of others",
		applies: func(s source) bool { return product(s) && s.folder() != "cmd/hongbao" },
		check:   forbidCalls("os.Exit", "log.Fatal", "log.Fatalf"),
		badAt:   "pool/x.go", bad: "package x\nfunc f() { os.Exit(1) }\n", good: "package x\nfunc f() error { return nil }\n",
	},
}

func TestSource(t *testing.T) {
	all := parseAll(t)
	for _, rule := range sourceRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, s := range all {
				for _, offence := range rule.offences(s) {
					t.Errorf("%s (%s)", offence, rule.why)
				}
			}
		})
	}
}

func TestSourceRulesCatch(t *testing.T) {
	for _, rule := range sourceRules {
		t.Run(rule.name, func(t *testing.T) {
			if bad := parse(t, file{rule.badAt, rule.bad}); len(rule.offences(bad)) == 0 {
				t.Errorf("not caught:\n%s", rule.bad)
			}
			if good := parse(t, file{rule.badAt, rule.good}); len(rule.offences(good)) != 0 {
				t.Errorf("refused without reason: %q\n%s", rule.offences(good), rule.good)
			}
		})
	}
}

func TestStatusWritesAreCaught(t *testing.T) {
	for name, body := range map[string]string{
		"another function": "func other() { r := tx.Exec(`UPDATE payments SET status = ? WHERE id = ? AND status = ?`); _ = " +
			"r.RowsAffected }",
		"no compare": "func casPayment() { r := tx.Exec(`UPDATE payments SET attempt = 1, status = 'paid' WHERE id = ?`); _ = " +
			"r.RowsAffected }",
		"no look at the result":   "func casPayment() { tx.Exec(`UPDATE payments SET status = ? WHERE id = ? AND status = ?`) }",
		"no compare, other table": "func f() { r := tx.Exec(`UPDATE decisions SET status = ? WHERE id = ?`); _ = r.RowsAffected }",
		"a map":                   "func other() { r := tx.Model(&packetRow{}).Updates(values); _ = r.RowsAffected }",
		"a column":                "func other() { tx.Model(&paymentRow{}).Update(`status`, `paid`) }",
		"a map with a status":     "func other() { tx.Model(&paymentRow{}).Updates(map[string]any{`a`: 1, `status`: `paid`}) }",
		"a struct":                "func other() { tx.Model(&paymentRow{}).Updates(paymentRow{Status: `paid`}) }",
		"a whole row":             "func other() { row := newPaymentRow(p); tx.Save(&row) }",
	} {
		if s := parse(t, file{"store/x.go", "package x\n" + body}); len(statusRule(t).offences(s)) == 0 {
			t.Errorf("%s: not caught: %s", name, body)
		}
	}
	for _, body := range []string{
		"func f() { r := tx.Exec(`UPDATE wishes SET status = ? WHERE id = ? AND status = 'waiting'`); _ = r.RowsAffected }",
		"func f() { tx.Exec(`UPDATE packets SET close_reason = ? WHERE id = ? AND status = 'closing'`) }",
		"func f() { row := mysql.NewAttemptRow(a); tx.Save(&row) }",
		"func f() { tx.Model(&keyRow{}).Updates(map[string]any{`waiting`: false, `approved_by`: by}) }",
		"func f() { tx.Model(&keyRow{}).Update(`revoked_at`, tx.now) }",
		"func f() { tx.Raw(`SELECT status FROM payments WHERE id = ? FOR UPDATE`) }",
	} {
		if s := parse(t, file{"store/x.go", "package x\n" + body}); len(statusRule(t).offences(s)) != 0 {
			t.Errorf("refused without reason: %s: %q", body, statusRule(t).offences(s))
		}
	}
}

func statusRule(t *testing.T) sourceRule {
	t.Helper()
	i := slices.IndexFunc(sourceRules, func(r sourceRule) bool { return r.name == "a status changes by compare-and-set" })
	if i < 0 {
		t.Fatal("the rule is gone")
	}
	return sourceRules[i]
}

func (r sourceRule) offences(s source) (out []string) {
	if !r.applies(s) {
		return nil
	}
	r.check(s, func(n ast.Node, what string) { out = append(out, fmt.Sprintf("%s:%d: %s", s.path, s.line(n), what)) })
	return out
}

func parseAll(t *testing.T) (out []source) {
	t.Helper()
	for _, f := range files(t, ".go") {
		if !strings.Contains(f.path, "/testdata/") {
			out = append(out, parse(t, f))
		}
	}
	return out
}

func parse(t *testing.T, f file) source {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{f, fset, tree}
}

// selector renders a.b, the only form of a call that these rules check.
func selector(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

func unquote(l *ast.BasicLit) string {
	if s, err := strconv.Unquote(l.Value); err == nil {
		return s
	}
	return l.Value
}

func forbidIdents(names ...string) func(source, func(ast.Node, string)) {
	return func(s source, offend func(ast.Node, string)) {
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
				offend(id, id.Name)
			}
			return true
		})
	}
}

func forbidCalls(names ...string) func(source, func(ast.Node, string)) {
	return func(s source, offend func(ast.Node, string)) { forbidCallsIn(s.tree, offend, names...) }
}

// forbidCallsIn also finds functions that are passed as values.
func forbidCallsIn(tree ast.Node, offend func(ast.Node, string), names ...string) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, selector(s)) {
			offend(s, selector(s))
		}
		return true
	})
}

// waits reports whether a file must use test/wait. Measurements and the load of chaos need a rhythm
// of their own.
func waits(s source) bool {
	if s.path == "internal/devstack/stacktest/stall.go" || s.folder() == "test/bench" || s.folder() == "test/chaos" {
		return false
	}
	return s.test() || s.folder() == "devstack/stacktest"
}

// forbidSleeps finds sleeps and tickers, and a timer that is received outside a select.
func forbidSleeps(s source, offend func(ast.Node, string)) {
	forbidCallsIn(s.tree, offend, "time.Sleep", "time.Tick", "time.NewTicker")
	inSelect := map[ast.Node]bool{}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && c.Comm != nil {
			ast.Inspect(c.Comm, func(n ast.Node) bool { inSelect[n] = true; return true })
		}
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.ARROW && !inSelect[u] {
			if call, ok := u.X.(*ast.CallExpr); ok && selector(call.Fun) == "time.After" {
				offend(u, "<-time.After")
			}
		}
		return true
	})
}

// forbidErrorText finds err.Error() searched or compared.
func forbidErrorText(s source, offend func(ast.Node, string)) {
	isText := func(e ast.Expr) bool {
		call, ok := e.(*ast.CallExpr)
		if !ok || len(call.Args) != 0 {
			return false
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Error"
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name := selector(n.Fun); (strings.HasPrefix(name, "strings.") || strings.HasSuffix(name, ".MatchString")) &&
				slices.ContainsFunc(n.Args, isText) {
				offend(n, name+" of an error's text")
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (isText(n.X) || isText(n.Y)) {
				offend(n, "an error's text compared")
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isText(n.Tag) {
				offend(n, "switch on an error's text")
			}
		}
		return true
	})
}

// statusWriters are the only functions that write the status column of these tables.
var statusWriters = map[string]string{"payments": "casPayment", "packets": "movePacket", "decisions": "casDecision"}

var (
	setsStatus        = regexp.MustCompile(`(?is)\bUPDATE\s+(\w+)\s+SET\b(.*?)\bWHERE\b(.*)`)
	statusAssigned    = regexp.MustCompile(`(?i)(^|[\s,])status\s*=`)
	statusCompared    = regexp.MustCompile(`(?i)\bstatus\s*(=|IN)`)
	rowWriters        = []string{"Update", "Updates", "UpdateColumn", "UpdateColumns"}
	rowsWithoutStatus = []string{"NewAttemptRow"} // rows that Save may write, because they have no status
)

func checkStatusWrites(s source, offend func(ast.Node, string)) {
	for _, d := range s.tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		looks := false
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "RowsAffected" {
				looks = true
			}
			return true
		})
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				m := setsStatus.FindStringSubmatch(unquote(n))
				if n.Kind != token.STRING || m == nil || !statusAssigned.MatchString(m[2]) {
					return true
				}
				if writer := statusWriters[strings.ToLower(m[1])]; writer != "" && writer != f.Name.Name {
					offend(n, fmt.Sprintf("only %s writes the status of %s", writer, m[1]))
				}
				if !statusCompared.MatchString(m[3]) || !looks {
					offend(n, "sets a status without comparing the old one and checking RowsAffected")
				}
			case *ast.CallExpr:
				checkRowWrite(f, n, looks, offend)
			}
			return true
		})
	}
}

// checkRowWrite checks gorm's own ways to write a row, which do not name columns.
func checkRowWrite(f *ast.FuncDecl, call *ast.CallExpr, looks bool, offend func(ast.Node, string)) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	switch {
	case !ok:
	case slices.Contains(rowWriters, sel.Sel.Name) && len(call.Args) > 0: // without arguments it selects a callback of gorm
		if !namesColumns(call) && (f.Name.Name != "movePacket" || !looks) {
			offend(call, sel.Sel.Name+" outside movePacket may write a status: name the columns as constants")
		}
	case sel.Sel.Name == "Save" && len(call.Args) == 1 && !madeBy(f, call.Args[0], rowsWithoutStatus):
		offend(call, "Save writes every column, a status too")
	}
}

// namesColumns reports whether a call of gorm's Update or Updates names its columns as constants, and
// none is status.
func namesColumns(call *ast.CallExpr) bool {
	columns := call.Args[:1]
	if values, ok := call.Args[0].(*ast.CompositeLit); ok {
		columns = nil
		for _, e := range values.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return false
			}
			columns = append(columns, pair.Key)
		}
	}
	return !slices.ContainsFunc(columns, func(e ast.Expr) bool {
		name, ok := e.(*ast.BasicLit)
		return !ok || unquote(name) == "status"
	})
}

// madeBy reports whether &x is the address of a variable that one of the functions returned.
func madeBy(f *ast.FuncDecl, arg ast.Expr, makers []string) bool {
	addr, ok := arg.(*ast.UnaryExpr)
	if !ok {
		return false
	}
	x, ok := addr.X.(*ast.Ident)
	if !ok {
		return false
	}
	made := false
	ast.Inspect(f, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || len(as.Lhs) != 1 || len(as.Rhs) != 1 {
			return true
		}
		lhs, ok := as.Lhs[0].(*ast.Ident)
		call, isCall := as.Rhs[0].(*ast.CallExpr)
		if ok && isCall && lhs.Name == x.Name {
			fn, ok := call.Fun.(*ast.SelectorExpr)
			made = ok && slices.Contains(makers, fn.Sel.Name)
		}
		return true
	})
	return made
}
