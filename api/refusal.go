package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"hongbao/api/rest"
	"hongbao/internal/observe"
	"hongbao/wire"
)

// fromTransport classifies errors of the HTTP server before a handler runs, or while a
// body is read.
func fromTransport(err error) *rest.Refusal {
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		return rest.Refuse(wire.CodeHeadersTooLarge)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return rest.Refuse(wire.CodeBodyTooLarge)
	case isNet && timeout.Timeout():
		return rest.Refuse(wire.CodeRequestTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return rest.Refuse(wire.CodeMalformedJSON)
	}
	return rest.Refuse(wire.CodeMalformedRequest)
}

// warnPause is the shortest time between two log lines about the same condition, so that
// requests, also those without a key, cannot flood the log.
const warnPause = time.Second

// logThrottle permits one log line per warnPause.
type logThrottle struct{ last atomic.Int64 } // Unix time in ns

func (s *logThrottle) allow() bool {
	last, now := s.last.Load(), time.Now().UnixNano()
	return now-last >= int64(warnPause) && s.last.CompareAndSwap(last, now)
}

var unavailableLog logThrottle

// logRefusal writes server errors: every internal error, and unavailable ones at most once per
// warnPause.
func logRefusal(ctx context.Context, e *rest.Refusal, requestID, route string) {
	if !e.ServerError() {
		return
	}
	if e.Code == wire.CodeUnavailable && !unavailableLog.allow() {
		return
	}
	attrs := []slog.Attr{slog.String(observe.LogRequest, requestID), slog.String("route", route), slog.String("code", string(e.Code))}
	if e.Cause != nil {
		attrs = append(attrs, slog.String("error", e.Cause.Error()))
	}
	level := slog.LevelError
	if e.Code == wire.CodeUnavailable {
		level = slog.LevelWarn
	}
	slog.LogAttrs(ctx, level, "request failed", attrs...)
}
