package health

import (
	"slices"
	"time"

	"hongbao/internal/observe"
)

// Limits of age.
const (
	handoffLimit    = 30 * time.Second
	queueLimit      = 30 * time.Second
	movingLimit     = 5 * time.Minute
	unknownLimit    = time.Hour
	troubleLimit    = time.Minute // lost answers are resolved earlier by repeats
	overdueLimit    = 5 * time.Minute
	outboxLimit     = time.Minute
	reconciledLimit = 36 * time.Hour // one reconciliation a day is scheduled
	approvalLimit   = time.Hour
	releaseLimit    = 4 * time.Hour
	campaignLimit   = 3 * time.Minute
)

// Checks returns all checks, by part, in the order in which they are shown.
func Checks() []*Check { return checks }

var checks = []*Check{
	decision("payout_failed", "failed payouts", "hongbao payouts list --status failed; docs/finance.md describes each case."),
	decision("payout_returned", "returned payouts", "hongbao payouts list --status returned; docs/finance.md describes each case."),
	decision("refund_failed", "failed refunds", "hongbao refunds list --status failed; docs/finance.md describes each case."),
	decision("refund_returned", "returned refunds", "hongbao refunds list --status returned; docs/finance.md describes each case."),
	{Part: "decisions", Name: "approval", Title: "approvals", Source: MySQL, Limit: approvalLimit, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return due(v, "approval").Backlog },
		What:   "decisions that wait for approval", Do: "hongbao approvals list --status waiting",
		Alert: "HongbaoApprovalWaits", Metric: "max(hongbao_approval_oldest_seconds)"},
	{Part: "decisions", Name: "release", Title: "hold releases", Source: MySQL, Limit: releaseLimit, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return v.Releases },
		What:   "releases of holds that wait for a second person", Do: "hongbao holds list; hongbao holds show HOLD states who asked.",
		Alert: "HongbaoHoldReleaseWaits", Metric: "max(hongbao_hold_release_oldest_seconds)"},

	{Part: "redis", Name: "durable", Title: "durability", Source: Redis, Kind: State, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return when(!v.Durable, time.Time{}) },
		What:   "Redis may lose acknowledged grabs", Good: "Redis keeps every acknowledged write.",
		Do: "Set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and maxmemory-policy noeviction in redis.conf, also of " +
			"replicas. Until then no grabs are accepted."},
	{Part: "redis", Name: "gates", Title: "fenced lanes", Source: MySQL, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog {
			return total(v.Lanes, func(l observe.LaneBacklog) bool { return l.State != "open" })
		},
		What: "lanes of Redis that lost data or may have lost data",
		Do: "hongbao pool status; workers rebuild these lanes from MySQL, unless HONGBAO_POOL_REBUILD is manual: then hongbao pool " +
			"rebuild --all. Until then creates and grabs of these lanes get 503."},
	{Part: "redis", Name: "lost_grabs", Title: "lost grabs", Source: MySQL, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return observe.Backlog{Waiting: v.LostGrabs} },
		What:   "acknowledged grabs that may be lost",
		Do:     "Compare with users' reports; docs/guarantees.md says when acknowledged grabs can be lost.",
		Alert:  "HongbaoPoolLostGrabs", Metric: "max(hongbao_pool_lost_grabs)"},
	{Part: "redis", Name: "handoffs", Title: "hand-offs", Source: Redis, Limit: handoffLimit, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return v.Handoffs },
		What:   "hand-offs that wait for the relay", Do: "Check that a worker runs and that Temporal answers.",
		Alert: "HongbaoHandoffsWait", Metric: "max(hongbao_handoff_oldest_seconds)"},

	{Part: "mysql", Name: "books", Title: "books", Source: MySQL, Kind: State, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return when(v.MySQLRestored, time.Time{}) },
		What:   "MySQL was restored from a backup and lacks later payments",
		Good:   "MySQL is not older than the last heartbeat in Redis.",
		Do:     "hongbao recover: read its --help first. Until then nothing is sent, decided or closed.",
		Alert:  "HongbaoBooksRestored", Metric: "max(hongbao_books_restored)"},
	{Part: "mysql", Name: "ledger", Title: "ledger", Source: MySQL, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return observe.Backlog{Waiting: v.Imbalanced} },
		What:   "recently posted packets whose ledger does not balance", Do: "hongbao ledger verify, at once.",
		Alert: "HongbaoLedgerImbalance", Metric: "max(hongbao_ledger_imbalanced_packets)"},
	{Part: "mysql", Name: "suspense", Title: "suspense", Source: MySQL, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return observe.Backlog{Waiting: v.Suspense} },
		What:   "fen that have moved twice",
		Do:     "hongbao reconcile breaks --open --kind second_success: recover the money.",
		Alert:  "HongbaoLedgerSuspense", Metric: "max(hongbao_ledger_suspense_fen)"},
	{Part: "mysql", Name: "outbox", Title: "outbox", Source: MySQL, Limit: outboxLimit, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return v.Outbox },
		What:   "outbox entries whose run is not started or woken", Do: "Check that workers run and Temporal answers.",
		Alert: "HongbaoOutboxStuck", Metric: "max(hongbao_outbox_oldest_seconds)"},
	{Part: "mysql", Name: "overdue", Title: "packets overdue", Source: MySQL, Limit: overdueLimit, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return total(v.Overdue, nil) },
		What:   "packets past their expiry that are not closed",
		Do:     "Check their runs in the Temporal UI; for those that wait for a failed refund: hongbao refunds list --status failed.",
		Alert:  "HongbaoRefundLag", Metric: "max(hongbao_refund_lag_seconds)"},
	{Part: "mysql", Name: "campaigns", Title: "campaigns", Source: MySQL, Limit: campaignLimit, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return v.Campaigns },
		What:   "campaign days whose packet is overdue",
		Do:     "Check that workers run, and read the failures of the runs campaign/<id> in the Temporal UI."},
	{Part: "mysql", Name: "campaign_days", Title: "campaign days", Source: MySQL, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return total(v.CampaignDays, nil) },
		What:   "campaign days without a grabbable packet in the last 24 h",
		Do:     "docs/runbook.md, HongbaoCampaignDayLost, describes how to find them. The app can create packets for them."},
	{Part: "mysql", Name: "balances", Title: "balances of apps", Source: MySQL, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return observe.Backlog{Waiting: v.ShortBalances} },
		What:   "apps whose balance is low, or does not cover their campaigns in the next 24 h",
		Do:     "hongbao balances list; the app has to pay in, and finance credits it.",
		Alert:  "HongbaoAppBalanceShort", Metric: "max(hongbao_app_balances_short)"},
	{Part: "mysql", Name: "quarantine", Title: "quarantine", Source: MySQL, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return observe.Backlog{Waiting: v.Quarantined} },
		What:   "hand-offs that could not be decoded",
		Do:     "Read the table quarantine and the worker's log: these may be claims that are not paid.",
		Alert:  "HongbaoHandoffQuarantined", Metric: "max(hongbao_quarantined)"},

	{Part: "temporal", Name: "queues", Title: "task queues", Source: Temporal, Limit: queueLimit, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return total(v.Queues, nil) },
		What:   "tasks that wait for a worker",
		Do: "Start more workers (docs/scaling.md), or check the log, /readyz and CPU of those that run. Until then claims are paid " +
			"late.",
		Alert: "HongbaoTaskQueueBacklog", Metric: "max by (queue, kind) (hongbao_task_queue_oldest_seconds)"},

	{Part: "provider", Name: "held", Title: "provider hold", Source: MySQL, Kind: State, Beyond: Warning, Figure: heldProviders,
		What: "Nothing is sent to a provider", Good: "Nobody holds the provider.",
		Do: "hongbao providers list names the reason; hongbao providers release NAME --reason ..., when the cause is gone."},
	{Part: "provider", Name: "holds", Title: "holds", Source: MySQL, Beyond: Warning, Figure: observe.HealthSnapshot.HeldItems,
		Fen:  func(v observe.HealthSnapshot) int64 { return v.HeldFen },
		What: "active holds of packets and payments",
		Do:   "hongbao holds list; hongbao holds show states what a release lets go. Release what has no cause any more."},
	{Part: "provider", Name: "under_way", Title: "payments under way", Source: MySQL, Limit: movingLimit, Beyond: Wrong,
		Figure: payments("pending", "sending"), What: "payments that are due or without an answer",
		Do: "Check that workers run, and that the provider answers and is not on hold; the runs in the Temporal UI show what they wait " +
			"for. hongbao payouts list and hongbao refunds list with --status pending and --status sending, hongbao packets list " +
			"--status funding.",
		Alert:  "HongbaoPaymentsStuck",
		Metric: `max by (kind, status) (hongbao_payment_oldest_seconds{status=~"pending|sending"})`},
	// Which payments a worker defers, and why, is known to the worker only. Visible here are the
	// provider's refusals and the payments not sent.
	{Part: "provider", Name: "unsent", Title: "deferred payments", Source: MySQL, Limit: troubleLimit, Beyond: Warning,
		Figure: payments("pending"), What: "payments that are due and not sent",
		Do: "Workers send them by themselves when the provider answers, is not held and the rate limit permits; the runs in the Temporal " +
			"UI show what each waits for."},
	{Part: "provider", Name: "provider_missing", Title: "configured providers", Source: MySQL, Beyond: Wrong,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return v.ProviderMissing },
		What:   "open payments whose provider is not configured",
		Do: "Put the provider that they name back into HONGBAO_PROVIDERS_FILE of every process; they then go on by themselves. " +
			"docs/runbook.md, HongbaoProviderMissing, describes how to find them.",
		Alert: "HongbaoProviderMissing", Metric: "max(hongbao_payments_provider_missing)"},
	trouble("low_balance", "provider balance", observe.TroubleLowBalance, 0, "payments that our balance does not cover",
		"Top up the account at the provider. All are sent by themselves afterwards."),
	{Part: "provider", Name: "provider_balances", Title: "provider balances", Source: Providers, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return observe.Backlog{Waiting: v.ShortAccounts()} },
		What:   "provider accounts that hold less than they may still have to pay out",
		Do:     "Top up the account at the provider before payouts are deferred; hongbao doctor states the amounts.",
		Alert:  "HongbaoProviderBalanceShort", Metric: "max(hongbao_provider_balances_short)"},
	trouble("rate_limited", "provider rate", observe.TroubleRateLimited, troubleLimit, "payments that the provider refused as too frequent",
		"Lower HONGBAO_PROVIDER_RATE. Refused payments are sent again by themselves."),
	trouble("no_answer", "provider answers", observe.TroubleNoAnswer, troubleLimit, "payments to which the provider gave no usable answer",
		"The provider or the network fails. Workers test with single calls, and resume by themselves."),
	{Part: "provider", Name: "unknown_outcomes", Title: "unknown outcomes", Source: MySQL, Limit: unknownLimit, Beyond: Wrong,
		Figure: payments("unknown"), What: "payments with an unknown outcome",
		Do: "hongbao payouts list --status unknown, hongbao refunds list --status unknown, hongbao packets list --status funding; workers " +
			"query them automatically. Contact the provider about the oldest.",
		Alert: "HongbaoPaymentUnknownLong", Metric: `max by (kind) (hongbao_payment_oldest_seconds{status="unknown"})`},

	{Part: "reconciliation", Name: "last_run", Title: "last reconciliation", Source: MySQL, Kind: Age, Limit: reconciledLimit, Beyond: Warning,
		Figure: lastReconciliation, What: "No day was compared with the provider's statement",
		Good: "Within the last " + reconciledLimit.String() + ".",
		Do: "Check that workers run, and read hongbao reconcile list; run hongbao reconcile start --date <day> --reason <text> --wait for " +
			"each missing day.",
		Alert: "HongbaoReconciliationMissing", Metric: "max(hongbao_reconciliation_age_seconds)"},
	{Part: "reconciliation", Name: "unreconciled", Title: "reconciliation", Source: MySQL, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return v.Unreconciled },
		What:   "days that were not compared with the provider's statement",
		Do:     "hongbao reconcile list --status failed names the cause. Workers retry; hongbao reconcile start retries at once.",
		Alert:  "HongbaoReconciliationFailed", Metric: "max(hongbao_reconciliation_failed_days)"},
	{Part: "reconciliation", Name: "breaks", Title: "breaks", Source: MySQL, Beyond: Warning,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return total(v.Breaks, nil) },
		What:   "breaks that wait for a decision", Do: "hongbao reconcile breaks --open",
		Alert: "HongbaoBreakOpen", Metric: "max by (kind) (hongbao_breaks_open)"},
}

