package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Verdicts of health, in ascending severity.
const (
	healthOK      = "ok"
	healthUnknown = "unknown" // could not be checked
	healthWarning = "warning" // staff should look into it
	healthWrong   = "wrong"   // grabs or payments are affected
)

var verdicts = []string{healthOK, healthUnknown, healthWarning, healthWrong}

const (
	// providerPatience is how long an answer of the provider is reused: health checks must not
	// use up the provider's rate limit.
	providerPatience = 15 * time.Second
	// reconcileLook is how many of the latest reconciliations are searched for one that has
	// ended.
	reconcileLook = 20
)

// Health is the health of all parts of the platform.
type Health struct {
	Status string       `json:"status" enum:"ok,unknown,warning,wrong" doc:"The worst status of the parts. wrong: grabs or payments are affected. warning: staff should look into it. unknown: a check could not run."`
	Parts  []HealthPart `json:"parts" nullable:"false" doc:"All parts, always in the same order."`
}

// HealthPart is one part of the platform.
type HealthPart struct {
	Name   string        `json:"name" enum:"decisions,redis,mysql,temporal,workers,provider,reconciliation,audit" doc:"The part."`
	Status string        `json:"status" enum:"ok,unknown,warning,wrong" doc:"The worst status of its checks."`
	Checks []HealthCheck `json:"checks" nullable:"false" doc:"The checks of the part."`
}

// HealthCheck is one check of a part.
type HealthCheck struct {
	Name      string          `json:"name" enum:"payout_failed,payout_returned,refund_failed,refund_returned,approval,answers,durable,gates,lost_grabs,handoffs,books,outbox,overdue,ledger,suspense,quarantine,queues,polling,held,holds,under_way,unsent,low_balance,rate_limited,no_answer,unknown_outcomes,last_run,unreconciled,breaks,chain" doc:"The check."`
	Status    string          `json:"status" enum:"ok,unknown,warning,wrong" doc:"The result of the check."`
	LatencyUS Nullable[int64] `json:"latency_us" doc:"The latency of the answer in microseconds; null for checks without a call."`
	Count     Nullable[int64] `json:"count" doc:"The count, depending on the check: lanes that are not open, waiting items, workers, verified entries, days whose statement could not be read. low_balance, rate_limited, no_answer: payments that the provider has not accepted, among the oldest 5,000 of each kind and status. suspense: fen. holds: active holds of packets and payments. null for checks without a count."`
	Since     Nullable[Stamp] `json:"since" doc:"Since when the oldest item waits; last_run: when it ended. null: no item, or no run yet."`
}

// providerSeen is the last answer of the provider.
type providerSeen struct {
	mu   sync.Mutex
	at   time.Time
	seen HealthCheck
}

