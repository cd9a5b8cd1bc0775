package api

import (
	"context"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// The interfaces of the handlers' dependencies. Errors are matched with errors.Is against
// those of packet and payout.

// Stage stages and reads packets in Redis.
type Stage interface {
	Create(ctx context.Context, p packet.Packet, eligible []string, opensAt *time.Time, life, busy time.Duration) (packet.StageResult, error)
	StoreFirstAnswer(ctx context.Context, id string, first packet.FirstAnswer) (packet.FirstAnswer, error)
	View(ctx context.Context, id string) (packet.PoolView, error)
	Views(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	Progress(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	Staged(ctx context.Context, apps []string, sender string, after packet.Cursor, limit int) ([]packet.Cursor, error)
	StagedCounts(ctx context.Context, app, sender string) (ofApp, ofSender int)
	Recall(ctx context.Context, id string) (packet.PoolView, error)
}

// Grabs decides and reads claims in Redis.
type Grabs interface {
	Grab(ctx context.Context, packetID, userID string, p packet.Profile) (packet.GrabAnswer, error)
	Claim(ctx context.Context, id, user string) (packet.Claim, bool, error)
	LiveClaim(ctx context.Context, id, user string) (c packet.Claim, found, alive bool, err error)
	ClaimsPage(ctx context.Context, id string, upTo, limit int) (claims []packet.Claim, made int, err error)
	WinnersCount(ctx context.Context, id string) (int, error)
	IsGuest(ctx context.Context, id, user string) (bool, error)
	ClaimPlaces(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.Cursor, error)
	ClaimsOf(ctx context.Context, user string, ids []string) (map[string]packet.Claim, error)
}

// KeyMirror keeps apps and keys in Redis for times when MySQL is unavailable.
type KeyMirror interface {
	Ping(ctx context.Context) error
	SaveApps(ctx context.Context, blob []byte) error
	LoadApps(ctx context.Context) ([]byte, error)
}

// Pool is the interface to Redis.
type Pool interface {
	Stage
	Grabs
	KeyMirror
}

// PacketReader reads packets and claims from MySQL.
type PacketReader interface {
	Packet(ctx context.Context, id string) (packet.Record, error)
	PacketRow(ctx context.Context, id string) (packet.Record, error)
	Packets(ctx context.Context, f packet.RecordFilter) ([]packet.Record, error)
	ClaimsBefore(ctx context.Context, packetID string, before, limit int) ([]packet.ClaimWithPayout, error)
	AcknowledgedClaimsAfter(ctx context.Context, packetID string, share int, user string, limit int) ([]packet.ClaimWithPayout, error)
	UserClaims(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.ReceivedClaim, error)
	ClaimedPackets(ctx context.Context, user string, ids []string) (map[string]packet.ClaimedPacket, error)
	UserSums(ctx context.Context, app, user string, in packet.Span, except []string) (packet.UserSums, error)
	Claim(ctx context.Context, packetID, userID string) (packet.ClaimWithPayout, error)
	Balances(ctx context.Context, packetID string) (payout.Balances, error)
	PayoutSums(ctx context.Context, packetID string) (map[payout.Status]staff.Sum, error)
	ShareConflicts(ctx context.Context, packetID string) (staff.ShareConflicts, error)
	ShareConflictUsers(ctx context.Context, packetID string) ([]string, error)
}

// Payments reads payments from MySQL and records decisions about them.
type Payments interface {
	PayoutProgress(ctx context.Context, claims []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error)
	RecipientAction(ctx context.Context, payoutID string) (sealed []byte, err error)
	SetRecipient(ctx context.Context, by access.Key, payoutID string, to payout.Recipient, unchanged func(payout.Recipient) bool) (
		payout.PayoutProgress, error)
	ConfirmAgain(ctx context.Context, by access.Key, payoutID string) (payout.PayoutProgress, error)
	Payments(ctx context.Context, f staff.PaymentFilter) ([]staff.PaymentRow, error)
	Payment(ctx context.Context, id string) (staff.PaymentDetail, error)
	Timeline(ctx context.Context, d staff.PaymentDetail) (staff.Timeline, error)
	PaymentSum(ctx context.Context, f staff.PaymentFilter) (sum staff.Sum, more bool, err error)
	WithdrawCharge(ctx context.Context, packetID string) error
	RecordNotification(ctx context.Context, by payout.Adapter, eventID, orderNo string, body []byte) error
	RecordedReturns(ctx context.Context, orderNos []string) (map[string]payout.KnownReturn, error)
	RequestReturnQuery(ctx context.Context, orderNo string, stands time.Duration) (payout.ReturnQuery, error)
}

// Dashboard reads from MySQL the data of overview, activity and health.
type Dashboard interface {
	Overview(ctx context.Context) (staff.Overview, error)
	PaymentStatuses(ctx context.Context, ids []string) (map[string]payout.Status, error)
	Activity(ctx context.Context) ([]staff.ActivityMinute, error)
	WatchAudit(ctx context.Context) (staff.AuditWatch, error)
	DecisionBacklogs(ctx context.Context) ([]staff.DecisionBacklog, error)
}

// Tallies counts the lists of staff in MySQL.
type Tallies interface {
	PacketTotal(ctx context.Context, f packet.RecordFilter) (staff.ListTotal, error)
	ApprovalTotal(ctx context.Context, f staff.ApprovalFilter) (staff.ListTotal, error)
	BreakTotal(ctx context.Context, f staff.BreakFilter) (staff.ListTotal, error)
	AuditTotal(ctx context.Context, f staff.AuditFilter) (staff.ListTotal, error)
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
	PreviewConflict(ctx context.Context, owner, id string, kind payout.DecisionKind) (staff.ConflictPlan, error)
	PlanBulk(ctx context.Context, w staff.Write, ids []string) ([]string, staff.Answer, error)
	EndBulk(ctx context.Context, w staff.Write, a staff.Answer) (staff.Answer, error)
}

// Recalls records recalls by staff in MySQL.
type Recalls interface {
	PlanRecall(ctx context.Context, w staff.Write, packetID string, look func(context.Context) (staff.Recall, error)) (
		staff.Answer, error)
	EndRecall(ctx context.Context, w staff.Write, a staff.Answer) (staff.Answer, error)
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
	PreviewRelease(ctx context.Context, owner string, id int64) (staff.ReleasePlan, error)
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

// Keys reads apps, keys and ended sign-ins from MySQL, ends sign-ins and records the last use
// of keys.
type Keys interface {
	AppsAndKeys(ctx context.Context) ([]access.App, []access.Key, error)
	RecordKeyUse(ctx context.Context, used map[string]time.Time) error
	EndSignIn(ctx context.Context, e access.EndedSignIn) error
	EndedSignIns(ctx context.Context) ([]access.EndedSignIn, error)
	TicketKeysInUse(ctx context.Context) ([]access.TicketKey, error)
	Ping(ctx context.Context) error
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

// Store is the interface to MySQL.
type Store interface {
	PacketReader
	Payments
	Dashboard
	Tallies
	Decisions
	Recalls
	Audit
	Holds
	Reconciling
	Closing
	AppBalances
	Keys
	KeyAdministration
	TicketKeys
	CampaignStore
}
