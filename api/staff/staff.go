// Package staff answers the requests of staff: payments and the decisions about them, holds, breaks, reconciliations,
// day-end closes, balances, keys, the audit and health. The routes of staff about packets and campaigns are in package
// api, where those are read.
package staff

import (
	"context"
	"slices"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/health"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Dashboard reads from MySQL the data of overview, activity and health.
type Dashboard interface {
	Overview(ctx context.Context) (staff.Overview, error)
	Activity(ctx context.Context) ([]staff.ActivityMinute, error)
	WatchAudit(ctx context.Context) (staff.AuditWatch, error)
	DecisionBacklogs(ctx context.Context) ([]staff.DecisionBacklog, error)
}

// Decisions records decisions about payments in MySQL.
type Decisions interface {
	Decide(ctx context.Context, w staff.Write, id string, c payout.DecisionRequest,
		render staff.DecisionAnswer) (staff.Answer, error)
	PreviewDecision(ctx context.Context, id string, c payout.DecisionRequest) (payout.Preview, error)
	Approvals(ctx context.Context, f staff.ApprovalFilter) ([]staff.Approval, error)
	WithdrawApproval(ctx context.Context, w staff.Write, approvalID string, render staff.DecisionAnswer) (staff.Answer, error)
	WithdrawCancel(ctx context.Context, w staff.Write, id string, render staff.DecisionAnswer) (staff.Answer, error)
	AnswerApproval(ctx context.Context, w staff.Write, approvalID string, agree bool, render staff.DecisionAnswer) (staff.Answer,
		error)
	OpenShareConflicts(ctx context.Context, f staff.ConflictFilter) ([]staff.ConflictPlan, error)
	DecideConflict(ctx context.Context, w staff.Write, id string, kind payout.DecisionKind,
		render staff.ConflictAnswer) (staff.Answer, error)
	PreviewConflict(ctx context.Context, w staff.Write, id string, kind payout.DecisionKind) (staff.ConflictPlan, error)
	PlanBulk(ctx context.Context, w staff.Write, ids []string) ([]string, staff.Answer, error)
	EndBulk(ctx context.Context, w staff.Write, a staff.Answer) (staff.Answer, error)
}

// Audit reads the audit of decisions from MySQL.
type Audit interface {
	Audit(ctx context.Context, f staff.AuditFilter) ([]staff.AuditEntry, error)
	VerifyAudit(ctx context.Context) (staff.AuditCheck, error)
}

// Holds reads, places and releases holds.
type Holds interface {
	Holds(ctx context.Context, f staff.HoldFilter) ([]payout.Hold, error)
	Hold(ctx context.Context, id int64) (payout.Hold, staff.Releases, error)
	PlaceHold(ctx context.Context, w staff.Write, scope payout.HoldScope, name string, render staff.HoldAnswer) (staff.Answer,
		error)
	ReleaseHold(ctx context.Context, w staff.Write, id int64, render staff.HoldAnswer) (staff.Answer, error)
	PreviewRelease(ctx context.Context, w staff.Write, id int64) (staff.ReleasePlan, error)
	ProviderState(ctx context.Context, name string) (staff.ProviderState, error)
	HoldProvider(ctx context.Context, w staff.Write, name string, hold bool, render staff.ProviderAnswer) (staff.Answer, error)
}

// Reconciling reads reconciliations and breaks from MySQL and records requests and
// resolutions.
type Reconciling interface {
	RequestReconciliation(ctx context.Context, w staff.Write, provider string, day payout.Day,
		render func(staff.Reconciliation) (status int, body []byte)) (staff.Answer, error)
	Reconciliations(ctx context.Context, f staff.ReconciliationFilter) ([]staff.Reconciliation, error)
	Reconciliation(ctx context.Context, id string) (staff.Reconciliation, error)
	InstalledAt(ctx context.Context) (time.Time, error)
	Breaks(ctx context.Context, f staff.BreakFilter) ([]staff.BreakRow, error)
	ResolveBreak(ctx context.Context, w staff.Write, id int64, render func(staff.BreakRow) (status int, body []byte)) (
		staff.Answer, error)
	DecideBreak(ctx context.Context, w staff.Write, id int64, c payout.DecisionRequest, render staff.DecisionAnswer) (
		staff.Answer, error)
}

// Closing reads ledger balances and day-end closes from MySQL.
type Closing interface {
	LedgerBalances(ctx context.Context, at time.Time) (staff.LedgerSnapshot, error)
	DayClose(ctx context.Context, provider string, day payout.Day, zone *time.Location) (staff.DayClose, error)
	DayCloses(ctx context.Context, provider string, zone *time.Location, before payout.Day, limit int) ([]staff.DayClose, error)
}

// KeyAdministration lists keys and records their administration.
type KeyAdministration interface {
	Keys(ctx context.Context, f access.KeyFilter) ([]access.KeyRecord, error)
	FindKey(ctx context.Context, id string) (access.KeyRecord, error)
	IssueKey(ctx context.Context, w staff.Write, k access.KeyRecord, life time.Duration,
		render func(access.KeyRecord) (status int, body []byte)) (staff.Answer, error)
	RotateKey(ctx context.Context, w staff.Write, id string, successor access.Key, grace, life time.Duration,
		render func(old, successor access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error)
	ApproveKey(ctx context.Context, w staff.Write, id string,
		render func(k access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error)
	EndKey(ctx context.Context, w staff.Write, id string,
		render func(k access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error)
}

// TicketKeys lists ticket keys and records their administration.
type TicketKeys interface {
	TicketKeys(ctx context.Context, f access.KeyFilter) ([]access.TicketKeyRecord, error)
	AddTicketKey(ctx context.Context, w staff.Write, k access.TicketKeyRecord,
		render func(access.TicketKeyRecord) (status int, body []byte)) (staff.Answer, error)
	EndTicketKey(ctx context.Context, w staff.Write, id string,
		render func(access.TicketKeyRecord) (status int, body []byte)) (staff.Answer, error)
}

// AppBalances reads the balances of apps from MySQL and records their credits and debits.
type AppBalances interface {
	AppBalances(ctx context.Context, app string) ([]payout.AppBalance, error)
	BalanceEntries(ctx context.Context, f staff.BalanceFilter) ([]staff.BalanceEntry, error)
	MoveBalance(ctx context.Context, w staff.Write, m staff.BalanceMovement, evidence string, render staff.DecisionAnswer) (staff.Answer,
		error)
}

// Payments reads payments from MySQL.
type Payments interface {
	Payments(ctx context.Context, f staff.PaymentFilter) ([]staff.PaymentRow, error)
	Payment(ctx context.Context, id string) (staff.PaymentDetail, error)
	PaymentStatuses(ctx context.Context, ids []string) (map[string]payout.Status, error)
	Timeline(ctx context.Context, d staff.PaymentDetail) (staff.Timeline, error)
	PaymentSum(ctx context.Context, f staff.PaymentFilter) (sum staff.Sum, more bool, err error)
	PayoutSums(ctx context.Context, packetID string) (map[payout.Status]staff.Sum, error)
}

// Totals counts lists in MySQL.
type Totals interface {
	ApprovalTotal(ctx context.Context, f staff.ApprovalFilter) (staff.ListTotal, error)
	BreakTotal(ctx context.Context, f staff.BreakFilter) (staff.ListTotal, error)
	AuditTotal(ctx context.Context, f staff.AuditFilter) (staff.ListTotal, error)
}

// Store is the interface to MySQL.
type Store interface {
	Payments
	Dashboard
	Totals
	Decisions
	Audit
	Holds
	Reconciling
	Closing
	AppBalances
	KeyAdministration
	TicketKeys
	Ping(ctx context.Context) error
}

// Pool is the interface to Redis.
type Pool interface {
	Ping(ctx context.Context) error
	View(ctx context.Context, id string) (packet.PoolView, error)
	ClaimsPage(ctx context.Context, id string, upTo, limit int) (claims []packet.Claim, made int, err error)
}

// Config is what the API for staff needs of the server.
type Config struct {
	Pool      Pool
	Store     Store
	Providers *payout.Registry
	Probes    health.Probes
	// Runs returns the runs of a workflow from Temporal; nil: the timeline says that Temporal is unavailable.
	Runs func(ctx context.Context, workflowID string) (staff.WorkflowRuns, error)
	// HealthSnapshot returns the figures of the stores that the metrics show; nil: unknown.
	HealthSnapshot func() observe.HealthSnapshot
	// TaskQueues returns the backlog of Temporal's task queues and the number of workers; nil: unknown.
	TaskQueues func(context.Context) (queues []observe.QueueBacklog, workers int, err error)
	// ReloadKeys reads the keys again, so that a change applies in this process at once.
	ReloadKeys func(context.Context) error
	// ApprovalAmount is the amount from which a retry needs a second person.
	ApprovalAmount money.Fen
	// Rates are sends per second to a provider, by its name; 0: no limit.
	Rates map[string]int64
	// TemporalUIURL and TemporalNamespace build the links to workflows.
	TemporalUIURL, TemporalNamespace string
	// Now is the clock for what is displayed.
	Now func() time.Time
}

// API answers the requests of staff about payments, balances, keys and health.
type API struct {
	cfg Config
	// providerSeen limits the provider calls of health checks.
	providerSeen providerSeen
}

// New returns the API for staff.
func New(cfg Config) *API { return &API{cfg: cfg} }

// Routes returns the routes of the API.
func (s *API) Routes() []*rest.Route {
	return slices.Concat(s.overviewRoutes(), s.payoutRoutes(), s.refundRoutes(), s.chargeRoutes(), s.approvalRoutes(), s.auditRoutes(),
		s.providerRoutes(), s.holdRoutes(), s.balanceRoutes(), s.reconciliationRoutes(), s.closeRoutes(), s.exportRoutes(), s.keyRoutes())
}
