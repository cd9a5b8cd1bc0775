package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"hongbao/internal/health"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
)

// providerPatience is how long an answer of the provider is reused: health checks must not
// use up the provider's rate limit.
const providerPatience = 15 * time.Second

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
	Name      string          `json:"name" enum:"payout_failed,payout_returned,refund_failed,refund_returned,approval,release,answers,durable,gates,lost_grabs,handoffs,books,outbox,overdue,campaigns,campaign_days,ledger,suspense,quarantine,queues,polling,held,holds,under_way,unsent,low_balance,rate_limited,no_answer,unknown_outcomes,last_run,unreconciled,breaks,chain" doc:"The check."`
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

// healthParts are the parts in their order.
var healthParts = []string{"decisions", "redis", "mysql", "temporal", "workers", "provider", "reconciliation", "audit"}

func getHealth(r *request) (answer, error) {
	s, ctx := r.server, r.ctx
	var v observe.HealthSnapshot
	if s.cfg.HealthSnapshot != nil {
		v = s.cfg.HealthSnapshot()
	}
	// What is asked now; the list of package health judges the figures of the snapshot.
	live := map[string]*HealthCheck{}
	var all sync.WaitGroup
	look := func(part string, check func() HealthCheck) {
		c := new(HealthCheck)
		live[part] = c
		all.Go(func() { *c = check() })
	}
	look("redis", func() HealthCheck { return answers(ctx, "redis", s.cfg.Pool.Ping) })
	look("mysql", func() HealthCheck { return answers(ctx, "mysql", s.cfg.Store.Ping) })
	if s.cfg.PingTemporal != nil {
		look("temporal", func() HealthCheck { return answers(ctx, "temporal", s.cfg.PingTemporal) })
	}
	var queues []observe.QueueBacklog
	look("workers", func() (c HealthCheck) { c, queues = s.polling(ctx); return c })
	look("provider", func() HealthCheck { return s.providerAnswers(ctx) })
	look("audit", func() HealthCheck { return s.auditChain(ctx) })
	all.Wait()
	// The figures of a store that does not answer predate the outage.
	v.FromRedis = v.FromRedis && live["redis"].Status == string(health.OK)
	v.FromMySQL = v.FromMySQL && live["mysql"].Status == string(health.OK)
	v.Queues, v.FromTemporal = queues, live["workers"].Status != string(health.Unknown)
	return answer{status: http.StatusOK, body: renderHealth(v, live)}, nil
}

// renderHealth joins what was asked now and the judged figures.
func renderHealth(v observe.HealthSnapshot, live map[string]*HealthCheck) Health {
	now, worst := time.Now(), health.OK
	out := Health{Parts: []HealthPart{}}
	for _, name := range healthParts {
		part := HealthPart{Name: name, Checks: []HealthCheck{}}
		if c := live[name]; c != nil {
			part.Checks = append(part.Checks, *c)
		}
		for _, check := range health.Checks() {
			if check.Part == name {
				part.Checks = append(part.Checks, renderCheck(check.Judge(v, now)))
			}
		}
		verdict := health.OK
		for _, c := range part.Checks {
			verdict = health.Worse(verdict, health.Verdict(c.Status))
		}
		part.Status, worst = string(verdict), health.Worse(worst, verdict)
		out.Parts = append(out.Parts, part)
	}
	out.Status = string(worst)
	return out
}

func renderCheck(f health.Finding) HealthCheck {
	c := HealthCheck{Name: f.Check.Name, Status: string(f.Verdict)}
	if f.Verdict != health.Unknown {
		c.Since = stampOrNull(f.Since)
		if f.Check.Kind == health.Backlog {
			c.Count = orNull(&f.Count)
		}
	}
	return c
}

// verdictOf is the verdict about something that is as it should be, or not.
func verdictOf(well bool) string {
	if well {
		return string(health.OK)
	}
	return string(health.Wrong)
}

// answers checks that a dependency answers.
func answers(ctx context.Context, name string, probe func(context.Context) error) HealthCheck {
	d := ask(ctx, name, probe)
	took := int64(d.LatencyMS * 1000)
	return HealthCheck{Name: "answers", Status: verdictOf(d.Status == "ok"), LatencyUS: orNull(&took)}
}

// polling checks that workers poll Temporal, and reads the backlog of its task queues.
func (s *Server) polling(ctx context.Context) (HealthCheck, []observe.QueueBacklog) {
	c := HealthCheck{Name: "polling", Status: string(health.Unknown)}
	if s.cfg.TaskQueues == nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	queues, workers, err := s.cfg.TaskQueues(ctx)
	if err != nil {
		return c, nil
	}
	n := int64(workers)
	c.Status, c.Count = verdictOf(workers > 0), orNull(&n)
	return c, queues
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

// auditChain checks the hash chain of the audit log.
func (s *Server) auditChain(ctx context.Context) HealthCheck {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	w, err := s.cfg.Store.WatchAudit(ctx)
	if err != nil {
		return HealthCheck{Name: "chain", Status: string(health.Unknown)}
	}
	return HealthCheck{Name: "chain", Status: verdictOf(w.FirstBad == nil), Count: orNull(&w.Checked)}
}
