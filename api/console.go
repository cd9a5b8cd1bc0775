package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/api/rest"
	staffapi "hongbao/api/staff"
)

// consoleBody is the largest form body of the console, in bytes.
const consoleBody = 64 << 10

// consoleTime bounds the work on one page; the verification of the audit takes longest.
const consoleTime = staffapi.VerifyLimit + 10*time.Second

// consoleRoute is the route of all console pages in metrics and logs.
const consoleRoute = "console"

// MountConsole serves the console with h: the path / of the staff listener and every path
// below one of the folders, such as "/payouts". Call it before Serve.
func (s *Server) MountConsole(h http.Handler, folders ...string) {
	s.console, s.consoleFolders = h, folders
}

// isConsole reports whether a path belongs to the console.
func (s *Server) isConsole(path string) bool {
	if s.console == nil {
		return false
	}
	return path == "/" || slices.ContainsFunc(s.consoleFolders, func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}

// serveConsole answers one request for a page.
func (s *Server) serveConsole(c *fasthttp.RequestCtx) {
	start := time.Now()
	method := string(c.Method())
	id := rest.NewRequestID()
	ctx, cancel := context.WithTimeout(s.base, consoleTime)
	w := &consoleWriter{header: http.Header{}, status: http.StatusOK, cancel: cancel, server: s, conn: c.Conn()}
	w.header.Set(fiber.HeaderXRequestID, id)
	if err := s.page(context.WithValue(ctx, outerConnContext{}, c.Conn()), c, w); err != nil {
		slog.ErrorContext(ctx, "console page failed", slog.String("request_id", id), slog.Any("error", err))
		w.body.Reset()
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
	w.write(c)
	s.metrics.clock(rest.ListenStaff, method, consoleRoute).observe(c.Response.StatusCode(), time.Since(start))
}

// page converts the request to net/http and serves it.
func (s *Server) page(ctx context.Context, c *fasthttp.RequestCtx, w *consoleWriter) (err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "page panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	body, err := consoleForm(c)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
		return nil
	}
	asked, err := url.ParseRequestURI(string(c.RequestURI()))
	if err != nil {
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return nil
	}
	address := &url.URL{Path: asked.Path, RawPath: asked.RawPath, RawQuery: asked.RawQuery} // a target may contain scheme and host
	r := &http.Request{Method: string(c.Method()), URL: address, RequestURI: address.RequestURI(), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: http.Header{},
		Host: string(c.Host()), RemoteAddr: c.RemoteAddr().String(), TLS: c.TLSConnectionState(),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	for name, value := range c.Request.Header.All() {
		r.Header.Add(string(name), string(value))
	}
	s.console.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

var errFormTooLarge = errors.New("form is too large")

// consoleForm reads the body. A form that is too large closes the connection.
func consoleForm(c *fasthttp.RequestCtx) ([]byte, error) {
	stream := c.RequestBodyStream()
	if stream == nil {
		return bytes.Clone(c.Request.Body()), nil
	}
	body, err := io.ReadAll(io.LimitReader(stream, consoleBody+1))
	if err == nil && len(body) > consoleBody {
		err = errFormTooLarge
	}
	if err != nil {
		c.SetConnectionClose()
	}
	return body, err
}

// consoleWriter buffers a page until it is complete.
type consoleWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
	stream io.ReadCloser
	cancel context.CancelFunc
	server *Server
	conn   net.Conn
}

// Header implements http.ResponseWriter.
func (w *consoleWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *consoleWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *consoleWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// StreamBody streams the answer from body and closes body afterwards.
func (w *consoleWriter) StreamBody(body io.ReadCloser) { w.stream = body }

// LiveBody streams the answer from the reader that open returns. Its context ends when the
// server begins to drain or the client disconnects; the time limit of pages does not apply.
func (w *consoleWriter) LiveBody(open func(ctx context.Context) io.ReadCloser) {
	ctx, cancel := context.WithCancel(w.server.lasting)
	w.cancel() // the page is complete
	w.cancel = cancel
	w.stream = liveBody{ReadCloser: open(ctx), conn: w.conn, each: w.server.cfg.WriteTimeout}
}

// liveBody gives each piece the write timeout of a whole answer.
type liveBody struct {
	io.ReadCloser
	conn net.Conn
	each time.Duration
}

// Read implements io.Reader.
func (b liveBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err := b.conn.SetWriteDeadline(time.Now().Add(b.each)); err != nil {
		return 0, fmt.Errorf("write deadline: %w", err)
	}
	return n, err
}

func (w *consoleWriter) write(c *fasthttp.RequestCtx) {
	for name, values := range w.header {
		for _, value := range values {
			c.Response.Header.Add(name, value)
		}
	}
	c.SetStatusCode(w.status)
	if w.stream != nil {
		c.SetBodyStream(consoleStream{w.stream, w.cancel}, -1)
		return
	}
	w.cancel()
	c.SetBody(w.body.Bytes())
}

// consoleStream ends the context of its page when it is closed.
type consoleStream struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (s consoleStream) Close() error {
	defer s.cancel()
	return s.ReadCloser.Close()
}
