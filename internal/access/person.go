package access

import (
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// SamePerson reports whether two owners are one person for the approval by a second person. Letter
// case, width, composition, spaces and invisible characters do not count (Unicode D146,
// compatibility caseless matching).
func SamePerson(a, b string) bool { return a == b || foldOwner(a) == foldOwner(b) }

// OneIssuerLife is how long two keys that one administrator has issued do not count as two persons.
const OneIssuerLife = 30 * 24 * time.Hour

// OneIssuer reports whether two keys do not count as two persons, although their owners differ: one
// administrator, who has seen both tokens, issued both of them within OneIssuerLife before now. A
// rotation issues a key too. What a command on a machine of ours created has no issuer.
func OneIssuer(a, b KeyRecord, now time.Time) bool {
	return a.MadeBy != "" && b.MadeBy != "" && SamePerson(a.MadeBy, b.MadeBy) &&
		now.Sub(a.CreatedAt) < OneIssuerLife && now.Sub(b.CreatedAt) < OneIssuerLife
}

func foldOwner(owner string) string {
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, owner)
	folded := cases.Fold().String(norm.NFD.String(seen))
	folded = cases.Fold().String(norm.NFKD.String(folded))
	return strings.Join(strings.Fields(norm.NFKD.String(folded)), " ")
}

// NeedsApproval reports whether a key works only after the approval by a second person: with it its
// creator could act as another person who decides about money, or grant others that right.
func (k KeyRecord) NeedsApproval() bool {
	return k.Role == RoleFinance || k.Role == RoleAdmin && !SamePerson(k.MadeBy, k.Owner)
}
