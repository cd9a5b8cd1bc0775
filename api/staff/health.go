package staff

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/api/rest"
	"hongbao/internal/health"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// providerPatience is how long an answer of the provider is reused: health checks must not
// use up the provider's rate limit.
const providerPatience = 15 * time.Second

// providerSeen is the last answer of the provider.
type providerSeen struct {
	mu   sync.Mutex
	at   time.Time
	seen wire.HealthCheck
}

// healthParts are the parts in their order.
var healthParts = []string{"decisions", "redis", "mysql", "temporal", "workers", "provider", "reconciliation", "audit"}

func (s *API) getHealth(ctx context.Context, _ *struct{}) (*wire.Health, error) {
	var v observe.HealthSnapshot
	if s.cfg.HealthSnapshot != nil {
		v = s.cfg.HealthSnapshot()
	}
	// What is asked now; the list of package health judges the figures of the snapshot.
	live := map[string]*wire.HealthCheck{}
	var all sync.WaitGroup
	look := func(part string, check func() wire.HealthCheck) {
		c := new(wire.HealthCheck)
		live[part] = c
		all.Go(func() { *c = check() })
	}
	look("redis", func() wire.HealthCheck { return answers(ctx, "redis", s.cfg.Pool.Ping) })
	look("mysql", func() wire.HealthCheck { return answers(ctx, "mysql", s.cfg.Store.Ping) })
	if temporal := s.cfg.Probes["temporal"]; temporal != nil {
		look("temporal", func() wire.HealthCheck { return answers(ctx, "temporal", temporal) })
	}
	var queues []observe.QueueBacklog
	look("workers", func() (c wire.HealthCheck) { c, queues = s.polling(ctx); return c })
	look("provider", func() wire.HealthCheck { return s.providerAnswers(ctx) })
	look("audit", func() wire.HealthCheck { return s.auditChain(ctx) })
	// What staff just decided must not stay on the console's overview for the age of a snapshot.
	all.Go(func() {
		if due, err := s.decisionsDue(ctx); err == nil {
			v.Decisions = due
		}
	})
	all.Wait()
	// The figures of a store that does not answer predate the outage.
	v.FromRedis = v.FromRedis && live["redis"].Status == wire.VerdictOK
	v.FromMySQL = v.FromMySQL && live["mysql"].Status == wire.VerdictOK
	v.FromProviders = v.FromProviders && live["mysql"].Status == wire.VerdictOK
	v.Queues, v.FromTemporal = queues, live["workers"].Status != wire.VerdictUnknown
	return renderHealth(v, live), nil
}

// renderHealth joins what was asked now and the judged figures.
func renderHealth(v observe.HealthSnapshot, live map[string]*wire.HealthCheck) *wire.Health {
	now, worst := time.Now(), health.OK
	out := &wire.Health{Parts: []wire.HealthPart{}}
	for _, name := range healthParts {
		part := wire.HealthPart{Name: name, Checks: []wire.HealthCheck{}}
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
		part.Status, worst = wire.Verdict(verdict), health.Worse(worst, verdict)
		out.Parts = append(out.Parts, part)
	}
	out.Status = wire.Verdict(worst)
	return out
}

func renderCheck(f health.Finding) wire.HealthCheck {
	c := wire.HealthCheck{Name: f.Check.Name, Status: wire.Verdict(f.Verdict)}
	if f.Verdict != health.Unknown {
		c.Since = rest.TimeOrNull(f.Since)
		if f.Check.Kind == health.Backlog {
			c.Count = &f.Count
		}
	}
	return c
}

// decisionsDue reads what waits for a decision of staff, as in the overview.
func (s *API) decisionsDue(ctx context.Context) (out []observe.DecisionBacklog, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*health.ProbeTimeout)
	defer cancel()
	due, err := s.cfg.Store.DecisionBacklogs(ctx)
	for _, d := range due {
		out = append(out, observe.DecisionBacklog{Reason: string(d.Reason), Kind: string(d.Break), Fen: int64(d.Amount),
			Backlog: observe.Backlog{Waiting: d.Count, Oldest: d.Oldest}})
	}
	return out, err
}

// verdictOf is the verdict about something that is as it should be, or not.
func verdictOf(well bool) wire.Verdict {
	if well {
		return wire.VerdictOK
	}
	return wire.VerdictWrong
}

// answers checks that a dependency answers.
func answers(ctx context.Context, name string, probe health.Probe) wire.HealthCheck {
	d := probe.Run(ctx, name)
	took := int64(d.LatencyMS * 1000)
	return wire.HealthCheck{Name: "answers", Status: verdictOf(d.Status == "ok"), LatencyUS: &took}
}

// polling checks that workers poll Temporal, and reads the backlog of its task queues.
func (s *API) polling(ctx context.Context) (wire.HealthCheck, []observe.QueueBacklog) {
	c := wire.HealthCheck{Name: "polling", Status: wire.VerdictUnknown}
	if s.cfg.TaskQueues == nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, health.ProbeTimeout)
	defer cancel()
	queues, workers, err := s.cfg.TaskQueues(ctx)
	if err != nil {
		return c, nil
	}
	n := int64(workers)
	c.Status, c.Count = verdictOf(workers > 0), &n
	return c, queues
}

// providerAnswers makes the harmless call of every provider that has one. The answer is reused for providerPatience.
func (s *API) providerAnswers(ctx context.Context) wire.HealthCheck {
	p := &s.providerSeen
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= providerPatience {
		p.seen = answers(ctx, "provider", func(ctx context.Context) error {
			var group errgroup.Group
			for _, one := range s.cfg.Providers.All() {
				if checked, is := one.(payout.Checked); is {
					group.Go(func() error { return checked.Check(ctx) })
				}
			}
			return group.Wait()
		})
		p.at = time.Now()
	}
	return p.seen
}

// auditChain checks the hash chain of the audit log.
func (s *API) auditChain(ctx context.Context) wire.HealthCheck {
	ctx, cancel := context.WithTimeout(ctx, 2*health.ProbeTimeout)
	defer cancel()
	w, err := s.cfg.Store.WatchAudit(ctx)
	if err != nil {
		return wire.HealthCheck{Name: "chain", Status: wire.VerdictUnknown}
	}
	return wire.HealthCheck{Name: "chain", Status: verdictOf(w.FirstBad == nil), Count: &w.Checked}
}
