package observe

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TracerName is the name of our tracer.
const TracerName = "hongbao"

// Attributes of spans. None holds a secret, an account, a nickname or a user id.
const (
	SpanPacket  = attribute.Key("hongbao.packet_id")
	SpanRequest = attribute.Key("hongbao.request_id")
	SpanRoute   = attribute.Key("http.route")
	SpanMethod  = attribute.Key("http.request.method")
	SpanStatus  = attribute.Key("http.response.status_code")
)

// Sampled reports whether the trace of ctx is sampled.
func Sampled(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsSampled() }

// StartChildSpan begins a child of the span in ctx; the caller ends it. Without a sampled trace it
// does nothing.
func StartChildSpan(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background()) //nolint:forbidigo // the no-op span
	}
	return parent.TracerProvider().Tracer(TracerName).Start(ctx, name, options...)
}

// traceparent is the only propagated header of W3C Trace Context.
const traceparent = "traceparent"

// single holds that header alone. tracestate is dropped: it would put foreign text into Redis and
// Temporal.
type single struct{ value string }

func (s *single) Get(key string) string {
	if key == traceparent {
		return s.value
	}
	return ""
}

func (s *single) Set(key, value string) {
	if key == traceparent {
		s.value = value
	}
}

func (*single) Keys() []string { return []string{traceparent} }

// Traceparent returns the W3C traceparent of ctx; empty unless sampled.
func Traceparent(ctx context.Context) string {
	if !Sampled(ctx) {
		return ""
	}
	var s single
	propagation.TraceContext{}.Inject(ctx, &s)
	return s.value
}

// WithTraceparent returns ctx with the parent that a traceparent names. A malformed or empty one
// changes nothing. It keeps no reference to the text.
func WithTraceparent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, &single{strings.Clone(parent)})
}
