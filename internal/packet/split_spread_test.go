package packet

import (
	"math/big"
	"slices"
	"testing"

	"hongbao/internal/money"
)

// binomialBound returns the least count that is reached with a probability below
// 1e-6 by any of `among` events, each a binomial of so many trials that succeed
// with probability num/den. The tail is summed exactly, in integers.
func binomialBound(trials, num, den int64, among int) int64 {
	// term(k) = C(trials, k) * num^k * (den-num)^(trials-k); all terms add up to
	// den^trials. Start at k = trials and walk down until the tail is too heavy.
	term := new(big.Int).Exp(big.NewInt(num), big.NewInt(trials), nil)
	limit := new(big.Int).Exp(big.NewInt(den), big.NewInt(trials), nil)
	limit.Quo(limit, big.NewInt(1_000_000*int64(among)))
	tail, factor := new(big.Int), new(big.Int)
	for k := trials; k > 0; k-- {
		if tail.Add(tail, term).Cmp(limit) >= 0 {
			return k + 1
		}
		term.Mul(term, factor.SetInt64(k*(den-num)))
		term.Quo(term, factor.SetInt64((trials-k+1)*num))
	}
	return 0
}

// TestBinomialBound checks the bound on a case computed by hand: 30 tosses of a coin reach 28 heads
// with 466/2^30 = 4.3e-7, 27 with 4.2e-6.
func TestBinomialBound(t *testing.T) {
	if got := binomialBound(30, 1, 2, 1); got != 28 {
		t.Fatalf("got %d, want 28", got)
	}
}

// TestSplitNoPositionIsBetter counts at which index the largest and the smallest
// share lie. With doubled mean and no shuffle the last index has the largest
// share in 12% of packets of ten instead of 10%, far outside the bound.
func TestSplitNoPositionIsBetter(t *testing.T) {
	const packets, count = 4000, 10
	for _, mode := range []SplitMode{SplitRandom, SplitEven, SplitNormal} {
		for _, limit := range []money.Fen{0, 1_300_000} {
			var best, worst [count]int64
			var untied int64
			for n := range uint64(packets) {
				p := SplitParams{PacketID: testPacketID, Mode: mode, Total: 10_000_000, Count: count, Min: 1, Max: limit}
				shares := mustSplit(t, testSeed(n), p)
				if hasTie(shares) {
					continue // equal amounts: the order shows nothing about luck
				}
				untied++
				best[slices.Index(shares, slices.Max(shares))]++
				worst[slices.Index(shares, slices.Min(shares))]++
			}
			if untied < packets*9/10 {
				t.Fatalf("%s: only %d packets without a tie", mode, untied)
			}
			most := binomialBound(untied, 1, count, 2*count)
			for i := range count {
				if best[i] > most || worst[i] > most {
					t.Errorf("%s, cap %d: index %d was best %d and worst %d times of %d, more than %d",
						mode, int64(limit), i, best[i], worst[i], untied, most)
				}
			}
		}
	}
}

func hasTie(shares []money.Fen) bool {
	sorted := slices.Sorted(slices.Values(shares))
	return len(slices.Compact(sorted)) < len(shares)
}

// TestSplitEqualSpreadsTheRest: the indivisible fen fall on every index alike, and make a
// difference of 1 fen only.
func TestSplitEqualSpreadsTheRest(t *testing.T) {
	const packets, count, rest = 4000, 10, 3
	var extra [count]int64
	for n := range uint64(packets) {
		p := SplitParams{PacketID: testPacketID, Mode: SplitEqual, Total: 100*count + rest, Count: count, Min: 1}
		for i, share := range mustSplit(t, testSeed(n), p) {
			if share != 100 && share != 101 {
				t.Fatalf("share of %d", int64(share))
			}
			extra[i] += int64(share - 100)
		}
	}
	most := binomialBound(packets, rest, count, count)
	for i, times := range extra {
		if times > most {
			t.Errorf("index %d got one fen more %d times of %d, more than %d", i, times, packets, most)
		}
	}
}

// pooledShares splits many packets of 1,000 shares with a mean of 10,000 fen.
func pooledShares(t *testing.T, mode SplitMode, least, most money.Fen) []int64 {
	t.Helper()
	const packets, count, mean = 100, 1000, 10_000
	pool := make([]int64, 0, packets*count)
	for n := range uint64(packets) {
		p := SplitParams{PacketID: testPacketID, Mode: mode, Total: mean * count, Count: count, Min: least, Max: most}
		for _, share := range mustSplit(t, testSeed(n), p) {
			pool = append(pool, int64(share))
		}
	}
	return pool
}

