package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
)

// WatchStore is the part of MySQL the watch needs.
type WatchStore interface {
	WatchedPackets
	WatchedPayments
	CountRepair(ctx context.Context, kind, subject string) error
	Rewind(ctx context.Context, paymentID string) error
	activities.Clock
}

// WatchedPackets reads packets for the watch.
type WatchedPackets interface {
	PacketStates(ctx context.Context, ids []string) (map[string]packet.RowState, error)
	UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor, limit int) ([]packet.UnfinishedPacket, error)
	UnfinishedPacket(ctx context.Context, id string) (packet.UnfinishedPacket, bool, error)
	CountClaimedShares(ctx context.Context, packetID string) (int, error)
	ShareConflictUsers(ctx context.Context, packetID string) ([]string, error)
	UnrecordedClaims(ctx context.Context, packetID string, claims []packet.Claim) ([]packet.Claim, error)
	Undecided(ctx context.Context, packetID string) (bool, error)
}

// WatchedPayments reads payments for the watch.
type WatchedPayments interface {
	WaitingPayments(ctx context.Context, kind payout.Kind, status payout.Status, after packet.Cursor, limit int) ([]payout.OpenPayment, error)
	PaymentRow(ctx context.Context, id string) (payout.Payment, error)
	ClaimStore
}

