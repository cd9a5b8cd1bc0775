package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
)

// Defaults of Config.
const (
	// DefaultApprovalAmount is the amount from which a retry needs a second person.
	DefaultApprovalAmount money.Fen = 100_000
	// DefaultFundingWait is how long a create waits for the charge before it answers 202.
	DefaultFundingWait = 3 * time.Second
	// DefaultDrainTime is how long requests under way may take to end at shutdown.
	DefaultDrainTime = 10 * time.Second
	// DefaultRefresh is how often apps and keys are read again.
	DefaultRefresh = 3 * time.Second
	// DefaultMaxConns is room for a crowd of ten thousand, each on a connection of
	// his own, beside thousands that are kept open.
	DefaultMaxConns = 16_384
	// DefaultReadTimeout covers a whole request, so that a client cannot hold a
	// connection by sending slowly.
	DefaultReadTimeout = 15 * time.Second
	// DefaultWriteTimeout is how long a client may take to read an answer.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultIdleTimeout is how long a connection is kept between two requests.
	DefaultIdleTimeout = 75 * time.Second
)

// Config says where the API listens and what it is connected to.
type Config struct {
	// PublicAddr and StaffAddr are host:port of the two listeners; port 0 takes a free one.
	PublicAddr string
	StaffAddr  string
	// Starting has them bound already, and hands them over at Listen; nil: Listen binds them.
	Starting *Starting

	Pool     Pool
	Store    Store
	Provider Provider
	// PingTemporal is asked by /readyz; nil leaves Temporal out of it.
	PingTemporal func(context.Context) error
	// Runs asks Temporal for the runs of a workflow, for a payment's timeline; nil: it
	// is told that Temporal cannot be asked. Its context ends within temporalTimeout.
	Runs func(ctx context.Context, workflowID string) (payout.WorkflowRuns, error)
	// MySQLCurrent is asked by /readyz: an error while MySQL is older than reality
	// (rule R13); nil leaves it out of it.
	MySQLCurrent func(context.Context) error
	// Vitals are the figures of the stores as metrics tell them; nil: the health of
	// the parts says that they are unknown.
	HealthSnapshot func() observe.HealthSnapshot
	// TaskQueues tells what waits in Temporal for a worker, and how many workers
	// there are; nil as above.
	TaskQueues func(context.Context) (queues []observe.QueueBacklog, workers int, err error)

	// Fence is asked before anything is created, grabbed or recalled, and before anything
	// is answered from the memory of the process; nil: the pool has one epoch, and its
	// gate is open.
	Fence Fence
	// LanesOpen is asked by /readyz; nil leaves the gates out of it.
	LanesOpen func(context.Context) error

	// SeedKey is the installation's key for seeds: derives them and opens sealed ones.
	SeedKey [32]byte
	// MirrorKey authenticates the copy of apps and their keys in Redis. All API processes of
	// an installation have the same.
	MirrorKey [32]byte
	// PublicTokens are hashes of tokens that everybody knows. Their keys open nothing.
	PublicTokens [][]byte
	// ApprovalAmount: a retry of this amount or more waits for a second person.
	// 0 means DefaultApprovalAmount.
	ApprovalAmount money.Fen
	// ProviderRate is shown to staff: calls a second that all workers together
	// may make to the provider; 0 is no limit.
	ProviderRate int64
	// Limits refuse who asks too often; Limiter counts it, and is needed with any of them.
	Limits  Limits
	Limiter Limiter
	// Risk is asked about each grab that could win; nil: nobody is. RiskRefuseUnanswered says
	// what becomes of the grab when there is no answer: it is let through unless set.
	Risk                 RiskCheck
	RiskRefuseUnanswered bool
	// RiskRefuseFrom: of packets of this total amount and more, a grab that nobody has
	// judged is refused; 0: of none.
	RiskRefuseFrom money.Fen
	// TemporalUIURL and TemporalNamespace make the links to workflows. Without
	// the URL answers carry the path alone.
	TemporalUIURL     string
	TemporalNamespace string

	// FundingWait 0 means DefaultFundingWait. It must be shorter than createBusy.
	FundingWait time.Duration
	// DrainDelay is how long the API goes on answering after it has told
	// /readyz that it drains, for load balancers that ask; 0: not at all.
	DrainDelay time.Duration
	// DrainTime 0 means DefaultDrainTime.
	DrainTime time.Duration
	// Refresh 0 means DefaultRefresh.
	Refresh time.Duration

	// MaxConns bounds the connections of the public listener: more are answered 503
	// and closed. Each grab that waits holds one, so it bounds them too. 0 means
	// DefaultMaxConns; fewer where the process may not open as many files.
	MaxConns int
	// ConnsPerAddress bounds those from one network address: more are answered 503; 0: no
	// bound, as behind a gateway.
	ConnsPerAddress int
	// ReadTimeout, WriteTimeout and IdleTimeout bound how long a client may take to
	// send a request, to read the answer and to begin another; 0 means the default.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration

	// Now is the time of day, by which keys end and packets and lists are shown; nil:
	// the machine's. What is decided about money goes by the clocks of Redis and MySQL.
	Now func() time.Time

	// Tracer begins the traces of requests; nil: none is traced.
	Tracer trace.Tracer
	// Metrics is served at /metrics of the staff listener; nil makes a new one.
	Metrics *prometheus.Registry
	// Version names this build in the OpenAPI document and in metrics.
	Version string
}

