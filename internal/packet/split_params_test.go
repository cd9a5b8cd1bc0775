package packet

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"hongbao/internal/money"
)

func TestParseSplitMode(t *testing.T) {
	for _, mode := range SplitModes {
		if got, err := ParseSplitMode(string(mode)); got != mode || err != nil {
			t.Errorf("%q: got %q, %v", mode, got, err)
		}
	}
	for _, text := range []string{"", "Random", "random ", "lucky"} {
		got, err := ParseSplitMode(text)
		fault, ok := errors.AsType[*SplitParamError](err)
		if got != "" || !ok || fault.Field != "split" || fault.Code != CodeUnknownSplit {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

func TestSplitParamsValidate(t *testing.T) {
	const most = money.Max
	cases := []struct {
		name            string
		mode            SplitMode
		total, min, max money.Fen
		count           int
		want            string // "field code" of every fault
	}{
		{"usual", SplitRandom, 10_000, 1, 0, 10, ""},
		{"one fen", SplitRandom, 1, 1, 0, 1, ""},
		{"largest", SplitNormal, most, 1, 0, MaxShares, ""},
		{"largest for one", SplitEqual, most, most, most, 1, ""},
		{"total is the minimums", SplitEven, 50, 5, 0, 10, ""},
		{"total is the maximums", SplitEven, 50, 1, 5, 10, ""},
		{"minimum is maximum", SplitRandom, 50, 5, 5, 10, ""},
		{"cap above total", SplitRandom, 50, 1, 1000, 10, ""},
		{"mode missing", "", 50, 1, 0, 10, "split unknown_split"},
		{"mode unknown", "lucky", 50, 1, 0, 10, "split unknown_split"},
		{"no total", SplitRandom, 0, 1, 0, 1, "total_amount out_of_range"},
		{"negative total", SplitRandom, -1, 1, 0, 1, "total_amount out_of_range"},
		{"total above money.Max", SplitRandom, most + 1, 1, 0, 1, "total_amount out_of_range"},
		{"no shares", SplitRandom, 50, 1, 0, 0, "share_count out_of_range"},
		{"negative shares", SplitRandom, 50, 1, 0, -1, "share_count out_of_range"},
		{"too many shares", SplitRandom, most, 1, 0, MaxShares + 1, "share_count out_of_range"},
		{"no minimum", SplitRandom, 50, 0, 0, 10, "min_share out_of_range"},
		{"negative minimum", SplitRandom, 50, -1, 0, 10, "min_share out_of_range"},
		{"minimum above money.Max", SplitRandom, 50, most + 1, 0, 10, "min_share out_of_range"},
		{"negative cap", SplitRandom, 50, 1, -1, 10, "max_share out_of_range"},
		{"cap below minimum", SplitRandom, 50, 3, 2, 10, "max_share out_of_range"},
		{"cap above money.Max", SplitRandom, 50, 1, most + 1, 10, "max_share out_of_range"},
		{"one fen short", SplitRandom, 49, 5, 0, 10, "total_amount total_too_small"},
		{"fewer fen than shares", SplitRandom, 9, 1, 0, 10, "total_amount total_too_small"},
		{"one fen too many", SplitRandom, 51, 1, 5, 10, "total_amount total_too_large"},
		{"minimums that would wrap", SplitRandom, most, most, 0, MaxShares, "total_amount total_too_small"},
		{"maximums that would wrap", SplitRandom, most, 1, most, MaxShares, ""},
		{"every fault at once", "x", 0, 0, -1, 0,
			"split unknown_split, total_amount out_of_range, share_count out_of_range, min_share out_of_range, max_share out_of_range"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := SplitParams{Mode: c.mode, Total: c.total, Count: c.count, Min: c.min, Max: c.max}.Validate()
			if got := faultText(t, err); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

// faultText formats a validation error as in the table.
func faultText(t *testing.T, err error) string {
	if err == nil {
		return ""
	}
	faults, ok := errors.AsType[SplitParamErrors](err)
	if !ok || len(faults) == 0 {
		t.Fatalf("untyped or empty error %v", err)
	}
	if first, ok := errors.AsType[*SplitParamError](err); !ok || first != faults[0] {
		t.Fatalf("the single fault is not reachable: %v", err)
	}
	var texts []string
	for _, fault := range faults {
		if fault.Message == "" {
			t.Fatalf("fault without a message: %+v", fault)
		}
		texts = append(texts, fault.Field+" "+fault.Code)
	}
	return strings.Join(texts, ", ")
}

func TestSplitParamErrorsText(t *testing.T) {
	err := SplitParams{Mode: SplitRandom, Total: 50, Count: 0, Min: 1, Max: -1}.Validate()
	want := "split parameters: share_count: must be from 1 to 1000000; max_share: must be from min_share to 9007199254740991"
	if err == nil || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
}

// FuzzSplitParamsValidate compares Validate with unbounded integers, and Split with Validate: valid
// parameters can be split within their bounds.
func FuzzSplitParamsValidate(f *testing.F) {
	f.Add("random", int64(10_000), 10, int64(1), int64(0))
	f.Add("equal", int64(money.Max), MaxShares, int64(1), int64(0))
	f.Add("even", int64(money.Max), 3, int64(1), int64(money.Max))
	f.Add("normal", int64(51), 10, int64(1), int64(5))
	f.Add("random", int64(math.MaxInt64), math.MaxInt, int64(math.MaxInt64), int64(math.MinInt64))
	f.Add("", int64(-1), -1, int64(-1), int64(-1))
	f.Fuzz(func(t *testing.T, mode string, total int64, count int, least, most int64) {
		p := SplitParams{PacketID: testPacketID, Mode: SplitMode(mode), Total: money.Fen(total), Count: count, Min: money.Fen(least),
			Max: money.Fen(most)}
		err := p.Validate()
		if valid := naiveValid(mode, total, count, least, most); valid != (err == nil) {
			t.Fatalf("%+v: Validate returns %v, want valid = %t", p, err, valid)
		}
		if _, ok := errors.AsType[SplitParamErrors](err); err != nil && !ok {
			t.Fatalf("untyped error %v", err)
		}
		if err != nil || count > 2000 {
			return
		}
		shares := mustSplit(t, testSeed(1), p)
		requireShares(t, p, shares)
	})
}

func naiveValid(mode string, total int64, count int, least, most int64) bool {
	known := mode == "random" || mode == "equal" || mode == "even" || mode == "normal"
	limit := int64(1)<<53 - 1
	if !known || total > limit || count < 1 || count > 1_000_000 || least < 1 || least > limit || most < 0 || most > limit {
		return false
	}
	product := func(share int64) *big.Int { return new(big.Int).Mul(big.NewInt(int64(count)), big.NewInt(share)) }
	amount := big.NewInt(total)
	return amount.Cmp(product(least)) >= 0 && (most == 0 || least <= most && amount.Cmp(product(most)) <= 0)
}
