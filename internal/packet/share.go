package packet

import (
	"errors"
	"fmt"
	"strconv"

	"hongbao/internal/money"
)

// Loaded is a share as it waits in the pool: with what the packet's counters will
// be once it is taken. Shares are taken in order, so whoever takes some of them has
// to look at the last one only.
type PoolShare struct {
	Index  int
	Amount money.Fen
	Sum    money.Fen // of all shares up to this one
	Best   int       // share of the luckiest claim (Luckier) among all up to this one
}

// Loader turns the amounts of a packet, one after the other, into its Loaded shares.
type ShareLoader struct {
	n    int // shares so far
	sum  money.Fen
	best int
	most money.Fen // amount of best
}

// Resume returns a loader for the shares that are left of a packet after the given
// claims: the sum of their amounts in fen, and share and amount of the luckiest of
// them, 0 and 0 when there are none.
func ResumeLoader(sum money.Fen, best int, most money.Fen) ShareLoader {
	return ShareLoader{sum: sum, best: best, most: most}
}

// Loaded returns how many shares there were.
func (l *ShareLoader) Count() int { return l.n }

// Next returns the next share, of a packet of which all are left.
func (l *ShareLoader) Next(amount money.Fen) PoolShare { return l.NextOf(l.n, amount) }

// NextOf returns the next share when some are missing: the one with this index.
func (l *ShareLoader) NextOf(index int, amount money.Fen) PoolShare {
	if amount > l.most { // of equal ones the first is luckier
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

// DecodeShare reads index and amount of a share as AppendText wrote it; the rest
// is of no use once it is taken. Errors wrap ErrBadClaim.
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

// mostDigits is how many digits an amount can have.
const mostDigits = 16

// errNumber is why a number cannot be read.
var errNumber = errors.New("not a number with a colon behind it")

// cutNumber reads the digits before the first colon. Every winner's share is read
// so, in one pass.
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
