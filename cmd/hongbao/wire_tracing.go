package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"hongbao/internal/observe"
)

// tracingConfig configures the destination and the sampling of traces.
type tracingConfig struct {
	Endpoint string // base URL of the collector; "" = no traces
	Sampler  string // a value of OTEL_TRACES_SAMPLER, or samplerFromCaller
	Ratio    string // of the sampler traceidratio, 0 to 1
}

// samplerFromCaller starts no traces. The worker only continues those of the API.
const samplerFromCaller = "parentbased_always_off"

// spanFlushTimeout bounds the export of the last spans when a process ends.
const spanFlushTimeout = 2 * time.Second

// startTracing returns a tracer, nil without an endpoint, and a function that exports the remaining spans. It does not connect: a
// process runs without its collector, and spans that the collector does not accept in time are lost.
func startTracing(ctx context.Context, cfg tracingConfig, service string, logger *slog.Logger) (tracer trace.Tracer, stop func(),
	err error) {
	if cfg.Endpoint == "" {
		return nil, func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(cfg.Endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, nil, fmt.Errorf("traces to OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "hongbao-"+service),
		attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.WarnContext(ctx, "Spans could not be exported and are lost.", slog.Any("error", err))
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(cfg.sampler()), sdktrace.WithResource(about))
	return provider.Tracer(observe.TracerName), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spanFlushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // spans that are not exported are lost
	}, nil
}

func (c tracingConfig) sampler() sdktrace.Sampler {
	kind, follow := strings.CutPrefix(c.Sampler, "parentbased_")
	root := sdktrace.NeverSample()
	switch kind {
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "traceidratio":
		ratio, _ := strconv.ParseFloat(c.Ratio, 64) // checked by checkRatio
		root = sdktrace.TraceIDRatioBased(ratio)
	}
	if follow {
		return sdktrace.ParentBased(root)
	}
	return root
}
