// Package failpoint names every step in which money can be lost or doubled, and lets
// a test kill the process right before and right after each of them: a point.
//
// A point does nothing in a process that was not given a folder (the setting
// HONGBAO_CRASH_POINTS, for tests only): it costs one atomic load. With a folder,
// a file in it that is named like the point arms it for one time: the process that
// comes there renames the file to <point>.reached and kills itself with SIGKILL.
// One running stack can so be taken through all points, one after the other.
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

// Path is one of the ways of money through the system.
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

// Point is a moment at which a process may die. Its text is the name of the file that arms it.
type Point string

// Reached is the name of the file that a point leaves when it has killed its process.
func (p Point) Reached() string { return string(p) + ".reached" }

// Step is a change in one store, or one call to another system, that happens as
// a whole or not at all. The zero Step has no points.
type Step struct {
	Path    Path
	Name    string // lower case with underscores
	Meaning string // what has happened after it and not before it

	before, after Point
}

// Before is the point at which nothing of the step has happened; of a
// transaction: all is written, and not committed.
func (s Step) Before() Point { return s.before }

// After is the point at which the step has taken effect and nobody was told.
func (s Step) After() Point { return s.after }

// folder is where points are armed; nil: nowhere.
var folder atomic.Pointer[string]

// ErrFolder is wrapped by errors about the folder.
var ErrFolder = errors.New("folder of crash points")

// Arm lets files in dir arm points of this process from now on. It refuses a
// folder that others than the process's own user could put a file into: the
// path must be absolute, the folder there, owned by that user and of mode 0700.
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

// Do carries out a step between its two points. The second one is only passed
// when the step did not fail.
func Do(s Step, do func() error) error {
	Before(s)
	err := do()
	if err == nil {
		After(s)
	}
	return err
}

// Of picks among the steps of a charge, a payout and a refund by the payment's id
// or order number, whose first letter is its kind. An honoured promise is paid
// like a payout.
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

// at ends the process when the point is armed. Of several goroutines, and of
// several processes, that come to it at once, the rename lets one through.
func at(p Point) {
	dir := folder.Load()
	if dir == nil || p == "" {
		return
	}
	if err := os.Rename(filepath.Join(*dir, string(p)), filepath.Join(*dir, p.Reached())); err != nil {
		return // not armed
	}
	if d, err := os.Open(*dir); err == nil {
		_ = d.Sync() // the name matters to a test on this machine; more cannot be done about it here
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal ends the other threads a moment later than this line
}