// Fence tells the epoch of the pool that decides about a packet, and false while
// that pool is being checked or rebuilt (rule R9). It is called with every grab
// and must not block. What the process remembers of sold-out packets is good for
// the epoch in which it was learned, and for an open gate.
type Fence func(packetID string) (epoch int64, open bool)

func (c Config) withDefaults() (Config, error) {
	if c.ApprovalAmount == 0 {
		c.ApprovalAmount = DefaultApprovalAmount
	}
	if c.FundingWait == 0 {
		c.FundingWait = DefaultFundingWait
	}
	if c.DrainTime == 0 {
		c.DrainTime = DefaultDrainTime
	}
	if c.Refresh == 0 {
		c.Refresh = DefaultRefresh
	}
	if c.Fence == nil {
		c.Fence = func(string) (int64, bool) { return 0, true }
	}
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, DefaultReadTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	var faults []error
	if c.Pool == nil || c.Store == nil || c.Provider == nil {
		faults = append(faults, errors.New("pool, store and provider are required"))
	}
	if c.PublicAddr == "" || c.StaffAddr == "" {
		faults = append(faults, errors.New("both listen addresses are required"))
	}
	if c.FundingWait < 0 || c.FundingWait >= createBusy {
		faults = append(faults, fmt.Errorf("funding wait %v: not from 0 to less than %v", c.FundingWait, createBusy))
	}
	if c.DrainDelay < 0 || c.DrainTime < 0 || c.Refresh < 0 || c.ApprovalAmount < 0 || c.RiskRefuseFrom < 0 {
		faults = append(faults, errors.New("a duration or amount is below zero"))
	}
	if c.MaxConns < 0 || c.ConnsPerAddress < 0 || c.ReadTimeout < 0 || c.WriteTimeout < 0 || c.IdleTimeout < 0 {
		faults = append(faults, errors.New("a bound of connections is below zero"))
	}
	if !c.Limits.valid() {
		faults = append(faults, fmt.Errorf("rate limit: not %s", access.LimitForm))
	}
	if c.Limits.any() && c.Limiter == nil {
		faults = append(faults, errors.New("rate limits, and nothing that counts"))
	}
	if c.TemporalUIURL != "" {
		if u, err := url.Parse(c.TemporalUIURL); err != nil || u.Scheme == "" || u.Host == "" {
			faults = append(faults, errors.New("temporal UI address is not an absolute URL"))
		}
	}
	if len(faults) > 0 {
		return c, fmt.Errorf("api configuration: %w", errors.Join(faults...))
	}
	return c, nil
}
