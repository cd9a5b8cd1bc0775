package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/devstack"
)

// TestEnvFile: variables of the file count where the environment has none, and a file that cannot be read
// as it was meant is refused, with its line.
func TestEnvFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "dev.env")
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"A=1", envFileName + "=" + name}
	write("# keys", "", "A='2'", "export B="+devstack.ShellQuote("it's $HOME \"x\""), "C=plain", "D=''")
	got, err := withEnvFile([]string{"doctor"}, environ)
	if want := append(slices.Clone(environ), `B=it's $HOME "x"`, "C=plain", "D="); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := withEnvFile([]string{cmdDev, "stop"}, environ); err != nil || !slices.Equal(got, environ) {
		t.Errorf("dev: %q %v", got, err)
	}
	for _, line := range []string{"A", "A='x", "A='x'y", "A=$HOME", `A="x"`, "A=x y", "'A'=x", "A B=x"} {
		write("# first", line)
		if _, err := withEnvFile(nil, environ); err == nil || exitOf(err) != exitUsage || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", line, err)
		}
	}
	var out, errs bytes.Buffer
	code := execute(t.Context(), []string{"payouts", "list"}, []string{envFileName + "=" + name + ".gone"}, &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), envFileName) {
		t.Errorf("%d %s", code, &errs)
	}
}
