// Package recovery brings a MySQL that was restored from a backup up to date (rule R13, `hongbao
// recover`): from the provider, Redis and Temporal's runs. It moves no money.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
	"hongbao/internal/staff"
)

// RestoredState is the part of MySQL that stores that MySQL was restored.
type RestoredState interface {
	CompareHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error)
	DeclareRestored(ctx context.Context, w staff.Write, known int64, until time.Time) (payout.MySQLState, error)
	EndRecovery(ctx context.Context, w staff.Write, found payout.MySQLState, known int64, providers []string,
		days []staff.StatementDay, report any) (payout.MySQLState, error)
	NoteUndecided(ctx context.Context, packetID, subject, detail string) error
	activities.Clock
}

// Packets is the part of MySQL that recovers packets and claims.
type Packets interface {
	Packet(ctx context.Context, id string) (packet.Record, error)
	RecordPacket(ctx context.Context, p packet.Packet, sealedSeed []byte, eligible []string) (packet.Status, error)
	RecoverReserve(ctx context.Context, chargeID string) error
	RecoverFund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error)
	RecoverClaim(ctx context.Context, c packet.Claim) (payout.State, error)
	RecoverShareConflict(ctx context.Context, c packet.Claim, detail string) (payout.State, error)
	RecoverRejected(ctx context.Context, id string, f packet.Failure) error
	RecoverRemainder(ctx context.Context, id string, amount money.Fen, reason packet.CloseReason) error
	RecordedUsers(ctx context.Context, packetID string, users []string) (map[string]bool, error)
	UnclaimedShares(ctx context.Context, packetID string, after, limit int) ([]payout.UnclaimedShare, error)
	PacketStates(ctx context.Context, ids []string) (map[string]packet.RowState, error)
	UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor, limit int) ([]packet.UnfinishedPacket, error)
	CountClaims(ctx context.Context, packetID string) (shares, conflicts int, err error)
	ClaimUsers(ctx context.Context, packetID string) ([]string, error)
	reconcile.Store
}

// Payments is the part of MySQL that recovers payments.
type Payments interface {
	FindOrders(ctx context.Context, numbers []string) (map[string]payout.KnownOrder, error)
	UnsettledPayments(ctx context.Context, packetID string) ([]payout.Payment, error)
	RecoverAttempt(ctx context.Context, was payout.Payment, no int, sentAt time.Time, limits payout.Limits,
		encode func(payout.Instruction) ([]byte, error)) (put bool, err error)
	RecoverCancel(ctx context.Context, id string) (refund string, err error)
	Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error)
	reconcile.WaitingStore
	PaymentRow(ctx context.Context, id string) (payout.Payment, error)
}

// Store is the part of MySQL that a recovery needs.
type Store interface {
	RestoredState
	Packets
	Payments
	Lanes
}

// Lanes is the part of MySQL that stores the epochs of lanes.
type Lanes interface {
	PoolLanes(ctx context.Context) ([]fence.LaneRow, error)
	RecoverPoolLane(ctx context.Context, l fence.LaneRow) error
}

