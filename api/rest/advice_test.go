package rest

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestErrorDocument: docs/errors.md has one section a code, made from the code.
func TestErrorDocument(t *testing.T) {
	for _, r := range catalogue {
		if advice[r.code] == "" {
			t.Errorf("%s has no advice", r.code)
		}
	}
	if len(advice) != len(catalogue) {
		t.Errorf("%d pieces of advice for %d codes", len(advice), len(catalogue))
	}
	const path = "../../docs/errors.md"
	want := ErrorDocument()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/errors.md differs from the code; run with -update")
	}
}
