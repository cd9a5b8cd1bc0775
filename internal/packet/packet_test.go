package packet

import (
	"errors"
	"testing"

	"hongbao/internal/money"
)

// TestBoundShares: the effective shares lie within what was asked for and what the provider pays, and a total
// without such shares is refused.
func TestBoundShares(t *testing.T) {
	for _, c := range []struct {
		name             string
		total            money.Fen
		count            int
		min, max         money.Fen // asked for
		least, most      money.Fen // of the provider
		wantMin, wantMax money.Fen
		code             string
	}{
		{"no bounds", 100, 10, 1, 0, 0, 0, 1, 0, ""},
		{"of the provider", 100, 10, 1, 0, 10, 200, 10, 200, ""},
		{"narrower than the provider", 1000, 10, 20, 150, 10, 200, 20, 150, ""},
		{"wider than the provider", 1000, 10, 1, 500, 10, 200, 10, 200, ""},
		{"one fen below", 99, 10, 1, 0, 10, 200, 1, 0, CodeBelowMinimum},
		{"one fen above", 2001, 10, 1, 0, 10, 200, 1, 0, CodeAboveMaximum},
		{"largest below the minimum", 50, 10, 1, 9, 10, 200, 1, 9, CodeBelowMinimum},
		{"smallest above the maximum", 3000, 10, 201, 0, 10, 200, 201, 0, CodeAboveMaximum},
		{"every share the maximum", 2000, 10, 1, 0, 10, 200, 10, 200, ""},
		{"bounds that would wrap", money.Max, MaxShares, 1, 0, 0, money.Max, 1, money.Max, ""},
	} {
		p := Packet{Split: SplitRandom, TotalAmount: c.total, ShareCount: c.count, MinShare: c.min, MaxShare: c.max}
		if err := p.SplitParams().Validate(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err := p.BoundShares(c.least, c.most)
		code := ""
		if fault, ok := errors.AsType[*SplitParamError](err); ok && fault.Field == "total_amount" && fault.Message != "" {
			code = fault.Code
		}
		if code != c.code || (err != nil) != (code != "") || p.MinShare != c.wantMin || p.MaxShare != c.wantMax {
			t.Errorf("%s: %d to %d, %v", c.name, p.MinShare, p.MaxShare, err)
		}
		if err == nil && p.SplitParams().Validate() != nil {
			t.Errorf("%s: %d to %d cannot be split", c.name, p.MinShare, p.MaxShare)
		}
	}
}
