package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
)

// RestoredBooks is the part of MySQL that knows that it was restored.
type RestoredBooks interface {
	CompareHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error)
	DeclareRestored(ctx context.Context, w payout.StaffWrite, known int64, until time.Time) (payout.MySQLState, error)
	EndRecovery(ctx context.Context, w payout.StaffWrite, found payout.MySQLState, known int64, provider string, report any) (
		payout.MySQLState, error)
	NoteUndecided(ctx context.Context, packetID, subject, detail string) error
	activities.Clock
}

// RestoredPackets is the part of MySQL that gets packets and claims back.
type RestoredPackets interface {
	Packet(ctx context.Context, id string) (packet.Record, error)
	RecordPacket(ctx context.Context, p packet.Packet, sealedSeed []byte, eligible []string, provider string) (packet.Status, error)
	RecoverFund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error)
	RecoverClaim(ctx context.Context, c packet.Claim, provider string) (payout.State, error)
	RecoverShareConflict(ctx context.Context, c packet.Claim, provider, detail string) (payout.State, error)
	RecoverRejected(ctx context.Context, id string, f packet.Failure) error
	RecoverRemainder(ctx context.Context, id string, amount money.Fen, reason packet.CloseReason) error
	RecordedUsers(ctx context.Context, packetID string, users []string) (map[string]bool, error)
	UnclaimedShares(ctx context.Context, packetID string, after, limit int) ([]payout.UnclaimedShare, error)
	WatchedPackets
}

// RestoredPayments is the part of MySQL that gets payments back.
type RestoredPayments interface {
	FindOrders(ctx context.Context, numbers []string) (map[string]payout.KnownOrder, error)
	UnsettledPayments(ctx context.Context, packetID string) ([]payout.Payment, error)
	RecoverAttempt(ctx context.Context, id string, no int, sentAt time.Time, limits payout.Limits,
		encode func(payout.Instruction) ([]byte, error)) (put bool, err error)
	RecoverCancel(ctx context.Context, id string) (refund string, err error)
	Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error)
	WatchedPayments
}

// RestoredStore is MySQL as its recovery needs it.
type RestoredStore interface {
	RestoredBooks
	RestoredPackets
	RestoredPayments
	RestoredLanes
}

// RestoredLanes is the part of MySQL that knows the epochs of the lanes.
type RestoredLanes interface {
	PoolLanes(ctx context.Context) ([]packet.LaneRow, error)
	RecoverPoolLane(ctx context.Context, l packet.LaneRow) error
}

