package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"hongbao/pool"
)

const (
	ackBatch = 100
	ackAfter = 5 * time.Millisecond
	ackAgain = 300 * time.Millisecond
	ackLimit = 5 * time.Second // of one try; a clean stop makes one more
)

// laneReader reads one lane's hand-offs, has them carried to Temporal and
// acknowledges them afterwards.
type laneReader struct {
	relay    *relay
	lane     int
	consumer string
	sched    *scheduler
	room     *semaphore.Weighted // claims of this lane that wait here
	// Only adopt looks at these. unseen: entries may be pending under our name that we never
	// got. more: more were pending at the last look than we knew of.
	unseen, more bool

	mu       sync.Mutex
	taking   int             // batches of which not every entry is underway yet
	underway map[string]bool // entry ids that are being carried, or left for later: pending entries may be read again
	held     map[string]int  // claims of each packet that wait here
	later    map[string][]string
	resume   chan struct{} // a packet with entries left for later has room again
	carried  []string      // entry ids to acknowledge: as many as come, who carries waits for no Redis
	toAck    chan struct{} // there are some
}

func newLaneReader(r *relay, lane int, consumer string, sched *scheduler) *laneReader {
	return &laneReader{relay: r, lane: lane, consumer: consumer, sched: sched, room: semaphore.NewWeighted(laneLimit),
		underway: map[string]bool{}, held: map[string]int{}, later: map[string][]string{}, resume: make(chan struct{}, 1),
		toAck: make(chan struct{}, 1)}
}

// read takes what is pending under our name first (an earlier life may have left
// it), then waits for new entries; after an error what may have been read
// unseen is looked for again.
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
			l.relay.logger.WarnContext(ctx, "Lane could not be read.", slog.Int("lane", l.lane), slog.Any("error", err))
			pause(ctx, wait)
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

// take schedules a batch. It blocks while the lane has no room: a lane is not
// read further than what this process can hold.
func (l *laneReader) take(ctx context.Context, batch pool.Batch) error {
	defer l.taken()()
	parts := map[string]int{}
	for _, b := range batch.Bad {
		parts[b.EntryID]++
	}
	entries := map[string]*entry{}
	open := func(id, packetID string, jobs int) (*entry, error) {
		if e := entries[id]; e != nil {
			return e, nil
		}
		n := int64(min(max(jobs+parts[id], 1), laneLimit))
		if err := l.room.Acquire(ctx, n); err != nil {
			return nil, err
		}
		e := &entry{left: jobs + parts[id], done: func() { l.finished(id, packetID, jobs, n) }}
		entries[id] = e
		return e, nil
	}
	for _, h := range batch.HandOffs {
		if !l.begin(h.EntryID) {
			continue
		}
		jobs := l.relay.jobsOf(h)
		packetID := packetOf(h)
		if !l.hold(h.EntryID, packetID, len(jobs)) {
			continue
		}
		e, err := open(h.EntryID, packetID, len(jobs))
		if err != nil {
			return err
		}
		for _, j := range jobs {
			do := j.do
			j.do = func(ctx context.Context) error {
				if err := l.relay.carry(ctx, j.packetID, do); err != nil {
					return err
				}
				e.finish()
				return nil
			}
			l.sched.put(j)
		}
	}
	for _, b := range batch.Bad {
		if entries[b.EntryID] == nil && !l.begin(b.EntryID) {
			continue
		}
		e, err := open(b.EntryID, "", 0)
		if err != nil {
			return err
		}
		if err := l.putAside(ctx, b); err != nil {
			return err
		}
		e.finish()
	}
	return nil
}

// taken says that a batch is being taken, until the returned function is called.
func (l *laneReader) taken() (end func()) {
	add := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taking += n
	}
	add(1)
	return func() { add(-1) }
}

// knows reports whether no more entries can be pending under our name than we have; not
// while a batch is being taken.
func (l *laneReader) knows(pending int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taking > 0 || pending <= len(l.underway)
}

func (l *laneReader) begin(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underway[id] {
		return false
	}
	l.underway[id] = true
	return true
}

// finished leaves an entry to acknowledge. It does not wait: whoever carries works for
// all lanes, and the Redis of this one may be away.
func (l *laneReader) finished(id, packetID string, jobs int, room int64) {
	l.room.Release(room)
	l.release(packetID, jobs)
	l.mu.Lock()
	l.carried = append(l.carried, id)
	l.mu.Unlock()
	select {
	case l.toAck <- struct{}{}:
	default: // it will take them all
	}
}

// putAside moves what cannot be decoded to MySQL; the alarm is the log line and
// the row. It is acknowledged only when the row is there.
func (l *laneReader) putAside(ctx context.Context, b pool.Bad) error {
	l.relay.logger.ErrorContext(ctx, "Hand-off cannot be decoded; it is kept in quarantine.",
		slog.Int("lane", b.Lane), slog.String("entry_id", b.EntryID), slog.Any("error", b.Err))
	for {
		err := l.relay.quarantine.Quarantine(ctx, b.Lane, b.EntryID, b.Values, b.Err.Error())
		if err == nil {
			return nil
		}
		l.relay.warn(ctx, "Quarantine could not be written; it is tried again.", err)
		if !pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// acknowledge removes carried entries, 100 or 5 ms at a time: one call each would cost
// an fsync each. An entry is not given up as long as the slot is held: it is pending
// under our name, and nobody would ever read it again.
func (l *laneReader) acknowledge(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.toAck:
		}
		for ids := l.nextAcks(); len(ids) > 0; ids = l.nextAcks() {
			if len(ids) < ackBatch && pause(ctx, ackAfter) {
				ids = l.nextAcks()
			}
			err := l.ack(ctx, ids)
			if err == nil {
				continue
			}
			l.relay.warn(ctx, "Hand-offs could not be acknowledged; tried again.", err)
			if !pause(ctx, ackAgain) {
				break // the next life of the slot, or who takes it over, reads them again
			}
		}
	}
	return ctx.Err()
}

// nextAcks are the oldest entries that are to be acknowledged.
func (l *laneReader) nextAcks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.carried[:min(ackBatch, len(l.carried))])
}

// ack acknowledges nextAcks. A clean stop still acknowledges what Temporal has answered.
func (l *laneReader) ack(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackLimit)
	defer cancel()
	if err := l.relay.handoffs.Ack(ctx, l.lane, ids...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carried = l.carried[len(ids):]
	for _, id := range ids {
		delete(l.underway, id)
	}
	return nil
}

// entry counts what is left to do before an entry may be acknowledged.
type entry struct {
	mu   sync.Mutex
	left int
	done func()
}

func (e *entry) finish() {
	e.mu.Lock()
	e.left--
	last := e.left == 0
	e.mu.Unlock()
	if last {
		e.done()
	}
}
