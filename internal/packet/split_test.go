package packet

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hongbao/internal/money"
)

// The property tests use the same inputs on every run, so that a failure can be repeated;
// -rapid.seed=0 draws new ones, -rapid.checks=N more of them.
func init() {
	if err := flag.Set("rapid.seed", "20260101"); err != nil {
		panic(err)
	}
}

const testPacketID = "0123456789abcdefghij"

// testSeed returns a fixed seed for every number.
func testSeed(n uint64) [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("test seed"), n))
}

// mustSplit splits or fails the test.
func mustSplit(t testing.TB, seed [32]byte, p SplitParams) []money.Fen {
	t.Helper()
	shares, err := Split(seed, p)
	if err != nil {
		t.Fatalf("Split(%+v): %v", p, err)
	}
	return shares
}

// drawSplitParams draws valid parameters of every kind: tight and loose totals,
// with and without a cap, from one fen to the largest total.
func drawSplitParams(t *rapid.T, maxCount int) SplitParams {
	p := SplitParams{
		PacketID: rapid.StringMatching(`[0-9a-v]{20}`).Draw(t, "packet id"),
		Mode:     rapid.SampledFrom(SplitModes).Draw(t, "mode"),
		Count:    rapid.IntRange(1, maxCount).Draw(t, "count"),
	}
	count := int64(p.Count)
	mean := rapid.Int64Range(1, int64(money.Max)/count).Draw(t, "mean")
	most := min(mean*count+count-1, int64(money.Max))
	p.Total = money.Fen(rapid.Int64Range(mean*count, most).Draw(t, "total"))
	p.Min = money.Fen(rapid.Int64Range(1, mean).Draw(t, "min"))
	if rapid.Bool().Draw(t, "capped") {
		roundedUp := (p.Total + money.Fen(count) - 1) / money.Fen(count)
		p.Max = money.Fen(rapid.Int64Range(int64(roundedUp), int64(money.Max)).Draw(t, "max"))
	}
	return p
}

func drawSeed(t *rapid.T) [32]byte {
	return [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed"))
}

// requireShares checks the three guarantees of every split, without the code of the package:
// number, bounds and exact sum.
func requireShares(t rapid.TB, p SplitParams, shares []money.Fen) {
	t.Helper()
	if len(shares) != p.Count {
		t.Fatalf("%d shares, want %d", len(shares), p.Count)
	}
	var high, sum, carry uint64 // 128 bits: the sum cannot wrap
	for i, share := range shares {
		if share < p.Min || p.Max != 0 && share > p.Max {
			t.Fatalf("share %d is %d, not within %d and %d", i, int64(share), int64(p.Min), int64(p.Max))
		}
		sum, carry = bits.Add64(sum, uint64(share), 0)
		high += carry
	}
	if high != 0 || sum != uint64(p.Total) {
		t.Fatalf("shares add up to %d * 2^64 + %d, want %d", high, sum, int64(p.Total))
	}
}

func TestSplitKeepsSumAndBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, seed := drawSplitParams(t, 5000), drawSeed(t)
		shares, err := Split(seed, p)
		if err != nil {
			t.Fatalf("Split: %v", err)
		}
		requireShares(t, p, shares)
		again, err := Split(seed, p)
		if err != nil || !slices.Equal(shares, again) {
			t.Fatalf("the same seed gave other shares: %v", err)
		}
		whole := Packet{TotalAmount: p.Total, ShareCount: p.Count, Split: p.Mode, MinShare: p.Min, MaxShare: p.Max}
		if most := whole.LargestShare(); slices.Max(shares) > most || p.Mode == SplitEqual && slices.Max(shares) != most {
			t.Fatalf("a share of %d, the largest possible is %d", slices.Max(shares), most)
		}
		if p.Mode == SplitEqual && slices.Max(shares)-slices.Min(shares) > 1 {
			t.Fatalf("equal shares from %d to %d", slices.Min(shares), slices.Max(shares))
		}
	})
}

// TestSplitMatchesNaive compares Split with the second implementation in
// split_naive_test.go.
func TestSplitMatchesNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, seed := drawSplitParams(t, 60), drawSeed(t)
		shares, err := Split(seed, p)
		if err != nil {
			t.Fatalf("Split: %v", err)
		}
		if want := naiveSplit(seed, p); !slices.Equal(shares, want) {
			t.Fatalf("got  %v\nwant %v", shares, want)
		}
	})
}

// TestSplitMatchesNaiveSmall checks every small packet, where rounding and tight bounds decide
// everything.
func TestSplitMatchesNaiveSmall(t *testing.T) {
	seeds := [][32]byte{testSeed(1), testSeed(2), testSeed(3)}
	for _, mode := range SplitModes {
		for count := 1; count <= 6; count++ {
			for total := money.Fen(count); total <= money.Fen(4*count+3); total++ {
				for least := money.Fen(1); least <= total/money.Fen(count); least++ {
					for most := money.Fen(0); most <= total; most++ {
						p := SplitParams{PacketID: testPacketID, Mode: mode, Total: total, Count: count, Min: least, Max: most}
						if p.Validate() != nil {
							continue
						}
						for _, seed := range seeds {
							shares := mustSplit(t, seed, p)
							requireShares(t, p, shares)
							if want := naiveSplit(seed, p); !slices.Equal(shares, want) {
								t.Fatalf("%+v: got %v, want %v", p, shares, want)
							}
						}
					}
				}
			}
		}
	}
}

