package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ruleHomes are the files, by the beginnings of their paths, that decide what a rule about losses says. Elsewhere
// the rule's consequences are named instead: a fence, a share conflict, a restored MySQL.
var ruleHomes = map[string][]string{
	"R9": {"internal/fence/", "internal/reconcile/rebuild/", "internal/pool/fence", "internal/store/epoch.go", "internal/store/rebuild",
		"migrations/00124_pool_lanes.sql", "migrations/00125_pool_rebuilds.sql"},
	"R10": {"internal/payout/decide.go", "internal/payout/share_conflict.go", "internal/store/share_conflict", "migrations/00105_claims.sql"},
	"R13": {"internal/payout/mysql_state.go", "internal/payout/recover.go", "internal/recovery/", "internal/store/mysql_state.go",
		"internal/store/recover.go", "migrations/00126_books.sql"},
}

// TestRulesStandWhereDecided: product files name R9, R10 and R13 only where they are decided.
func TestRulesStandWhereDecided(t *testing.T) {
	ruleName := regexp.MustCompile(`\bR(?:9|10|13)\b`)
	named := map[string]bool{}
	for _, f := range files(t, ".go", ".lua", ".sql") {
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "test/") {
			continue
		}
		for _, rule := range ruleName.FindAllString(f.text, -1) {
			named[rule] = true
			if !slices.ContainsFunc(ruleHomes[rule], func(home string) bool { return strings.HasPrefix(f.path, home) }) {
				t.Errorf("%s names %s, which is not decided there", f.path, rule)
			}
		}
	}
	if len(named) != len(ruleHomes) {
		t.Errorf("only %v are named: the test reads too little", named)
	}
}
