package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	bolt "go.etcd.io/bbolt"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	// drainTimeout bounds how long requests in progress delay a stop. Held and idle connections are
	// closed at once.
	drainTimeout = 3 * time.Second
)

// Server is the sandbox provider. Open creates it, Serve runs it, Close releases the database.
type Server struct {
	cfg       Config
	log       *slog.Logger
	listener  net.Listener
	db        *bolt.DB
	writer    *writer
	faults    *faultSet
	hook      *standardwebhooks.Webhook
	keyDigest [sha256.Size]byte

	wakeDue, wakeOutbox chan struct{}
	stopping            chan struct{} // closed when Serve begins to stop, or by Close
	stopOnce, closeOnce sync.Once
	closeErr            error
}

// Open checks the configuration (errors wrap ErrConfig), opens the database and listens: the
// address is known then, requests are answered once Serve runs. The caller must call Close, also if
// Serve was never called.
func Open(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Logger, listener: cfg.Listener, faults: new(faultSet),
		keyDigest: sha256.Sum256([]byte(cfg.APIKey)), wakeDue: make(chan struct{}, 1),
		wakeOutbox: make(chan struct{}, 1), stopping: make(chan struct{})}
	if cfg.WebhookURL != "" {
		if s.hook, err = standardwebhooks.NewWebhook(cfg.WebhookSecret); err != nil {
			return nil, fmt.Errorf("%w: WebhookSecret", ErrConfig)
		}
	}
	if s.listener == nil {
		// Before the database, so that a busy port is reported at once.
		if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
	}
	if s.db, err = openDB(cfg.DBPath); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	if err := s.loadFaults(); err != nil {
		return nil, errors.Join(err, s.listener.Close(), s.db.Close())
	}
	s.writer = newWriter(s.db, s.wake)
	return s, nil
}

// Addr is the address the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers requests, applies due events and delivers notifications until ctx ends. Then it
// closes held connections, gives requests in progress three seconds, and returns nil. Any other
// error is the listener's. It may be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: s, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}

	var loops sync.WaitGroup
	loops.Go(func() { s.runDue(ctx) })
	loops.Go(func() { s.runOutbox(ctx) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()

	var err error
	select {
	case <-ctx.Done():
		s.stop()
		drain, cancelDrain := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancelDrain()
		if server.Shutdown(drain) != nil {
			server.Close() // the remaining requests had their time
		}
		<-served //nolint:errcheck // it says that it was closed
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
		s.stop()
		server.Close()
	}
	cancel()
	loops.Wait()
	return err
}

// Close stops listening and closes the database. Call it after Serve has returned. A repeated call
// returns the same error.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.stop()
		s.writer.close()
		s.closeErr = s.db.Close()
		if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.closeErr = errors.Join(s.closeErr, err)
		}
	})
	return s.closeErr
}

func (s *Server) stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// wake makes both loops look for due entries. It never blocks.
func (s *Server) wake() {
	for _, c := range []chan struct{}{s.wakeDue, s.wakeOutbox} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (s *Server) loadFaults() error {
	return s.db.View(func(tx *bolt.Tx) error {
		raw := tx.Bucket(bucketMeta).Get(keyFaults)
		if raw == nil {
			return nil
		}
		var rules []Rule
		if err := json.Unmarshal(raw, &rules); err != nil {
			return fmt.Errorf("decode stored faults: %w", err)
		}
		s.faults.replace(rules)
		return nil
	})
}