// Pools is the part of Redis that a recovery reads, also behind closed fences.
type Pools interface {
	HeartbeatNumber(ctx context.Context) (int64, error)
	RaiseHeartbeatNumber(ctx context.Context, number int64) error
	LivePageUnfenced(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error)
	ViewsUnfenced(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	EachClaimUnfenced(ctx context.Context, id string, visit func([]packet.Claim) error) error
	EligibleUnfenced(ctx context.Context, id string) ([]string, error)
	ReadEpoch(ctx context.Context, lane int) (fence.Epoch, error)
	HaltFence(ctx context.Context, lane int, epoch int64, reason fence.LaneReason) error
}

// Runs reads Temporal's runs, open and ended.
type Runs interface {
	ClaimsOf(ctx context.Context, packetID string, known func(users []string) (map[string]bool, error)) ([]packet.Claim, error)
	PacketsSince(ctx context.Context, since time.Time) ([]string, error)
	WinnersSince(ctx context.Context, since time.Time) (map[string][]string, error)
	PacketOf(ctx context.Context, packetID string) (p packet.Packet, found bool, err error)
	EndedAs(ctx context.Context, p payout.Payment) (payout.Status, error)
}

// Recovery brings a restored MySQL up to date with what happened since the backup (rule R13). Its
// sources are the provider's statement and its answers about every order number that may have
// been sent, Redis, and Temporal's runs. It moves no money and may be stopped and run again at
// any time.
type Recovery struct {
	Store Store
	Pools Pools
	// Providers are queried; those with statements are read first.
	Providers *payout.Registry
	Starter   Runs
	SeedKey   [32]byte
	Lanes     int
	// By is the operator, for the audit.
	By string
	// Since, if set, is until when MySQL is complete, instead of its last heartbeat. It also
	// declares a normal MySQL restored.
	Since time.Time
	// Rebuild rebuilds every lane from MySQL after the recovery, because Redis was restored or
	// lost too.
	Rebuild bool
	// DryRun writes nothing; the report shows what would be examined.
	DryRun bool
	Logger *slog.Logger
	// Progress is called with the number of finished packets and their total.
	Progress func(done, of int)

	began          time.Time // MySQL's time, as all times here
	since          time.Time // of the statement, with a margin
	restoredAt     time.Time // when the restore was detected or declared
	memoryBegin    time.Time // the provider may have forgotten sends before this time
	mu             sync.Mutex
	report         Report
	statementLines map[string]map[string]orderMoves // packet -> order number
	left           map[string]bool                  // subjects left to staff
	held           map[string]bool                  // their packets
	unanswered     map[string]bool                  // order numbers without a usable answer
	providers      sync.Map                         // packet id -> [2]string: of its charge and refunds, of its payouts
}

const (
	// recoverMargin is how much earlier than MySQL's last heartbeat the statement is read,
	// because clocks differ.
	recoverMargin = time.Hour
	// recoverPackets and recoverQueries bound the concurrent packets, and the concurrent queries
	// about the shares of one.
	recoverPackets = 8
	recoverQueries = 16
	recoverPage    = 1000
	// compareUsers is the number of claims that one query of MySQL compares.
	compareUsers = 500
	// maxAudited bounds the items left to staff that the audit entry lists.
	maxAudited = 20
)

// ErrNoSince means that MySQL has no heartbeat, so it is unknown from when it is incomplete.
var ErrNoSince = errors.New("MySQL has no heartbeat to show from when it is incomplete; name the time with --since")

// Run recovers MySQL, which is normal when it returns without an error. If MySQL was normal
// before, it changes nothing. After an error MySQL stays restored: finished work is kept, and
// another run continues. Errors: ErrNoSince, those of the stores, of Temporal and of the
// provider; ErrProviderAway.
func (r *Recovery) Run(ctx context.Context) (Report, error) {
	state, known, err := r.begin(ctx)
	if err != nil || state.State == payout.MySQLNormal {
		r.report.MySQL = state
		return r.report, err
	}
	if err := r.readStatement(ctx); err != nil {
		return r.report, err
	}
	ids, err := r.candidates(ctx)
	if err != nil {
		return r.report, err
	}
	r.report.Packets = len(ids)
	if r.DryRun {
		r.report.MySQL = state
		return r.report, nil
	}
	if err := r.awaitLanding(ctx, state); err != nil {
		return r.report, err
	}
	if err := r.restoreEach(ctx, ids); err != nil {
		return r.report, err
	}
	if err := r.restoreLanes(ctx); err != nil {
		return r.report, err
	}
	if err := r.countHeld(ctx); err != nil {
		return r.report, err
	}
	slices.Sort(r.report.Undecided)
	r.report.Ended = true
	audited := r.report
	audited.Undecided = audited.Undecided[:min(len(audited.Undecided), maxAudited)] // every item is a break
	state, err = r.Store.EndRecovery(ctx, r.write("what happened since the backup was put back"), state, known, r.Providers.Names(),
		r.incompleteDays(), audited)
	if r.report.MySQL = state; err != nil {
		r.report.Ended = false
		return r.report, err
	}
	return r.report, r.Pools.RaiseHeartbeatNumber(ctx, state.Heartbeat)
}

func (r *Recovery) write(reason string) staff.Write {
	return staff.Write{Owner: r.By, Role: "operator", Reason: reason}
}

// begin compares MySQL with the copy of its number, as every process does, and determines from
// when it is incomplete.
func (r *Recovery) begin(ctx context.Context) (payout.MySQLState, int64, error) {
	now, err := r.Store.Clock(ctx)
	if err != nil {
		return payout.MySQLState{}, 0, err
	}
	known, err := r.Pools.HeartbeatNumber(ctx)
	if err != nil {
		return payout.MySQLState{}, 0, err
	}
	state, err := r.Store.CompareHeartbeat(ctx, known)
	if err != nil {
		return state, 0, err
	}
	if state.State == payout.MySQLNormal && !r.Since.IsZero() {
		if r.DryRun {
			state.State = payout.MySQLRestored
		} else if state, err = r.Store.DeclareRestored(ctx, r.write("declared by an operator"), known, r.Since); err != nil {
			return state, 0, err
		}
	}
	until := state.HeartbeatAt
	if !r.Since.IsZero() && (r.Since.Before(until) || state.Heartbeat == 0) {
		until = r.Since
	}
	r.report, r.left, r.held, r.unanswered = Report{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	r.since, r.report.Since, r.report.DryRun = until.Add(-recoverMargin), until.Add(-recoverMargin), r.DryRun
	r.began, r.restoredAt, r.memoryBegin = now, state.RestoredAt, now.Add(24*time.Hour-r.remembered())
	if state.State == payout.MySQLRestored && state.Heartbeat == 0 && r.Since.IsZero() {
		return state, 0, ErrNoSince
	}
	return state, known, nil
}

// maxDays is how many days back are reconciled again.
const maxDays = 40

// incompleteDays lists the days, of each provider with statements, that were not over when the recovered MySQL was
// still complete, and are now. What the ledger lacks of them becomes a break.
func (r *Recovery) incompleteDays() (days []staff.StatementDay) {
	for _, p := range r.Providers.Stated() {
		today := payout.DayOf(r.began, p.Zone())
		for d := max(payout.DayOf(r.since, p.Zone()), today.Add(-maxDays)); d < today; d = d.Add(1) {
			days = append(days, staff.StatementDay{Provider: p.Name(), Day: d})
		}
	}
	return days
}

// remembered is how long every provider knows an order number.
func (r *Recovery) remembered() time.Duration {
	all := r.Providers.All()
	least := all[0].Limits().Remembers
	for _, p := range all {
		least = min(least, p.Limits().Remembers)
	}
	return least
}

// awaitLanding waits until no send can be in flight whose note is lost. After that the provider's
// "never received" is final.
func (r *Recovery) awaitLanding(ctx context.Context, b payout.MySQLState) error {
	now, err := r.Store.Clock(ctx)
	if err != nil {
		return err
	}
	var window time.Duration
	for _, p := range r.Providers.All() {
		window = max(window, p.Limits().LandingWindow)
	}
	most := payout.LeaveWithin + window
	wait := min(b.RestoredAt.Add(most).Sub(now), most)
	if wait > 0 {
		r.Logger.InfoContext(ctx, "Waiting for sends that may be in flight.", slog.Duration("wait", wait))
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
	return nil
}

// restoreEach restores packets, some concurrently.
func (r *Recovery) restoreEach(ctx context.Context, ids []string) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(recoverPackets)
	done := 0
	for _, id := range ids {
		group.Go(func() error {
			if err := r.skipUnanswered(r.restorePacket(gctx, id)); err != nil {
				return fmt.Errorf("packet %s: %w", id, err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if done++; r.Progress != nil {
				r.Progress(done, len(ids))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.leaveUnanswered(ctx)
}
