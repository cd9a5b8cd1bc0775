package packet

import (
	"math"
	"math/big"
	"testing"
)

// TestStreamMatchesNaive compares the draws, and bounded numbers for bounds that
// throw away none, few, and half of the draws.
func TestStreamMatchesNaive(t *testing.T) {
	fast := newStream(testSeed(1), testPacketID)
	naive := &naiveRandom{seed: testSeed(1), packetID: testPacketID}
	for i := range 1000 {
		if got, want := fast.draw(), naive.draw().Uint64(); got != want {
			t.Fatalf("draw %d is %x, want %x", i, got, want)
		}
	}
	bounds := []uint64{0, 1, 2, 9, 1<<32 - 1, 1 << 53, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1}
	for round := range 100 {
		for _, most := range bounds {
			n := new(big.Int).SetUint64(most)
			got, want := fast.upTo(most), naive.below(n.Add(n, big.NewInt(1))).Uint64()
			if got != want || got > most {
				t.Fatalf("round %d: upTo(%d) is %d, want %d", round, most, got, want)
			}
		}
	}
	if naive.drawn < 1000+100*int64(len(bounds))+100 {
		t.Fatalf("only %d draws: the bounds above 2^63 never threw one away", naive.drawn)
	}
}

// TestStreamUpToIsUniform counts small numbers against the exact binomial bound.
func TestStreamUpToIsUniform(t *testing.T) {
	const trials, n = 30_000, 7
	s := newStream(testSeed(2), testPacketID)
	var counts [n]int64
	for range trials {
		counts[s.upTo(n-1)]++
	}
	most := binomialBound(trials, 1, n, n)
	for value, count := range counts {
		if count > most {
			t.Errorf("%d came %d times of %d, more than %d", value, count, trials, most)
		}
	}
}

func TestStreamBell(t *testing.T) {
	const trials = 100_000
	s := newStream(testSeed(3), testPacketID)
	var above, within1, within2 int64
	for range trials {
		x := int64(s.bell())
		if x < 0 || x > bellSpan {
			t.Fatalf("%d is outside the span", x)
		}
		distance := x - bellSpan/2
		if distance > 0 {
			above++
		}
		if distance < 0 {
			distance = -distance
		}
		if distance <= bellSigma {
			within1++
		}
		if distance <= 2*bellSigma {
			within2++
		}
	}
	// A normal distribution cut off at 3 sigma has 68.45% and 95.71%; the sum of
	// twelve differs from it by less than half a percent.
	requireBetween(t, "above the mean, per mille", 1000*above/trials, 490, 510)
	requireBetween(t, "within one sigma, per mille", 1000*within1/trials, 675, 694)
	requireBetween(t, "within two sigma, per mille", 1000*within2/trials, 952, 962)
}

func requireBetween(t *testing.T, what string, got, low, high int64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %d is not within %d and %d", what, got, low, high)
	}
}
