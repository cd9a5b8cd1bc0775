package access

import (
	"strings"
	"testing"
	"time"

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

// TestOneIssuer: two keys of one administrator count as two persons when one of them is 30 days old, or
// nobody has issued it.
func TestOneIssuer(t *testing.T) {
	now := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	key := func(owner, by string, age time.Duration) KeyRecord {
		return KeyRecord{Key: Key{Owner: owner}, MadeBy: by, CreatedAt: now.Add(-age)}
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		a, b KeyRecord
		one  bool
	}{
		"one administrator":         {key("anna", "li-na", day), key("ben", "li-na", 0), true},
		"another spelling":          {key("anna", "li-na", day), key("ben", "Li-Na", 0), true},
		"at the last moment":        {key("anna", "li-na", OneIssuerLife-1), key("ben", "li-na", 0), true},
		"by a clock that was ahead": {key("anna", "li-na", -day), key("ben", "li-na", 0), true},
		"one key is old":            {key("anna", "li-na", OneIssuerLife), key("ben", "li-na", 0), false},
		"both are old":              {key("anna", "li-na", 2*OneIssuerLife), key("ben", "li-na", 2*OneIssuerLife), false},
		"two administrators":        {key("anna", "li-na", 0), key("ben", "wang-wei", 0), false},
		"made on a machine of ours": {key("anna", "", 0), key("ben", "", 0), false},
		"one on a machine of ours":  {key("anna", "li-na", 0), key("ben", "", 0), false},
	} {
		if OneIssuer(c.a, c.b, now) != c.one || OneIssuer(c.b, c.a, now) != c.one {
			t.Errorf("%s: %v, want %v", name, !c.one, c.one)
		}
	}
}
