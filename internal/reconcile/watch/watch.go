// Package watch is the background loop that finds and repairs differences between Redis, MySQL, Temporal
// and the provider (rule R11).
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
)

// Store is the part of MySQL that the watch needs.
type Store interface {
	PacketStore
	PaymentStore
	CountRepair(ctx context.Context, kind, subject string) error
	ClampFutureTimes(ctx context.Context, paymentID string) error
	activities.Clock
}

// PacketStore reads packets for the watch.
type PacketStore interface {
	PacketStates(ctx context.Context, ids []string) (map[string]packet.RowState, error)
	UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor, limit int) ([]packet.UnfinishedPacket, error)
	UnfinishedPacket(ctx context.Context, id string) (packet.UnfinishedPacket, bool, error)
	CountClaims(ctx context.Context, packetID string) (shares, conflicts int, err error)
	ClaimUsers(ctx context.Context, packetID string) ([]string, error)
	PacketsToEnd(ctx context.Context) ([]string, error)
}

// PaymentStore reads payments for the watch.
type PaymentStore interface {
	reconcile.WaitingStore
	PaymentRow(ctx context.Context, id string) (payout.Payment, error)
	RequestAction(ctx context.Context, orderNo string) (bool, error)
	PayoutOf(ctx context.Context, packetID, userID string) (payout.Payment, error)
	activities.ClaimRecords
}

