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

// tracingConfig is where traces go, and which begin.
type tracingConfig struct {
	Endpoint string // "" = nothing is traced
	Sampler  string // of OTEL_TRACES_SAMPLER, or samplerFromCaller
	Ratio    string
}

// samplerFromCaller begins no traces: a worker goes on with those of the API.
const samplerFromCaller = "parentbased_always_off"

// spanFlushTimeout is how long a process that ends waits for its last spans to go out.
const spanFlushTimeout = 2 * time.Second

// startTracing connects to nothing: a collector may come and go, and what it does
// not take in time is dropped. stop sends what is left. The tracer is nil without
// an endpoint.
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
		logger.WarnContext(ctx, "Traces could not be sent; they are lost.", slog.Any("error", err))
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(cfg.sampler()), sdktrace.WithResource(about))
	return provider.Tracer(observe.TracerName), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spanFlushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // what does not go out is lost
	}, nil
}

func (c tracingConfig) sampler() sdktrace.Sampler {
	kind, follow := strings.CutPrefix(c.Sampler, "parentbased_")
	root := sdktrace.NeverSample()
	switch kind {
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "traceidratio":
		ratio, _ := strconv.ParseFloat(c.Ratio, 64) // was checked
		root = sdktrace.TraceIDRatioBased(ratio)
	}
	if follow {
		return sdktrace.ParentBased(root)
	}
	return root
}
