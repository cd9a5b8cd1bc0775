package workflows

import (
	"os/exec"
	"strings"
	"testing"
)

// workflowcheck runs Temporal's static check at the version that its own module pins. Neither its
// code nor its dependencies are part of this one.
func workflowcheck(t *testing.T, pattern string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=internal/devstack/tools/workflowcheck/go.mod", "workflowcheck", pattern)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestWorkflowsAreDeterministic: no workflow uses a clock, a random number, a map's order, a
// goroutine or I/O, which would break replay.
func TestWorkflowsAreDeterministic(t *testing.T) {
	if out, err := workflowcheck(t, "./workflows/..."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWorkflowcheckNotices(t *testing.T) {
	out, err := workflowcheck(t, "./workflows/testdata/nondeterministic")
	if err == nil || !strings.Contains(out, "time.Now is non-deterministic") {
		t.Errorf("a workflow that reads the clock passed: %v\n%s", err, out)
	}
}
