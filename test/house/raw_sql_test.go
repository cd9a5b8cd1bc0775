package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sqlArgument is the position of the SQL text in the calls that run raw SQL.
var sqlArgument = map[string]int{"Raw": 0, "Exec": 0, "QueryContext": 1, "QueryRowContext": 1, "ExecContext": 1}

var (
	// rawReason finds why a statement is raw: locks, index hints, and what gorm has no method for.
	rawReason = regexp.MustCompile(`(?i)\b(FOR UPDATE|FOR SHARE|LOCK IN SHARE MODE|FORCE INDEX|JOIN|UNION|EXISTS|GROUP BY|` +
		`ON DUPLICATE KEY|INSERT IGNORE)\b|\b(SUM|MIN|MAX)\(|\bVALUES\b.*\), ?\(`)
	updated    = regexp.MustCompile(`(?is)\bUPDATE\b.*?\bSET\b(.*)\bWHERE\b(.*)`)
	assigned   = regexp.MustCompile(`(?:^|,)\s*(\w+) =`)
	rawComment = regexp.MustCompile(`^// raw: \S`)
)

// TestRawSQL requires gorm's methods for the ordinary statements of the store: raw SQL shows in its
// text why it is raw, or a comment "// raw: <reason>" says so.
func TestRawSQL(t *testing.T) {
	store := slices.DeleteFunc(parseAll(t), func(s source) bool { return !productOf("store", "store/mysql", "store/report")(s) })
	statements, offences := rawSQL(store)
	if statements == 0 {
		t.Fatal("no raw SQL found: the store has moved")
	}
	for _, offence := range offences {
		t.Errorf("%s: use gorm's methods, or give the reason in a comment // raw: <reason>", offence)
	}
}

func TestRawSQLCatches(t *testing.T) {
	const constants = "const selectKeys = `SELECT * FROM k`; const lock = ` FOR UPDATE`\n"
	for body, good := range map[string]bool{
		"tx.Raw(`SELECT * FROM k WHERE id = ?`, id)":                                     false,
		"tx.Raw(`SELECT COUNT(*) FROM k WHERE id = ?`, id)":                              false,
		"tx.Raw(selectKeys+` WHERE id = ?`, id)":                                         false,
		"tx.Raw(query, id)":                                                              false,
		"rows, err := tx.QueryContext(ctx, `SELECT * FROM k`)":                           false,
		"tx.Exec(`INSERT INTO k (id, n) VALUES (?, ?)`, id, n)":                          false,
		"tx.Exec(`DELETE FROM k WHERE id = ?`, id)":                                      false,
		"tx.Exec(`UPDATE k SET status = ?, n = ? WHERE id = ? AND kind = ?`)":            false,
		"// raw: \ntx.Exec(`DELETE FROM k`)":                                             false,
		"// raw: too far away\n\ntx.Exec(`DELETE FROM k`)":                               false,
		"tx.Raw(selectKeys+` WHERE id = ?`+lock, id)":                                    true,
		"const q = `SELECT * FROM k WHERE id = ?` + lock; tx.Raw(q, id)":                 true,
		"tx.Raw(`SELECT k.* FROM k\nJOIN l ON l.id = k.id`)":                             true,
		"tx.Raw(`SELECT kind, COUNT(*) FROM k GROUP BY kind`)":                           true,
		"tx.Exec(`INSERT INTO k (id) VALUES (1), (2)`)":                                  true,
		"tx.Exec(`UPDATE k SET n = ?,\nstatus = ? WHERE id = ? AND status = ?`)":         true,
		"tx.Exec(`DELETE FROM k WHERE id = ?`, id) // raw: the reason":                   true,
		"// Why.\n// raw: the reason\nerr = tx.\nExec(`DELETE FROM k WHERE id = ?`, id)": true,
		"tx.Where(`id = ?`, id).Find(&rows)":                                             true,
		"db.Callback().Raw()":                                                            true,
	} {
		s := parse(t, file{"store/x.go", "package x\n" + constants + "func f() {\n" + body + "\n}\n"})
		if _, offences := rawSQL([]source{s}); len(offences) == 0 != good {
			t.Errorf("want %v: %s: %q", good, body, offences)
		}
	}
}

// rawSQL counts the raw statements of a package and lists those without a reason.
func rawSQL(files []source) (statements int, offences []string) {
	constants := map[string]ast.Expr{}
	for _, s := range files {
		for _, d := range s.tree.Decls {
			addConstants(constants, d)
		}
	}
	for _, s := range files {
		rule := sourceRule{applies: func(source) bool { return true }, check: func(s source, offend func(ast.Node, string)) {
			statements += checkRawSQL(s, constants, offend)
		}}
		offences = append(offences, rule.offences(s)...)
	}
	return statements, offences
}

