// Package failpoint names every step in which money could be lost or doubled. A test can kill the
// process right before and right after each of them.
//
// A point does nothing in a process without a folder of failpoints (the setting
// HONGBAO_CRASH_POINTS, for tests only): it costs one atomic load. With a folder, a file with the
// name of a point arms it once: the process that reaches the point renames the file to
// <point>.reached and kills itself with SIGKILL. So one running stack can be taken through all
// points, one after the other.
package failpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
)

// Path is a path of money through the system.
type Path string

// The paths.
const (
	PathCreate       Path = "create"
	PathGrab         Path = "grab"
	PathHandOff      Path = "hand-off"
	PathPayout       Path = "payout"
	PathClosing      Path = "closing"
	PathRefund       Path = "refund"
	PathDecision     Path = "decision"
	PathNotification Path = "notification"
	PathRebuild      Path = "rebuild"
	PathRecover      Path = "recover"
)

// Point is a moment at which a test can kill the process. Its text is the name of the file that
// arms it.
type Point string

// Reached is the name of the file that a point leaves when it has killed its process.
func (p Point) Reached() string { return string(p) + ".reached" }

// Step is a change in one store, or one call to another system, that happens as a whole or not at
// all. The zero Step has no points.
type Step struct {
	Path    Path
	Name    string // lower case with underscores
	Meaning string // what is true after the step and not before it

	before, after Point
}

// Before is the point at which nothing of the step has happened; of a transaction: all is written,
// and not committed.
func (s Step) Before() Point { return s.before }

// After is the point at which the step has taken effect and its caller does not know it yet.
func (s Step) After() Point { return s.after }

// folder is where points are armed; nil: points are off.
var folder atomic.Pointer[string]

// ErrFolder is wrapped by errors about the folder.
var ErrFolder = errors.New("folder of failpoints")

// Arm lets files in dir arm points of this process. It refuses a folder to which other users could
// add a file: the path must be absolute, the folder must exist, be owned by the process's user and
// have mode 0700.
func Arm(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%w: the path must be absolute", ErrFolder)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: it must be a folder of this user with mode 0700", ErrFolder)
	}
	folder.Store(&dir)
	return nil
}

// Do runs a step between its two points. The second one is passed only when the step did not fail.
func Do(s Step, do func() error) error {
	Before(s)
	err := do()
	if err == nil {
		After(s)
	}
	return err
}

// ForPayment selects the step of a charge, a payout or a refund by the payment's id or order
// number, whose first letter is its kind. An honoured share conflict is paid like a payout.
func ForPayment(number string, charge, payout, refund Step) Step {
	switch {
	case strings.HasPrefix(number, "c"):
		return charge
	case strings.HasPrefix(number, "r"):
		return refund
	}
	return payout
}

// Before passes the point before a step.
func Before(s Step) { at(s.before) }

// After passes the point after a step.
func After(s Step) { at(s.after) }

// at kills the process when the point is armed. Of several goroutines or processes that reach it
// together, the rename selects one.
func at(p Point) {
	dir := folder.Load()
	if dir == nil || p == "" {
		return
	}
	if err := os.Rename(filepath.Join(*dir, string(p)), filepath.Join(*dir, p.Reached())); err != nil {
		return // not armed
	}
	if d, err := os.Open(*dir); err == nil {
		_ = d.Sync() // the name matters only to tests on this machine, so an error is ignored
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal ends the other threads slightly later
}
