package observe

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// Keys of log attributes that connect lines about one request, packet, payment or workflow.
const (
	LogRequest  = "request_id"
	LogPacket   = "packet_id"
	LogPayment  = "payment_id"
	LogWorkflow = "workflow_id"
	LogTrace    = "trace_id"
)

type logKey struct{}

// WithLogAttrs returns ctx with attributes for every line that is logged with it or a derived
// context. The values must stay valid after the caller returns.
func WithLogAttrs(ctx context.Context, attrs ...slog.Attr) context.Context {
	if above, ok := ctx.Value(logKey{}).([]slog.Attr); ok {
		attrs = slices.Concat(above, attrs)
	}
	return context.WithValue(ctx, logKey{}, attrs)
}

// NewLogHandler returns a handler that adds the attributes of WithLogAttrs to each record, and the
// trace id when the trace is sampled. Attributes of the record itself win.
func NewLogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	named, _ := ctx.Value(logKey{}).([]slog.Attr)
	span := trace.SpanContextFromContext(ctx)
	if len(named) == 0 && !span.IsSampled() {
		return h.Handler.Handle(ctx, r)
	}
	said := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool { said[a.Key] = true; return true })
	r = r.Clone()
	for _, a := range named {
		if !said[a.Key] {
			said[a.Key] = true
			r.AddAttrs(a)
		}
	}
	if span.IsSampled() && !said[LogTrace] {
		r.AddAttrs(slog.String(LogTrace, span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
