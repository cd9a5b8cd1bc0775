package main

import (
	"errors"
	"fmt"
	"strings"

	"hongbao/internal/access"
)

// publicSecretValues are the default secrets of docker-compose.yml. They are public, because the repository holds them.
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

// errPublicSecret means that a setting holds a public secret and --try-out is not set.
var errPublicSecret = errors.New("holds a secret that is public")

// containsPublicSecret reports whether a value contains a public secret. It ignores case, because hex digits have two.
func containsPublicSecret(value string) bool {
	value = strings.ToLower(value)
	for _, s := range publicSecretValues {
		if strings.Contains(value, strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// publicNames returns the names with public secrets in a list of name=secret pairs; none for a value that is not such a list.
func publicNames(value string) (names []string) {
	for _, pair := range strings.Fields(value) {
		if name, secret, ok := strings.Cut(pair, "="); ok && containsPublicSecret(secret) && !strings.ContainsAny(name, ":@/") {
			names = append(names, name)
		}
	}
	return names
}

// rejectPublicSecrets returns an error for each public secret among the settings of a command that has --try-out, unless it is
// set. The commands of clients do not have it: the API refuses their public keys.
func (c config) rejectPublicSecrets() (problems error) {
	if text, has := c.values["try-out"]; !has || text != "" && kindBool.check(text) == nil && c.boolean("try-out") {
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
		problems = errors.Join(problems, fmt.Errorf("%s %w%s: set your own; to try hongbao out with it, set HONGBAO_TRY_OUT=true (--try-out)",
			s.name(), errPublicSecret, where))
	}
	return problems
}

// publicTokens returns the hashes of the tokens among the public secrets.
func publicTokens() (hashes [][]byte) {
	for _, s := range publicSecretValues {
		if _, ok := access.RoleOf(s); ok {
			hashes = append(hashes, access.HashToken(s))
		}
	}
	return hashes
}
