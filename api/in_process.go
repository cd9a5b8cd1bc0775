package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/wire"
)

// Requests from within the process: the console reads and writes by the routes of the staff
// listener, so that roles, checks, idempotency and audit are those of the HTTP API.

// inProcessKeyContext is the context key for the id of the API key that such a request acts
// for. A request from outside cannot have it.
type inProcessKeyContext struct{}

// outerConnContext is the context key for the connection whose write deadline a long answer
// extends.
type outerConnContext struct{}

// SignIn returns the id of the key of a staff token; false: no such key may sign in. An error
// means that keys are not loaded.
func (s *Server) SignIn(ctx context.Context, token string) (keyID string, ok bool, err error) {
	who, err := s.dir.find(ctx, []byte(token))
	if refused, is := errors.AsType[*rest.Refusal](err); is && refused.Code == wire.CodeUnauthenticated {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return who.Key.ID, who.Key.Role.Staff(), nil
}

// KeyOwner returns owner and role of a key; false: the key was revoked, has expired, or is not a
// staff key.
func (s *Server) KeyOwner(keyID string) (owner string, role access.Role, ok bool) {
	who, ok := s.dir.byID(keyID, s.cfg.Now())
	if !ok || !who.Key.Role.Staff() {
		return "", "", false
	}
	return who.Key.Owner, who.Key.Role, true
}

// KeysLoaded reports whether staff keys are loaded. They come from MySQL only; false means
// that this process has not reached it yet.
func (s *Server) KeysLoaded() bool { return s.dir.staffKnown() }

// EndSignIn ends a sign-in to the console in every API process: here at once, elsewhere within
// Config.Refresh. After an error it may still be valid elsewhere. It is stored until its
// cookie expires.
func (s *Server) EndSignIn(ctx context.Context, id []byte, keyID string, until time.Time) error {
	return s.dir.endSignIn(ctx, access.EndedSignIn{ID: id, KeyID: keyID, Until: until})
}

// SignInEnded reports whether EndSignIn was called for a sign-in, in any process.
func (s *Server) SignInEnded(id []byte) bool { return s.dir.signInEnded(id) }

// ActAs returns a transport whose requests are served by the routes of the staff listener in
// this process, as if sent with the key of this id. A key that has ended gets 401.
func (s *Server) ActAs(keyID string) http.RoundTripper { return inProcess{server: s, keyID: keyID} }

type inProcess struct {
	server *Server
	keyID  string
}

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := inProcessBody(req)
	if err != nil {
		return nil, err
	}
	c := &fasthttp.RequestCtx{}
	conn, _ := req.Context().Value(outerConnContext{}).(net.Conn)
	c.Init2(inProcessConn{conn}, nil, true)
	c.Request.Header.SetMethod(req.Method)
	c.Request.SetRequestURI(req.URL.RequestURI())
	c.Request.Header.SetHost(req.URL.Host)
	for name, values := range req.Header {
		for _, value := range values {
			c.Request.Header.Add(name, value)
		}
	}
	c.Request.Header.Del(fiber.HeaderAuthorization) // the key is given by its id, not by its token
	if body != nil {
		c.Request.SetBodyStream(bytes.NewReader(body), len(body))
		c.Request.Header.SetContentLength(len(body))
	}
	c.SetUserValue(inProcessKeyContext{}, t.keyID)
	t.server.staff.chain(c)
	return inProcessResponse(req, &c.Response), nil
}

// inProcessBody reads the body of a request; nil: none.
func inProcessBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer func() { _ = req.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(req.Body, rest.CreateBodyLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	return body, nil
}

func inProcessResponse(req *http.Request, from *fasthttp.Response) *http.Response {
	out := &http.Response{StatusCode: from.StatusCode(), Status: http.StatusText(from.StatusCode()), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{}, Request: req, ContentLength: -1}
	for name, value := range from.Header.All() {
		out.Header.Add(string(name), string(value))
	}
	if from.IsBodyStream() {
		out.Body = inProcessStream{from}
		return out
	}
	body := bytes.Clone(from.Body())
	out.ContentLength = int64(len(body))
	out.Body = io.NopCloser(bytes.NewReader(body))
	return out
}

// inProcessStream is an answer that is produced while it is read.
type inProcessStream struct{ from *fasthttp.Response }

func (b inProcessStream) Read(p []byte) (int, error) { return b.from.BodyStream().Read(p) }
func (b inProcessStream) Close() error               { return b.from.CloseBodyStream() }

// inProcessConn replaces the connection of a request from within the process. Its write
// deadline is that of the outer connection, if there is one.
type inProcessConn struct{ outer net.Conn }

var errInProcess = errors.New("not a connection")

func (inProcessConn) Read([]byte) (int, error)        { return 0, errInProcess }
func (inProcessConn) Write([]byte) (int, error)       { return 0, errInProcess }
func (inProcessConn) Close() error                    { return nil }
func (inProcessConn) LocalAddr() net.Addr             { return &net.TCPAddr{} }
func (inProcessConn) RemoteAddr() net.Addr            { return &net.TCPAddr{} }
func (inProcessConn) SetDeadline(time.Time) error     { return nil }
func (inProcessConn) SetReadDeadline(time.Time) error { return nil }
func (c inProcessConn) SetWriteDeadline(at time.Time) error {
	if c.outer == nil {
		return nil
	}
	return c.outer.SetWriteDeadline(at)
}
