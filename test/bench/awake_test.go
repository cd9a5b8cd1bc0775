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

// keepAwake keeps every processor from halting until the test ends. A halted virtual processor
// takes tens of microseconds to wake, which slows the side that waits most often: on one machine it
// halves the measured rate, of ours and of the baseline by different parts. A process of the idle
// class gives the processor up at once to any other process.
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
