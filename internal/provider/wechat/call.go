package wechat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core/consts"
	"go.opentelemetry.io/otel/trace"

	spans "hongbao/internal/observe"
)

const (
	headerSerial = consts.WechatPaySerial
	userAgent    = "hongbao (wechatpay-go " + consts.Version + ")"
	// maxAnswerBytes bounds an answer; no call but the download of a bill has a longer one.
	maxAnswerBytes = 64 << 10
	// clockTolerance is what the vendor allows between its clock and ours.
	clockTolerance = 5 * time.Minute
)

// Codes of observations that this adapter sets, not the vendor.
const (
	codeTimeout     = "timeout"
	codeConnection  = "connection"
	codeTooLong     = "answer_too_long"
	codeClock       = "clock_differs"     // by five minutes or more: no signature can be verified
	codeSignature   = "signature_invalid" // the answer is not the vendor's, or its key is unknown
	codeUnsigned    = "answer_unsigned"
	codeUndecodable = "undecodable_answer"
	codeUnexpected  = "unexpected_answer" // understood, but of another order, merchant, app or currency, or with an unknown state
	codeBadRequest  = "stored_request_invalid"
	codeKeyRetired  = "encryption_key_retired"
)

// answer is the result of one call. err says that there is none that counts, and code why.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
	code   string
	// mayHaveLeft is false when it is certain that no byte of the request left.
	mayHaveLeft bool
}

var (
	errTooLong   = errors.New("the answer is too long")
	errUnsigned  = errors.New("the answer has no signature")
	errClock     = errors.New("its time differs from ours by five minutes or more")
	errSignature = errors.New("its signature is not valid")
)

// call makes one call and verifies the answer.
func (a *Adapter) call(ctx context.Context, r request) answer {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	res := a.exchange(ctx, r, maxAnswerBytes)
	if res.err == nil {
		res.code, res.err = a.verify(ctx, res)
	}
	return res
}

// exchange makes one signed HTTP call and reads at most limit bytes of the answer, unverified.
func (a *Adapter) exchange(ctx context.Context, r request, limit int64) (res answer) {
	ctx, span := spans.StartChildSpan(ctx, "provider "+r.method, trace.WithSpanKind(trace.SpanKindClient))
	defer func() {
		span.SetAttributes(spans.SpanMethod.String(r.method), spans.SpanStatus.Int(res.status)) // 0: no answer
		span.End()
	}()
	// A request can only leave over a connection: without one, nothing was sent.
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := a.newRequest(traced, r)
	if err != nil {
		return answer{err: err, code: codeConnection}
	}
	got, err := a.client.Do(req)
	if err != nil {
		return answer{err: err, code: silence(err), mayHaveLeft: connected.Load()}
	}
	defer got.Body.Close()
	res = answer{status: got.StatusCode, header: got.Header, mayHaveLeft: true}
	res.body, err = io.ReadAll(io.LimitReader(got.Body, limit+1))
	switch {
	case err != nil:
		res.err, res.code = fmt.Errorf("read answer: %w", err), silence(err)
	case int64(len(res.body)) > limit:
		res.body, res.err, res.code = nil, errTooLong, codeTooLong
	}
	return res
}

// newRequest signs a call. The bytes of the body are those given.
func (a *Adapter) newRequest(ctx context.Context, r request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, a.cfg.BaseURL+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if req.URL.RequestURI() != r.path {
		return nil, fmt.Errorf("make request: the path %q is not canonical", r.path)
	}
	serial := r.serial
	if serial == "" {
		if serial, err = a.keys.current(ctx); err != nil {
			return nil, err
		}
	}
	authorization, err := a.credential.GenerateAuthorizationHeader(ctx, r.method, r.path, string(r.body))
	if err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(headerSerial, serial)
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// silence is the code of a call without an answer.
func silence(err error) string {
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return codeTimeout
	}
	return codeConnection
}

// verify checks that an answer is the vendor's and recent. An answer that is not proves nothing,
// whatever its status says.
func (a *Adapter) verify(ctx context.Context, res answer) (code string, err error) {
	if res.header.Get(consts.WechatPaySignature) == "" {
		if res.status >= http.StatusMultipleChoices {
			return "http_" + strconv.Itoa(res.status), errUnsigned
		}
		return codeUnsigned, errUnsigned
	}
	at, err := strconv.ParseInt(res.header.Get(consts.WechatPayTimestamp), 10, 64)
	if err == nil && time.Since(time.Unix(at, 0)).Abs() >= clockTolerance {
		return codeClock, errClock
	}
	err = a.keys.answers.Validate(ctx, &http.Response{Header: res.header, Body: io.NopCloser(bytes.NewReader(res.body))})
	if err != nil {
		return codeSignature, fmt.Errorf("%w: %w", errSignature, err)
	}
	return "", nil
}
