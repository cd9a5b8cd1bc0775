package sandbox

import (
	"errors"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// errClosed is returned for writes after Close.
var errClosed = errors.New("sandbox database is closed")

// maxJobsPerCommit bounds how long one commit delays those behind it.
const maxJobsPerCommit = 512

// txn is a write transaction shared by all jobs of one commit.
type txn struct {
	*bolt.Tx
	dirty   bool // something was written: a commit is needed
	wakeDue bool // something was scheduled
}

type job struct {
	run  func(*txn) error
	done chan error
}

// writer is the only writer to the database. Jobs run one after the other, so a job sees everything
// decided before it. All jobs that wait during a commit share the next commit and its fsync. There
// is no waiting when idle.
type writer struct {
	db        *bolt.DB
	jobs      chan job
	quit      chan struct{}
	ended     chan struct{}
	closeOnce sync.Once
	onWake    func()
}

func newWriter(db *bolt.DB, onWake func()) *writer {
	w := &writer{db: db, jobs: make(chan job, maxJobsPerCommit), quit: make(chan struct{}),
		ended: make(chan struct{}), onWake: onWake}
	go w.loop()
	return w
}

// do runs one job and returns once its writes are on disk. A job must check everything before it
// writes: an error rolls back the whole commit.
func (w *writer) do(run func(*txn) error) error {
	j := job{run: run, done: make(chan error, 1)}
	select {
	case w.jobs <- j:
	case <-w.quit:
		return errClosed
	}
	select {
	case err := <-j.done:
		return err
	case <-w.ended:
		// The loop may have answered just before it ended.
		select {
		case err := <-j.done:
			return err
		default:
			return errClosed
		}
	}
}

// close ends the loop after the commit in progress and waits for it.
func (w *writer) close() {
	w.closeOnce.Do(func() { close(w.quit) })
	<-w.ended
}

func (w *writer) loop() {
	defer close(w.ended)
	batch := make([]job, 0, maxJobsPerCommit)
	for {
		select {
		case <-w.quit:
			return
		case first := <-w.jobs:
			batch = append(batch[:0], first)
		}
		for more := true; more && len(batch) < maxJobsPerCommit; {
			select {
			case next := <-w.jobs:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		wake, err := w.commit(batch)
		for _, j := range batch {
			j.done <- err
		}
		if wake {
			w.onWake()
		}
	}
}

func (w *writer) commit(batch []job) (wake bool, err error) {
	btx, err := w.db.Begin(true)
	if err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	tx := &txn{Tx: btx}
	for _, j := range batch {
		if err := j.run(tx); err != nil {
			return false, errors.Join(err, btx.Rollback())
		}
	}
	if !tx.dirty {
		// Nothing was written, so there is nothing to wait for.
		return false, btx.Rollback()
	}
	if err := btx.Commit(); err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	return tx.wakeDue, nil
}
