package pool

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tlsConn is a connection by TLS of which the client can see that the other side has
// ended it. Without that it would find out by a call, whose repetition gets the next one
// that is gone: after a restart of Redis, or its timeout, calls failed until all had been
// tried. The client looks at the socket before each use; for TLS it does not, because
// what may lie there unread (session tickets) looks to it like answers to nobody.
type tlsConn struct{ *tls.Conn }

// SyscallConn implements syscall.Conn.
func (c tlsConn) SyscallConn() (syscall.RawConn, error) {
	below, ok := c.NetConn().(*net.TCPConn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := below.SyscallConn()
	return peerCheck{raw}, err
}

// socket shows nothing but whether the other side is gone.
type peerCheck struct{ syscall.RawConn }

// Read does not let anybody look at what is there.
func (s peerCheck) Read(func(fd uintptr) bool) error {
	var events []unix.PollFd
	var failed error
	err := s.Control(func(fd uintptr) {
		events = []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, failed = unix.Poll(events, 0)
	})
	switch {
	case err != nil || errors.Is(failed, unix.EINTR): // an interrupted look tells nothing
		return err
	case failed != nil:
		return failed
	case events[0].Revents != 0:
		return io.EOF
	}
	return nil
}
