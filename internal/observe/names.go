package observe

// Names of the metrics that are read from the stores.
const (
	MetricHealthUp        = "hongbao_vitals_up"
	MetricHealthAge       = "hongbao_vitals_age_seconds"
	MetricHandoffs        = "hongbao_handoffs"
	MetricHandoffAge      = "hongbao_handoff_oldest_seconds"
	MetricDurable         = "hongbao_redis_durable"
	MetricLanesRefused    = "hongbao_pool_lanes_refused"
	MetricLaneState       = "hongbao_pool_gate"
	MetricLaneShutAge     = "hongbao_pool_gate_shut_seconds"
	MetricPoolLost        = "hongbao_pool_lost_grabs"
	MetricPayments        = "hongbao_payments"
	MetricPaymentAge      = "hongbao_payment_oldest_seconds"
	MetricUnknown         = "hongbao_payments_unknown"
	MetricProviderMissing = "hongbao_payments_provider_missing"
	MetricOverdue         = "hongbao_packets_overdue"
	MetricRefundLag       = "hongbao_refund_lag_seconds"
	MetricBreaks          = "hongbao_breaks_open"
	MetricBreakAge        = "hongbao_break_oldest_seconds"
	MetricUnreconciled    = "hongbao_reconciliation_failed_days"
	MetricReconciled      = "hongbao_reconciliation_age_seconds"
	MetricReturnsSearched = "hongbao_returns_watch_age_seconds"
	MetricCampaigns       = "hongbao_campaigns_late"
	MetricCampaignAge     = "hongbao_campaign_late_seconds"
	MetricDaysLost        = "hongbao_campaign_days_lost"
	MetricShortBalances   = "hongbao_app_balances_short"
	MetricPayable         = "hongbao_provider_payable_fen"
	MetricAvailable       = "hongbao_provider_available_fen"
	MetricShortAccounts   = "hongbao_provider_balances_short"
	MetricApprovals       = "hongbao_approvals_waiting"
	MetricApprovalAge     = "hongbao_approval_oldest_seconds"
	MetricDecisionsDue    = "hongbao_decisions_due"
	MetricDecisionsDueFen = "hongbao_decisions_due_fen"
	MetricRemoved         = "hongbao_retention_removed_total"
	MetricOldest          = "hongbao_retention_oldest_seconds"
	MetricOutbox          = "hongbao_outbox"
	MetricOutboxAge       = "hongbao_outbox_oldest_seconds"
	MetricQuarantined     = "hongbao_quarantined"
	MetricRepairs         = "hongbao_repairs_total"
	MetricHeld            = "hongbao_provider_held_seconds"
	MetricHolds           = "hongbao_holds_active"
	MetricHoldAge         = "hongbao_hold_oldest_seconds"
	MetricHeldFen         = "hongbao_holds_fen"
	MetricReleases        = "hongbao_hold_releases_waiting"
	MetricReleaseAge      = "hongbao_hold_release_oldest_seconds"
	MetricConflicts       = "hongbao_share_conflicts_open"
	MetricConflictsFen    = "hongbao_share_conflicts_open_fen"
	MetricImbalance       = "hongbao_ledger_imbalanced_packets"
	MetricSuspense        = "hongbao_ledger_suspense_fen"
	MetricRestored        = "hongbao_books_restored"
	MetricQueue           = "hongbao_task_queue_backlog"
	MetricQueueAge        = "hongbao_task_queue_oldest_seconds"
)

// Names of the metrics that a process counts itself: first those of the API, then those of a
// worker.
const (
	MetricGrabs    = "hongbao_grab_total"
	MetricSoldOut  = "hongbao_grab_sold_out_local_total"
	MetricLimited  = "hongbao_rate_limited_total"
	MetricRisk     = "hongbao_risk_checks_total"
	MetricRiskTime = "hongbao_risk_check_seconds"
	MetricRequests = "hongbao_http_request_duration_seconds"
	MetricConns    = "hongbao_http_connections"
	MetricNoRoom   = "hongbao_http_connections_refused_total"
	MetricEvicted  = "hongbao_http_connections_evicted_total"
	MetricBuild    = "hongbao_build_info"

	MetricBreaker       = "hongbao_provider_breaker_open"
	MetricBreakerOpened = "hongbao_provider_breaker_opened_total"
	MetricDeferred      = "hongbao_payments_parked"

	MetricHandoffsStuck = "hongbao_handoffs_stuck"
)

// Names of metrics of Temporal's SDK that a worker exports, as the SDK and its documentation call
// them.
const (
	MetricSlotsFree    = "temporal_worker_task_slots_available"
	MetricSlotsUsed    = "temporal_worker_task_slots_used"
	MetricActivityWait = "temporal_activity_schedule_to_start_latency_seconds"
	MetricTaskWait     = "temporal_workflow_task_schedule_to_start_latency_seconds"
	MetricTaskFailed   = "temporal_workflow_task_execution_failed_total"
)

// processMetrics lists the names above that no Collector describes.
var processMetrics = []string{MetricGrabs, MetricSoldOut, MetricLimited, MetricRisk, MetricRiskTime, MetricRequests, MetricConns,
	MetricNoRoom, MetricEvicted, MetricBuild,
	MetricBreaker, MetricBreakerOpened, MetricDeferred, MetricHandoffsStuck,
	MetricSlotsFree, MetricSlotsUsed, MetricActivityWait, MetricTaskWait, MetricTaskFailed}
