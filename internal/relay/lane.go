package relay

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"hongbao/internal/pause"
	"hongbao/internal/pool"
)

const (
	ackBatch   = 100
	ackAfter   = 5 * time.Millisecond
	ackRetry   = 300 * time.Millisecond
	ackTimeout = 5 * time.Second // per attempt; a clean stop makes one more
)

// laneReader reads one lane's hand-offs, relays them to Temporal and acknowledges them
// afterwards.
type laneReader struct {
	relay      *Relay
	lane       int
	consumer   string
	sched      *scheduler          // to Temporal
	quarantine *scheduler          // to quarantine
	room       *semaphore.Weighted // claims of this lane in this process
	// Only takeOver uses these. unseen. Entries may be pending under our name that we never
	// received. more: at the last check more were pending than we have.
	unseen, more bool

	mu        sync.Mutex
	excluded  int64             // claims of stuck entries, which take no room
	taking    int               // batches that are not completely underway yet
	underway  map[string]*entry // by id; pending entries may be read again
	held      map[string]int    // claims of each packet in this process
	postponed map[string][]string
	resume    chan struct{} // a packet with postponed entries has room again
	relayed   []string      // entry ids to acknowledge; unbounded, so that relaying never waits for Redis
	toAck     chan struct{} // signals that relayed is not empty
}

func newLaneReader(r *Relay, lane int, consumer string, sched, quarantine *scheduler) *laneReader {
	return &laneReader{relay: r, lane: lane, consumer: consumer, sched: sched, quarantine: quarantine,
		room:     semaphore.NewWeighted(maxLaneClaims),
		underway: map[string]*entry{}, held: map[string]int{}, postponed: map[string][]string{}, resume: make(chan struct{}, 1),
		toAck: make(chan struct{}, 1)}
}

// read first takes the entries pending under our name, which an earlier process may have left,
// then waits for new ones. After an error it reads the pending ones again, because entries may
// have been delivered without arriving.
func (l *laneReader) read(ctx context.Context) error {
	wait := 200 * time.Millisecond
	for ctx.Err() == nil {
		err := l.readPending(ctx)
		for err == nil && ctx.Err() == nil {
			var batch pool.Batch
			if batch, err = l.relay.handoffs.Read(ctx, l.lane, l.consumer, readCount, readBlock); err == nil {
				wait = 200 * time.Millisecond
				err = l.take(ctx, batch)
			}
		}
		if ctx.Err() == nil {
			l.relay.logger.WarnContext(ctx, "Lane not read; retrying.", slog.Int("lane", l.lane), slog.Any("error", err))
			pause.For(ctx, wait)
			wait = min(2*wait, 2*time.Second)
		}
	}
	return ctx.Err()
}

func (l *laneReader) readPending(ctx context.Context) error {
	for after := "0"; ; {
		batch, err := l.relay.handoffs.ReadOwnPending(ctx, l.lane, l.consumer, after, readCount)
		if err != nil || batch.Empty() {
			return err
		}
		if err := l.take(ctx, batch); err != nil {
			return err
		}
		after = batch.Last
	}
}

// take schedules a batch. It blocks while the lane has no room, which bounds the entries in this
// process.
func (l *laneReader) take(ctx context.Context, batch pool.Batch) error {
	defer l.markTaking()()
	parts := map[string]int{} // of each entry
	for _, h := range batch.HandOffs {
		parts[h.EntryID]++
	}
	for _, b := range batch.Undecodable {
		parts[b.EntryID]++
	}
	for _, h := range batch.HandOffs {
		packetID := packetOf(h)
		if !l.markUnderway(h.EntryID, packetID, parts[h.EntryID]) {
			continue
		}
		jobs := l.relay.jobsOf(h)
		if !l.admit(h.EntryID, packetID, len(jobs)) {
			continue
		}
		p, err := l.open(ctx, h.EntryID, packetID, len(jobs))
		if err != nil {
			return err
		}
		for _, j := range jobs {
			l.sched.put(l.relayJob(j, p))
		}
	}
	for _, b := range batch.Undecodable {
		if !l.markUnderway(b.EntryID, undecodable, parts[b.EntryID]) {
			continue
		}
		p, err := l.open(ctx, b.EntryID, "", 1)
		if err != nil {
			return err
		}
		l.exclude(p) // it waits only for MySQL
		l.logUndecodable(ctx, b)
		l.quarantine.put(l.quarantineJob(b, p))
	}
	return nil
}

// open waits for room in the lane for a part of an entry.
func (l *laneReader) open(ctx context.Context, id, packetID string, jobs int) (*part, error) {
	n := int64(min(max(jobs, 1), maxLaneClaims))
	if err := l.room.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return &part{entryID: id, packetID: packetID, jobs: jobs, room: n, left: jobs}, nil
}

// markTaking marks that a batch is being taken, until the returned function is called.
func (l *laneReader) markTaking() (end func()) {
	add := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taking += n
	}
	add(1)
	return func() { add(-1) }
}

// hasAll reports whether this process has all entries that are pending under its name. It is true
// while a batch is being taken.
func (l *laneReader) hasAll(pending int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taking > 0 || pending <= len(l.underway)
}

// markUnderway marks a part of an entry with that many parts, and reports whether it is new here.
func (l *laneReader) markUnderway(id, name string, parts int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.underway[id]
	if e == nil {
		e = &entry{known: map[string]bool{}, left: parts}
		l.underway[id] = e
	}
	if e.known[name] {
		return false
	}
	e.known[name] = true
	return true
}