func checkRawSQL(s source, constants map[string]ast.Expr, offend func(ast.Node, string)) (statements int) {
	for _, d := range s.tree.Decls {
		local := map[string]ast.Expr{}
		ast.Inspect(d, func(n ast.Node) bool {
			if decl, ok := n.(*ast.DeclStmt); ok {
				addConstants(local, decl.Decl)
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if at, raw := sqlArgument[sel.Sel.Name]; raw && at < len(call.Args) {
				statements++
				text := constantText(call.Args[at], local, constants)
				if !rawReason.MatchString(text) && !comparesAndSets(text) && !commented(s, call) {
					offend(call, "raw SQL without a visible reason")
				}
			}
			return true
		})
	}
	return statements
}

// addConstants adds the constants of a declaration.
func addConstants(to map[string]ast.Expr, d ast.Decl) {
	decl, ok := d.(*ast.GenDecl)
	if !ok || decl.Tok != token.CONST {
		return
	}
	for _, spec := range decl.Specs {
		if value := spec.(*ast.ValueSpec); len(value.Values) == len(value.Names) {
			for i, name := range value.Names {
				to[name.Name] = value.Values[i]
			}
		}
	}
}

// constantText returns the constant parts of a concatenated text. The first scope with a name has it.
func constantText(e ast.Expr, scopes ...map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return unquote(e)
	case *ast.BinaryExpr:
		return constantText(e.X, scopes...) + constantText(e.Y, scopes...)
	case *ast.Ident:
		for _, scope := range scopes {
			if value, ok := scope[e.Name]; ok {
				return constantText(value, scopes...)
			}
		}
	}
	return ""
}

// comparesAndSets reports whether an UPDATE compares a column that it sets.
func comparesAndSets(text string) bool {
	m := updated.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	return slices.ContainsFunc(assigned.FindAllStringSubmatch(m[1], -1), func(column []string) bool {
		return regexp.MustCompile(`\b` + column[1] + `\b`).MatchString(m[2])
	})
}

// commented reports whether a comment with the reason is on a line of the call or right above it.
func commented(s source, call *ast.CallExpr) bool {
	first, last := s.line(call)-1, s.fset.Position(call.End()).Line
	for _, group := range s.tree.Comments {
		for _, c := range group.List {
			if line := s.line(c); line >= first && line <= last && rawComment.MatchString(strings.TrimSpace(c.Text)) {
				return true
			}
		}
	}
	return false
}

var claimsRead = regexp.MustCompile(`(?i)\b(FROM|JOIN|UPDATE) claims\b`)

// TestClaimsNameTheirKind: claims with and without a share are in one table, and count differently
// (rules R6 and R10). Every statement of the store names the kinds that it reads.
func TestClaimsNameTheirKind(t *testing.T) {
	found := 0
	for _, s := range parseAll(t) {
		if !productOf("store", "store/mysql", "store/report")(s) {
			continue
		}
		rule := sourceRule{applies: func(source) bool { return true }, check: func(s source, offend func(ast.Node, string)) {
			found += checkClaims(s, offend)
		}}
		for _, offence := range rule.offences(s) {
			t.Errorf("%s: the statement names no kind", offence)
		}
	}
	if found == 0 {
		t.Fatal("no statement about claims found: the store has moved")
	}
}

func TestClaimsNameTheirKindCatches(t *testing.T) {
	for body, good := range map[string]bool{
		"tx.Raw(`SELECT COUNT(*) FROM claims WHERE packet_id = ?`)":                     false,
		"tx.Raw(`SELECT 1 FROM shares s LEFT JOIN claims c ON c.user_id = s.user_id`)":  false,
		"tx.Model(&claimRow{}).Where(`packet_id = ?`, id)":                              false,
		"tx.Raw(`SELECT COUNT(*) FROM claims WHERE packet_id = ? AND kind = 'share'`)":  true,
		"tx.Model(&claimRow{}).Where(`packet_id = ? AND kind = ?`, id, kind).Count(&n)": true,
		"tx.Raw(`SELECT COUNT(*) FROM packets WHERE id = ?`)":                           true,
	} {
		s := parse(t, file{"store/x.go", "package x\nfunc f() {\n" + body + "\n}\n"})
		offences := 0
		checkClaims(s, func(ast.Node, string) { offences++ })
		if offences == 0 != good {
			t.Errorf("want %v: %s: %d", good, body, offences)
		}
	}
}

// checkClaims counts the statements about claims of a file, and reports those without a kind.
func checkClaims(s source, offend func(ast.Node, string)) (found int) {
	for _, d := range s.tree.Decls {
		var texts []string
		var models []ast.Node
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				text := unquote(n)
				texts = append(texts, text)
				if claimsRead.MatchString(text) {
					if found++; !strings.Contains(text, "kind") {
						offend(n, "claims without a kind")
					}
				}
			case *ast.CompositeLit:
				if name, ok := n.Type.(*ast.Ident); ok && name.Name == "claimRow" && len(n.Elts) == 0 {
					models = append(models, n)
				}
			}
			return true
		})
		for _, m := range models {
			if found++; !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "kind") }) {
				offend(m, "claims without a kind")
			}
		}
	}
	return found
}
