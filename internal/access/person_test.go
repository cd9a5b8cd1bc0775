package access

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestSamePerson(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"li-na", "li-na", true},
		{"li-na", "Li-Na", true},
		{"li-na", "LI-NA", true},
		{"li-na", "ｌｉ－ｎａ", true},
		{"Müller", "MU\u0308LLER", true},
		{"STRASSE", "straße", true},
		{"Σίσυφος", "σίσυφοσ", true},
		{"ﬁnn", "Finn", true},
		{"李 娜", "李　娜", true},
		{"li  na", "li na", true},
		{"li-na", "li-na\ufe0f", true},
		{"li-na", "li\u034f-na", true},
		{"li-na", "li-na\u3164", true},
		{"li-na", "li-na\u00ad", true},
		{"한", "\u1112\u1161\u11ab", true},
		{"li-na", "li-ma", false},
		{"li-na", "lina", false},
		{"li na", "lina", false},
		{"é", "e", false},
		{"李娜", "李納", false},
		{"", "li-na", false},
	} {
		if SamePerson(c.a, c.b) != c.same || SamePerson(c.b, c.a) != c.same {
			t.Errorf("%+q and %+q: %v, want %v", c.a, c.b, !c.same, c.same)
		}
	}
}

// FuzzPerson: spellings of a name are one person, and folding is idempotent.
func FuzzPerson(f *testing.F) {
	for _, seed := range []string{"li-na", "李 娜", "Müller", "ﬁΣς", "İıẞ", "\u0345\u0301ᾳ", "한", "\u3164", "\xff", "ⓐ㎏"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		forms := []string{foldOwner(name), " " + name, name + "\u200b", strings.ReplaceAll(name, " ", "\u3000 ")}
		for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			forms = append(forms, form.String(name))
		}
		forms = append(forms, strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' {
				return r - 'a' + 'A'
			}
			return r
		}, name))
		for _, form := range forms {
			if !SamePerson(name, form) || !SamePerson(form, name) {
				t.Errorf("%+q and %+q are two persons: %+q, %+q", name, form, foldOwner(name), foldOwner(form))
			}
		}
		if SamePerson(name, name+"x") {
			t.Errorf("%+q and %+q are one person", name, name+"x")
		}
	})
}