// relayJob returns a job that makes one call to Temporal for an entry.
func (l *laneReader) relayJob(j job, e *part) job {
	call := j.do
	j.do = func(ctx context.Context) error {
		if err := call(ctx); err != nil {
			return err
		}
		l.finish(e)
		return nil
	}
	logged := false
	j.failed = func(ctx context.Context, err error, stuck bool) {
		attrs := []any{slog.Int("lane", l.lane), slog.String("entry_id", e.entryID), slog.String("packet_id", j.packetID), slog.Any("error", err)}
		switch {
		case stuck && l.markStuck(e):
			l.relay.logger.ErrorContext(ctx, "Temporal refuses a hand-off; retrying at longer intervals. Other hand-offs are not delayed.", attrs...)
		case !stuck && !logged:
			l.relay.logger.WarnContext(ctx, "Hand-off not relayed to Temporal; retrying.", attrs...)
		}
		logged = true
	}
	return j
}

// logUndecodable logs a hand-off that cannot be decoded. The row in quarantine raises the alert.
func (l *laneReader) logUndecodable(ctx context.Context, b pool.Undecodable) {
	l.relay.logger.ErrorContext(ctx, "Hand-off cannot be decoded; moving it to quarantine.",
		slog.Int("lane", b.Lane), slog.String("entry_id", b.EntryID), slog.Any("error", b.Err))
}

// quarantineJob returns a job that moves an undecodable entry to MySQL. The entry is acknowledged
// once the row exists; the lane continues while MySQL is unavailable.
func (l *laneReader) quarantineJob(b pool.Undecodable, e *part) job {
	logged := false
	return job{
		packetID: strconv.Itoa(l.lane), // lanes take turns
		do: func(ctx context.Context) error {
			if err := l.relay.quarantine.Quarantine(ctx, b.Lane, b.EntryID, b.Values, b.Err.Error()); err != nil {
				return err
			}
			l.finish(e)
			return nil
		},
		failed: func(ctx context.Context, err error, stuck bool) {
			if stuck && l.markStuck(e) || !logged {
				l.relay.warn(ctx, "Quarantine not written; retrying.", err)
			}
			logged = true
		},
	}
}

// markStuck counts an entry that fails while others succeed, and lets the lane continue without
// it. It reports whether the entry is newly stuck.
func (l *laneReader) markStuck(e *part) bool {
	l.exclude(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.stuck {
		return false
	}
	e.stuck = true
	l.relay.stuck.Add(1)
	return true
}

// excludedLimit bounds the claims of stuck entries of a lane in this process, which laneLimit
// does not count.
const excludedLimit = maxLaneClaims

// exclude removes a stuck entry from the limits of lane and packet, so that later entries
// continue. It does nothing when excludedLimit is reached.
func (l *laneReader) exclude(e *part) {
	l.mu.Lock()
	excluded := !e.excluded && l.excluded+e.room <= excludedLimit
	if excluded {
		e.excluded = true
		l.excluded += e.room
	}
	l.mu.Unlock()
	if excluded {
		l.room.Release(e.room)
		l.release(e.packetID, e.jobs)
	}
}

// finish ends one job of a part; after the last one of all parts the entry is due for acknowledgement. It
// does not wait: the scheduler's workers serve all lanes, and the Redis of this one may be
// unavailable.
func (l *laneReader) finish(e *part) {
	l.mu.Lock()
	if e.left--; e.left > 0 {
		l.mu.Unlock()
		return
	}
	if whole := l.underway[e.entryID]; whole != nil {
		if whole.left--; whole.left == 0 {
			l.relayed = append(l.relayed, e.entryID)
		}
	}
	if e.excluded {
		l.excluded -= e.room
	}
	if e.stuck {
		l.relay.stuck.Add(-1)
	}
	l.mu.Unlock()
	if !e.excluded {
		l.room.Release(e.room)
		l.release(e.packetID, e.jobs)
	}
	select {
	case l.toAck <- struct{}{}:
	default: // the pending signal covers all of them
	}
}

// acknowledge removes relayed entries, 100 or 5 ms at a time, because each call costs an fsync.
// It retries while the slot is held: the entry is pending under our name, and no other worker
// reads it.
func (l *laneReader) acknowledge(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.toAck:
		}
		for ids := l.nextAcks(); len(ids) > 0; ids = l.nextAcks() {
			if len(ids) < ackBatch && pause.For(ctx, ackAfter) {
				ids = l.nextAcks()
			}
			err := l.ack(ctx, ids)
			if err == nil {
				continue
			}
			l.relay.warn(ctx, "Hand-offs not acknowledged; retrying.", err)
			if !pause.For(ctx, ackRetry) {
				break // the slot's next holder reads them again
			}
		}
	}
	return ctx.Err()
}

// nextAcks returns the oldest entries to acknowledge.
func (l *laneReader) nextAcks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.relayed[:min(ackBatch, len(l.relayed))])
}

// ack acknowledges entries. After a stop it still acknowledges what Temporal has accepted.
func (l *laneReader) ack(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
	defer cancel()
	if err := l.relay.handoffs.Ack(ctx, l.lane, ids...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relayed = l.relayed[len(ids):]
	for _, id := range ids {
		delete(l.underway, id)
	}
	return nil
}

// entry is a hand-off with unfinished parts; it must not be acknowledged yet. Guarded by the lane's mutex.
type entry struct {
	known map[string]bool // parts by packet that are relayed or postponed
	left  int             // unfinished parts
}

// undecodable is the name of the part of an entry that goes to the quarantine; it is no packet id.
const undecodable = "undecodable"

// part is the claims of one packet in an entry, or an entry without claims.
type part struct {
	entryID, packetID string
	jobs              int   // calls to Temporal
	room              int64 // of the lane

	// Guarded by the lane's mutex.
	left     int  // unfinished jobs
	excluded bool // its room is released
	stuck    bool // counted as stuck
}
