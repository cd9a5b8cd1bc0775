package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"hongbao/test/wait"
)

// receiver takes traces by OTLP over HTTP, as a collector does.
type receiver struct {
	*httptest.Server
	hang chan struct{} // while it is not closed nothing is answered; nil: all is

	mu    sync.Mutex
	spans []*tracepb.Span
	text  strings.Builder // all that was sent, to be searched
	calls int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.end)
	return r
}

// end answers what hangs, and is gone.
func (r *receiver) end() {
	r.mu.Lock()
	if r.hang != nil {
		close(r.hang)
		r.hang = nil
	}
	r.mu.Unlock()
	r.Close()
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var export collector.ExportTraceServiceRequest
	if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, &export) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	hang := r.hang
	r.calls++
	r.text.WriteString(prototext.Format(&export))
	for _, resource := range export.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
	r.mu.Unlock()
	if hang != nil {
		<-hang
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// traces are the spans that have come, by trace.
func (r *receiver) traces() map[string][]*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string][]*tracepb.Span{}
	for _, s := range r.spans {
		id := hex.EncodeToString(s.TraceId)
		found[id] = append(found[id], s)
	}
	return found
}

// pathTo is the names of the spans from the root down to the first one of a name.
func pathTo(spans []*tracepb.Span, name string) (names []string) {
	byID := map[string]*tracepb.Span{}
	var at *tracepb.Span
	for _, s := range spans {
		byID[string(s.SpanId)] = s
		if s.Name == name && at == nil {
			at = s
		}
	}
	for ; at != nil; at = byID[string(at.ParentSpanId)] {
		names = append(names, at.Name)
	}
	slices.Reverse(names)
	return names
}

// TestTracing: a sampled grab is one trace, from HTTP through Redis and Temporal
// to the provider's answer, without personal data; one that is not
// sampled leaves nothing; and a collector that hangs or is gone is not noticed.
func TestTracing(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // ms
	r := newReceiver(t)
	// The caller says what is sampled, and nothing else is.
	p := newPlatform(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL, "OTEL_TRACES_SAMPLER=parentbased_always_off")
	id := p.packet(t, "traced", 8)

	if status, text := p.grab(t, id, "plain", nil); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	const of, parent, parentUnsampled = "0af7651916cd43dd8448eb211c80319c", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	if status, text := p.grab(t, id, "unsampled", map[string]string{"traceparent": parentUnsampled}); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	p.paid(t, id, "plain", "unsampled")
	if status, text := p.grab(t, id, "alice",
		map[string]string{"traceparent": parent, "tracestate": "vendor=of-the-caller"}); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	p.paid(t, id, "alice")
	want := []string{"POST /v1/packets/{id}/grabs", "grab in Redis", "StartWorkflow:Payout", "RunWorkflow:Payout", "StartActivity:PayNow",
		"RunActivity:PayNow", "provider POST"}
	var got []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("spans %q, want %q", got, want)
		}
	})
	wait.Until(t, "the trace is whole", func() bool { // two processes export it, one after the other
		got = pathTo(r.traces()[of], "provider POST")
		return slices.Equal(got, want)
	})
	for trace, spans := range r.traces() {
		if trace != of {
			t.Errorf("a trace that nobody asked for: %v", spans)
		}
	}
	r.mu.Lock()
	text := r.text.String()
	r.mu.Unlock()
	for _, secret := range []string{"alice", "nick-of", "account-of", "sender", "of-the-caller", p.keys.App, "5eed5eed", "Bearer"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the spans", secret)
		}
	}
	for _, said := range []string{"hongbao.packet_id", id, "hongbao-api", "hongbao-worker", "req_"} {
		if !strings.Contains(text, said) {
			t.Errorf("%q is not in the spans", said)
		}
	}
	p.saidInTheLog(t, id, parent, of)
	r.mu.Lock()
	calls := r.calls
	r.hang = make(chan struct{})
	r.mu.Unlock()
	for i, user := range []string{"bob", "carol", "dave"} {
		if i == 2 {
			wait.Until(t, "the collector hangs", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.calls > calls })
			r.end() // from now on it is gone
		}
		if status, text := p.grab(t, id, user, map[string]string{"traceparent": parent}); status != http.StatusCreated {
			t.Fatalf("%d %s", status, text)
		}
		p.paid(t, id, user)
	}
}

// saidInTheLog makes a sampled grab fail and finds its line: with the ids of
// request, packet and trace.
func (p *platform) saidInTheLog(t *testing.T, packetID, traceparent, trace string) {
	t.Helper()
	p.redis.Pause(t)
	status, text := p.grab(t, packetID, "erin", map[string]string{"traceparent": traceparent})
	p.redis.Resume(t)
	var refused struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(text), &refused); err != nil || status != http.StatusServiceUnavailable || refused.RequestID == "" {
		t.Fatalf("without Redis: %d %s", status, text)
	}
	for line := range strings.Lines(p.log.String()) {
		var said map[string]any
		if json.Unmarshal([]byte(line), &said) == nil && said["request_id"] == refused.RequestID {
			if said["trace_id"] != trace || said["packet_id"] != packetID || said["route"] != "/v1/packets/{id}/grabs" {
				t.Errorf("the log says %s", line)
			}
			return
		}
	}
	t.Errorf("the log says nothing of request %s", refused.RequestID)
}

func TestTracingSettings(t *testing.T) {
	for variable, values := range map[string][2]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": {"http://127.0.0.1:4318", "127.0.0.1:4318"},
		"OTEL_TRACES_SAMPLER":         {"parentbased_always_on", "sometimes"},
		"OTEL_TRACES_SAMPLER_ARG":     {"0.5", "1.5"},
	} {
		env := validSettings()
		env[variable] = values[0]
		if _, err := read(t, cmdAPI, env); err != nil {
			t.Errorf("%s=%s: %v", variable, values[0], err)
		}
		env[variable] = values[1]
		_, err := read(t, cmdAPI, env)
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: %v", variable, values[1], err)
		}
	}
	for sampler, want := range map[string]string{
		"always_on": "AlwaysOnSampler", "always_off": "AlwaysOffSampler", "traceidratio": "TraceIDRatioBased{0.25}",
		samplerFromCaller: "ParentBased{root:AlwaysOffSampler", "parentbased_always_on": "ParentBased{root:AlwaysOnSampler",
		"parentbased_traceidratio": "ParentBased{root:TraceIDRatioBased{0.25}",
	} {
		if got := (tracingConfig{Sampler: sampler, Ratio: "0.25"}).sampler().Description(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", sampler, got, want)
		}
	}
	tracer, stop, err := startTracing(context.Background(), tracingConfig{}, cmdAPI, slog.New(slog.DiscardHandler))
	if tracer != nil || err != nil {
		t.Errorf("without an endpoint: %v %v", tracer, err)
	}
	stop()
}
