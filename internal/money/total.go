package money

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Saturated is a sum that 64 bits do not hold: this amount or more, about a thousand times Max. A
// sum below is exact. -Saturated is the same below zero.
const Saturated Fen = math.MaxInt64

// Plus returns f + g of two sums, which may be above Max or below zero. A saturated sum stays
// saturated: it is never taken for an exact one.
func (f Fen) Plus(g Fen) Fen {
	for _, one := range []Fen{f, g} {
		if one.saturated() {
			return one
		}
	}
	switch {
	case g > 0 && f > Saturated-g:
		return Saturated
	case g < 0 && f < -Saturated-g:
		return -Saturated
	}
	return f + g
}

func (f Fen) saturated() bool { return f == Saturated || f <= -Saturated }

// Digits returns f in fen; a saturated sum has a + behind: "9223372036854775807+".
func (f Fen) Digits() string { return strconv.FormatInt(int64(f), 10) + f.saturationMark() }

func (f Fen) saturationMark() string {
	if f.saturated() {
		return "+"
	}
	return ""
}

// MarshalJSON implements json.Marshaler: a number up to Max, which every reader holds exactly;
// above, where only sums are, Digits as a string.
func (f Fen) MarshalJSON() ([]byte, error) {
	if f > Max || f < -Max {
		return []byte(`"` + f.Digits() + `"`), nil
	}
	return strconv.AppendInt(nil, int64(f), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler: it reads only what MarshalJSON writes.
func (f *Fen) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if text == "null" {
		return nil
	}
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "+"), 10, 64)
	above := n > int64(Max) || n < -int64(Max)
	if err != nil || above != (raw[0] == '"') || above && Fen(n).Digits() != text {
		return fmt.Errorf("%.40s is not an amount in fen", raw)
	}
	*f = Fen(n)
	return nil
}
