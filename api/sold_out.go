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

// Limits of reading the winners of sold-out packets.
const (
	// maxRemembered bounds the memory in words of 8 bytes: 32 MB.
	maxRemembered = 4 << 20
	// rememberedPacket is the approximate size of a packet without its winners.
	rememberedPacket = 32
	// winnersPage is how many winners one call reads, about a millisecond of Redis' time. After
	// each call the same time is left for other requests.
	winnersPage = 500
	// maxLearning is how many packets are read at the same time.
	maxLearning = 2
	// learnTimeout bounds the read of one packet with a million winners.
	learnTimeout = time.Minute
	// learnPause is how long a slot stays taken after a failure.
	learnPause = time.Second
)

// errNotFinal means that a packet has fewer winners than shares.
var errNotFinal = errors.New("fewer winners than shares")

// winners is the final set of winners of one packet, as sorted hashes of their ids. On a hash
// collision a loser counts as a winner, and the pool decides, as for winners.
type winners struct {
	hashes []uint64
	epoch  int64 // of the pool from which they were read
}

func (w *winners) has(user uint64) bool {
	_, found := slices.BinarySearch(w.hashes, user)
	return found
}

// soldOut answers grabs of sold-out packets without Redis. After the last share is claimed the
// process reads all winners; from then on other users get sold_out from memory. That answer is
// final: it stays when the packet is closed and retired, and while Redis is unavailable. Grabs
// of winners go to the pool, which has their claims; repeated claims are remembered
// (repeated_claims.go).
//
// Packets with a list of users are left out: a user who is not on the list has to get
// not_eligible.
type soldOut struct {
	grabs   Grabs
	packets PacketReader
	fence   Fence
	seed    maphash.Seed
	known   *cache[*winners]
	base    context.Context
	places  chan struct{} // slots for packets that are being read

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

// refuses reports whether a grab gets sold_out: all winners are known, and the user is none of
// them.
func (s *soldOut) refuses(id, user string) bool {
	w, ok := s.known.get(id)
	if !ok || w.has(maphash.String(s.seed, user)) {
		return false
	}
	epoch, open := s.fence(id)
	return open && epoch == w.epoch
}

// final reports whether all winners of a packet are known, and of which epoch.
func (s *soldOut) final(id string) (epoch int64, ok bool) {
	w, ok := s.known.get(id)
	if !ok {
		return 0, false
	}
	epoch, open := s.fence(id)
	return epoch, open && epoch == w.epoch
}

// learn starts reading the winners of a sold-out packet, unless that already runs or all slots
// are taken.
func (s *soldOut) learn(id string, fact packetFacts) {
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
		return // a later grab tries again
	}
	s.learning[id] = true
	s.running.Go(func() {
		defer s.learned(id)
		ctx, cancel := context.WithTimeout(s.base, learnTimeout)
		defer cancel()
		hashes, err := s.read(ctx, id, fact.shares)
		if err != nil {
			slog.WarnContext(ctx, "winners of a sold-out packet were not read", slog.String("packet_id", id), slog.Any("error", err))
			sleep(s.base, learnPause)
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

// end waits for running reads. Call it when base has ended.
func (s *soldOut) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
}

// read returns the hashes of all winners of a packet with n shares: from Redis, or from MySQL
// once the pool is retired. Fewer than n are an error.
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
		sleep(ctx, time.Since(began))
	}
	slices.Sort(hashes)
	// A duplicate hash is a duplicate user, so a winner is missing.
	if n < 1 || len(hashes) != n || len(slices.Compact(hashes)) != n {
		return nil, fmt.Errorf("%w: %d of %d", errNotFinal, len(hashes), n)
	}
	users, err := promised(ctx, id, n)
	if err != nil {
		return nil, err
	}
	for _, user := range users { // share conflicts: they have no share and keep their acknowledged amount
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

// conflictWinners reads the users with a share conflict. A rebuilt pool has them as
// winners, but not among its ordered claims.
func (s *soldOut) conflictWinners(ctx context.Context, id string, n int) (users []string, err error) {
	acknowledged, err := s.grabs.WinnersCount(ctx, id)
	if err != nil || acknowledged == n { // the common case, which needs no MySQL
		return nil, err
	}
	users, err = s.conflictUsers(ctx, id, n)
	if err == nil && acknowledged > n+len(users) {
		err = fmt.Errorf("%w: %d acknowledged winners, %d share conflicts", errNotFinal, acknowledged, len(users))
	}
	return users, err
}

func (s *soldOut) conflictUsers(ctx context.Context, id string, _ int) ([]string, error) {
	return s.packets.ShareConflictUsers(ctx, id)
}

// fromMySQL reads a page of the winners of the shares below upTo.
func (s *soldOut) fromMySQL(ctx context.Context, id string, upTo int) (users []string, err error) {
	recorded, err := s.packets.ClaimsBefore(ctx, id, upTo, winnersPage)
	if err != nil {
		return nil, err
	}
	if len(recorded) == 0 {
		return nil, fmt.Errorf("%w: %d missing in mysql", errNotFinal, upTo)
	}
	for _, c := range recorded {
		users = append(users, c.UserID)
	}
	return users, nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
