package bench

import (
	"flag"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

var awake = flag.Bool("awake", false, "with -report: keep every processor awake with a process of the idle class (chrt), as on a "+
	"machine whose processors do not halt")

// keepAwake keeps every processor from halting until the test ends. A virtual processor that
// has halted takes tens of microseconds to be woken, which falls on whoever waits most often
// for whatever reason: on one machine it halves what a load is measured at, of ours and of
// the baseline in different parts. What has work to do takes the processor from a process
// of the idle class at once.
func keepAwake(tb testing.TB) {
	tb.Helper()
	for range runtime.NumCPU() {
		spin := exec.Command("chrt", "--idle", "0", "sh", "-c", "while :; do :; done")
		spin.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := spin.Start(); err != nil {
			tb.Fatalf("keep the processors awake: %v", err)
		}
		tb.Cleanup(func() {
			_ = spin.Process.Kill()
			_ = spin.Wait()
		})
	}
}
