package observe

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented: docs/metrics.md names every metric, and none that is not there.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector(nil)
	for name := range c.descs {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+name+"{") {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
	for _, m := range regexp.MustCompile("`(hongbao_[a-z_]+)[`{]").FindAllStringSubmatch(string(text), -1) {
		if c.descs[m[1]] == nil {
			t.Errorf("%s is documented, but not there", m[1])
		}
	}
}
