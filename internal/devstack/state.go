package devstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// procID names a process beyond the reuse of its number: the number and the
// moment it started, in clock ticks since boot.
type procID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// state describes a running supervisor to other processes.
type state struct {
	Supervisor procID            `json:"supervisor"`
	Ports      Ports             `json:"ports"`
	Children   map[string]procID `json:"children"` // those that run
	Restarts   map[string]int    `json:"restarts"`
	Health     map[string]string `json:"health"` // address of /readyz of a child without a port
	// Preparing creates a data folder; zero: nothing does.
	Preparing processGroup `json:"preparing,omitzero"`
}

// identify returns the procID of a process, and false when it is gone. A zombie counts as
// gone, unless threads of it are still ending: they hold its files and ports until then.
func identify(pid int) (procID, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procID{}, false
	}
	// The second field is the program's name in parentheses and may hold
	// anything; the third one, behind it, is the state, the 20th the number of threads and
	// the 22nd the start.
	_, rest, found := cutLast(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 || fields[0] == "X" || fields[0] == "Z" && fields[17] <= "1" {
		return procID{}, false
	}
	return procID{PID: pid, Start: fields[19]}, true
}

// processGroup is a process with all its descendants that work in a folder.
type processGroup struct {
	Leader procID `json:"leader"`
	Dir    string `json:"dir"` // without symbolic links
}

// groupOf names the group of a child that works in dir.
func groupOf(p *Process, dir string) processGroup {
	g := processGroup{Dir: dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		g.Dir = real
	}
	g.Leader, _ = identify(p.PID())
	return g
}

// members lists the processes of the group. Its leader may have ended: a number stays
// that of a group until the last member has. A process with another working folder is not ours.
func (g processGroup) members() []procID {
	if g.Leader.PID == 0 {
		return nil
	}
	if now, ok := identify(g.Leader.PID); ok && now != g.Leader {
		return nil // the process id was reused
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil // the pattern is a good one
	}
	var found []procID
	for _, stat := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		if group, err := syscall.Getpgid(pid); err != nil || group != g.Leader.PID {
			continue
		}
		dir, err := os.Readlink(filepath.Join(filepath.Dir(stat), "cwd"))
		if err != nil || dir != g.Dir && !strings.HasPrefix(dir, g.Dir+"/") {
			continue
		}
		if id, ok := identify(pid); ok {
			found = append(found, id)
		}
	}
	return found
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// alive reports whether this very process still runs.
func (p procID) alive() bool {
	now, ok := identify(p.PID)
	return ok && now == p
}

// leftoverTimeout bounds the wait for children of a killed supervisor. A large
// process needs a moment to give its memory back.
const leftoverTimeout = 10 * time.Second

// ErrLeftover means that a process of an earlier run does not go away.
var ErrLeftover = errors.New("a process of an earlier run does not end")

// endLeftovers makes sure that no child of an earlier supervisor of this home
// runs any more. The kernel has killed them with it; here we only wait, and kill
// what a very unlucky moment has left.
func (s state) endLeftovers() error {
	deadline := time.Now().Add(leftoverTimeout)
	for name, child := range s.Children {
		if err := child.end(name, deadline); err != nil {
			return err
		}
	}
	for left := s.Preparing.members(); len(left) > 0; left = s.Preparing.members() { // one that is being born is seen then
		for _, process := range left {
			if err := process.end(childMySQL, deadline); err != nil {
				return err
			}
		}
	}
	return nil
}

// end kills a process and waits until it is gone.
func (p procID) end(name string, deadline time.Time) error {
	ticker := time.NewTicker(readyPollInterval)
	defer ticker.Stop()
	for p.alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s, process %d: %w", name, p.PID, ErrLeftover)
		}
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
		<-ticker.C
	}
	return nil
}

// loadState reads what the last supervisor of a home wrote. A file that cannot
// be understood is as good as none.
func (h Home) loadState() (state, error) {
	var s state
	text, err := os.ReadFile(h.path(homeState))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("stack state: %w", err)
	}
	if json.Unmarshal(text, &s) != nil {
		return state{}, nil //nolint:nilerr // as good as none, see above
	}
	return s, nil
}

func (h Home) saveState(s state) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("stack state: %w", err)
	}
	if err := replaceFile(h.path(homeState), text); err != nil {
		return fmt.Errorf("stack state: %w", err)
	}
	return nil
}
