package observe

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// TestTraceparent: a sampled trace context survives as text; everything else is dropped.
func TestTraceparent(t *testing.T) {
	const sampled, unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	ctx := WithTraceparent(t.Context(), sampled)
	if !Sampled(ctx) || !trace.SpanContextFromContext(ctx).IsRemote() || Traceparent(ctx) != sampled {
		t.Errorf("%q came out", Traceparent(ctx))
	}
	for _, text := range []string{"", "x", unsampled, sampled[:54], "00-" + "00000000000000000000000000000000-b7ad6b7169203331-01",
		"ff" + sampled[2:]} {
		if ctx := WithTraceparent(t.Context(), text); Sampled(ctx) || Traceparent(ctx) != "" {
			t.Errorf("%q counts as sampled", text)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		below, span := StartChildSpan(t.Context(), "nothing")
		span.End()
		if Sampled(below) {
			t.Error("a child of nothing is sampled")
		}
	}); n != 0 {
		t.Errorf("a span of what is not sampled costs %v allocations", n)
	}
}
