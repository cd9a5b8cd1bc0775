package packet

import (
	"errors"
	"fmt"
	"strconv"

	"hongbao/internal/money"
)

// PoolShare is a share in the pool, with the packet's counters after it is claimed. Shares are
// claimed in order, so a batch only needs the counters of its last share.
type PoolShare struct {
	Index  int
	Amount money.Fen
	Sum    money.Fen // of all shares up to this one
	Best   int       // share of the luckiest claim (Luckier) up to this one
}

// ShareLoader turns the amounts of a packet, in order, into PoolShares.
type ShareLoader struct {
	n    int // shares so far
	sum  money.Fen
	best int
	most money.Fen // amount of best
}

// ResumeLoader returns a loader for the unclaimed shares of a packet. sum is the sum of the claims
// in fen, best and most are share and amount of the luckiest claim; 0 and 0 without claims.
func ResumeLoader(sum money.Fen, best int, most money.Fen) ShareLoader {
	return ShareLoader{sum: sum, best: best, most: most}
}

// Count returns the number of shares so far.
func (l *ShareLoader) Count() int { return l.n }

// Next returns the next share of a packet without claims.
func (l *ShareLoader) Next(amount money.Fen) PoolShare { return l.NextOf(l.n, amount) }

// NextOf returns the share with this index; indexes may have gaps.
func (l *ShareLoader) NextOf(index int, amount money.Fen) PoolShare {
	if amount > l.most { // of equal amounts the first is luckier
		l.best, l.most = index, amount
	}
	l.n++
	l.sum += amount
	return PoolShare{Index: index, Amount: amount, Sum: l.sum, Best: l.best}
}

// AppendText appends "<index>:<amount>:<sum>:<best>", amounts in fen.
func (l PoolShare) AppendText(b []byte) []byte {
	b = append(strconv.AppendInt(b, int64(l.Index), 10), ':')
	b = append(strconv.AppendInt(b, int64(l.Amount), 10), ':')
	b = append(strconv.AppendInt(b, int64(l.Sum), 10), ':')
	return strconv.AppendInt(b, int64(l.Best), 10)
}

// DecodeShare reads index and amount of a share as AppendText wrote it; the counters are of no use
// once it is claimed. Errors wrap ErrBadClaim.
func DecodeShare(text string) (index int, amount money.Fen, err error) {
	i, rest, err := cutNumber(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: share index: %w", ErrBadClaim, err)
	}
	a, _, err := cutNumber(rest)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: amount: %w", ErrBadClaim, err)
	}
	if amount = money.Fen(a); i >= MaxShares || amount == 0 || amount.Check() != nil {
		return 0, 0, fmt.Errorf("%w: share out of range", ErrBadClaim)
	}
	return int(i), amount, nil
}

// mostDigits is the maximum number of digits of an amount.
const mostDigits = 16

// errNumber is the reason why a number cannot be read.
var errNumber = errors.New("not a number with a colon behind it")

// cutNumber reads the digits before the first colon in one pass: every claim is decoded with it.
func cutNumber(text string) (n int64, rest string, err error) {
	for i := range len(text) {
		c := text[i]
		switch {
		case c == ':' && i > 0:
			return n, text[i+1:], nil
		case c < '0' || c > '9' || i == mostDigits:
			return 0, "", errNumber
		}
		n = 10*n + int64(c-'0')
	}
	return 0, "", errNumber
}
