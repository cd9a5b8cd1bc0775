package packet

import (
	"errors"
	"fmt"

	"hongbao/internal/money"
)

// ShareLen is the number of bytes of a packed share: index (3 bytes) and amount in fen (7 bytes), both
// big-endian.
const ShareLen = 10

// AppendShare appends a packed share.
func AppendShare(b []byte, index int, amount money.Fen) []byte {
	b = append(b, byte(index>>16), byte(index>>8), byte(index))
	for shift := 48; shift >= 0; shift -= 8 {
		b = append(b, byte(amount>>shift))
	}
	return b
}

// UnpackShare reads share i of packed shares. Errors wrap ErrBadClaim.
func UnpackShare(packed string, i int) (index int, amount money.Fen, err error) {
	if i < 0 || len(packed) < (i+1)*ShareLen {
		return 0, 0, fmt.Errorf("%w: no share %d in %d bytes", ErrBadClaim, i, len(packed))
	}
	b := packed[i*ShareLen:]
	index = int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	for j := 3; j < ShareLen; j++ {
		amount = amount<<8 | money.Fen(b[j])
	}
	return index, amount, checkShare(index, amount)
}

func checkShare(index int, amount money.Fen) error {
	if index < 0 || index >= MaxShares || amount == 0 || amount.Check() != nil {
		return fmt.Errorf("%w: share out of range", ErrBadClaim)
	}
	return nil
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
