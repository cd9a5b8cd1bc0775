// Package api is the HTTP surface of hongbao over Fiber: two listeners, one for the apps'
// backends and one for staff. Routes and OpenAPI document come from one table. Grabs need
// Redis only; MySQL and Temporal may be unavailable. The package has no state besides caches
// of immutable facts.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"hongbao/api/rest"
	staffapi "hongbao/api/staff"
	"hongbao/internal/payout"
)

// Server serves both listeners. Use New, Listen and Serve, in this order.
type Server struct {
	cfg      Config
	dir      *directory
	facts    *factCache
	lucky    *luckCache
	soldOut  *soldOut
	refusals *refusals
	repeated *cache[*repeatedClaim]
	replays  *statusQueue
	metrics  *metrics
	limits   map[string]payout.Limits // of the providers, by name
	staffAPI *staffapi.API
	doc      func() ([]byte, error) // the OpenAPI document, rendered at the first request
	docs     *docsPage

	host          rest.Host
	deadlines     deadlines
	bodies        budget
	public, staff *listener
	// base is the parent of every request's context. It ends after the drain.
	base     context.Context
	stopBase context.CancelFunc
	draining atomic.Bool
	probing  singleflight.Group // of dependencies
	// lasting is the parent of answers without a time limit. It ends when the drain begins.
	lasting    context.Context
	endLasting context.CancelFunc

	console        http.Handler // nil: none
	consoleFolders []string
}

// New returns a server without connecting to anything. Errors list every missing or
// contradictory setting.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = boundByFiles(cfg.MaxConns)
	s := &Server{cfg: cfg, dir: newDirectory(cfg.Store, cfg.Pool, cfg.MirrorKey, cfg.Now),
		facts: newFactCache(maxFacts), lucky: newLuckCache(maxFacts), refusals: newRefusals(),
		limits: providerLimits(cfg.Providers)}
	s.dir.rejectPublic(cfg.PublicTokens)
	if s.metrics, err = newMetrics(cfg.Metrics, cfg.Version); err != nil {
		return nil, err
	}
	s.doc = sync.OnceValues(func() ([]byte, error) { return Document(cfg.Version) })
	if s.docs, err = newDocsPage(); err != nil {
		return nil, err
	}
	s.base, s.stopBase = context.WithCancel(context.Background())
	s.lasting, s.endLasting = context.WithCancel(s.base)
	s.deadlines.base = s.base
	s.host = rest.Host{Now: cfg.Now, Base: s.base, Draining: s.draining.Load, WriteTimeout: cfg.WriteTimeout,
		Providers: cfg.Providers}
	s.replays = &statusQueue{look: cfg.Store.PayoutProgress, base: s.base}
	s.repeated = newWeighedCache(maxRepeatedClaims, (*repeatedClaim).weight)
	s.soldOut = newSoldOut(s.base, cfg.Pool, cfg.Store, cfg.Fence, maxRemembered)
	s.staffAPI = staffapi.New(staffapi.Config{Pool: cfg.Pool, Store: cfg.Store, Providers: cfg.Providers, Probes: cfg.Probes, Runs: cfg.Runs,
		HealthSnapshot: cfg.HealthSnapshot, TaskQueues: cfg.TaskQueues, ReloadKeys: func(ctx context.Context) error { return s.dir.load(ctx, 0) },
		ApprovalAmount: cfg.ApprovalAmount, Rates: cfg.Rates, TemporalUIURL: cfg.TemporalUIURL, TemporalNamespace: cfg.TemporalNamespace,
		Now: cfg.Now})
	s.public, s.staff = newListener(s, rest.ListenPublic), newListener(s, rest.ListenStaff)
	return s, nil
}

// Listen binds both addresses, or takes them over from Starting. Nothing is accepted before
// Serve.
func (s *Server) Listen() error {
	var bound []*net.TCPListener
	var err error
	if s.cfg.Starting != nil {
		bound, err = s.cfg.Starting.handOver()
	} else {
		bound, err = bind(s.base, s.cfg.PublicAddr, s.cfg.StaffAddr)
	}
	if err != nil {
		return err
	}
	s.public.take(bound[0])
	s.staff.take(bound[1])
	return nil
}

// PublicAddr is the address of the public listener after Listen.
func (s *Server) PublicAddr() net.Addr { return s.public.ln.Addr() }

// StaffAddr is the address of the staff listener after Listen.
func (s *Server) StaffAddr() net.Addr { return s.staff.ln.Addr() }

// Serve answers requests until ctx ends. Then /readyz reports draining, the listeners and idle
// connections are closed, and running requests get DrainTime to end. It returns nil after a
// clean end.
func (s *Server) Serve(ctx context.Context) error {
	defer s.soldOut.end()
	defer s.stopBase()
	background, stop := context.WithCancel(s.base)
	refreshed := make(chan struct{})
	go func() {
		defer close(refreshed)
		s.dir.run(background, s.cfg.Refresh)
	}()
	ended := make(chan error, 2)
	for _, l := range []*listener{s.public, s.staff} {
		go func() { ended <- l.serve() }()
	}
	var failed error
	running := 2
	select {
	case <-ctx.Done():
		slog.InfoContext(ctx, "api drains", slog.Any("cause", context.Cause(ctx)))
	case failed = <-ended:
		running--
	}
	s.draining.Store(true)
	s.pause(s.cfg.DrainDelay)
	s.endLasting()
	err := errors.Join(failed, s.drain())
	for ; running > 0; running-- {
		err = errors.Join(err, <-ended)
	}
	stop()
	<-refreshed
	return err
}

// pause waits for d, or until a listener fails.
func (s *Server) pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// drain ends both listeners in parallel.
func (s *Server) drain() error {
	done := make(chan error, 2)
	for _, l := range []*listener{s.public, s.staff} {
		go func() { done <- l.shutdown(s.cfg.DrainTime) }()
	}
	return errors.Join(<-done, <-done)
}
