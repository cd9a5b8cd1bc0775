package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	bolt "go.etcd.io/bbolt"
)

const (
	notifyTimeout     = 5 * time.Second
	notifyFor         = 24 * time.Hour
	notifyConcurrency = 16
	notifyLateDefault = 5 * time.Second
)

// Notification is the body of a notification. It names an event and its order; the current status
// has to be queried.
type Notification struct {
	EventID   string `json:"event_id"`
	Type      string `json:"type"` // order.succeeded, order.declined, order.returned
	OrderNo   string `json:"order_no"`
	Status    Status `json:"status"`
	CreatedAt string `json:"created_at"`
}

// delivery is a notification being delivered, with the same bytes at every try.
type delivery struct {
	EventID string `json:"event_id"`
	Body    string `json:"body"`
	Tries   int    `json:"tries"`
	FirstMS int64  `json:"first_ms"`
}

// notify schedules the notification of an order's final status, subject to the notification faults.
func (s *Server) notify(tx *txn, rec *record, now time.Time) error {
	if s.cfg.WebhookURL == "" {
		return nil
	}
	rule, counted := s.faults.fire(func(r *Rule) bool {
		switch r.Kind {
		case faultNotifyNever, faultNotifyTwice, faultNotifyLate:
			return r.matches(rec.Op, rec.Account)
		}
		return false
	})
	if counted {
		if err := tx.put(bucketMeta, keyFaults, s.faults.snapshot()); err != nil {
			return err
		}
	}
	times := []time.Time{now}
	if rule != nil {
		delay := time.Duration(rule.DelayMS) * time.Millisecond
		switch rule.Kind {
		case faultNotifyNever:
			return nil
		case faultNotifyTwice:
			times = []time.Time{now, now.Add(delay)}
		case faultNotifyLate:
			if delay == 0 {
				delay = notifyLateDefault
			}
			times = []time.Time{now.Add(delay)}
		}
	}
	n := Notification{EventID: newID("evt_"), Type: "order." + string(rec.Status), OrderNo: rec.OrderNo,
		Status: rec.Status, CreatedAt: formatTime(now.UnixMilli())}
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode notification: %w", err)
	}
	for _, at := range times {
		d := delivery{EventID: n.EventID, Body: string(body), FirstMS: at.UnixMilli()}
		if err := tx.schedule(bucketOutbox, at, d); err != nil {
			return err
		}
	}
	return nil
}

// outbox delivers notifications concurrently, each until it is answered with 2xx or 24 h old.
type outbox struct {
	s      *Server
	hook   *standardwebhooks.Webhook
	client *http.Client
	tokens chan struct{}
	busy   map[string]bool // keys being delivered; guarded by mu
	mu     sync.Mutex
	done   sync.WaitGroup
}

// runOutbox delivers until the context ends, then waits for the deliveries in progress.
func (s *Server) runOutbox(ctx context.Context) {
	if s.cfg.WebhookURL == "" {
		return
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxIdleConnsPerHost = nil, notifyConcurrency
	defer transport.CloseIdleConnections()
	o := &outbox{s: s, hook: s.hook, tokens: make(chan struct{}, notifyConcurrency), busy: map[string]bool{},
		client: &http.Client{Transport: transport, Timeout: notifyTimeout, CheckRedirect: neverFollow}}
	s.loopDue(ctx, bucketOutbox, s.wakeOutbox, func(now time.Time) (time.Time, error) { return o.round(ctx, now) })
	o.done.Wait()
}

func neverFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// round starts due deliveries up to the limit of concurrency.
func (o *outbox) round(ctx context.Context, now time.Time) (time.Time, error) {
	free := cap(o.tokens) - len(o.tokens)
	if free == 0 {
		return time.Time{}, nil // a finished delivery wakes the loop
	}
	var keys, values [][]byte
	var later time.Time
	// Read before the snapshot of the database: a delivery that ends after this line is skipped
	// once too often, never repeated from an old snapshot.
	busy := o.busyNow()
	err := o.s.db.View(func(tx *bolt.Tx) error {
		keys, values, later = dueUpTo(tx, bucketOutbox, now, free, func(key []byte) bool { return busy[string(key)] })
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read outbox: %w", err)
	}
	for i, key := range keys {
		var d delivery
		if err := json.Unmarshal(values[i], &d); err != nil {
			return time.Time{}, fmt.Errorf("decode notification: %w", err)
		}
		o.setBusy(key, true)
		o.tokens <- struct{}{}
		o.done.Go(func() {
			o.deliver(ctx, key, d)
			o.setBusy(key, false)
			<-o.tokens
			o.s.wake()
		})
	}
	return later, nil
}

// deliver tries once and stores the result: done, or a retry.
func (o *outbox) deliver(ctx context.Context, key []byte, d delivery) {
	err := o.post(ctx, d)
	if ctx.Err() != nil {
		return // a shutdown shows nothing about the receiver: retry after the next start
	}
	d.Tries++
	now := time.Now()
	pauses := o.s.cfg.RetryPauses
	pause := pauses[min(d.Tries, len(pauses))-1]
	again := err != nil && now.Add(pause).Before(time.UnixMilli(d.FirstMS).Add(notifyFor))
	if err != nil {
		o.s.log.Warn("notification not delivered", slog.String("event_id", d.EventID), slog.Int("tries", d.Tries),
			slog.Bool("again", again), slog.Any("error", err))
	}
	err = o.s.writer.do(func(tx *txn) error {
		if err := tx.delete(bucketOutbox, key); err != nil || !again {
			return err
		}
		return tx.schedule(bucketOutbox, now.Add(pause), d)
	})
	if err != nil {
		o.s.log.Error("notification not recorded", slog.String("event_id", d.EventID), slog.Any("error", err))
	}
}

func (o *outbox) post(ctx context.Context, d delivery) error {
	now := time.Now()
	signature, err := o.hook.Sign(d.EventID, now, []byte(d.Body))
	if err != nil {
		return fmt.Errorf("sign notification: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.s.cfg.WebhookURL, bytes.NewReader([]byte(d.Body)))
	if err != nil {
		return fmt.Errorf("notification request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, d.EventID)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	res, err := o.client.Do(req)
	if err != nil {
		return fmt.Errorf("deliver notification: %w", err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be reused
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("deliver notification: answered %d", res.StatusCode)
	}
	return nil
}

func (o *outbox) busyNow() map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.busy)
}

func (o *outbox) setBusy(key []byte, busy bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if busy {
		o.busy[string(key)] = true
	} else {
		delete(o.busy, string(key))
	}
}
