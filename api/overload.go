package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// staffConns is how many connections the staff listener keeps: staff and
	// metrics have their own, so that no crowd of the apps' shuts them out.
	staffConns = 1024
	// maxTurnedAway is how many connections beyond the bound are being told so at a
	// time. Who comes while all places are taken is cut off without an answer.
	maxTurnedAway = 1024
	// turnAwayTime is how long one that is turned away may take to ask, and how long to listen.
	turnAwayTime = 5 * time.Second
	// acceptPause is how long nobody is accepted after that has failed.
	acceptPause = 50 * time.Millisecond
	// otherFiles is how many file descriptors are left to what is no connection of
	// the public listener, if the process may have that many.
	otherFiles = staffConns + maxTurnedAway + 512
	// bodiesLimit bounds the bytes of bodies over smallBody that are in memory at a
	// time. Creates are small but for their guest lists.
	bodiesLimit = 64 << 20
	// shedPatience is how long the rest of a body is read that there is no room for.
	shedPatience = time.Second
)

var (
	errNoRoomConn = errors.New("too many connections")
	errNoRoomBody = errors.New("too many large bodies at once")
)

// isTransientAcceptError reports whether accepting fails now and may succeed later.
func isTransientAcceptError(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// boundByFiles lowers the number of connections to what the process may open: with
// no descriptor left it could not reach Redis either.
func boundByFiles(conns int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur > 1<<30 {
		return conns
	}
	may := int(files.Cur)
	room := may - min(may/2, otherFiles)
	if room >= conns {
		return conns
	}
	slog.Warn("fewer connections than configured: the limit of open files is too low",
		slog.Int("connections", room), slog.Int("configured", conns), slog.Int("files", may))
	return room
}

// refuse tells a connection beyond the bound to come again, and closes it.
func (w *conns) refuse(c net.Conn) {
	w.refused.Inc()
	select {
	case w.turnAway <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	go func() {
		defer func() { <-w.turnAway }()
		stop := context.AfterFunc(w.base, func() { _ = c.Close() }) // the server does not end later for it
		defer stop()
		_ = answerNoRoom(w.base, c) // who does not listen has gone
		_ = c.Close()
	}()
}

// answerNoRoom answers one request with 503. It is read first and the rest is let
// run out: closing with bytes unread would reset the connection, and the client
// would never see the answer.
func answerNoRoom(ctx context.Context, c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(turnAwayTime)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(c, headerLimit), 1<<10)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) {
		return err // has left without a word; who is only slow is told too
	}
	path, method := "/", http.MethodGet
	if asked, err := http.ReadRequest(in); err == nil {
		method = asked.Method
		if plainPath(asked.URL.EscapedPath()) {
			path = asked.URL.EscapedPath()
		}
	}
	id := newRequestID()
	r := unavailable(errNoRoomConn)
	r.log(ctx, id, "connection")
	status, body := r.render(path, id)
	out := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: %d\r\nX-Request-Id: "+
		"%s\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), contentProblem, len(body), retryAfterSeconds(r.retryAfter), id)
	if method != http.MethodHead {
		out = append(out, body...)
	}
	if err := c.SetDeadline(time.Now().Add(turnAwayTime)); err != nil {
		return err
	}
	if _, err := c.Write(out); err != nil {
		return err
	}
	if half, ok := c.(*net.TCPConn); ok {
		if err := half.CloseWrite(); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, io.LimitReader(c, drainLimit))
	return err
}

// budget is a number of bytes that requests share.
type budget struct{ taken atomic.Int64 }

// take takes n bytes, or none and false when that would be more than limit.
func (b *budget) take(n, limit int) bool {
	if b.taken.Add(int64(n)) > int64(limit) {
		b.taken.Add(int64(-n))
		return false
	}
	return true
}

func (b *budget) give(n int) { b.taken.Add(int64(-n)) }

// readLarge reads a body of n bytes, or of up to max when n is below zero. The
// memory grows with what arrives, not with what was announced, and out of the
// budget of all requests.
//
// Errors: errNoRoomBody, and those of the stream.
func (r *request) readLarge(stream io.Reader, n, max int) ([]byte, error) {
	size := n
	if n < 0 {
		size = max
	}
	b := make([]byte, 0, min(size, smallBody))
	for len(b) < size {
		if len(b) == cap(b) {
			next := min(size, 4*cap(b))
			if !r.server.bodies.take(next-cap(b), bodiesLimit) {
				return nil, errNoRoomBody
			}
			r.reserved += next - cap(b)
			b = append(make([]byte, 0, next), b...)
		}
		got, err := stream.Read(b[len(b):cap(b)])
		b = b[:len(b)+got]
		switch {
		case errors.Is(err, io.EOF) && n < 0:
			return b, nil
		case errors.Is(err, io.EOF) && len(b) < size:
			return nil, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
	}
	return b, nil
}