// TestSplitExtremes checks the extreme cases one by one.
func TestSplitExtremes(t *testing.T) {
	cases := []struct {
		name            string
		total, min, max money.Fen
		count           int
	}{
		{"one fen for one", 1, 1, 0, 1},
		{"everything for one", money.Max, 1, 0, 1},
		{"everything for one, capped", money.Max, 1, money.Max, 1},
		{"only minimums", 500, 5, 0, 100},
		{"only maximums", 500, 1, 5, 100},
		{"minimum is maximum", 500, 5, 5, 100},
		{"one fen above the minimums", 501, 5, 0, 100},
		{"one fen below the maximums", 499, 1, 5, 100},
		{"two shares", 3, 1, 2, 2},
		{"cap just above the mean", 1_000_001, 1, 1001, 1000},
		{"minimum just below the mean", 1_000_001, 1000, 0, 1000},
		{"largest total, two shares", money.Max, 1, 0, 2},
		{"largest total, capped near the mean", money.Max, 1, (money.Max + 2) / 3, 3},
		{"most shares, one fen each", MaxShares, 1, 0, MaxShares},
		{"most shares, largest total, capped", money.Max, 1, money.Max/MaxShares + 1, MaxShares},
		{"cap that cannot bind", money.Max, 1, money.Max, 10_000},
	}
	for _, c := range cases {
		for _, mode := range SplitModes {
			t.Run(c.name+"/"+string(mode), func(t *testing.T) {
				p := SplitParams{PacketID: testPacketID, Mode: mode, Total: c.total, Count: c.count, Min: c.min, Max: c.max}
				requireShares(t, p, mustSplit(t, testSeed(7), p))
			})
		}
	}
}

// TestSplitDependsOn shows that every input of the stream changes the shares.
func TestSplitDependsOn(t *testing.T) {
	p := SplitParams{PacketID: testPacketID, Mode: SplitRandom, Total: 1_000_000, Count: 20, Min: 1}
	base := mustSplit(t, testSeed(1), p)
	if slices.Equal(base, mustSplit(t, testSeed(2), p)) {
		t.Error("another seed gave the same shares")
	}
	other := p
	other.PacketID = "1123456789abcdefghij"
	if slices.Equal(base, mustSplit(t, testSeed(1), other)) {
		t.Error("another packet with the same seed got the same shares")
	}
}

// TestSplitCapThatCannotBind: a cap that no share can reach changes nothing.
func TestSplitCapThatCannotBind(t *testing.T) {
	for _, mode := range SplitModes {
		p := SplitParams{PacketID: testPacketID, Mode: mode, Total: 10_000, Count: 10, Min: 1}
		free := mustSplit(t, testSeed(1), p)
		p.Max = p.Total
		if !slices.Equal(free, mustSplit(t, testSeed(1), p)) {
			t.Errorf("%s: a cap of the total changed the shares", mode)
		}
	}
}

func TestSplitErrors(t *testing.T) {
	valid := SplitParams{PacketID: testPacketID, Mode: SplitRandom, Total: 100, Count: 10, Min: 1}
	t.Run("ErrParams", func(t *testing.T) {
		p := valid
		p.Total = 9
		shares, err := Split(testSeed(1), p)
		if faults, ok := errors.AsType[SplitParamErrors](err); !ok || len(faults) != 1 || shares != nil {
			t.Fatalf("got %v, %v", shares, err)
		}
	})
	for _, id := range []string{"", "0123456789abcdefghi", "0123456789abcdefghijk", "0123456789ABCDEFGHIJ", "0123456789abcdefghi|"} {
		t.Run("ErrPacketID "+id, func(t *testing.T) {
			p := valid
			p.PacketID = id
			shares, err := Split(testSeed(1), p)
			fault, ok := errors.AsType[*SplitParamError](err)
			if !ok || fault.Field != "packet_id" || shares != nil {
				t.Fatalf("got %v, %v", shares, err)
			}
		})
	}
}

// TestCheckShares proves that the last check before recording can fail.
func TestCheckShares(t *testing.T) {
	p := SplitParams{PacketID: testPacketID, Mode: SplitRandom, Total: 10, Count: 3, Min: 2, Max: 5}
	cases := []struct {
		name   string
		shares []money.Fen
		ok     bool
	}{
		{"right", []money.Fen{2, 3, 5}, true},
		{"one fen too many", []money.Fen{3, 3, 5}, false},
		{"one fen too few", []money.Fen{2, 2, 5}, false},
		{"a share too many", []money.Fen{2, 2, 2, 4}, false},
		{"a share too few", []money.Fen{5, 5}, false},
		{"below the minimum", []money.Fen{1, 4, 5}, false},
		{"above the cap", []money.Fen{2, 2, 6}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := checkShares(c.shares, p)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrSplitBroken) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("sum above money.Max", func(t *testing.T) {
		free := SplitParams{PacketID: testPacketID, Total: 1, Count: 2, Min: 1}
		err := checkShares([]money.Fen{money.Max, money.Max}, free)
		if !errors.Is(err, ErrSplitBroken) || !errors.Is(err, money.ErrOverflow) {
			t.Fatalf("got %v", err)
		}
	})
}
