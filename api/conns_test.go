package api

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// starved is a listener of a process that has no file descriptor left at first.
type starved struct {
	net.Listener
	errs []error
}

func (s *starved) Accept() (net.Conn, error) {
	if len(s.errs) == 0 {
		return s.Listener.Accept()
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// TestAcceptGoesOn: what passes by itself does not end the server; the rest does.
func TestAcceptGoesOn(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w := newConns(t.Context(), &starved{ln, []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}}, 1, 0,
		prometheus.NewGauge(prometheus.GaugeOpts{}), prometheus.NewCounter(prometheus.CounterOpts{}),
		prometheus.NewCounter(prometheus.CounterOpts{}))
	c, err := w.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w.Listener = &starved{ln, []error{syscall.EBADF}}
	if _, err := w.Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("want EBADF, got %v", err)
	}
}

// TestBoundByFiles: connections leave files for everything else.
func TestBoundByFiles(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if n := boundByFiles(100); n != 100 {
		t.Errorf("100 became %d with %d files", n, files.Cur)
	}
	if n := boundByFiles(1 << 30); files.Cur < 1<<30 && n > int(files.Cur)-min(otherFiles, int(files.Cur)/2) {
		t.Errorf("%d connections with %d files", n, files.Cur)
	}
}
