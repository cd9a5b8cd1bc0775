package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("`([^`\n]+)`")
	makeCall = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)\b`)
	target   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	lineRef  = regexp.MustCompile(`:\d+(-\d+)?$`)
)

// deadPaths returns the paths in a document that do not exist: targets of links, relative to the
// document's folder, and words in code that begin with a top folder, relative to the root. Words
// with <, *, {, $ or ... are patterns.
func deadPaths(doc file, top []string, exists func(string) bool) (dead []string) {
	for _, m := range link.FindAllStringSubmatch(doc.text, -1) {
		to, _, _ := strings.Cut(m[1], "#")
		if to == "" || strings.Contains(to, ":") {
			continue
		}
		if to = path.Join(path.Dir(doc.path), to); !exists(to) {
			dead = append(dead, to)
		}
	}
	for _, m := range code.FindAllStringSubmatch(doc.text, -1) {
		for _, word := range strings.Fields(m[1]) {
			word = strings.TrimSuffix(lineRef.ReplaceAllString(strings.TrimPrefix(strings.Trim(word, ",;'\"()"), "./"), ""), "/")
			first, _, nested := strings.Cut(word, "/")
			if strings.ContainsAny(word, "<*{$|[") || strings.Contains(word, "...") {
				continue
			}
			if !nested && !strings.HasSuffix(word, "_test.go") || nested && !slices.Contains(top, first) {
				continue
			}
			if !exists(word) {
				dead = append(dead, word)
			}
		}
	}
	return dead
}

// documents are the documents for readers: those in the root and in docs.
func documents(t *testing.T) (out []file) {
	t.Helper()
	for _, f := range files(t, ".md") {
		if !strings.Contains(f.path, "/") || strings.HasPrefix(f.path, "docs/") {
			out = append(out, f)
		}
	}
	return out
}

// TestDocsNameWhatIsThere checks that every path and make target named in the documents exists.
func TestDocsNameWhatIsThere(t *testing.T) {
	var top []string
	for _, dir := range folders(t) {
		if filepath.Dir(dir) == "." && dir != "." {
			top = append(top, dir)
		}
	}
	exists := func(p string) bool { _, err := os.Stat(filepath.FromSlash(p)); return err == nil }
	for _, doc := range documents(t) {
		for _, p := range deadPaths(doc, top, exists) {
			t.Errorf("%s names %s, which does not exist", doc.path, p)
		}
	}

	doc := file{"docs/x.md", "See [a](gone.md), [b](../internal/money/fen.go#x), [c](https://x.y/z), `pool/gone.lua`, `packet/<id>`, `go test " +
		"./gone ./pool/gone.go:12`, `internal/pool/*.lua`, `GET /v1/x`."}
	there := func(p string) bool { return p == "internal/money/fen.go" }
	if got, want := deadPaths(doc, []string{"pool", "packet"}, there),
		[]string{"docs/gone.md", "pool/gone.lua", "pool/gone.go"}; !slices.Equal(got, want) {
		t.Errorf("dead paths %q, want %q", got, want)
	}
}

func TestDocsNameTargetsThatAreThere(t *testing.T) {
	var targets []string
	for _, m := range target.FindAllStringSubmatch(readText(t, "Makefile"), -1) {
		targets = append(targets, m[1])
	}
	for _, doc := range documents(t) {
		for _, block := range commands(doc.text) {
			for _, m := range makeCall.FindAllStringSubmatch(block, -1) {
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s calls make %s, which is not a target", doc.path, m[1])
				}
			}
		}
	}
	if got := commands("make sense\n`make a`\n```sh\nmake b\n```\n"); !slices.Equal(got, []string{"\nmake b\n", "make a"}) {
		t.Errorf("commands found: %q", got)
	}
}

// hardWired finds code that names the sandbox instead of choosing a provider.
var hardWired = regexp.MustCompile(`NewSandbox\(|"sandbox"|"/[^"]*/sandbox"`)

// TestDocsNameTheSandboxsPlaces checks that docs/providers.md names each file that a new adapter
// has to change.
func TestDocsNameTheSandboxsPlaces(t *testing.T) {
	document := readText(t, "docs/providers.md")
	found := 0
	for _, f := range files(t, ".go") {
		path, inCmd := strings.CutPrefix(f.path, "cmd/hongbao/")
		if strings.HasSuffix(path, "_test.go") || !inCmd && f.path != "api/routes.go" || !hardWired.MatchString(f.text) {
			continue
		}
		found++
		if !strings.Contains(document, "`"+f.path+"`") {
			t.Errorf("%s names the sandbox; docs/providers.md does not list it", f.path)
		}
	}
	if found < 2 {
		t.Errorf("%d places were found", found)
	}
}

var fence = regexp.MustCompile("(?s)```\\w*(.*?)```")

// commands returns the code of a document: fenced blocks, then inline code.
func commands(text string) (out []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	for _, m := range code.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		out = append(out, m[1])
	}
	return out
}

// elsewhere matches folders of one machine, and foreign matches remarks about how a file was
// written. Both are written in two halves, so that this file passes.
var (
	elsewhere = regexp.MustCompile(`(^|[\s"'(=:` + "`" + `])/(wo` + `rk|ro` + `ot|Us` + `ers|ho` + `me)/`)
	foreign   = regexp.MustCompile(`(?i)\b(chat` + `bot|chat` + `gpt|open` + `ai|anth` + `ropic|cla` + `ude|copi` + `lot|ll` +
		`m|language mo` + `del|ai assis` + `tant|coding ag` + `ent|(this|previous|earlier) sess` + `ion)\b`)
)

// TestNothingFromElsewhere checks that no file names a folder of the machine on which it was
// written, nor its writers.
func TestNothingFromElsewhere(t *testing.T) {
	for _, f := range files(t) {
		if !utf8.ValidString(f.text) {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if offends(line) {
				t.Errorf("%s:%d: %.120s", f.path, i+1, line)
			}
		}
	}
	for _, bad := range []string{`cd "/wo` + `rk/x"`, `// as an AI assis` + `tant`, `see the previous sess` + `ion`} {
		if !offends(bad) {
			t.Errorf("not caught: %s", bad)
		}
	}
	for _, good := range []string{"https://x.y/work/", "SET SESSION x", "t.Helper()", "the OpenAPI document", "/v1/home"} {
		if offends(good) {
			t.Errorf("refused without reason: %s", good)
		}
	}
}

func offends(line string) bool { return elsewhere.MatchString(line) || foreign.MatchString(line) }