// decision is the check of the failed or returned payments of a reason: any of them needs a decision.
func decision(reason, what, do string) *Check {
	return &Check{Part: "decisions", Name: reason, Title: what, Source: MySQL, Beyond: Warning, What: what, Do: do,
		Figure: func(v observe.HealthSnapshot) observe.Backlog { return due(v, reason).Backlog },
		Fen:    func(v observe.HealthSnapshot) int64 { return due(v, reason).Fen }}
}

// due reads what waits for a decision for a reason.
func due(v observe.HealthSnapshot, reason string) observe.DecisionBacklog {
	for _, d := range v.Decisions {
		if d.Reason == reason {
			return d
		}
	}
	return observe.DecisionBacklog{}
}

// trouble is the check of the payments that the providers have not accepted for a reason.
func trouble(name, title string, why observe.Trouble, limit time.Duration, what, do string) *Check {
	return &Check{Part: "provider", Name: name, Title: title, Source: MySQL, Limit: limit, Beyond: Warning, What: what, Do: do,
		Figure: func(v observe.HealthSnapshot) observe.Backlog {
			return total(v.Troubles, func(t observe.TroubleBacklog) bool { return t.Why == why })
		}}
}

// payments reads the payments of every kind in the statuses.
func payments(statuses ...string) func(observe.HealthSnapshot) observe.Backlog {
	return func(v observe.HealthSnapshot) observe.Backlog {
		return total(v.Payments, func(p observe.PaymentBacklog) bool { return slices.Contains(statuses, p.Status) })
	}
}

// when is the figure of a State.
func when(is bool, since time.Time) observe.Backlog {
	if !is {
		return observe.Backlog{}
	}
	return observe.Backlog{Waiting: 1, Oldest: since}
}

// total adds up the backlogs of the items that count; nil: all of them.
func total[T interface{ Figure() observe.Backlog }](items []T, counts func(T) bool) (sum observe.Backlog) {
	for _, item := range items {
		if counts == nil || counts(item) {
			sum = sum.Add(item.Figure())
		}
	}
	return sum
}

func heldProviders(v observe.HealthSnapshot) (sum observe.Backlog) {
	for _, since := range v.HeldProviders {
		if !since.IsZero() {
			sum = sum.Add(observe.Backlog{Waiting: 1, Oldest: since})
		}
	}
	return sum
}

// lastReconciliation is since when none was completed. A new installation has none; without any it is as
// late as the installation is old.
func lastReconciliation(v observe.HealthSnapshot) observe.Backlog {
	if v.Reconciled.IsZero() && !v.Installed.IsZero() && time.Since(v.Installed) > reconciledLimit {
		return observe.Backlog{Waiting: 1}
	}
	return when(!v.Reconciled.IsZero(), v.Reconciled)
}
