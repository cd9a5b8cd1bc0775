package packet

import (
	"errors"
	"fmt"
	"math/bits"

	"hongbao/internal/money"
)

// Algorithm names the way Split turns a seed into shares. It is published with
// every packet. docs/fairness.md describes it well enough to write it again;
// any change of a single share is a new name.
const Algorithm = "hongbao-split-v1"

// ErrSplitBroken means that Split computed shares that do not add up or leave their bounds. That is
// a defect; it is checked for every packet, because it would create or destroy money.
var ErrSplitBroken = errors.New("split broke its own rules")

// Split divides p.Total into p.Count shares; the share with index i is element
// i. The same seed and parameters give the same shares on every platform, for
// ever. It takes O(Count) time.
//
// It returns SplitParamErrors when p is not valid (see Validate) or PacketID is
// not a packet id, and ErrSplitBroken instead of shares that break a rule.
func Split(seed [32]byte, p SplitParams) ([]money.Fen, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !ValidID(p.PacketID) {
		return nil, SplitParamErrors{{Field: "packet_id", Code: CodeBadPacketID, Message: "must be a packet id"}}
	}
	s := newStream(seed, p.PacketID)
	shares := make([]money.Fen, p.Count)
	switch p.Mode {
	case SplitRandom:
		fillAround(shares, p.Min, p, s.doubledMean)
	case SplitEqual:
		fillEqual(shares, p.Total)
	case SplitEven:
		// Each share gets one of Count+1 equal parts, and the last part is drawn: its doubled mean
		// is narrower by that factor.
		part := (p.Total - p.Min*money.Fen(p.Count)) / money.Fen(p.Count+1)
		fillAround(shares, p.Min+part, p, s.doubledMean)
	case SplitNormal:
		fillAround(shares, p.Min, p, s.bellAround)
	}
	s.shuffle(shares)
	if err := checkShares(shares, p); err != nil {
		return nil, err
	}
	return shares, nil
}

// fillEqual gives the first Total mod Count shares the fen that cannot be divided.
func fillEqual(shares []money.Fen, total money.Fen) {
	count := money.Fen(len(shares))
	base, extra := total/count, total%count
	for i := range shares {
		shares[i] = base
		if money.Fen(i) < extra {
			shares[i]++
		}
	}
}

// fillAround draws the shares one after the other, each around the mean of what
// is left then; the last takes the rest. A share is floor plus a surplus from 0
// to room; p.Total must be between Count*floor and Count*(floor+room).
//
// The surplus is drawn from a window that is symmetric about the mean and
// reaches exactly to the nearer bound, floor or cap. So the expected value of
// every share is the mean, nothing has to be clamped, and what is left can
// always be divided among the others within their bounds.
func fillAround(shares []money.Fen, floor money.Fen, p SplitParams, draw func(total, n uint64) uint64) {
	last := len(shares) - 1
	left := uint64(p.Total - floor*money.Fen(p.Count)) // the surplus not given away yet
	room := left                                       // no cap: one share may take all
	if p.Max != 0 {
		room = min(room, uint64(p.Max-floor))
	}
	for i := range last {
		n := uint64(last - i + 1)
		var surplus uint64
		if nearFloor(left, n, room) {
			surplus = draw(left, n)
		} else {
			// The mirror image: draw what this share falls short of the cap.
			// n*room < 2*left here, so the product cannot overflow.
			surplus = room - draw(n*room-left, n)
		}
		shares[i] = floor + money.Fen(surplus)
		left -= surplus
	}
	shares[last] = floor + money.Fen(left)
}

// nearFloor reports whether the mean left/n is not above room/2, that is
// 2*left <= n*room, without the product, which goes up to 2^73.
func nearFloor(left, n, room uint64) bool {
	quotient, remainder := 2*left/n, 2*left%n
	return quotient < room || quotient == room && remainder == 0
}

// doubledMean returns a uniform number from 0 to twice the mean total/n.
func (s *stream) doubledMean(total, n uint64) uint64 {
	return s.upTo(2 * total / n)
}

// bellAround returns a number from 0 to twice the mean total/n, rounded to the
// nearest, from a bell around the mean with a sigma of a third of it.
func (s *stream) bellAround(total, n uint64) uint64 {
	// (bell / bellSpan) * (2*total / n), in 128 bits: the numerator goes up to
	// 2^78. The divisor is above bellSpan, so the quotient fits.
	divisor := n * bellSpan
	hi, lo := bits.Mul64(s.bell(), 2*total)
	lo, carry := bits.Add64(lo, divisor/2, 0)
	quotient, _ := bits.Div64(hi+carry, lo, divisor)
	return quotient
}

// shuffle permutes the shares (Fisher-Yates, from the last index down), so that
// every order is equally likely and none of a mode's drawing order is left.
func (s *stream) shuffle(shares []money.Fen) {
	for i := len(shares) - 1; i > 0; i-- {
		j := s.upTo(uint64(i))
		shares[i], shares[j] = shares[j], shares[i]
	}
}

// checkShares checks the result of Split: it returns ErrSplitBroken
// unless the shares are Count in number, within bounds, and add up to Total.
func checkShares(shares []money.Fen, p SplitParams) error {
	if len(shares) != p.Count {
		return fmt.Errorf("packet %s: %d shares instead of %d: %w", p.PacketID, len(shares), p.Count, ErrSplitBroken)
	}
	for i, share := range shares {
		if share < p.Min || p.Max != 0 && share > p.Max {
			return fmt.Errorf("packet %s: share %d is %d fen: %w", p.PacketID, i, int64(share), ErrSplitBroken)
		}
	}
	sum, err := money.Sum(shares...)
	if err != nil {
		return fmt.Errorf("packet %s: %w: %w", p.PacketID, ErrSplitBroken, err)
	}
	if sum != p.Total {
		return fmt.Errorf("packet %s: shares add up to %d fen instead of %d: %w", p.PacketID, int64(sum), int64(p.Total), ErrSplitBroken)
	}
	return nil
}
