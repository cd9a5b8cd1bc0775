package house

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```$")
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	heading    = regexp.MustCompile(`(?m)^#+ `)
	mdLink     = regexp.MustCompile(`\]\(([^)]+)\)`)
)

// shape is what two languages of one document must share: the levels of headings, code blocks,
// inline code and links. A link to a Chinese document counts as one to its English original.
func shape(text string) (levels, blocks, code, links []string) {
	blocks = codeBlock.FindAllString(text, -1)
	rest := codeBlock.ReplaceAllString(text, "")
	levels = heading.FindAllString(rest, -1)
	code = inlineCode.FindAllString(rest, -1)
	for _, m := range mdLink.FindAllStringSubmatch(rest, -1) {
		if !strings.HasPrefix(m[1], "README") {
			links = append(links, strings.Replace(m[1], ".zh-CN.md", ".md", 1))
		}
	}
	slices.Sort(code)
	slices.Sort(links)
	return levels, blocks, slices.Compact(code), slices.Compact(links)
}

// TestReadmesInStep checks that the Chinese README has the same headings, commands, code and links
// as the English one.
func TestReadmesInStep(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	l1, b1, c1, k1 := shape(read("README.md"))
	l2, b2, c2, k2 := shape(read("README.zh-CN.md"))
	for _, pair := range []struct {
		what   string
		en, zh []string
	}{{"headings", l1, l2}, {"code blocks", b1, b2}, {"code in the text", c1, c2}, {"links", k1, k2}} {
		if !slices.Equal(pair.en, pair.zh) {
			t.Errorf("%s differ:\nen %q\nzh %q", pair.what, pair.en, pair.zh)
		}
	}
	if _, blocks, _, _ := shape("# a\n```sh\nx\n```\n"); len(blocks) != 1 {
		t.Error("the comparison sees no code blocks")
	}
}
