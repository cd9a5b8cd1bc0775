package failpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// childFolder makes the test binary a process that takes one step and prints it.
const childFolder = "CRASH_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		if err := Arm(dir); err != nil {
			panic(err)
		}
		_ = Do(GrabTake, func() error { _, err := os.Stdout.WriteString("taken "); return err })
		_, _ = os.Stdout.WriteString("returned")
		return
	}
	m.Run()
}

// child runs the process and returns its output and whether it was killed.
func child(t *testing.T, dir string) (said string, killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+dir)
	out, err := cmd.Output()
	if err == nil {
		return string(out), false
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	return string(out), true
}

func folderOf(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "points")
	if err := os.Mkdir(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestArmedPointKillsOnce: the process is killed at the point, leaves its mark, and the next
// process passes.
func TestArmedPointKillsOnce(t *testing.T) {
	for _, tc := range []struct {
		point Point
		said  string
	}{
		{GrabTake.Before(), ""},
		{GrabTake.After(), "taken "},
	} {
		dir := folderOf(t, 0o700)
		armed := filepath.Join(dir, string(tc.point))
		if err := os.WriteFile(armed, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, killed := child(t, dir); !killed || said != tc.said {
			t.Errorf("%s: said %q, killed %v", tc.point, said, killed)
		}
		if _, err := os.Stat(filepath.Join(dir, tc.point.Reached())); err != nil {
			t.Errorf("%s left no mark: %v", tc.point, err)
		}
		if said, killed := child(t, dir); killed || said != "taken returned" {
			t.Errorf("%s, passed again: said %q, killed %v", tc.point, said, killed)
		}
	}
}

// TestOtherPointsPass: a file with another name arms nothing here.
func TestOtherPointsPass(t *testing.T) {
	dir := folderOf(t, 0o700)
	for _, name := range []string{string(PayoutSend.Before()), "grab_take", GrabTake.Before().Reached()} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said, killed := child(t, dir); killed || said != "taken returned" {
		t.Errorf("said %q, killed %v", said, killed)
	}
}

func TestArmRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folderOf(t, 0o700), link); err != nil {
		t.Fatal(err)
	}
	for what, dir := range map[string]string{
		"a relative path": "points", "nothing": filepath.Join(t.TempDir(), "missing"), "a file": file, "a link": link,
		"a folder that others can read": folderOf(t, 0o755),
	} {
		if err := Arm(dir); !errors.Is(err, ErrFolder) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if folder.Load() != nil {
		t.Error("a refused folder is armed")
	}
}

// TestDo: unarmed it is only the call, with its error.
func TestDo(t *testing.T) {
	failed := errors.New("failed")
	if err := Do(GrabTake, func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(100, func() { Before(GrabTake); After(GrabTake) }); n != 0 {
		t.Errorf("two points that are not armed allocate %v times", n)
	}
}

func TestOf(t *testing.T) {
	for number, want := range map[string]Step{"c0": ChargeSend, "p0": PayoutSend, "h0": PayoutSend, "r0": RefundSend} {
		if got := ForPayment(number, ChargeSend, PayoutSend, RefundSend); got != want {
			t.Errorf("%s: %s", number, got.Name)
		}
	}
}

// TestSteps: names and meanings are complete, and names of points are unique.
func TestSteps(t *testing.T) {
	seen := map[Point]bool{}
	for _, s := range Steps() {
		if s.Name == "" || s.Name != strings.ToLower(s.Name) || strings.ContainsAny(s.Name, "/. ") || s.Path == "" || len(s.Meaning) < 10 {
			t.Errorf("%+v", s)
		}
		for _, p := range []Point{s.Before(), s.After()} {
			if seen[p] {
				t.Errorf("%s is there twice", p)
			}
			seen[p] = true
		}
	}
	if len(seen) < 60 || Administration.Before() != "" || Administration.After() != "" {
		t.Errorf("%d points", len(seen))
	}
}