// Pools is the part of Redis that the watch needs.
type Pools interface {
	LivePage(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error)
	Views(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	View(ctx context.Context, id string) (packet.PoolView, error)
	EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error
	Claim(ctx context.Context, id, user string) (packet.Claim, bool, error)
	Retire(ctx context.Context, id string) error
	Recall(ctx context.Context, id string) (packet.PoolView, error)
	Fences
}

// Runs starts, signals and reads the runs of workflows. Every start is idempotent (rule R3).
type Runs interface {
	activities.Starter
	RestartPacket(ctx context.Context, p packet.Packet) (bool, error)
	Run(ctx context.Context, p payout.Payment) (bool, error)
	SignalClose(ctx context.Context, packetID string, reason packet.CloseReason) error
	Latest(ctx context.Context, workflowID string) (RunState, error)
	TerminatedRuns(ctx context.Context, since time.Time, limit int) ([]EndedRun, error)
}

// RunState is the state of the latest run of a workflow id.
type RunState struct {
	Open   bool // running or paused
	Paused bool // by an operator: the run or one of its activities
	Idle   bool // open, and waits only for a timer or a signal
}

// EndedRun is a run that did not end by its own code.
type EndedRun struct{ WorkflowID, RunID string }

// Fences closes the fences of lanes that lack something.
type Fences interface {
	Fence(packetID string) (epoch int64, open bool)
	ClaimedCount(ctx context.Context, id string) (int, error)
	HaltLane(ctx context.Context, lane int, reason fence.LaneReason) error
}

// Intervals holds the intervals and grace times of the watch. What is younger than its grace is
// left to the component in charge.
type Intervals struct {
	Every time.Duration // between two rounds
	// Grace is how long a packet may lack a row or a run (rule R11). It is also how long a winner
	// or a closed pool may wait for its run.
	Grace time.Duration
	// Overdue is how long an open payment's step may be due.
	Overdue time.Duration
	// Ask is how long a query may be due before the watch makes it itself.
	Ask time.Duration
	// Pages bounds the time in which a round continues with further pages of a list because every
	// page needed a repair. It also bounds the time in which the round queries the provider
	// itself. Then the next list follows.
	Pages time.Duration
}

// DefaultIntervals are the intervals of a worker.
var DefaultIntervals = Intervals{Every: 5 * time.Second, Grace: 10 * time.Second, Overdue: 30 * time.Second, Ask: 5 * time.Minute,
	Pages: 10 * time.Second}

// Config configures a watch.
type Config struct {
	Store    Store
	Pools    Pools
	Backlog  Backlog // nil: no relay is considered
	Runs     Runs
	Payments *activities.Payments
	Lanes    int
	Pace     Intervals // zero: DefaultIntervals
	Logger   *slog.Logger
}

// Watch compares hand-offs, winners, rows, runs and the provider, and repairs differences by the
// same repeatable steps (rule R11). It depends on neither the stream nor a run. Several watches
// may work concurrently: every start is idempotent (rule R3).
//
// A round reads one page of every list and the next round the following page. So a round costs
// the same for any number of rows. Where a page needed a repair, the round continues at once: if
// all runs are lost, one page per round would take hours. Runs that an operator ended in the
// Temporal UI are listed separately, so that they do not wait for their page.
type Watch struct {
	cfg      Config
	lanes    []laneWatch
	packets  map[packet.Status]packet.Cursor
	payments map[payout.WaitingList]packet.Cursor
	// asksUntil is until when this round queries the provider itself.
	asksUntil  time.Time
	retryState *retryState
	ended      *endedRuns
	repairs    atomic.Int64 // made by this watch
}

// New prepares a watch; Run does the work.
func New(cfg Config) *Watch {
	if cfg.Pace == (Intervals{}) {
		cfg.Pace = DefaultIntervals
	}
	w := &Watch{cfg: cfg, lanes: make([]laneWatch, cfg.Lanes), packets: map[packet.Status]packet.Cursor{},
		payments:   map[payout.WaitingList]packet.Cursor{},
		retryState: newRetryState(), ended: newEndedRuns(time.Now())}
	for lane := range w.lanes {
		w.lanes[lane] = laneWatch{watch: w, lane: lane, agreed: newAgreedPackets()}
	}
	return w
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for pause.For(ctx, w.cfg.Pace.Every) {
		w.look(ctx, "Watch did not compare every lane; retrying.", w.watchLanes)
		w.look(ctx, "Watch did not end the grabs of packets that have to end; retrying.", w.endGrabs)
		w.look(ctx, "Watch did not list terminated runs; retrying.", w.watchEnded)
		w.look(ctx, "Watch did not compare packets with their runs; retrying.", w.watchPackets)
		w.look(ctx, "Watch did not list overdue payments; retrying.", w.watchPayments)
		w.retryState.forget(time.Now())
	}
	return nil
}

func (w *Watch) look(ctx context.Context, fault string, at func(context.Context) error) {
	if err := at(ctx); err != nil && ctx.Err() == nil { // the next round repeats it
		w.cfg.Logger.WarnContext(ctx, fault, slog.Any("error", err))
	}
}

// watchLanes compares the pools of all lanes, some lanes concurrently.
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

// endGrabs ends the grabs of packets whose charge was returned (rule R12) or that a recovery holds, like a recall.
// What was won stays owed; their hold stops payouts and the remainder.
func (w *Watch) endGrabs(ctx context.Context) error {
	ids, err := w.cfg.Store.PacketsToEnd(ctx)
	for _, id := range ids {
		_, recalled := w.cfg.Pools.Recall(ctx, id)
		if recalled != nil && !errors.Is(recalled, packet.ErrNotFound) && !errors.Is(recalled, packet.ErrNotOpenYet) && err == nil {
			err = fmt.Errorf("recall packet %s: %w", id, recalled)
		}
	}
	return err
}

// pages reads one page, and continues while pages need repairs.
func (w *Watch) pages(page func() (more bool, err error)) error {
	for began := time.Now(); ; {
		before := w.repairs.Load()
		more, err := page()
		if err != nil || !more || w.repairs.Load() == before || time.Since(began) >= w.cfg.Pace.Pages {
			return err
		}
	}
}

// Repair is a kind of repair of the watch.
type Repair string

// The repairs.
const (
	// RepairUnrecorded: a staged packet without a row got its run.
	RepairUnrecorded Repair = "packet_unrecorded"
	// RepairWinner: a winner without a recorded claim got a payout run, or the claim was recorded
	// as a share conflict.
	RepairWinner Repair = "winner_without_payout"
	// RepairPacketRun: an unfinished packet had no run and got one.
	RepairPacketRun Repair = "packet_without_run"
	// RepairPaymentRun: an open payment had no run and got one.
	RepairPaymentRun Repair = "payment_without_run"
	// RepairUnfinished: a refund was paid and its packet not closed.
	RepairUnfinished Repair = "packet_unfinished"
	// RepairCloseSignal: a pool was sold out or recalled, or its packet was closing, and the
	// packet's run had not received the signal.
	RepairCloseSignal Repair = "close_unheard"
	// RepairUnretired: the pool of a closed packet was still in Redis.
	RepairUnretired Repair = "pool_unretired"
	// RepairAsked: the watch made a query that was overdue.
	RepairAsked Repair = "payment_asked"
	// RepairAction: the client data with which a sender pays was not in Redis, and is obtained again.
	RepairAction Repair = "action_lost"
	// RepairClock: times noted by a clock ahead were set to now.
	RepairClock Repair = payout.ClockSetBack
)

// Repairs lists all kinds.
var Repairs = []Repair{RepairUnrecorded, RepairWinner, RepairPacketRun, RepairPaymentRun, RepairUnfinished, RepairCloseSignal,
	RepairUnretired,
	RepairAsked, RepairAction, RepairClock}

// repaired logs a repair and counts it in MySQL.
func (w *Watch) repaired(ctx context.Context, kind Repair, subject string, attrs ...slog.Attr) {
	w.repairs.Add(1)
	attrs = append([]slog.Attr{slog.String("repair", string(kind)), slog.String("subject", subject)}, attrs...)
	w.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "Watch repaired a difference.", attrs...)
	if err := w.cfg.Store.CountRepair(ctx, string(kind), subject); err != nil && ctx.Err() == nil {
		w.cfg.Logger.WarnContext(ctx, "Repair not counted.", slog.Any("error", err))
	}
}
