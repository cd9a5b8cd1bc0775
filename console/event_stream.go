package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"hongbao/client"
)

// Limits of overview streams in this process.
const (
	maxStreams       = 200
	maxStreamsPerKey = 8 // per key
	// DefaultPeriod is the time between two reads of the overview while a stream is open.
	DefaultPeriod = 2 * time.Second
	// streamKeepAlive is the longest silence of a stream. It bounds how late a closed connection
	// or an ended session is noticed.
	streamKeepAlive = 5 * time.Second
	// readTimeout limits one read of the overview.
	readTimeout = 15 * time.Second
)

// overviewFeed reads the overview for all streams: once per period, however many streams there
// are, and not at all without streams.
type overviewFeed struct {
	console   *Console
	period    time.Duration
	keepAlive time.Duration // streamKeepAlive; shorter in tests

	mu          sync.Mutex
	streams     map[*stream]struct{}
	reading     bool
	parts       map[language][]livePart
	readStarted time.Time // when the read of parts started
}

// stream is the event stream of one open overview page.
type stream struct {
	feed         *overviewFeed
	ctx          context.Context // ends with the process or the connection
	request      *http.Request   // its session is checked repeatedly
	keyID        string
	lang         language
	opened       time.Time // older reads may be older than the page
	wake         chan struct{}
	sentVersions map[string]string // by part id
	out          bytes.Buffer
	ended        bool
}

// liveWriter is a response writer that supports a response without a time limit.
type liveWriter interface {
	// LiveBody sends what open returns as the response body. The context ends with the process or
	// the connection.
	LiveBody(open func(ctx context.Context) io.ReadCloser)
}

// streamOverview responds with server-sent events: all parts of the overview first, then the
// changed ones. An open stream is not user activity.
func (v *visit) streamOverview() error {
	w, ok := v.w.(liveWriter)
	if !ok {
		return errors.New("response writer does not support streams")
	}
	l := v.console.feed
	s := &stream{feed: l, request: v.r, keyID: v.session.KeyID, lang: v.lang, wake: make(chan struct{}, 1), sentVersions: map[string]string{}}
	if !l.admit(s) {
		v.w.Header().Set("Retry-After", "60")
		v.w.WriteHeader(http.StatusServiceUnavailable) // the page polls instead
		return nil
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // proxies must not buffer events
	s.out.WriteString("retry: 3000\nevent: here\ndata: {}\n\n")
	w.LiveBody(func(ctx context.Context) io.ReadCloser {
		l.start(ctx, s)
		return s
	})
	return nil
}

// admit registers a stream; false if a limit is reached.
func (l *overviewFeed) admit(s *stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := 0
	for other := range l.streams {
		if other.keyID == s.keyID {
			same++
		}
	}
	if len(l.streams) >= maxStreams || same >= maxStreamsPerKey {
		return false
	}
	l.streams[s] = struct{}{}
	return true
}

// start activates a stream for reads from now on and starts the read loop if necessary.
func (l *overviewFeed) start(ctx context.Context, s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.ctx, s.opened = ctx, time.Now()
	if !l.reading {
		l.reading, l.parts = true, nil
		go l.readLoop(context.WithoutCancel(ctx))
	}
}

// remove unregisters a stream.
func (l *overviewFeed) remove(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s)
}

// readLoop reads the overview until the last stream ends.
func (l *overviewFeed) readLoop(ctx context.Context) {
	tick := time.NewTicker(l.period)
	defer tick.Stop()
	for {
		who, languages := l.readers()
		if len(who) == 0 {
			return
		}
		begun := time.Now()
		if parts := l.readOnce(ctx, who, languages); parts != nil {
			l.publish(parts, begun)
		}
		<-tick.C
	}
}

// readers returns keys and languages of the active streams. If there are none, the loop ends
// and the next stream starts it again.
func (l *overviewFeed) readers() (keys []string, spoken map[language]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spoken = map[language]bool{}
	seen := map[string]bool{}
	for s := range l.streams {
		if s.ctx == nil || s.ctx.Err() != nil {
			continue
		}
		if spoken[s.lang] = true; !seen[s.keyID] {
			keys, seen[s.keyID] = append(keys, s.keyID), true
		}
	}
	l.reading = len(keys) > 0
	return keys, spoken
}

// readOnce reads the overview with the first valid key of the streams: every staff role may read
// all of it. It returns nil on error.
func (l *overviewFeed) readOnce(ctx context.Context, keys []string, spoken map[language]bool) (out map[language][]livePart) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // the process also serves grabs
			slog.ErrorContext(ctx, "live overview panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			out = nil
		}
	}()
	for _, key := range keys {
		staff, _, err := l.console.asKey(key)
		if err == nil {
			out, err = l.render(ctx, staff, spoken)
		}
		if err == nil {
			return out
		}
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusUnauthorized { // a revoked or expired key
			slog.WarnContext(ctx, "live overview could not be read", slog.Any("error", err))
		}
	}
	return nil
}

func (l *overviewFeed) render(ctx context.Context, staff *client.Staff, spoken map[language]bool) (map[language][]livePart, error) {
	snap, err := readSnapshot(ctx, staff)
	if err != nil {
		return nil, err
	}
	out := map[language][]livePart{}
	for lang := range spoken {
		if out[lang], err = l.console.liveParts(lang, snap); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// publish stores the parts of a read and wakes all streams.
func (l *overviewFeed) publish(parts map[language][]livePart, begun time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts, l.readStarted = parts, begun
	for s := range l.streams {
		if s.ctx == nil {
			continue // not started
		}
		select {
		case s.wake <- struct{}{}:
		default: // already woken
		}
	}
}

// Read implements io.Reader. The server calls it while it writes the response; it blocks until
// there is an event or a keep-alive.
func (s *stream) Read(p []byte) (int, error) {
	quiet := time.NewTimer(s.feed.keepAlive)
	defer quiet.Stop()
	for s.out.Len() == 0 {
		if s.ended || s.ctx.Err() != nil {
			return 0, io.EOF
		}
		select {
		case <-s.ctx.Done():
			return 0, io.EOF
		case <-s.wake:
		case <-quiet.C:
			s.out.WriteString(": nothing new\n\n")
		}
		if _, _, _, ok := s.feed.console.authenticate(s.request); !ok {
			s.out.Reset()
			s.out.WriteString("event: over\ndata: {}\n\n")
			s.ended = true
			break
		}
		if err := s.compose(); err != nil {
			return 0, err
		}
	}
	return s.out.Read(p)
}

// compose writes events for the parts that have changed since they were sent.
func (s *stream) compose() error {
	s.feed.mu.Lock()
	parts, begun := s.feed.parts[s.lang], s.feed.readStarted
	s.feed.mu.Unlock()
	if begun.Before(s.opened) {
		return nil
	}
	for _, p := range parts {
		if s.sentVersions[p.ID] == p.Version {
			continue
		}
		text, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode %s: %w", p.ID, err)
		}
		s.sentVersions[p.ID] = p.Version
		fmt.Fprintf(&s.out, "event: part\ndata: %s\n\n", text)
	}
	return nil
}

// Close implements io.Closer. The server calls it at the end of the connection.
func (s *stream) Close() error {
	s.feed.remove(s)
	return nil
}
