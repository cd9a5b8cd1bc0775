package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// fullDisk takes some bytes, then no more.
type fullDisk struct{ left int }

func (d *fullDisk) Write(text []byte) (int, error) {
	n := min(d.left, len(text))
	if d.left -= n; n < len(text) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// fullDevice is a file that takes nothing.
func fullDevice(t *testing.T) io.Writer {
	t.Helper()
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("only Linux has it: ", err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// TestHelpToFullDisk: no command ends well whose help could not be written.
func TestHelpToFullDisk(t *testing.T) {
	t.Parallel()
	device := fullDevice(t)
	everyCommand(newRoot(nil), func(path []string, _ *cobra.Command) {
		var notes bytes.Buffer
		code := execute(t.Context(), slices.Concat(path, []string{"--help"}), nil, device, &notes)
		if code != exitFailed || !strings.Contains(notes.String(), "no space left on device") || strings.Count(notes.String(), "hongbao: ") != 1 {
			t.Errorf("%q: exit code %d, %s", path, code, &notes)
		}
	})
}

// TestOutputToFullDisk: a command whose output is lost, wholly or but for its first bytes,
// says so once. An exit code that says more than 0 stays.
func TestOutputToFullDisk(t *testing.T) {
	t.Parallel()
	list := `200 {"items":[` + packetText("open", 0, "") + `],"next_cursor":null}`
	for name, tc := range map[string]struct {
		code    int
		answers map[string][]string
		args    []string
	}{
		"version":   {exitFailed, nil, []string{"version"}},
		"--version": {exitFailed, nil, []string{"--version"}},
		"list":      {exitFailed, map[string][]string{"GET /v1/staff/packets?limit=50": {list}}, []string{"packets", "list"}},
		"show": {exitFailed, map[string][]string{"GET /v1/packets/97h0uojo11oljc4bchnk": {"200 " + packetText("open", 0, "")}},
			[]string{"packets", "show", "97h0uojo11oljc4bchnk"}},
		"created": {exitFailed, map[string][]string{"POST /v1/packets": {"201 " + packetText("open", 0, "")}}, []string{"packets", "create",
			"--sender", "a", "--total", "1000", "--shares", "4"}},
		"usage":   {exitUsage, nil, []string{"packets", "show"}},
		"unknown": {exitFailed, nil, []string{"packets", "show", "97h0uojo11oljc4bchn0"}},
	} {
		for _, json := range []bool{false, true} {
			args := tc.args
			if json && !strings.HasSuffix(name, "version") && name != "unknown" {
				args = slices.Concat(args, []string{"--json"})
			}
			api := &counter{answers: tc.answers}
			server := httptest.NewServer(api)
			t.Cleanup(server.Close)
			env := []string{"HONGBAO_URL=" + server.URL, "HONGBAO_APP_KEY=s3cret", "HONGBAO_OPS_KEY=s3cret", "HONGBAO_STAFF_URL=" + server.URL}
			for _, out := range []io.Writer{fullDevice(t), &fullDisk{left: 5}} {
				var notes bytes.Buffer
				asked := len(api.asked)
				code := execute(t.Context(), args, env, out, &notes)
				if tc.answers != nil && len(api.asked) == asked {
					t.Errorf("%s: the API was not asked", name)
				}
				lost := name != "usage" && name != "unknown"
				if code != tc.code || lost != strings.Contains(notes.String(), "no space left on device") ||
					strings.Count(notes.String(), "hongbao: ") != 1 {
					t.Errorf("%s: exit code %d, %s", name, code, &notes)
				}
			}
		}
	}
}

// TestExitCodeStaysWithoutOutput: a packet that closed with shares left, and a decision that
// waits, keep their exit codes.
func TestExitCodeStaysWithoutOutput(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errSharesLeft, errNeedsApproval, errSomeRefused, &usageError{io.EOF}} {
		cmd := newRoot(nil)
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			_, _ = io.WriteString(cmd.OutOrStdout(), "text")
			return err
		}
		var notes bytes.Buffer
		code := run(t.Context(), cmd, nil, &fullDisk{}, &notes)
		if code != exitOf(err) || !strings.Contains(notes.String(), "no space left on device") {
			t.Errorf("%v: exit code %d, %s", err, code, &notes)
		}
	}
}
