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

// Bounds of streams of the overview, in this process.
const (
	maxStreams       = 200
	maxStreamsPerKey = 8 // of one key
	// DefaultPeriod is how often the overview is read while somebody looks at it.
	DefaultPeriod = 2 * time.Second
	// streamKeepAlive is how long a stream says nothing at most: that is how soon it is seen
	// that a browser has gone, or somebody is not signed in any more.
	streamKeepAlive = 5 * time.Second
	// readTimeout bounds one reading of the overview.
	readTimeout = 15 * time.Second
)

// live reads the overview for everybody who looks at it: one reading a period,
// however many there are, and none when there is nobody.
type overviewFeed struct {
	console   *Console
	period    time.Duration
	keepAlive time.Duration // streamKeepAlive, but in tests

	mu          sync.Mutex
	streams     map[*stream]struct{}
	reading     bool
	parts       map[language][]livePart
	readStarted time.Time // when the reading of parts began
}

// stream is one browser that is told what has changed.
type stream struct {
	feed         *overviewFeed
	ctx          context.Context // ends with the process, or when the browser has gone
	request      *http.Request   // its cookie is looked at again and again
	keyID        string
	lang         language
	opened       time.Time // what was read before may be older than its page
	wake         chan struct{}
	sentVersions map[string]string // versions of parts, by id
	out          bytes.Buffer
	ended        bool
}

// lasting is a writer whose answer may go on for as long as somebody reads it.
type liveWriter interface {
	// LiveBody makes what open returns the answer. Its context ends with the process or
	// the connection.
	LiveBody(open func(ctx context.Context) io.ReadCloser)
}

// follow answers with a stream of server-sent events: the parts of the overview, all
// at first and then those that have changed. The page asks for it by itself, which is
// no sign of anybody.
func (v *visit) streamOverview() error {
	w, ok := v.w.(liveWriter)
	if !ok {
		return errors.New("answers cannot last here")
	}
	l := v.console.feed
	s := &stream{feed: l, request: v.r, keyID: v.session.KeyID, lang: v.lang, wake: make(chan struct{}, 1), sentVersions: map[string]string{}}
	if !l.admit(s) {
		v.w.Header().Set("Retry-After", "60")
		v.w.WriteHeader(http.StatusServiceUnavailable) // the page goes on by asking
		return nil
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // a proxy passes on each event at once
	s.out.WriteString("retry: 3000\nevent: here\ndata: {}\n\n")
	w.LiveBody(func(ctx context.Context) io.ReadCloser {
		l.start(ctx, s)
		return s
	})
	return nil
}

// admit takes a place for a stream; false: there are too many.
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

// begin lets a stream be told what is read from now on, and reads when nobody does yet.
func (l *overviewFeed) start(ctx context.Context, s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.ctx, s.opened = ctx, time.Now()
	if !l.reading {
		l.reading, l.parts = true, nil
		go l.readLoop(context.WithoutCancel(ctx))
	}
}

// leave takes a stream away.
func (l *overviewFeed) remove(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s)
}

// read reads the overview until nobody looks at it any more.
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

// readers are the keys of those who look, and their languages. When there are none
// the reading ends; who comes next begins it anew.
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

// once reads the overview as one of those who look at it: every role of staff may
// read all of it. Nil: it could not be read.
func (l *overviewFeed) readOnce(ctx context.Context, keys []string, spoken map[language]bool) (out map[language][]livePart) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // the process takes grabs too
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
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusUnauthorized { // a key that has ended meanwhile
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

// tell wakes everybody.
func (l *overviewFeed) publish(parts map[language][]livePart, begun time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts, l.readStarted = parts, begun
	for s := range l.streams {
		if s.ctx == nil {
			continue // has not begun
		}
		select {
		case s.wake <- struct{}{}:
		default: // is awake already
		}
	}
}

// Read implements io.Reader. It is called while the answer is written, and waits for
// something to say.
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

// compose writes the parts that have changed since they were told.
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

// Close implements io.Closer: the browser has gone, or the stream has ended.
func (s *stream) Close() error {
	s.feed.remove(s)
	return nil
}
