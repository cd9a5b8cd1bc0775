package api

import (
	"context"
	"time"

	staffapi "hongbao/api/staff"
	"hongbao/internal/access"
	"hongbao/internal/money"
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
	PacketStatement(ctx context.Context, provider, packetID string) (staff.PacketStatement, error)
	PacketFees(ctx context.Context, provider, packetID string) (money.Fen, error)
	ShareConflicts(ctx context.Context, packetID string) (staff.ShareConflicts, error)
	ShareConflictUsers(ctx context.Context, packetID string) ([]string, error)
}

// Payments reads payments from MySQL and records what apps and providers say about them.
type Payments interface {
	PayoutProgress(ctx context.Context, claims []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error)
	RecipientAction(ctx context.Context, payoutID string) (sealed []byte, err error)
	SetRecipient(ctx context.Context, by access.Key, payoutID string, to payout.Recipient, unchanged func(payout.Recipient) bool) (
		payout.PayoutProgress, error)
	ConfirmAgain(ctx context.Context, by access.Key, payoutID string) (payout.PayoutProgress, error)
	WithdrawCharge(ctx context.Context, packetID string) error
	RecordNotification(ctx context.Context, by payout.Adapter, eventID, orderNo string, body []byte) error
	HoldNotified(ctx context.Context, provider string, why error) error
	RecordedReturns(ctx context.Context, orderNos []string) (map[string]payout.KnownReturn, error)
	RequestReturnQuery(ctx context.Context, orderNo string, stands time.Duration) (payout.ReturnQuery, error)
}

// Recalls records recalls by staff in MySQL.
type Recalls interface {
	PlanRecall(ctx context.Context, w staff.Write, packetID string, look func(context.Context) (staff.Recall, error)) (
		staff.Answer, error)
	EndRecall(ctx context.Context, w staff.Write, a staff.Answer) (staff.Answer, error)
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

// Store is the interface to MySQL.
type Store interface {
	PacketReader
	Payments
	Recalls
	PacketTotal(ctx context.Context, f packet.RecordFilter) (staff.ListTotal, error)
	Keys
	CampaignStore
	staffapi.Store
}
