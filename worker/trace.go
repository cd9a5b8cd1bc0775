package worker

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"

	"hongbao/internal/observe"
)

// TracedBy makes a client and its workers continue the traces of sampled grabs: the run, its
// activities and their calls. It starts no traces, so unsampled work costs almost nothing. A nil
// tracer changes nothing.
func TracedBy(tracer trace.Tracer) func(*client.Options) {
	return func(o *client.Options) {
		if tracer == nil {
			return
		}
		t, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
			Tracer: tracer, SpanStarter: startSpan, TextMapPropagator: propagation.TraceContext{},
			DisableSignalTracing: true, DisableQueryTracing: true, DisableBaggage: true, AllowInvalidParentSpans: true,
		})
		if err == nil { // never fails with these options; without it nothing is traced
			o.Interceptors = append(o.Interceptors, interceptor.NewTracingInterceptor(t))
		}
	}
}

// startSpan starts a span below a sampled one, and no other.
func startSpan(ctx context.Context, tracer trace.Tracer, name string, options ...trace.SpanStartOption) trace.Span {
	if !observe.Sampled(ctx) {
		return trace.SpanFromContext(ctx)
	}
	_, span := tracer.Start(ctx, name, options...)
	return redactedSpan{span}
}

// redactedSpan is a span without personal data: workflow ids end with the user id, and errors may
// quote the provider.
type redactedSpan struct{ trace.Span }

// tagWorkflow is the attribute that holds a workflow id.
const tagWorkflow = attribute.Key("temporalWorkflowID")

// SetAttributes implements trace.Span.
func (s redactedSpan) SetAttributes(attributes ...attribute.KeyValue) {
	for i, a := range attributes {
		if a.Key == tagWorkflow {
			_, rest, _ := strings.Cut(a.Value.AsString(), "/")
			packetID, _, _ := strings.Cut(rest, "/")
			attributes[i] = observe.SpanPacket.String(packetID)
		}
	}
	s.Span.SetAttributes(attributes...)
}

// SetStatus implements trace.Span.
func (s redactedSpan) SetStatus(code codes.Code, _ string) { s.Span.SetStatus(code, "") }

// RecordError implements trace.Span.
func (redactedSpan) RecordError(error, ...trace.EventOption) {}