// variance returns the mean squared distance from 10,000 fen.
func variance(pool []int64) int64 {
	sum := int64(0)
	for _, share := range pool {
		sum += (share - 10_000) * (share - 10_000)
	}
	return sum / int64(len(pool))
}

// share of the pool within the bounds, in per mille.
func perMille(pool []int64, low, high int64) int64 {
	inside := int64(0)
	for _, share := range pool {
		if share >= low && share <= high {
			inside++
		}
	}
	return 1000 * inside / int64(len(pool))
}

func TestSplitShape(t *testing.T) {
	t.Run("random is flat from nothing to twice the mean", func(t *testing.T) {
		pool := pooledShares(t, SplitRandom, 1, 0)
		requireBetween(t, "variance, per cent of mean^2/3", 100*variance(pool)/(10_000*10_000/3), 97, 106)
		for low := int64(0); low < 18_000; low += 2000 {
			requireBetween(t, "per mille in a tenth", perMille(pool, low+1, low+2000), 94, 110)
		}
		// The upper edge moves with the mean of what is left, so the last tenth
		// loses a little to shares above twice the mean.
		requireBetween(t, "per mille in the last tenth", perMille(pool, 18_001, 20_000), 80, 100)
		requireBetween(t, "per mille above twice the mean", perMille(pool, 20_001, 10_000_000), 5, 20)
	})
	t.Run("normal has a sigma of a third of the mean", func(t *testing.T) {
		pool := pooledShares(t, SplitNormal, 1, 0)
		requireBetween(t, "variance, per cent of (mean/3)^2", 100*variance(pool)/(10_000*10_000/9), 94, 103)
		requireBetween(t, "per mille within one sigma", perMille(pool, 6667, 13_333), 672, 697)
		requireBetween(t, "per mille within two sigma", perMille(pool, 3334, 16_666), 948, 966)
		requireBetween(t, "per mille below the mean", perMille(pool, 1, 9_999), 490, 510)
	})
	t.Run("normal narrows with the nearer bound", func(t *testing.T) {
		for _, bounds := range [][2]money.Fen{{7000, 0}, {1, 13_000}} {
			pool := pooledShares(t, SplitNormal, bounds[0], bounds[1])
			requireBetween(t, "variance, per cent of 1000^2", 100*variance(pool)/(1000*1000), 92, 105)
			requireBetween(t, "per mille below the mean", perMille(pool, 1, 9_999), 488, 512)
		}
	})
	t.Run("random under a cap has no heap at the cap", func(t *testing.T) {
		pool := pooledShares(t, SplitRandom, 1, 11_000)
		requireBetween(t, "per mille within the window", perMille(pool, 9000, 11_000), 960, 1000)
		requireBetween(t, "per mille at the cap", perMille(pool, 11_000, 11_000), 0, 5)
		requireBetween(t, "per mille below the mean", perMille(pool, 1, 9_999), 485, 515)
	})
	t.Run("even is random squeezed by the number of shares", func(t *testing.T) {
		requireBetween(t, "largest distance", slices.Max(pooledShares(t, SplitEven, 1, 0))-10_000, 1, 200)
	})
}

// TestSplitEvenIsCloser compares the spread packet by packet (row S3.2).
func TestSplitEvenIsCloser(t *testing.T) {
	spread := func(shares []money.Fen) money.Fen { return slices.Max(shares) - slices.Min(shares) }
	for _, count := range []int{2, 5, 10, 100} {
		var even, random money.Fen
		for n := range uint64(300) {
			p := SplitParams{PacketID: testPacketID, Mode: SplitRandom, Total: money.Fen(count) * 100_000, Count: count, Min: 1}
			random += spread(mustSplit(t, testSeed(n), p))
			p.Mode = SplitEven
			even += spread(mustSplit(t, testSeed(n), p))
		}
		// The drawn part is the (count+1)th of the whole.
		want := random / money.Fen(count+1)
		if even < want*9/10 || even > want*12/10 {
			t.Errorf("%d shares: spread %d, want about %d; random has %d", count, int64(even), int64(want), int64(random))
		}
	}
}
