package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bannedWords are words of earlier code that say less than the field's own; docs/glossary.md
// has the terms instead. They stay out of code, comments, texts and documents.
var bannedWords = []string{
	"told", "tell", "tells", "telling", // acknowledged, returned, reported, logged, displayed
	"he", "him", "himself", "his", "whom", "whoever", "somebody", // processes, rows and requests are things
	"anew", "meanwhile", "in spite", "all the same", "of before", "stands beside", "comes back", "gets through",
	"errand", "errands", "passage", "vitals", "outlived", "stray", "strays",
}

var bannedWord = regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(strings.Join(bannedWords, "|"), " ", `\s+`) + `)\b`)

// mayUse are places where a banned word is meant, each with its reason.
var mayUse = []struct{ path, word, why string }{
	{"test/house/words_test.go", "", "the list"},
	{"docs/glossary.md", "", "lists what its terms replace"},
	{"console/assets/htmx.min.js", "he", "a library"},
	{"console/browser/pictures_test.go", "he", "a name: He Jing"},
	{"internal/provider/sandbox/order.go", "told", "a member of what is stored"},
}

// bannedIn returns the banned words of a file that have no reason to be there.
func bannedIn(f file) (out []string) {
	for _, word := range bannedWord.FindAllString(f.text, -1) {
		word = strings.Join(strings.Fields(strings.ToLower(word)), " ")
		allowed := slices.ContainsFunc(mayUse, func(m struct{ path, word, why string }) bool {
			return m.path == f.path && (m.word == "" || m.word == word)
		})
		if !allowed {
			out = append(out, word)
		}
	}
	return out
}

func TestWords(t *testing.T) {
	for _, f := range files(t, ".go", ".lua", ".md", ".sql", ".sh", ".yml", ".html", ".css", ".js") {
		if strings.Contains(f.path, "/testdata/") {
			continue
		}
		if words := bannedIn(f); len(words) > 0 {
			t.Errorf("%s: %q; docs/glossary.md has the words to use", f.path, words)
		}
	}
	if got := bannedIn(file{"pool/x.go", "// The lane is told, and\n// all the\tsame; she telltale, heTold"}); !slices.Equal(got, []string{"told", "all the same"}) {
		t.Errorf("found %q", got)
	}
}
