package api

import (
	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
)

// headerTraceparent is the header with the caller's span (W3C Trace Context).
const headerTraceparent = "traceparent"

// trace starts the span of a request if tracing is on and the request is sampled, else it
// returns nil. Without tracing it costs a comparison.
func (r *request) trace(tracer trace.Tracer) trace.Span {
	if tracer == nil {
		return nil
	}
	ctx, span := tracer.Start(observe.WithTraceparent(r.Ctx, r.C.Get(headerTraceparent)), "HTTP", trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return nil // an unsampled request is not traced
	}
	r.Ctx = ctx
	return span
}

// traced ends the span of a request. It has the route but not the path, which may contain
// values chosen by a client.
func (r *request) traced(span trace.Span, status int) {
	route := unmatchedPath
	if r.Route != nil {
		route = r.Route.Path
	}
	method := r.C.Method() // a method known to Fiber, see around
	span.SetName(method + " " + route)
	span.SetAttributes(observe.SpanMethod.String(method), observe.SpanRoute.String(route), observe.SpanStatus.Int(status),
		observe.SpanRequest.String(r.ID))
	if status >= fiber.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// grab calls the pool. A sampled grab stores its trace context with the claim, where the trace
// continues.
func (r *request) grab(id, user string, profile packet.Profile) (packet.GrabAnswer, error) {
	if r.server.cfg.Tracer == nil || !observe.Sampled(r.Ctx) {
		return r.server.cfg.Pool.Grab(r.Ctx, id, user, profile)
	}
	ctx, span := observe.StartChildSpan(r.Ctx, "grab in Redis", trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(observe.SpanPacket.String(id)))
	defer span.End()
	profile.Trace = observe.Traceparent(ctx)
	return r.server.cfg.Pool.Grab(ctx, id, user, profile)
}
