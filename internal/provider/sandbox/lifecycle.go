package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	bolt "go.etcd.io/bbolt"
)

// Kinds of due events.
const (
	dueComplete = "complete"  // a processing order gets its outcome
	dueReturn   = "return"    // a succeeded order's money is returned
	dueExpire   = "expire"    // no confirmation in time
	duePayAgain = "pay_again" // a paid charge is paid a second time
	dueLatePay  = "late_pay"  // a closed charge is paid
	dueArrive   = "arrive"    // a send that was answered with an error takes effect
)

// payAgainRetry is the wait of a second payment for a query that shows the first one.
const payAgainRetry = 100 * time.Millisecond

// dueEvent is a scheduled change of an order.
type dueEvent struct {
	Kind    string `json:"kind"`
	OrderNo string `json:"order_no"`
	// Order is the send that arrives.
	Order *params `json:"order,omitempty"`
}

// duePerCommit bounds the due events of one commit.
const duePerCommit = 256

// setStatus sets the order's new status with its consequences: the movement, the later return, the
// deadline. The caller stores the record.
func (s *Server) setStatus(tx *txn, rec *record, f outcome, now time.Time) error {
	rec.Status, rec.Code, rec.Message, rec.Next = f.Status, f.Code, f.Message, nil
	rec.UpdatedMS = now.UnixMilli()
	switch f.Status {
	case StatusSucceeded:
		if err := tx.move(rec, rec.Op, rec.UpdatedMS); err != nil {
			return err
		}
		if rec.Returns {
			return tx.schedule(bucketDue, now.Add(s.cfg.ReturnAfter), dueEvent{Kind: dueReturn, OrderNo: rec.OrderNo})
		}
	case StatusReturned:
		return tx.move(rec, opReturn, rec.UpdatedMS)
	case StatusAwaitingConfirmation:
		deadline := now.Add(s.cfg.ConfirmWithin)
		rec.ConfirmToken, rec.ExpiresMS = newID("confirm_"), deadline.UnixMilli()
		return tx.schedule(bucketDue, deadline, dueEvent{Kind: dueExpire, OrderNo: rec.OrderNo})
	}
	return nil
}

// setStatusAndNotify is setStatus for a change without a waiting caller: it stores the order, and
// notifies when the status is final.
func (s *Server) setStatusAndNotify(tx *txn, rec *record, f outcome, now time.Time) error {
	if err := s.setStatus(tx, rec, f, now); err != nil {
		return err
	}
	if err := tx.putOrder(rec); err != nil {
		return err
	}
	if !f.Status.final() || s.faults.masks(rec) {
		return nil
	}
	return s.notify(tx, rec, now)
}

// applyDue applies a due event. It skips an order that has changed since.
func (s *Server) applyDue(tx *txn, ev dueEvent, now time.Time) error {
	rec, err := getOrder(tx.Tx, ev.OrderNo)
	if err != nil {
		return err
	}
	switch {
	case ev.Kind == dueArrive:
		return s.arrive(tx, *ev.Order, now)
	case rec == nil:
		// Should not happen; dropped, so that it does not block the others.
		s.log.Error("due event of an unknown order", slog.String("order_no", ev.OrderNo), slog.String("kind", ev.Kind))
	case ev.Kind == dueComplete && rec.Status == StatusProcessing && rec.Next != nil:
		return s.setStatusAndNotify(tx, rec, *rec.Next, now)
	case ev.Kind == dueReturn && rec.Status == StatusSucceeded:
		return s.setStatusAndNotify(tx, rec, outcome{StatusReturned, "returned", "The money was returned."}, now)
	case ev.Kind == duePayAgain && rec.Status == StatusSucceeded && rec.Reported != StatusSucceeded:
		return tx.schedule(bucketDue, now.Add(payAgainRetry), ev)
	case ev.Kind == duePayAgain && rec.Status == StatusSucceeded:
		return s.payAgain(tx, rec, now)
	case ev.Kind == dueLatePay && rec.Status == StatusDeclined && rec.Next != nil:
		return s.setStatusAndNotify(tx, rec, *rec.Next, now)
	case ev.Kind == dueExpire && rec.Status == StatusAwaitingConfirmation:
		return s.setStatusAndNotify(tx, rec, outcome{StatusDeclined, "confirmation_expired", "The recipient did not confirm in time."}, now)
	}
	return nil
}

// arrive processes a send that was answered before. A number that is known by now, and a request
// that would be refused, change nothing.
func (s *Server) arrive(tx *txn, p params, now time.Time) error {
	pl, err := s.plan(tx, p)
	if err != nil || pl.existing != nil || pl.refusal != nil {
		return err
	}
	rec, err := s.accept(tx, p, pl, &Rule{})
	if err != nil {
		return err
	}
	if err := tx.putOrder(rec); err != nil || !rec.Status.final() {
		return err
	}
	return s.notify(tx, rec, now)
}

// runDue applies due events until the context ends.
func (s *Server) runDue(ctx context.Context) {
	s.loopDue(ctx, bucketDue, s.wakeDue, func(now time.Time) (time.Time, error) {
		var next time.Time
		err := s.db.View(func(tx *bolt.Tx) error {
			_, _, next = dueUpTo(tx, bucketDue, now, 0, nil)
			return nil
		})
		if err != nil || next.IsZero() || next.After(now) {
			return next, err
		}
		err = s.writer.do(func(tx *txn) error {
			keys, values, later := dueUpTo(tx.Tx, bucketDue, now, duePerCommit, nil)
			next = later
			for i, raw := range values {
				var ev dueEvent
				if err := json.Unmarshal(raw, &ev); err != nil {
					return fmt.Errorf("decode due event: %w", err)
				}
				if err := tx.delete(bucketDue, keys[i]); err != nil {
					return err
				}
				if err := s.applyDue(tx, ev, now); err != nil {
					return err
				}
			}
			return nil
		})
		return next, err
	})
}

// loopDue calls round at once, at the time it returns, and at every wake-up.
func (s *Server) loopDue(ctx context.Context, bucket []byte, wake <-chan struct{}, round func(time.Time) (time.Time, error)) {
	const idle = time.Minute // a safety net: wake-ups are not lost
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer.C:
		}
		wait := idle
		next, err := round(time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("due events failed", slog.String("bucket", string(bucket)), slog.Any("error", err))
			wait = time.Second
		case !next.IsZero():
			wait = min(idle, time.Until(next))
		}
		timer.Reset(max(0, wait))
	}
}

// dueUpTo copies up to limit due entries that are not skipped, and returns when to look again: zero
// when nothing is left.
func dueUpTo(tx *bolt.Tx, bucket []byte, now time.Time, limit int, skip func(key []byte) bool) (keys, values [][]byte, later time.Time) {
	cursor := tx.Bucket(bucket).Cursor()
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		if skip != nil && skip(key) {
			continue
		}
		if at := dueAt(key); at.After(now) || len(keys) == limit {
			return keys, values, at
		}
		keys, values = append(keys, bytes.Clone(key)), append(values, bytes.Clone(value))
	}
	return keys, values, time.Time{}
}
