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
	"hongbao/internal/health"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Defaults of Config.
const (
	// DefaultApprovalAmount is the amount from which a retry needs a second person.
	DefaultApprovalAmount money.Fen = 100_000
	// DefaultFundingWait is how long a create waits for the charge before it answers 202.
	DefaultFundingWait = 3 * time.Second
	// DefaultDrainTime is how long running requests may take at shutdown.
	DefaultDrainTime = 10 * time.Second
	// DefaultRefresh is how often apps and keys are read again.
	DefaultRefresh = 3 * time.Second
	// DefaultMaxConns has room for ten thousand users with a connection each, beside thousands
	// of idle connections.
	DefaultMaxConns = 16_384
	// DefaultReadTimeout covers a whole request, so that a slow client cannot hold a
	// connection.
	DefaultReadTimeout = 15 * time.Second
	// DefaultWriteTimeout is how long a client may take to read an answer.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultIdleTimeout is how long a connection is kept between two requests.
	DefaultIdleTimeout = 75 * time.Second
)

// Config is the configuration of the API: addresses, dependencies and limits.
type Config struct {
	// PublicAddr and StaffAddr are host:port of the two listeners; port 0 takes a free one.
	PublicAddr string
	StaffAddr  string
	// Starting has the addresses bound already and hands them over in Listen; nil: Listen binds
	// them.
	Starting *Starting

	Pool      Pool
	Store     Store
	Providers *payout.Registry
	// Probes are run by /readyz: redis, mysql, books (an error while MySQL is behind after a restore), temporal
	// and pool (an error while a lane is not open).
	Probes health.Probes
	// Runs returns the runs of a workflow from Temporal, for the timeline of a payment; nil:
	// the timeline says that Temporal is unavailable. Its context ends within temporalTimeout.
	Runs func(ctx context.Context, workflowID string) (staff.WorkflowRuns, error)
	// HealthSnapshot returns the figures of the stores that the metrics show; nil: the health
	// of the parts is unknown.
	HealthSnapshot func() observe.HealthSnapshot
	// TaskQueues returns the backlog of Temporal's task queues and the number of workers; nil:
	// unknown.
	TaskQueues func(context.Context) (queues []observe.QueueBacklog, workers int, err error)

	// Fence is called before a packet is created, grabbed or recalled, and before this process
	// answers from memory. nil: all lanes are open and in one epoch.
	Fence Fence

	// SeedKey derives and opens the seeds of the installation.
	SeedKey [32]byte
	// MirrorKey authenticates the copy of apps and keys in Redis. It is the same for all API
	// processes of an installation.
	MirrorKey [32]byte
	// PublicTokens are hashes of publicly known tokens. Their keys are rejected.
	PublicTokens [][]byte
	// ApprovalAmount is the amount from which a retry needs a second person. 0 means
	// DefaultApprovalAmount.
	ApprovalAmount money.Fen
	// Rates are displayed to staff: sends per second that all workers together may make to a
	// provider, by its name; 0: no limit.
	Rates map[string]int64
	// Limits are the rate limits. Limiter counts for them and is required with any limit.
	Limits  Limits
	Limiter Limiter
	// Risk checks each grab that could win; nil: no check. RiskRefuseUnanswered refuses a grab
	// without an answer of the check; by default such a grab is permitted.
	Risk                 RiskCheck
	RiskRefuseUnanswered bool
	// RiskRefuseFrom is the total amount of a packet from which a grab without an answer of the
	// risk check is refused; 0: never.
	RiskRefuseFrom money.Fen
	// TemporalUIURL and TemporalNamespace build the links to workflows. Without the URL answers
	// have only the path.
	TemporalUIURL     string
	TemporalNamespace string

	// FundingWait 0 means DefaultFundingWait. It must be shorter than createBusy.
	FundingWait time.Duration
	// DrainDelay is how long the API continues to answer after /readyz reports that it drains,
	// for load balancers that poll; 0: not at all.
	DrainDelay time.Duration
	// DrainTime 0 means DefaultDrainTime.
	DrainTime time.Duration
	// Refresh 0 means DefaultRefresh.
	Refresh time.Duration

	// MaxConns bounds the connections of the public listener; further connections are answered
	// 503 and closed. Each waiting grab holds a connection, so grabs are bounded too. 0 means
	// DefaultMaxConns, or fewer if the process may not open as many files.
	MaxConns int
	// ConnsPerAddress bounds the connections of one network address; further ones are answered
	// 503. 0: no bound, as behind a gateway.
	ConnsPerAddress int
	// ReadTimeout, WriteTimeout and IdleTimeout bound how long a client may take to send a
	// request, to read the answer and to send the next request; 0 means the default.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration

	// Now is the clock for the expiry of keys and for the display of packets and lists; nil:
	// the machine's clock. Decisions about money use the clocks of Redis and MySQL.
	Now func() time.Time

	// Tracer starts the traces of requests; nil: no tracing.
	Tracer trace.Tracer
	// Metrics is served at /metrics of the staff listener; nil creates a registry.
	Metrics *prometheus.Registry
	// Version is the version of the build in the OpenAPI document and in metrics.
	Version string
}

// Fence returns the epoch of a packet's lane, and false while the lane is checked or
// rebuilt. It is called with every grab and must not block. What a process remembers of a packet is
// valid only in the epoch in which it was read, and while the lane is open.
type Fence func(packetID string) (version int64, open bool)

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
	if c.Pool == nil || c.Store == nil || c.Providers == nil {
		faults = append(faults, errors.New("pool, store and providers are required"))
	}
	if c.PublicAddr == "" || c.StaffAddr == "" {
		faults = append(faults, errors.New("both listen addresses are required"))
	}
	if c.FundingWait < 0 || c.FundingWait >= createBusy {
		faults = append(faults, fmt.Errorf("funding wait %v: must be at least 0 and less than %v", c.FundingWait, createBusy))
	}
	if c.DrainDelay < 0 || c.DrainTime < 0 || c.Refresh < 0 || c.ApprovalAmount < 0 || c.RiskRefuseFrom < 0 {
		faults = append(faults, errors.New("a duration or amount is negative"))
	}
	if c.MaxConns < 0 || c.ConnsPerAddress < 0 || c.ReadTimeout < 0 || c.WriteTimeout < 0 || c.IdleTimeout < 0 {
		faults = append(faults, errors.New("a limit of connections is negative"))
	}
	if !c.Limits.valid() {
		faults = append(faults, fmt.Errorf("rate limit: not %s", access.LimitForm))
	}
	if c.Limits.any() && c.Limiter == nil {
		faults = append(faults, errors.New("rate limits need a limiter"))
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