// RestoredPools is the part of Redis that knows what the books do not. It is read
// whatever the gates say.
type RestoredPools interface {
	HeartbeatCopy
	LivePageUnfenced(ctx context.Context, lane int, from time.Time, limit int) ([]pool.LivePacket, error)
	ViewsUnfenced(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	EachClaimUnfenced(ctx context.Context, id string, visit func([]packet.Claim) error) error
	EligibleUnfenced(ctx context.Context, id string) ([]string, error)
	ReadEpoch(ctx context.Context, lane int) (pool.Epoch, error)
	HaltFence(ctx context.Context, lane int, epoch int64, reason packet.LaneReason) error
}

// RestoredProvider is the payment API that knows what moved.
type RestoredProvider interface {
	activities.Provider
	activities.Statements
}

// RestoredRuns is what Temporal knows of runs, also of those that have ended.
type RestoredRuns interface {
	ClaimsOf(ctx context.Context, packetID string, known func(users []string) (map[string]bool, error)) ([]packet.Claim, error)
	PacketsSince(ctx context.Context, since time.Time) ([]string, error)
	WinnersSince(ctx context.Context, since time.Time) (map[string][]string, error)
	PacketOf(ctx context.Context, packetID string) (p packet.Packet, open, found bool, err error)
	EndedAs(ctx context.Context, p payout.Payment) (payout.Status, error)
}

// Recover puts back into restored books what has happened since the backup (rule
// R13): from the provider's statement and what it answers about every number that
// may have been sent, from Redis, and from Temporal's runs. It moves no money and
// may be stopped and run again at any time.
type Recover struct {
	Store    RestoredStore
	Pools    RestoredPools
	Provider RestoredProvider
	Starter  RestoredRuns
	SeedKey  [32]byte
	Lanes    int
	// By is who recovers, for the audit.
	By string
	// Leave are order numbers that are left to a person when the provider gives no usable
	// answer about them; any other one that it says nothing of keeps the books restored.
	Leave []string
	// Since, if set, is until when the books hold everything, instead of their last
	// heartbeat. Books that are normal are declared restored by it.
	Since time.Time
	// Rebuild has every lane made again from the books once they are normal: Redis was
	// restored or lost too, so that what it has is not the truth either.
	Rebuild bool
	// DryRun: nothing is written; the report says what would be looked at.
	DryRun bool
	Logger *slog.Logger
	// Progress is told how many packets of how many are done.
	Progress func(done, of int)

	began   time.Time // by the books' clock, as all times here
	since   time.Time // of the statement, with a margin
	horizon time.Time // what was sent before the provider may have forgotten
	mu      sync.Mutex
	report  Recovery
	lines   map[string]map[string]movedAt // packet -> order number
	left    map[string]bool               // what was left to a person
	// unanswered are order numbers about which the provider says nothing, see silent
	unanswered []string
}

// movedAt is what the statement says of an order number.
type movedAt struct {
	first    time.Time
	returned bool
	moved    bool
}

// Recovery is what a recovery did, or would do.
type Recovery struct {
	DryRun  bool      `json:"dry_run,omitempty"`
	Ended   bool      `json:"ended"`   // the books were restored, and are normal now
	Since   time.Time `json:"since"`   // from when on the provider's statement was read
	Lines   int       `json:"lines"`   // of the statement since then
	Unknown int       `json:"unknown"` // of them, order numbers that the books did not know or had not booked
	Packets int       `json:"packets"` // looked at
	Made    int       `json:"made"`    // packets that the books did not know
	Claims  int       `json:"claims"`  // that the books did not know
	Guessed int       `json:"guessed"` // of them, whose user is known by his account at the provider alone
	Asked   int       `json:"asked"`   // questions to the provider
	Numbers int       `json:"numbers"` // order numbers put back
	Cancels int       `json:"cancels"` // cancels put back
	Closed  int       `json:"closed"`  // packets that had been closed
	Raised  int       `json:"raised"`  // lanes that Redis has in a later epoch than the books had
	Shut    int       `json:"shut"`    // lanes that are to be made again from the books
	// Undecided is what a person has to decide; each is a break of kind restored.
	Undecided []string          `json:"undecided,omitempty"`
	Books     payout.MySQLState `json:"-"`
}

const (
	// recoverMargin is how much earlier than the last heartbeat of the books the
	// statement is read: clocks differ.
	recoverMargin = time.Hour
	// recoverPackets and recoverQueries are how many packets, and questions about the
	// shares of one, are under way at once.
	recoverPackets = 8
	recoverQueries = 16
	recoverPage    = 1000
	// maxAudited is how much of what is left to people the audit names.
	maxAudited = 20
)

// ErrNoSince means that the books have never beaten, so that nobody knows what they lack.
var ErrNoSince = errors.New("the books do not say until when they are complete: say it (--since)")

// Run recovers. The books are normal when it returns without an error; of books
// that were normal before, nothing is changed. An error leaves them restored: what
// was put back stays, and a further run goes on. Errors: ErrNoSince, those of the
// stores, of Temporal and of the provider; ErrUnanswered names orders, see Leave.
func (r *Recover) Run(ctx context.Context) (Recovery, error) {
	books, known, err := r.begin(ctx)
	if err != nil || books.State == payout.MySQLNormal {
		r.report.Books = books
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
		r.report.Books = books
		return r.report, nil
	}
	if err := r.awaitLanding(ctx, books); err != nil {
		return r.report, err
	}
	if err := r.each(ctx, ids); err != nil {
		return r.report, err
	}
	if err := r.lanes(ctx); err != nil {
		return r.report, err
	}
	slices.Sort(r.report.Undecided)
	r.report.Ended = true
	audited := r.report
	audited.Undecided = audited.Undecided[:min(len(audited.Undecided), maxAudited)] // all of them are breaks
	books, err = r.Store.EndRecovery(ctx, r.write("what happened since the backup was put back"), books, known, r.Provider.Name(), audited)
	if r.report.Books = books; err != nil {
		r.report.Ended = false
		return r.report, err
	}
	return r.report, r.Pools.RaiseBooksNumber(ctx, books.Heartbeat)
}

func (r *Recover) write(reason string) payout.StaffWrite {
	return payout.StaffWrite{Owner: r.By, Role: "operator", Reason: reason}
}

// begin compares the books with their copy, as every process does, and finds out
// from when on they lack something.
func (r *Recover) begin(ctx context.Context) (payout.MySQLState, int64, error) {
	now, err := r.Store.Clock(ctx)
	if err != nil {
		return payout.MySQLState{}, 0, err
	}
	known, err := r.Pools.BooksNumber(ctx)
	if err != nil {
		return payout.MySQLState{}, 0, err
	}
	books, err := r.Store.CompareHeartbeat(ctx, known)
	if err != nil {
		return books, 0, err
	}
	if books.State == payout.MySQLNormal && !r.Since.IsZero() {
		if r.DryRun {
			books.State = payout.MySQLRestored
		} else if books, err = r.Store.DeclareRestored(ctx, r.write("declared by an operator"), known, r.Since); err != nil {
			return books, 0, err
		}
	}
	until := books.HeartbeatAt
	if !r.Since.IsZero() && (r.Since.Before(until) || books.Heartbeat == 0) {
		until = r.Since
	}
	r.report, r.left, r.unanswered = Recovery{}, map[string]bool{}, nil
	r.since, r.report.Since, r.report.DryRun = until.Add(-recoverMargin), until.Add(-recoverMargin), r.DryRun
	r.began, r.horizon = now, now.Add(24*time.Hour-r.Provider.Limits().Remembers)
	if books.State == payout.MySQLRestored && books.Heartbeat == 0 && r.Since.IsZero() {
		return books, 0, ErrNoSince
	}
	return books, known, nil
}

// landed waits until no send can be under way that was noted in books that are
// lost: after that the provider's "never received" is its last word.
func (r *Recover) awaitLanding(ctx context.Context, b payout.MySQLState) error {
	now, err := r.Store.Clock(ctx)
	if err != nil {
		return err
	}
	most := payout.LeaveWithin + r.Provider.Limits().LandingWindow
	wait := min(b.RestoredAt.Add(most).Sub(now), most)
	if wait > 0 {
		r.Logger.InfoContext(ctx, "Waiting for sends that may be under way.", slog.Duration("wait", wait))
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
	return nil
}

// readStatement keeps what moved since the backup, by packet.
func (r *Recover) readStatement(ctx context.Context) error {
	r.lines = map[string]map[string]movedAt{}
	zone := r.Provider.Zone()
	last := payout.DayOf(r.began, zone)
	for day := payout.DayOf(r.since, zone); day <= last; day = day.Add(1) {
		for after := ""; ; {
			page, err := r.Provider.Statement(ctx, day, after)
			if err != nil {
				return err
			}
			for _, l := range page.Lines {
				r.addLine(l)
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return r.dropBookedLines(ctx)
}

func (r *Recover) addLine(l payout.StatementLine) {
	parts, err := payout.Parse(l.OrderNo)
	if l.At.Before(r.since) || err != nil || parts.Attempt == 0 { // not ours: reconciliation tells
		return
	}
	r.report.Lines++
	of := r.lines[parts.PacketID]
	if of == nil {
		of = map[string]movedAt{}
		r.lines[parts.PacketID] = of
	}
	m, seen := of[l.OrderNo]
	if !seen {
		m.first = l.At
	}
	if l.Op == payout.OpReturn {
		m.returned = true
	} else {
		m.moved = true
	}
	of[l.OrderNo] = m
}

// forgetKnown drops what the books know and have booked.
func (r *Recover) dropBookedLines(ctx context.Context) error {
	for id, of := range r.lines {
		unknown, err := r.unbookedOrders(ctx, id)
		if err != nil {
			return err
		}
		r.report.Unknown += len(unknown)
		maps.DeleteFunc(of, func(no string, _ movedAt) bool { return !slices.Contains(unknown, no) })
		if len(of) == 0 {
			delete(r.lines, id)
		}
	}
	return nil
}

// unbooked lists the order numbers of a packet's lines that the books do not have
// as the statement has them.
func (r *Recover) unbookedOrders(ctx context.Context, packetID string) ([]string, error) {
	of := r.lines[packetID]
	var out []string
	for some := range slices.Chunk(slices.Sorted(maps.Keys(of)), recoverPage) {
		known, err := r.Store.FindOrders(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, no := range some {
			if k, ok := known[no]; !ok || of[no].moved && !k.Booked || of[no].returned && !k.ReturnBooked {
				out = append(out, no)
			}
		}
	}
	return out, nil
}

// each recovers packets, some at a time.
func (r *Recover) each(ctx context.Context, ids []string) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(recoverPackets)
	done := 0
	for _, id := range ids {
		group.Go(func() error {
			if err := r.postponeUnanswered(gctx, r.packet(gctx, id)); err != nil {
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
	return r.unansweredError()
}

// note counts something in the report.
func (r *Recover) note(count func(*Recovery)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.report)
}
