package observe

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented: docs/metrics.md names exactly the existing metrics.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector(nil)
	known := map[string]bool{}
	for name := range c.descs {
		known[name] = true
	}
	for _, name := range processMetrics {
		known[name] = true
	}
	for name := range known {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+name+"{") {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
	for _, m := range regexp.MustCompile("`((?:hongbao|temporal)_[a-z_]+)[`{]").FindAllStringSubmatch(string(text), -1) {
		if !known[m[1]] {
			t.Errorf("%s is documented, but not there", m[1])
		}
	}
}
