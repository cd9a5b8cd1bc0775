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

// procID identifies a process even if its process id is reused: the process id and the start time in clock ticks since boot.
type procID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// state describes a running supervisor to other processes.
type state struct {
	Supervisor procID            `json:"supervisor"`
	Ports      Ports             `json:"ports"`
	Children   map[string]procID `json:"children"` // the running ones
	Restarts   map[string]int    `json:"restarts"`
	Health     map[string]string `json:"health"` // addresses of /readyz of children without a port in Ports
	// Preparing is the group that creates a data folder; zero when there is none.
	Preparing processGroup `json:"preparing,omitzero"`
}

// identify returns the procID of a process, and false when the process has ended. A zombie has ended, unless some of its
// threads still run: they hold its files and ports.
func identify(pid int) (procID, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procID{}, false
	}
	// The second field, the program's name in parentheses, may hold any character. After it: field 3, the state; field 20,
	// the number of threads; field 22, the start time.
	_, rest, found := cutLast(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 || fields[0] == "X" || fields[0] == "Z" && fields[17] <= "1" {
		return procID{}, false
	}
	return procID{PID: pid, Start: fields[19]}, true
}

// processGroup is a process and those of its descendants whose working folder is Dir or below.
type processGroup struct {
	Leader procID `json:"leader"`
	Dir    string `json:"dir"` // without symbolic links
}

// groupOf returns the group of a child whose working folder is dir.
func groupOf(p *Process, dir string) processGroup {
	g := processGroup{Dir: dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		g.Dir = real
	}
	g.Leader, _ = identify(p.PID())
	return g
}

// members returns the running processes of the group. The leader may have ended: the kernel does not reuse the id of a group
// before its last member has ended.
func (g processGroup) members() []procID {
	if g.Leader.PID == 0 {
		return nil
	}
	if now, ok := identify(g.Leader.PID); ok && now != g.Leader {
		return nil // the process id was reused
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil // impossible: the pattern is valid
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

// alive reports whether this process, and not a later one with its id, runs.
func (p procID) alive() bool {
	now, ok := identify(p.PID)
	return ok && now == p
}

// leftoverTimeout bounds the wait for children of a killed supervisor. The kernel needs some time to free the memory of a
// large process.
const leftoverTimeout = 10 * time.Second

// ErrLeftover means that a process of an earlier run has not ended in time after SIGKILL.
var ErrLeftover = errors.New("a process of an earlier run does not end")

// endLeftovers kills the children of an earlier supervisor of this home and waits until they have ended. The kernel has
// usually killed them with their supervisor. Its errors wrap ErrLeftover.
func (s state) endLeftovers() error {
	deadline := time.Now().Add(leftoverTimeout)
	for name, child := range s.Children {
		if err := child.end(name, deadline); err != nil {
			return err
		}
	}
	for left := s.Preparing.members(); len(left) > 0; left = s.Preparing.members() { // again: a member may have forked
		for _, process := range left {
			if err := process.end(childMySQL, deadline); err != nil {
				return err
			}
		}
	}
	return nil
}

// end kills a process and waits until it has ended.
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

// loadState reads the state that the last supervisor of a home has written. It returns the zero state when there is no file
// or the file is not valid JSON.
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
		return state{}, nil //nolint:nilerr // like no file, see above
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
