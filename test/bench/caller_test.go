package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// caller is an HTTP client with one connection that makes one call at a time. Its cost is part of every measurement, equal on
// both sides. So it does only what is needed, whereas a general client resolves, pools, parses and retries.
type caller struct {
	addr  string
	head  string // of every request
	conn  net.Conn
	until time.Time // the deadline of conn
	in    *bufio.Reader
	out   []byte

	status int
	body   []byte // valid until the next call
}

// errAnswer is the error of an answer that our servers never send.
var errAnswer = errors.New("cannot read the answer")

func newCaller(addr, token string) *caller {
	return &caller{addr: addr, head: " HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: "}
}

// send sends one grab.
func (a *caller) send(url, user string) error {
	return a.do(http.MethodPost, url, `{"user_id":"`+user+`"}`)
}

// post sends a grab that must win.
func (a *caller) post(url, user string) error {
	if err := a.send(url, user); err != nil {
		return err
	}
	switch a.status {
	case http.StatusCreated:
		return nil
	case http.StatusConflict: // of an open packet: sold_out
		return fmt.Errorf("%w: %s", errSoldOut, a.body)
	default:
		return fmt.Errorf("%s: %d %s", user, a.status, a.body)
	}
}

// get reads a page.
func (a *caller) get(url string) error {
	if err := a.do(http.MethodGet, url, ""); err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("%s: %d %s", url, a.status, a.body)
	}
	return nil
}

// close ends the connection, if there is one.
func (a *caller) close() {
	if a.conn != nil {
		_ = a.conn.Close()
	}
}

func (a *caller) do(method, url, body string) error {
	if err := a.connect(); err != nil {
		return err
	}
	a.out = append(a.out[:0], method...)
	a.out = append(a.out, ' ')
	a.out = append(a.out, strings.TrimPrefix(url, "http://"+a.addr)...)
	a.out = append(a.out, a.head...)
	a.out = strconv.AppendInt(a.out, int64(len(body)), 10)
	a.out = append(a.out, "\r\n\r\n"...)
	a.out = append(a.out, body...)
	if _, err := a.conn.Write(a.out); err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	if err := a.read(); err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	return nil
}

// connect opens the connection if needed. An answer may take between half of patience and patience,
// because setting the deadline for every request costs as much as writing one.
func (a *caller) connect() (err error) {
	if a.conn == nil {
		if a.conn, err = net.DialTimeout("tcp", a.addr, patience); err != nil {
			return fmt.Errorf("send a request: %w", err)
		}
		a.in = bufio.NewReader(a.conn)
	}
	if now := time.Now(); a.until.Sub(now) < patience/2 {
		a.until = now.Add(patience)
		if err := a.conn.SetDeadline(a.until); err != nil {
			return fmt.Errorf("send a request: %w", err)
		}
	}
	return nil
}

// read reads an answer with a Content-Length, which our servers always send.
func (a *caller) read() error {
	line, err := a.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	code, known := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !known || len(code) < 3 {
		return fmt.Errorf("%w: %q", errAnswer, line)
	}
	if a.status, err = strconv.Atoi(string(code[:3])); err != nil {
		return fmt.Errorf("%w: %q", errAnswer, line)
	}
	length := -1
	for {
		if line, err = a.in.ReadSlice('\n'); err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, contentLength) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return fmt.Errorf("%w: %q", errAnswer, line)
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("%w: it has no Content-Length", errAnswer)
	}
	if cap(a.body) < length {
		a.body = make([]byte, length)
	}
	a.body = a.body[:length]
	_, err = io.ReadFull(a.in, a.body)
	return err
}

var contentLength = []byte("Content-Length")

// TestCaller checks that the requests are valid for any server, and that answers are read.
func TestCaller(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 1000) // more than a buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer token" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", r.Header, err)
		}
		switch r.Method + " " + r.URL.Path + " " + string(body) {
		case `POST /grabs {"user_id":"a"}`:
			w.WriteHeader(http.StatusCreated)
		case `POST /grabs {"user_id":"b"}`:
			w.WriteHeader(http.StatusConflict)
		case `GET /page `:
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
			_, _ = io.WriteString(w, long)
		case `GET /chunks `:
			_, _ = io.WriteString(w, long)
			w.(http.Flusher).Flush()
		default:
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "what?")
		}
	}))
	defer server.Close()
	a := newCaller(server.Listener.Addr().String(), "token")
	defer a.close()
	if err := a.post(server.URL+"/grabs", "a"); err != nil || a.status != http.StatusCreated || len(a.body) != 0 {
		t.Errorf("a: %v, %d %q", err, a.status, a.body)
	}
	conn := a.conn
	if err := a.get(server.URL + "/page"); err != nil || string(a.body) != long {
		t.Errorf("page: %v, %q", err, a.body)
	}
	if err := a.post(server.URL+"/grabs", "b"); !errors.Is(err, errSoldOut) {
		t.Errorf("b: %v", err)
	}
	if err := a.get(server.URL + "/page?of=tea"); err != nil || string(a.body) != long {
		t.Errorf("page: %v, %q", err, a.body)
	}
	if err := a.get(server.URL + "/tea"); err == nil || !strings.Contains(err.Error(), "418 what?") {
		t.Errorf("tea: %v", err)
	}
	if a.conn != conn {
		t.Error("the connection was not kept")
	}
	if err := a.get(server.URL + "/chunks"); !errors.Is(err, errAnswer) {
		t.Errorf("chunks: %v", err)
	}
}
