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

	"hongbao/api/rest"
)

const (
	// staffConns is the number of connections of the staff listener: staff and metrics have
	// their own, so that load of the apps cannot block them.
	staffConns = 1024
	// maxTurnedAway is how many connections over the limit are answered at a time. Further
	// connections are closed without an answer.
	maxTurnedAway = 1024
	// turnAwayTime bounds the request and the answer of a refused connection.
	turnAwayTime = 5 * time.Second
	// acceptPause is the pause after a failed accept.
	acceptPause = 50 * time.Millisecond
	// otherFiles is the number of file descriptors reserved for other purposes than connections
	// of the public listener, if the process may have that many.
	otherFiles = staffConns + maxTurnedAway + 512
	// bodiesLimit bounds the bytes of bodies over smallBody in memory. Creates are small apart
	// from their lists of users.
	bodiesLimit = 64 << 20
	// shedPatience is how long the rest of a body without room is read.
	shedPatience = time.Second
)

var (
	errNoRoomConn = errors.New("too many connections")
	errNoRoomBody = errors.New("too many large bodies at once")
)

// isTransientAcceptError reports whether an accept may succeed later.
func isTransientAcceptError(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// boundByFiles lowers the number of connections to the limit of open files: without a file
// descriptor the process could not reach Redis either.
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

// refuse answers 503 to a connection over the limit and closes it.
func (w *conns) refuse(c net.Conn) {
	w.refused.Inc()
	select {
	case w.refusing <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	go func() {
		defer func() { <-w.refusing }()
		stop := context.AfterFunc(w.base, func() { _ = c.Close() }) // it must not delay the end of the server
		defer stop()
		_ = answerNoRoom(w.base, c) // the client has disconnected
		_ = c.Close()
	}()
}

// answerNoRoom answers one request with 503. It reads the request first and discards the rest:
// closing with unread bytes would reset the connection, and the client would never see the
// answer.
func answerNoRoom(ctx context.Context, c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(turnAwayTime)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(c, headerLimit), 1<<10)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) {
		return err // disconnected without a request; a slow client is still answered
	}
	path, method := "/", http.MethodGet
	if asked, err := http.ReadRequest(in); err == nil {
		method = asked.Method
		if rest.PlainPath(asked.URL.EscapedPath()) {
			path = asked.URL.EscapedPath()
		}
	}
	id := rest.NewRequestID()
	r := rest.Unavailable(errNoRoomConn)
	logRefusal(ctx, r, id, "connection")
	status, body := r.Render(path, id)
	out := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: %d\r\nX-Request-Id: "+
		"%s\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), rest.ContentProblem, len(body), rest.RetryAfterSeconds(r.RetryAfter), id)
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

// budget is a number of bytes shared by requests.
type budget struct{ taken atomic.Int64 }

// take reserves n bytes; false, and nothing reserved, when that would exceed limit.
func (b *budget) take(n, limit int) bool {
	if b.taken.Add(int64(n)) > int64(limit) {
		b.taken.Add(int64(-n))
		return false
	}
	return true
}

func (b *budget) give(n int) { b.taken.Add(int64(-n)) }

// readLarge reads a body of n bytes, or of up to max when n is negative. Memory grows with the
// bytes that arrive, not with the declared length, and counts in the shared budget.
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