// LivePools is the part of Redis the watch needs.
type LivePools interface {
	LivePage(ctx context.Context, lane int, from time.Time, limit int) ([]pool.LivePacket, error)
	Views(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	View(ctx context.Context, id string) (packet.PoolView, error)
	EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error
	Retire(ctx context.Context, id string) error
	Fences
}

// Gates shuts lanes that lack something (rule R9).
type Fences interface {
	Fence(packetID string) (epoch int64, open bool)
	ClaimedCount(ctx context.Context, id string) (int, error)
	HaltLane(ctx context.Context, lane int, reason packet.LaneReason) error
}

// Pace says how often the watch looks and how patient it is. What is younger
// than the graces is left to those whose task it is.
type Intervals struct {
	Every time.Duration // between two rounds
	// Grace is how long a packet may be without a row or a run, and a winner or an
	// end without anybody who acts on it (rule R11).
	Grace time.Duration
	// Overdue is for how long an open payment's step may be due.
	Overdue time.Duration
	// Ask is for how long a question may be due before the watch puts it itself.
	Ask time.Duration
	// Pages is for how long a round goes on with the next page of a list as long as
	// every page had something to repair, and puts questions to the provider itself. Then
	// the others have their turn.
	Pages time.Duration
}

// DefaultIntervals is the pace of a worker.
var DefaultIntervals = Intervals{Every: 5 * time.Second, Grace: 10 * time.Second, Overdue: 30 * time.Second, Ask: 5 * time.Minute,
	Pages: 10 * time.Second}

// WatchConfig is what a watch is made of.
type WatchConfig struct {
	Store    WatchStore
	Pools    LivePools
	Backlog  Backlog // nil: claims are nobody else's matter
	Starter  *Starter
	Payments *activities.Payments
	Lanes    int
	Pace     Intervals // zero: DefaultIntervals
	Logger   *slog.Logger
}

// Watch compares hand-offs, winners, rows, runs and the provider, and repairs by
// starting the same repeatable steps that got lost (rule R11). It is a loop of
// its own: it needs neither the stream nor a run to be right. Several watches do
// no harm: every start may be repeated (rule R3).
//
// A round reads a page of everything and the next round the page behind it, so
// that a round costs the same whatever there is. Only where it had something to
// repair it goes on with the next page at once: all runs may be gone, and a page a
// round would take hours to find them. What a person ended in the
// Temporal UI is listed besides, so that it does not wait for its page.
type Watch struct {
	cfg      WatchConfig
	lanes    []laneWatch
	packets  map[packet.Status]packet.Cursor
	payments map[watched]packet.Cursor
	// asksUntil is until when this round puts questions to the provider itself.
	asksUntil  time.Time
	retryState *retryState
	ended      *endedRuns
	repairs    atomic.Int64 // made by this watch
}

// NewWatch prepares a watch; Run does the work.
func NewWatch(cfg WatchConfig) *Watch {
	if cfg.Pace == (Intervals{}) {
		cfg.Pace = DefaultIntervals
	}
	w := &Watch{cfg: cfg, lanes: make([]laneWatch, cfg.Lanes), packets: map[packet.Status]packet.Cursor{},
		payments:   map[watched]packet.Cursor{},
		retryState: newRetryState(), ended: newEndedRuns(time.Now())}
	for lane := range w.lanes {
		w.lanes[lane] = laneWatch{watch: w, lane: lane, agreed: newAgreedPackets()}
	}
	return w
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for pause(ctx, w.cfg.Pace.Every) {
		w.look(ctx, "Watch could not compare every lane.", w.watchLanes)
		w.look(ctx, "Watch could not look for runs ended by hand.", w.watchEnded)
		w.look(ctx, "Watch could not compare packets with their runs.", w.watchPackets)
		w.look(ctx, "Watch could not look for overdue payments.", w.watchPayments)
		w.retryState.forget(time.Now())
	}
	return nil
}

func (w *Watch) look(ctx context.Context, fault string, at func(context.Context) error) {
	if err := at(ctx); err != nil && ctx.Err() == nil { // everything comes again next round
		w.cfg.Logger.WarnContext(ctx, fault, slog.Any("error", err))
	}
}

// watchLanes compares the pools of all lanes, some lanes at a time.
func (w *Watch) watchLanes(ctx context.Context) error {
	now, err := w.cfg.Store.Clock(ctx)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(maxLanes)
	for i := range w.lanes {
		group.Go(func() error { return w.lanes[i].round(ctx, now) })
	}
	return group.Wait()
}

// pages looks at one page, and at the next ones while there are repairs to make.
func (w *Watch) pages(page func() (more bool, err error)) error {
	for began := time.Now(); ; {
		before := w.repairs.Load()
		more, err := page()
		if err != nil || !more || w.repairs.Load() == before || time.Since(began) >= w.cfg.Pace.Pages {
			return err
		}
	}
}

// Repair names what the watch has put right.
type Repair string

// The repairs.
const (
	// RepairUnrecorded: a staged packet without a row got its run.
	RepairUnrecorded Repair = "packet_unrecorded"
	// RepairWinner: a winner without a recorded claim got his payout's run, or was booked
	// beside his other share.
	RepairWinner Repair = "winner_without_payout"
	// RepairPacketRun: a packet that is not at its end had no run and got one.
	RepairPacketRun Repair = "packet_without_run"
	// RepairPaymentRun: an open payment had no run and got one.
	RepairPaymentRun Repair = "payment_without_run"
	// RepairUnfinished: a refund was through and its packet not closed.
	RepairUnfinished Repair = "packet_unfinished"
	// RepairCloseSignal: a pool was sold out or recalled, or its packet was closing, and the
	// packet's run had not heard of it.
	RepairCloseSignal Repair = "close_unheard"
	// RepairUnretired: the pool of a closed packet was still in Redis.
	RepairUnretired Repair = "pool_unretired"
	// RepairAsked: a question that nobody had put was put by the watch.
	RepairAsked Repair = "payment_asked"
	// RepairClock: what was noted by a clock ahead counts as of now.
	RepairClock Repair = payout.ClockSetBack
)

// Repairs lists what the watch puts right.
var Repairs = []Repair{RepairUnrecorded, RepairWinner, RepairPacketRun, RepairPaymentRun, RepairUnfinished, RepairCloseSignal, RepairUnretired,
	RepairAsked, RepairClock}

// repaired tells of a repair: in the log, and counted for good in MySQL.
func (w *Watch) repaired(ctx context.Context, kind Repair, subject string, attrs ...slog.Attr) {
	w.repairs.Add(1)
	attrs = append([]slog.Attr{slog.String("repair", string(kind)), slog.String("subject", subject)}, attrs...)
	w.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "Watch repaired something.", attrs...)
	if err := w.cfg.Store.CountRepair(ctx, string(kind), subject); err != nil && ctx.Err() == nil {
		w.cfg.Logger.WarnContext(ctx, "Repair could not be counted.", slog.Any("error", err))
	}
}
