package devstack

import (
	"os"
	"path/filepath"
	"testing"

	"hongbao/test/wait"
)

// TestTemporalKilledWhileInitialising: a database file with an incomplete schema is created again, and a complete one is kept.
func TestTemporalKilledWhileInitialising(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	part := Temporal{Tools: testTools(t), DB: filepath.Join(t.TempDir(), "temporal", "temporal.db"), Port: port, Namespace: namespace}
	if err := os.MkdirAll(filepath.Dir(part.DB), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part.DB, nil, 0o600); err != nil { // the server cannot start from a file without tables
		t.Fatal(err)
	}
	live := func() os.FileInfo {
		t.Helper()
		cmd, err := part.Command(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, err := Launch(cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		wait.Until(t, "Temporal is ready", func() bool { return part.Ready(t.Context()) == nil })
		file, err := os.Stat(part.DB)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first := live()
	if second := live(); !os.SameFile(first, second) {
		t.Error("a database that was in use was created again")
	}

	if err := os.Remove(part.markerFile()); err != nil {
		t.Fatal(err)
	}
	part.Whole = true // as in a home without the marker
	if third := live(); !os.SameFile(first, third) {
		t.Error("a database that is known to be complete was created again")
	}
	if err := os.Remove(part.DB); err != nil {
		t.Fatal(err)
	}
	if _, err := part.Command(t.Context()); err != nil || exists(part.markerFile()) {
		t.Errorf("the marker of a removed database remains: %v", err)
	}
}
