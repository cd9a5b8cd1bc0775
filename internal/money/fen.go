// Package money holds Fen, the type of every amount in hongbao: a whole number of minor units of
// CNY. Amounts have no fractions and no floating point, and sums never wrap.
package money

import (
	"errors"
	"fmt"
	"strconv"
)

// Fen is an amount of money in fen, the minor unit of CNY: 100 fen are one
// yuan. An amount is valid from 0 to Max. In JSON and SQL it is a plain integer.
// Sums of amounts may be above Max: see Plus and Saturated.
type Fen int64

// Max is the largest amount, 2^53 - 1 fen (about 90 trillion yuan). It is the largest integer that
// every JSON reader and the Lua of Redis hold exactly, so an amount means the same in each store
// and client.
const Max Fen = 1<<53 - 1

var (
	// ErrOverflow means that an operand or the result is above Max.
	ErrOverflow = errors.New("amount above 2^53-1 fen")
	// ErrNegative means that an operand or the result is below zero.
	ErrNegative = errors.New("amount below zero")
	// ErrSyntax means that a text is not yuan with exactly two decimals.
	ErrSyntax = errors.New("amount is not yuan with two decimals, such as 12.34")
)

// Check returns nil when f is from 0 to Max, else ErrNegative or ErrOverflow
// (wrapped, with the value).
func (f Fen) Check() error {
	switch {
	case f < 0:
		return fmt.Errorf("%d fen: %w", int64(f), ErrNegative)
	case f > Max:
		return fmt.Errorf("%d fen: %w", int64(f), ErrOverflow)
	}
	return nil
}

// Add returns f + g. Both operands and the result must be from 0 to Max;
// otherwise it returns 0 and ErrNegative or ErrOverflow.
func (f Fen) Add(g Fen) (Fen, error) {
	if err := checkBoth(f, g); err != nil {
		return 0, err
	}
	// Two valid operands sum to less than 2^54, so the addition cannot wrap.
	return checked(f + g)
}

// Sub returns f - g. Both operands and the result must be from 0 to Max: taking
// away more than there is returns 0 and ErrNegative.
func (f Fen) Sub(g Fen) (Fen, error) {
	if err := checkBoth(f, g); err != nil {
		return 0, err
	}
	return checked(f - g)
}

// Sum returns the sum of all amounts, 0 for none. Each amount and the sum must
// be from 0 to Max; otherwise it returns 0 and ErrNegative or ErrOverflow.
func Sum(amounts ...Fen) (Fen, error) {
	var total Fen
	for _, amount := range amounts {
		next, err := total.Add(amount)
		if err != nil {
			return 0, err
		}
		total = next
	}
	return total, nil
}

// String returns the amount in yuan with two decimals, such as "12.34", without a currency sign or
// grouping. Parse reads it back for every valid amount. A negative difference has its sign, and a
// saturated sum has a + behind.
func (f Fen) String() string {
	sign, n := "", uint64(f)
	if f < 0 {
		sign, n = "-", -uint64(f)
	}
	return fmt.Sprintf("%s%d.%02d%s", sign, n/100, n%100, f.saturationMark())
}

// Parse reads what String writes: yuan with exactly two decimals and no sign,
// space, grouping or needless leading zero. Every valid amount has exactly one
// text. Other texts return ErrSyntax, amounts above Max return ErrOverflow.
func Parse(text string) (Fen, error) {
	yuan, cents, ok := cutDecimals(text)
	if !ok {
		return 0, fmt.Errorf("%.32q: %w", text, ErrSyntax)
	}
	n, err := strconv.ParseInt(yuan+cents, 10, 64)
	if err != nil || Fen(n) > Max {
		// The text has only digits, so it can only be too large.
		return 0, fmt.Errorf("%.32q: %w", text, ErrOverflow)
	}
	return Fen(n), nil
}

// cutDecimals splits "12.34" into "12" and "34" and reports whether text has
// that form, with "0" as the only number that may start with a zero.
func cutDecimals(text string) (yuan, cents string, ok bool) {
	point := len(text) - 3
	if point < 1 || text[point] != '.' {
		return "", "", false
	}
	yuan, cents = text[:point], text[point+1:]
	if len(yuan) > 1 && yuan[0] == '0' {
		return "", "", false
	}
	return yuan, cents, isDigits(yuan) && isDigits(cents)
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

func checkBoth(f, g Fen) error {
	if err := f.Check(); err != nil {
		return err
	}
	return g.Check()
}

func checked(f Fen) (Fen, error) {
	if err := f.Check(); err != nil {
		return 0, err
	}
	return f, nil
}