func getHealth(r *request) (answer, error) {
	s := r.server
	var v observe.HealthSnapshot
	if s.cfg.HealthSnapshot != nil {
		v = s.cfg.HealthSnapshot()
	}
	looks := []func(context.Context, observe.HealthSnapshot) []HealthPart{s.decisionHealth, s.redisHealth, s.mysqlHealth, s.temporalHealth,
		s.providerHealth,
		s.reconciliationHealth, s.auditHealth}
	found := make([][]HealthPart, len(looks))
	var all sync.WaitGroup
	for i, look := range looks {
		all.Go(func() { found[i] = look(r.ctx, v) })
	}
	all.Wait()
	out := Health{Status: healthOK, Parts: slices.Concat(found...)}
	for _, p := range out.Parts {
		out.Status = worse(out.Status, p.Status)
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// worse returns the worse of two verdicts.
func worse(a, b string) string {
	return verdicts[max(slices.Index(verdicts, a), slices.Index(verdicts, b))]
}

// partOf combines checks into a part; a check without a name was not made.
func partOf(name string, checks ...HealthCheck) HealthPart {
	p := HealthPart{Name: name, Status: healthOK, Checks: []HealthCheck{}}
	for _, c := range checks {
		if c.Name != "" {
			p.Checks, p.Status = append(p.Checks, c), worse(p.Status, c.Status)
		}
	}
	return p
}

// answers checks that a dependency answers.
func answers(ctx context.Context, name string, probe func(context.Context) error) HealthCheck {
	d := ask(ctx, name, probe)
	took := int64(d.LatencyMS * 1000)
	c := HealthCheck{Name: "answers", Status: healthOK, LatencyUS: orNull(&took)}
	if d.Status != "ok" {
		c.Status = healthWrong
	}
	return c
}

// known returns an unknown check when its figure could not be read.
func known(read bool, c HealthCheck) HealthCheck {
	if !read {
		return HealthCheck{Name: c.Name, Status: healthUnknown}
	}
	return c
}

// held is a check that something is as it should be; otherwise is the verdict if not.
func held(name string, well bool, otherwise string) HealthCheck {
	if well {
		otherwise = healthOK
	}
	return HealthCheck{Name: name, Status: otherwise}
}

// counted is a check of a count: a count above zero has the given verdict.
func counted(name string, n int64, verdict string) HealthCheck {
	c := held(name, n == 0, verdict)
	c.Count = orNull(&n)
	return c
}

// aged is a check of a backlog by the age of its oldest item: a large backlog is fine while it
// moves. With a limit of zero any item has the verdict.
func aged(name string, b observe.Backlog, limit time.Duration, verdict string) HealthCheck {
	c := counted(name, b.Waiting, verdict)
	c.Since = stampOrNull(b.Oldest)
	if b.Oldest.IsZero() || time.Since(b.Oldest) <= limit {
		c.Status = held(name, b.Waiting == 0 || limit > 0, verdict).Status
	}
	return c
}

// decisionHealth checks what waits for a decision of staff, as in the overview. Breaks belong
// to the reconciliation.
func (s *Server) decisionHealth(ctx context.Context, _ observe.HealthSnapshot) []HealthPart {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	due, err := s.cfg.Store.DecisionBacklogs(ctx)
	var checks []HealthCheck
	for _, reason := range staff.DecisionReasons {
		if reason == staff.ReasonBreak {
			continue
		}
		var limit time.Duration // any failed payment needs a decision
		if reason == staff.ReasonApproval {
			limit = observe.ApprovalWarnAge
		}
		var b observe.Backlog
		for _, d := range due {
			if d.Reason == reason {
				b = observe.Backlog{Waiting: d.Count, Oldest: d.Oldest}
			}
		}
		checks = append(checks, known(err == nil, aged(string(reason), b, limit, healthWarning)))
	}
	return []HealthPart{partOf("decisions", checks...)}
}

func (s *Server) redisHealth(ctx context.Context, v observe.HealthSnapshot) []HealthPart {
	var shut observe.Backlog
	for _, g := range v.Lanes {
		if g.State != string(packet.LaneOpen) {
			shut = shut.Add(g.Backlog)
		}
	}
	reached := answers(ctx, "redis", s.cfg.Pool.Ping)
	v.FromRedis = v.FromRedis && reached.Status == healthOK // else the figures predate the outage
	return []HealthPart{partOf("redis",
		reached,
		known(v.FromRedis, held("durable", v.Durable, healthWrong)),
		known(v.FromMySQL, aged("gates", shut, 0, healthWrong)),
		known(v.FromMySQL, counted("lost_grabs", v.LostGrabs, healthWarning)),
		known(v.FromRedis, aged("handoffs", v.Handoffs, observe.HandoffMaxAge, healthWrong)))}
}

func (s *Server) mysqlHealth(ctx context.Context, v observe.HealthSnapshot) []HealthPart {
	var overdue observe.Backlog
	for _, p := range v.Overdue {
		overdue = overdue.Add(p.Backlog)
	}
	reached := answers(ctx, "mysql", s.cfg.Store.Ping)
	v.FromMySQL = v.FromMySQL && reached.Status == healthOK // else the figures predate the outage
	return []HealthPart{partOf("mysql",
		reached,
		known(v.FromMySQL, held("books", !v.MySQLRestored, healthWrong)),
		known(v.FromMySQL, counted("ledger", v.Imbalanced, healthWrong)),
		known(v.FromMySQL, counted("suspense", v.Suspense, healthWarning)),
		known(v.FromMySQL, aged("outbox", v.Outbox, observe.OutboxMaxAge, healthWrong)),
		known(v.FromMySQL, aged("overdue", overdue, observe.OverdueMaxAge, healthWrong)),
		known(v.FromMySQL, counted("quarantine", v.Quarantined, healthWrong)))}
}

// temporalHealth checks Temporal and its workers.
func (s *Server) temporalHealth(ctx context.Context, _ observe.HealthSnapshot) []HealthPart {
	var reached HealthCheck
	if s.cfg.PingTemporal != nil {
		reached = answers(ctx, "temporal", s.cfg.PingTemporal)
	}
	queues, polling := HealthCheck{Name: "queues", Status: healthUnknown}, HealthCheck{Name: "polling", Status: healthUnknown}
	if s.cfg.TaskQueues != nil {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		if found, workers, err := s.cfg.TaskQueues(ctx); err == nil {
			var waiting observe.Backlog
			for _, q := range found {
				waiting = waiting.Add(q.Backlog)
			}
			n := int64(workers)
			queues, polling = aged("queues", waiting, observe.QueueMaxAge, healthWrong), held("polling", workers > 0, healthWrong)
			polling.Count = orNull(&n)
		}
	}
	return []HealthPart{partOf("temporal", reached, queues), partOf("workers", polling)}
}

func (s *Server) providerHealth(ctx context.Context, v observe.HealthSnapshot) []HealthPart {
	var moving, unsent, unknown observe.Backlog
	for _, p := range v.Payments {
		switch payout.Status(p.Status) {
		case payout.StatusPending:
			moving, unsent = moving.Add(p.Backlog), unsent.Add(p.Backlog)
		case payout.StatusSending:
			moving = moving.Add(p.Backlog)
		case payout.StatusUnknown:
			unknown = unknown.Add(p.Backlog)
		}
	}
	troubles := map[observe.Trouble]observe.Backlog{}
	for _, t := range v.Troubles {
		if t.Provider == s.cfg.Provider.Name() {
			troubles[t.Why] = troubles[t.Why].Add(t.Backlog)
		}
	}
	hold := HealthCheck{Name: "held", Status: healthOK, Since: stampOrNull(v.HeldProviders[s.cfg.Provider.Name()])}
	if hold.Since.Value != nil {
		hold.Status = healthWarning
	}
	return []HealthPart{partOf("provider",
		s.providerAnswers(ctx),
		known(v.FromMySQL, hold),
		known(v.FromMySQL, aged("holds", v.HeldItems(), 0, healthWarning)),
		known(v.FromMySQL, aged("under_way", moving, observe.MovingMaxAge, healthWrong)),
		// Which payments a worker defers, and why, is known to the worker only. Visible here are
		// the provider's refusals and the amount not sent.
		known(v.FromMySQL, aged("unsent", unsent, observe.TroubleWarnAge, healthWarning)),
		known(v.FromMySQL, aged("low_balance", troubles[observe.TroubleLowBalance], 0, healthWarning)),
		known(v.FromMySQL, aged("rate_limited", troubles[observe.TroubleRateLimited], observe.TroubleWarnAge, healthWarning)),
		known(v.FromMySQL, aged("no_answer", troubles[observe.TroubleNoAnswer], observe.TroubleWarnAge, healthWarning)),
		known(v.FromMySQL, aged("unknown_outcomes", unknown, observe.UnknownMaxAge, healthWrong)))}
}

// providerAnswers queries the provider for the sums of a packet that does not exist, which
// moves nothing. The answer is reused for providerPatience.
func (s *Server) providerAnswers(ctx context.Context) HealthCheck {
	p := &s.providerSeen
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= providerPatience {
		p.seen = answers(ctx, "provider", func(ctx context.Context) error {
			_, err := s.cfg.Provider.Totals(ctx, strings.Repeat("0", packet.IDLen))
			return err
		})
		p.at = time.Now()
	}
	return p.seen
}

func (s *Server) reconciliationHealth(ctx context.Context, v observe.HealthSnapshot) []HealthPart {
	var open observe.Backlog
	for _, b := range v.Breaks {
		open = open.Add(b.Backlog)
	}
	last := HealthCheck{Name: "last_run", Status: healthUnknown}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if runs, err := s.cfg.Store.Reconciliations(ctx, staff.ReconciliationFilter{Limit: reconcileLook}); err == nil {
		installed, err := s.cfg.Store.InstalledAt(ctx)
		if last = lastRun(runs, installed); err != nil && last.Since.Value == nil {
			last.Status = healthUnknown
		}
	}
	return []HealthPart{partOf("reconciliation", last,
		known(v.FromMySQL, aged("unreconciled", v.Unreconciled, 0, healthWarning)), known(v.FromMySQL, aged("breaks", open, 0, healthWarning)))}
}

// lastRun checks the latest reconciliation that has ended. A new installation has none;
// without any it is as late as the installation is old.
func lastRun(runs []staff.Reconciliation, installed time.Time) HealthCheck {
	c := held("last_run", time.Since(installed) <= observe.ReconciledWarnAge, healthWarning)
	for _, r := range runs {
		if r.EndedAt.IsZero() {
			continue
		}
		c.Since = stampOrNull(r.EndedAt)
		switch {
		case r.Status == staff.ReconciliationFailed:
			c.Status = healthWrong
		case time.Since(r.EndedAt) > observe.ReconciledWarnAge:
			c.Status = healthWarning
		default:
			c.Status = healthOK
		}
		return c
	}
	return c
}

func (s *Server) auditHealth(ctx context.Context, _ observe.HealthSnapshot) []HealthPart {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	w, err := s.cfg.Store.WatchAudit(ctx)
	if err != nil {
		return []HealthPart{partOf("audit", HealthCheck{Name: "chain", Status: healthUnknown})}
	}
	c := held("chain", w.FirstBad == nil, healthWrong)
	c.Count = orNull(&w.Checked)
	return []HealthPart{partOf("audit", c)}
}
