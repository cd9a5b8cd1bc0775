package api

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hongbao/internal/packet"
)

// How winners of sold-out packets are learned.
const (
	// maxRemembered bounds what is remembered, in words of 8 bytes: 32 MB.
	maxRemembered = 4 << 20
	// rememberedPacket is about what a packet costs beside its winners.
	rememberedPacket = 32
	// winnersPage is how many winners are asked for in one call, about a
	// millisecond of Redis' time. After each the same time is left to others.
	winnersPage = 500
	// maxLearning is how many packets are learned at the same time.
	maxLearning = 2
	// learnTimeout bounds the learning of one packet with a million winners.
	learnTimeout = time.Minute
	// learnPause is how long a place stays taken after a failure.
	learnPause = time.Second
)

// errNotFinal says that a packet has not as many winners as shares.
var errNotFinal = errors.New("not every share has its winner")

// winners is the final set of the winners of one packet, as sorted hashes of
// their ids. Two users can have the same hash: then one who did not win is taken
// for a winner, and the pool decides, as it does for all others.
type winners struct {
	hashes []uint64
	epoch  int64 // of the pool that told them
}

func (w *winners) has(user uint64) bool {
	_, found := slices.BinarySearch(w.hashes, user)
	return found
}

// soldOut is the crowd's shortcut. Of a packet whose last share is gone the
// process learns who its winners are, all of them, and from then on tells
// everybody else that it is sold out without asking the pool. That answer is the
// packet's last one: it stays when the packet is closed and retired, and also
// while Redis is away. Winners are sent on to the pool, which knows their
// claims; the claims that it repeats are remembered (repeated_claims.go).
//
// Packets with a guest list are left out: a stranger is refused as such first.
type soldOut struct {
	grabs   Grabs
	packets PacketReader
	fence   Fence
	seed    maphash.Seed
	known   *cache[*winners]
	base    context.Context
	places  chan struct{} // one for each packet that may be learned now

	mu       sync.Mutex
	ended    bool
	learning map[string]bool
	running  sync.WaitGroup
}

func newSoldOut(base context.Context, grabs Grabs, books PacketReader, gate Fence, limit int) *soldOut {
	return &soldOut{
		grabs: grabs, packets: books, fence: gate, seed: maphash.MakeSeed(), base: base,
		known:    newWeighedCache(limit, func(w *winners) int { return rememberedPacket + len(w.hashes) }),
		places:   make(chan struct{}, maxLearning),
		learning: map[string]bool{},
	}
}

// excludes reports whether the packet is known to be sold out, and not to user.
func (s *soldOut) excludes(id, user string) bool {
	w, ok := s.known.get(id)
	if !ok || w.has(maphash.String(s.seed, user)) {
		return false
	}
	epoch, open := s.fence(id)
	return open && epoch == w.epoch
}

// final reports whether all winners of a packet are known, and to which pool.
func (s *soldOut) final(id string) (epoch int64, ok bool) {
	w, ok := s.known.get(id)
	if !ok {
		return 0, false
	}
	epoch, open := s.fence(id)
	return epoch, open && epoch == w.epoch
}

// learn begins to read the winners of a packet that has been found sold out,
// unless that is being done, or enough others are.
func (s *soldOut) learn(id string, fact facts) {
	epoch, open := s.fence(id)
	if !open || fact.restricted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.learning[id] {
		return
	}
	select {
	case s.places <- struct{}{}:
	default:
		return // the next one who finds it sold out asks again
	}
	s.learning[id] = true
	s.running.Go(func() {
		defer s.learned(id)
		ctx, cancel := context.WithTimeout(s.base, learnTimeout)
		defer cancel()
		hashes, err := s.read(ctx, id, fact.shares)
		if err != nil {
			slog.WarnContext(ctx, "winners of a sold-out packet were not read", slog.String("packet_id", id), slog.Any("error", err))
			rest(s.base, learnPause)
			return
		}
		s.known.put(id, &winners{hashes: hashes, epoch: epoch})
	})
}

func (s *soldOut) learned(id string) {
	s.mu.Lock()
	delete(s.learning, id)
	s.mu.Unlock()
	<-s.places
}

// end waits for what is being read. It is called when base has ended.
func (s *soldOut) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
}

// read reads the hashes of all winners of a packet with n shares: from Redis, and
// from MySQL once the pool is retired. Less than n are no answer.
func (s *soldOut) read(ctx context.Context, id string, n int) ([]uint64, error) {
	hashes := make([]uint64, 0, n)
	page, promised := s.fromPool, s.conflictWinners
	for len(hashes) < n {
		began := time.Now()
		users, err := page(ctx, id, n-len(hashes))
		if errors.Is(err, packet.ErrNotFound) && len(hashes) == 0 {
			page, promised = s.fromMySQL, s.conflictUsers
			users, err = page(ctx, id, n)
		}
		if err != nil {
			return nil, err
		}
		for _, user := range users {
			hashes = append(hashes, maphash.String(s.seed, user))
		}
		rest(ctx, time.Since(began))
	}
	slices.Sort(hashes)
	// The same hash twice is the same user twice, and somebody missing.
	if n < 1 || len(hashes) != n || len(slices.Compact(hashes)) != n {
		return nil, fmt.Errorf("%w: %d of %d", errNotFinal, len(hashes), n)
	}
	users, err := promised(ctx, id, n)
	if err != nil {
		return nil, err
	}
	for _, user := range users { // they have no share, and are told what they were told all the same (rule R10)
		hashes = append(hashes, maphash.String(s.seed, user))
	}
	slices.Sort(hashes)
	return hashes, nil
}

// fromPool reads a page of the first upTo winners.
func (s *soldOut) fromPool(ctx context.Context, id string, upTo int) (users []string, err error) {
	claims, made, err := s.grabs.ClaimsPage(ctx, id, upTo, winnersPage)
	if err != nil {
		return nil, err
	}
	if made != upTo || len(claims) == 0 {
		return nil, fmt.Errorf("%w: %d of %d in redis", errNotFinal, made, upTo)
	}
	for _, c := range claims {
		users = append(users, c.UserID)
	}
	return users, nil
}

// conflictWinners reads who was told that he has won besides the winners of the n shares: a
// pool that was made again has such users, but not in the order of its claims (rule R10).
func (s *soldOut) conflictWinners(ctx context.Context, id string, n int) (users []string, err error) {
	told, err := s.grabs.WinnersCount(ctx, id)
	if err != nil || told == n { // as nearly always; then MySQL need not be there
		return nil, err
	}
	users, err = s.conflictUsers(ctx, id, n)
	if err == nil && told > n+len(users) {
		err = fmt.Errorf("%w: %d were told that they have won, %d of them by promise", errNotFinal, told, len(users))
	}
	return users, err
}

func (s *soldOut) conflictUsers(ctx context.Context, id string, _ int) ([]string, error) {
	return s.packets.ShareConflictUsers(ctx, id)
}

// fromMySQL reads a page of the winners of the shares below upTo.
func (s *soldOut) fromMySQL(ctx context.Context, id string, upTo int) (users []string, err error) {
	paid, err := s.packets.ClaimsBefore(ctx, id, upTo, winnersPage)
	if err != nil {
		return nil, err
	}
	if len(paid) == 0 {
		return nil, fmt.Errorf("%w: %d missing in mysql", errNotFinal, upTo)
	}
	for _, c := range paid {
		users = append(users, c.UserID)
	}
	return users, nil
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
