package wire

// Verdict is the result of a check.
type Verdict string

// The verdicts, in ascending severity.
const (
	VerdictOK      Verdict = "ok"
	VerdictUnknown Verdict = "unknown" // could not be checked
	VerdictWarning Verdict = "warning" // staff should look into it
	VerdictWrong   Verdict = "wrong"   // grabs or payments are affected
)

// Liveness is the answer of /livez.
type Liveness struct {
	Status string `json:"status" enum:"ok" doc:"Always ok."`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status       string                `json:"status" enum:"ok,degraded,unavailable" doc:"degraded: ready, but MySQL or Temporal is unavailable, MySQL was restored from an older backup, or a lane of the pool is closed."`
	Reason       string                `json:"reason,omitempty" enum:"starting,draining,redis" doc:"The reason, with status unavailable."`
	Dependencies map[string]Dependency `json:"dependencies" doc:"By name: redis, mysql, books, temporal and pool. pool is ok when all lanes are open. books is unavailable while MySQL is unavailable, or was restored from an older backup and is not recovered."`
}

// Dependency is the result of one probe.
type Dependency struct {
	Status    string  `json:"status" enum:"ok,unavailable" doc:"ok: it answered in time."`
	LatencyMS float64 `json:"latency_ms" minimum:"0" doc:"The latency of the answer in milliseconds."`
}

// Health is the health of all parts of the platform.
type Health struct {
	Status Verdict      `json:"status" enum:"ok,unknown,warning,wrong" doc:"The worst status of the parts. wrong: grabs or payments are affected. warning: staff should look into it. unknown: a check could not run."`
	Parts  []HealthPart `json:"parts" nullable:"false" doc:"All parts, always in the same order."`
}

// HealthPart is one part of the platform.
type HealthPart struct {
	Name   string        `json:"name" enum:"decisions,redis,mysql,temporal,workers,provider,reconciliation,audit" doc:"The part."`
	Status Verdict       `json:"status" enum:"ok,unknown,warning,wrong" doc:"The worst status of its checks."`
	Checks []HealthCheck `json:"checks" nullable:"false" doc:"The checks of the part."`
}

// HealthCheck is one check of a part.
type HealthCheck struct {
	Name      string  `json:"name" enum:"payout_failed,payout_returned,refund_failed,refund_returned,approval,release,answers,durable,gates,lost_grabs,handoffs,books,outbox,overdue,campaigns,campaign_days,balances,ledger,suspense,quarantine,queues,polling,held,holds,under_way,unsent,provider_missing,low_balance,provider_balances,rate_limited,no_answer,unknown_outcomes,last_run,unreconciled,breaks,chain" doc:"The check."`
	Status    Verdict `json:"status" enum:"ok,unknown,warning,wrong" doc:"The result of the check."`
	LatencyUS *int64  `json:"latency_us" doc:"The latency of the answer in microseconds; null for checks without a call."`
	Count     *int64  `json:"count" doc:"The count, depending on the check: lanes that are not open, waiting items, workers, verified entries, days whose statement could not be read. low_balance, rate_limited, no_answer: payments that the provider has not accepted, provider_missing: open payments whose provider is not configured; both among the oldest 5,000 of each kind and status. provider_balances: accounts that hold less than they may still have to pay out. suspense: fen. holds: active holds of packets and payments. null for checks without a count."`
	Since     *Time   `json:"since" doc:"Since when the oldest item waits; last_run: when it ended. null: no item, or no run yet."`
}
