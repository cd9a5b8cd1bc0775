package packet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hongbao/money"
)

// Loaded is a share as it waits in the pool: with what the packet's counters will
// be once it is taken. Shares are taken in order, so whoever takes some of them has
// to look at the last one only.
type Loaded struct {
	Index  int
	Amount money.Fen
	Sum    money.Fen // of all shares up to this one
	Best   int       // share of the luckiest claim (Luckier) among all up to this one
}

// Loader turns the amounts of a packet, one after the other, into its Loaded shares.
type Loader struct {
	n    int // shares so far
	sum  money.Fen
	best int
	most money.Fen // amount of best
}

// Loaded returns how many shares there were.
func (l *Loader) Loaded() int { return l.n }

// Next returns the next share.
func (l *Loader) Next(amount money.Fen) Loaded {
	if amount > l.most { // of equal ones the first is luckier
		l.best, l.most = l.n, amount
	}
	l.n++
	l.sum += amount
	return Loaded{Index: l.n - 1, Amount: amount, Sum: l.sum, Best: l.best}
}

// AppendText appends "<index>:<amount>:<sum>:<best>", amounts in fen.
func (l Loaded) AppendText(b []byte) []byte {
	b = append(strconv.AppendInt(b, int64(l.Index), 10), ':')
	b = append(strconv.AppendInt(b, int64(l.Amount), 10), ':')
	b = append(strconv.AppendInt(b, int64(l.Sum), 10), ':')
	return strconv.AppendInt(b, int64(l.Best), 10)
}

// errShare is why a share cannot be read.
var errShare = errors.New("share out of range")

// DecodeShare reads index and amount of a share as AppendText wrote it; the rest
// is of no use once it is taken. Errors wrap ErrBadClaim.
func DecodeShare(text string) (index int, amount money.Fen, err error) {
	i, rest, _ := strings.Cut(text, ":")
	a, _, ok := strings.Cut(rest, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%w: share has too few fields", ErrBadClaim)
	}
	if index, err = strconv.Atoi(i); err != nil {
		return 0, 0, fmt.Errorf("%w: share index: %w", ErrBadClaim, err)
	}
	n, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: amount: %w", ErrBadClaim, err)
	}
	if amount = money.Fen(n); index < 0 || index >= MaxShares || amount <= 0 || amount.Check() != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrBadClaim, errShare)
	}
	return index, amount, nil
}
