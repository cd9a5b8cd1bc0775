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

	"hongbao/internal/access"
)

// Requests from inside of the process: the console asks and writes by the routes
// of the staff listener, so that roles, checks, idempotency and audit are those
// of the HTTP API, whoever asks.

// inProcessKeyContext is the name under which such a request carries the id of the key that
// it acts for. No request from outside can have a value under it.
type inProcessKeyContext struct{}

// outerConnContext is the name under which a context carries the connection whose
// deadline a long answer pushes on.
type outerConnContext struct{}

// SignIn returns the id of the key that a token of staff belongs to; false: it
// belongs to none that may sign in. An error says that keys cannot be told apart
// now.
func (s *Server) SignIn(ctx context.Context, token string) (keyID string, ok bool, err error) {
	who, err := s.dir.find(ctx, []byte(token))
	if refused, is := errors.AsType[*refusal](err); is && refused.code == CodeUnauthenticated {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return who.key.ID, who.key.Role.Staff(), nil
}

// Holder tells whose key it is and in which role; false: the key was revoked, has
// expired, or is none of staff.
func (s *Server) KeyOwner(keyID string) (owner string, role access.Role, ok bool) {
	who, ok := s.dir.byID(keyID, s.cfg.Now())
	if !ok || !who.key.Role.Staff() {
		return "", "", false
	}
	return who.key.Owner, who.key.Role, true
}

// KeysLoaded reports whether keys of staff can be told apart: they come from MySQL alone, which
// this process has not reached yet when it is false.
func (s *Server) KeysLoaded() bool { return s.dir.staffKnown() }

// EndSignIn ends a sign-in to the console in every API process: in this one at
// once, in the others within Config.Refresh. An error says that it may go on
// elsewhere. It is remembered until its cookie has ended by itself.
func (s *Server) EndSignIn(ctx context.Context, id []byte, keyID string, until time.Time) error {
	return s.dir.endSignIn(ctx, access.EndedSignIn{ID: id, KeyID: keyID, Until: until})
}

// SignInEnded reports whether EndSignIn was called for a sign-in, here or elsewhere.
func (s *Server) SignInEnded(id []byte) bool { return s.dir.signInEnded(id) }

// ActAs returns a transport whose requests are answered by the routes of the
// staff listener, in this process, as if they had come with the key of this id.
// A key that has ended meanwhile gets 401, like everywhere.
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
	c.Request.Header.Del(fiber.HeaderAuthorization) // the key is named, not shown
	if body != nil {
		c.Request.SetBodyStream(bytes.NewReader(body), len(body))
		c.Request.Header.SetContentLength(len(body))
	}
	c.SetUserValue(inProcessKeyContext{}, t.keyID)
	t.server.staff.chain(c)
	return inProcessResponse(req, &c.Response), nil
}

// inProcessBody reads what is sent; nil: nothing.
func inProcessBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer func() { _ = req.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(req.Body, createBodyLimit+1))
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

// inProcessStream is an answer that is made while it is read.
type inProcessStream struct{ from *fasthttp.Response }

func (b inProcessStream) Read(p []byte) (int, error) { return b.from.BodyStream().Read(p) }
func (b inProcessStream) Close() error               { return b.from.CloseBodyStream() }

// inProcessConn stands for the connection of a request that came by none, or by that
// of another request: long answers push its deadline on.
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
