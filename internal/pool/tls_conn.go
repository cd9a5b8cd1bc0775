package pool

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tlsConn is a TLS connection on which the client can detect that the server has closed it.
// The client checks a plain socket before each use, but not TLS, where unread data (session
// tickets) looks like unexpected replies. Without the check, calls after a restart of Redis
// or its timeout would fail until all old connections are used up.
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

// peerCheck only reports whether the server has closed the connection.
type peerCheck struct{ syscall.RawConn }

// Read returns io.EOF when the server has closed the connection. It reads no data.
func (s peerCheck) Read(func(fd uintptr) bool) error {
	var events []unix.PollFd
	var failed error
	err := s.Control(func(fd uintptr) {
		events = []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, failed = unix.Poll(events, 0)
	})
	switch {
	case err != nil || errors.Is(failed, unix.EINTR): // an interrupted poll is inconclusive
		return err
	case failed != nil:
		return failed
	case events[0].Revents != 0:
		return io.EOF
	}
	return nil
}
