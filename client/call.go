package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// maxAnswer is the largest answer in bytes. A page of 200 packets has up to 5.1 MB: 4 KiB of
// metadata each, up to 24 KiB in JSON.
const maxAnswer = 16 << 20

// ErrAnswer is wrapped by errors about an answer that the API cannot have sent: too large, not
// JSON, or a list whose cursor does not change.
var ErrAnswer = errors.New("not an answer of the API")

// ErrText is wrapped by errors about a text that is not UTF-8. JSON would replace its bytes,
// so that two such user ids could become the same. Nothing was sent.
var ErrText = errors.New("a text is not UTF-8")

// CallError is the error of a call: method, path, number of tries and reason. Unwrap returns
// the *Problem, the error of the connection, or ErrAnswer.
type CallError struct {
	Method string
	Path   string // percent-encoded, without query
	Tries  int    // 0: it was not sent
	// IdempotencyKey is the key that was sent; "": none. A later repeat with it, also in
	// another process, cannot cause a second effect.
	IdempotencyKey string
	Err            error
}

// Error implements error.
func (e *CallError) Error() string {
	if e.Tries > 1 {
		return fmt.Sprintf("%s %s: %d tries: %v", e.Method, e.Path, e.Tries, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Method, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

// caller makes calls. It has the function authorize instead of the key, so that a printed
// client never shows the key.
type caller struct {
	base      string // without a trailing slash
	authorize func(http.Header)
	http      *http.Client
	retry     Retry
	userAgent string
	pause     func(context.Context, time.Duration) error
}

// call is one logical call with all its tries.
type call struct {
	method string
	path   string // percent-encoded
	query  url.Values
	key    string // Idempotency-Key; "": none
	body   any    // JSON; nil: none
	// patience is the timeout of one try if it exceeds Retry.TryTimeout.
	patience time.Duration
}

// Key is the idempotency key of a write: 1 to 128 visible ASCII characters. With a key that you have stored (an order
// number, say) the call can be repeated after any crash without a second effect. "" or none: the call generates one for
// its own tries.
type Key string

// keyOf returns the key of a call.
func keyOf(given []Key) string {
	for _, key := range given {
		if key != "" {
			return string(key)
		}
	}
	return rand.Text()
}

// do makes a call, decodes a 2xx into out and returns every other final answer as a
// *CallError.
func (c *caller) do(ctx context.Context, q call, out any) error {
	return c.repeat(ctx, q, func(body []byte) (bool, error) { return c.try(ctx, q, body, out) })
}

// repeat calls try until an answer is final.
func (c *caller) repeat(ctx context.Context, q call, try func(body []byte) (again bool, err error)) error {
	tries := 0
	fail := func(err error) error {
		return &CallError{Method: q.method, Path: q.path, Tries: tries, IdempotencyKey: q.key, Err: err}
	}
	var body []byte
	if q.body != nil {
		if !wellFormed(reflect.ValueOf(q.body)) {
			return fail(ErrText)
		}
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return fail(fmt.Errorf("encode request: %w", err))
		}
	}
	for {
		tries++
		again, err := try(body)
		if err == nil {
			return nil
		}
		if !again || tries >= c.retry.Tries || ctx.Err() != nil {
			return fail(err)
		}
		var after time.Duration
		if p, ok := errors.AsType[*Problem](err); ok {
			after = p.RetryAfter
		}
		wait := c.retry.pauseAfter(tries, after)
		// The last answer is more useful than the deadline reached by waiting.
		if deadline, ok := ctx.Deadline(); after > c.retry.MaxRetryAfter || ok && time.Until(deadline) < wait {
			return fail(err)
		}
		if waitErr := c.pause(ctx, wait); waitErr != nil {
			return fail(errors.Join(waitErr, err))
		}
	}
}

// wellFormed reports whether every text of a request is UTF-8: encoding/json replaces invalid
// bytes silently.
func wellFormed(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || wellFormed(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if !wellFormed(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for name, value := range v.Seq2() {
			if !wellFormed(name) || !wellFormed(value) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !wellFormed(v.Field(i)) {
				return false
			}
		}
	}
	return true
}

// try sends the request once. again: a repeat may help.
func (c *caller) try(ctx context.Context, q call, body []byte, out any) (again bool, err error) {
	own, cancel := context.WithTimeout(ctx, max(q.patience, c.retry.TryTimeout))
	defer cancel()
	req, err := c.request(own, q, body)
	if err != nil {
		return false, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return true, withoutAddress(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case len(text) > maxAnswer:
		return false, fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
	case err != nil:
		return true, fmt.Errorf("read answer: %w", err)
	case res.StatusCode/100 != 2:
		p := readProblem(res, text)
		return worthRepeating(p), p
	}
	if err := json.Unmarshal(text, out); err != nil {
		return false, fmt.Errorf("%w: %d: %w", ErrAnswer, res.StatusCode, err)
	}
	if kept, ok := ctx.Value(keptAnswer{}).(*atomic.Pointer[[]byte]); ok {
		kept.Store(&text)
	}
	return false, nil
}

type keptAnswer struct{}

// KeepAnswer returns a context whose calls keep their answers, and a function that returns the last one as received,
// with members unknown to this version; nil: none yet.
func KeepAnswer(ctx context.Context) (context.Context, func() []byte) {
	kept := new(atomic.Pointer[[]byte])
	return context.WithValue(ctx, keptAnswer{}, kept), func() []byte {
		if text := kept.Load(); text != nil {
			return *text
		}
		return nil
	}
}

// withoutAddress removes method and URL from a url.Error, because CallError has them.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func (c *caller) request(ctx context.Context, q call, body []byte) (*http.Request, error) {
	address := c.base + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, address, content)
	if err != nil {
		return nil, err
	}
	c.authorize(req.Header)
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", c.userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		req.Header.Set("Idempotency-Key", q.key)
	}
	return req, nil
}
