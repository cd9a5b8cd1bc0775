package main

import (
	"errors"
	"fmt"
	"strings"

	"hongbao/internal/access"
)

// publicSecretValues are the secrets that docker-compose.yml has where nobody sets others. They
// are in the repository, so that everybody knows them.
var publicSecretValues = []string{
	"for-trying-out-only",
	"7075626c69632d666f722d747279696e672d6f75742d6f6e6c792d3332627974",
	"7075626c69632073657373696f6e206b65792c20666f7220747279696e672021",
	"whsec_dGhpcyBzZWNyZXQgaXMgcHVibGljLCBmb3IgdHJ5aW5nIG91dCBvbmx5",
	"hb_app_tryoutapp222_THISKEYISPUBLICFORTRYINGOUTONLY222222222222222222222BARPGK5",
	"hb_finance_tryoutfin222_THISKEYISPUBLICFORTRYINGOUTONLY222222222222222222222CHJ2F2K",
	"hb_finance_tryoutfin333_THISKEYISPUBLICFORTRYINGOUTONLY222222222222222222222CYK4HR3",
	"hb_ops_tryoutops222_THISKEYISPUBLICFORTRYINGOUTONLY222222222222222222222D4REA23",
	"hb_auditor_tryoutaud222_THISKEYISPUBLICFORTRYINGOUTONLY222222222222222222222BWUXROC",
}

// errPublicSecret is a secret that everybody knows, outside of a try-out.
var errPublicSecret = errors.New("holds a secret that is public")

// containsPublicSecret reports whether a value is or holds a public secret. Case counts for nothing:
// hex digits have two.
func containsPublicSecret(value string) bool {
	value = strings.ToLower(value)
	for _, s := range publicSecretValues {
		if strings.Contains(value, strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// publicNames are the names in a list of name=secret pairs whose secrets are public; none
// where the value is no such list.
func publicNames(value string) (names []string) {
	for _, pair := range strings.Fields(value) {
		if name, secret, ok := strings.Cut(pair, "="); ok && containsPublicSecret(secret) && !strings.ContainsAny(name, ":@/") {
			names = append(names, name)
		}
	}
	return names
}

// rejectPublicSecrets refuses public secrets among the settings of a command that takes
// --try-out, unless it is set. Commands of clients do not take it: their keys are refused
// by the API.
func (c config) rejectPublicSecrets() (problems error) {
	if text, takes := c.values["try-out"]; !takes || text != "" && kindBool.check(text) == nil && c.boolean("try-out") {
		return nil
	}
	for _, s := range settingsOf(c.command) {
		if !s.secret || !containsPublicSecret(c.values[s.flag]) {
			continue
		}
		where := ""
		if names := publicNames(c.values[s.flag]); len(names) > 0 {
			where = ", of " + strings.Join(names, ", ")
		}
		problems = errors.Join(problems, fmt.Errorf("%s %w%s: set one of your own; to try out with it, set HONGBAO_TRY_OUT=true (--try-out)",
			s.name(), errPublicSecret, where))
	}
	return problems
}

// publicTokens are the hashes of the tokens among the public secrets.
func publicTokens() (hashes [][]byte) {
	for _, s := range publicSecretValues {
		if _, ok := access.RoleOf(s); ok {
			hashes = append(hashes, access.HashToken(s))
		}
	}
	return hashes
}
