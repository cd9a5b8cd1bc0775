package devstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// state is what a running supervisor tells other processes about itself.
type state struct {
	Supervisor procID            `json:"supervisor"`
	Ports      Ports             `json:"ports"`
	Children   map[string]procID `json:"children"` // those that run
	Restarts   map[string]int    `json:"restarts"`
	Health     map[string]string `json:"health"` // address of /readyz of a child without a port
}

// identify returns the procID of a process, and false when it is gone. A zombie
// counts as gone: it holds nothing any more.
func identify(pid int) (procID, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procID{}, false
	}
	// The second field is the program's name in parentheses and may hold
	// anything; the third one, behind it, is the state and the 22nd the start.
	_, rest, found := cutLast(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return procID{}, false
	}
	return procID{PID: pid, Start: fields[19]}, true
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
	ticker := time.NewTicker(readyPollInterval)
	defer ticker.Stop()
	for name, child := range s.Children {
		for child.alive() {
			if time.Now().After(deadline) {
				return fmt.Errorf("%s, process %d: %w", name, child.PID, ErrLeftover)
			}
			_ = syscall.Kill(child.PID, syscall.SIGKILL)
			<-ticker.C
		}
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
