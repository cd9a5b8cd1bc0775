package packet

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hongbao/internal/money"
)

const otherPacketID = "1123456789abcdefghij"

func TestDeriveSeed(t *testing.T) {
	key := testSeed(1)
	seed := DeriveSeed(key, testPacketID)
	// printf 'hongbao/seed/v1%s' <packet id> | openssl dgst -sha256 -mac HMAC -macopt hexkey:<key>
	const want = "77ba45970d3b6e3f693172951a25ca6849e85aa29c2d2846985f0691e837688c"
	if got := hex.EncodeToString(seed[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if seed == DeriveSeed(key, otherPacketID) {
		t.Error("two packets have the same seed")
	}
	if seed == DeriveSeed(testSeed(2), testPacketID) {
		t.Error("two keys give the same seed")
	}
}

func TestCommitment(t *testing.T) {
	// SHA-256 of 32 zero bytes, a published value.
	const want = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
	if got := Commitment([32]byte{}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSealSeed(t *testing.T) {
	key, seed := testSeed(1), testSeed(2)
	seal := func(t *testing.T) []byte {
		t.Helper()
		sealed, err := SealSeed(key, testPacketID, seed)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	t.Run("OK", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			key, seed := drawSeed(t), drawSeed(t)
			id := rapid.StringMatching(`[0-9a-v]{20}`).Draw(t, "packet id")
			sealed, err := SealSeed(key, id, seed)
			if err != nil || len(sealed) != 68 {
				t.Fatalf("%d bytes, %v", len(sealed), err)
			}
			if got, err := OpenSeed(key, id, sealed); err != nil || got != seed {
				t.Fatalf("got %x, %v", got, err)
			}
		})
	})
	t.Run("not the same twice and not in the clear", func(t *testing.T) {
		first, second := seal(t), seal(t)
		if bytes.Equal(first, second) || bytes.Contains(first, seed[:8]) {
			t.Fatalf("%x and %x", first, second)
		}
	})
	refuse := func(t *testing.T, key [32]byte, id string, sealed []byte) {
		t.Helper()
		if got, err := OpenSeed(key, id, sealed); !errors.Is(err, ErrSealedSeed) || got != ([32]byte{}) {
			t.Fatalf("got %x, %v", got, err)
		}
	}
	t.Run("ErrSealedSeed other key", func(t *testing.T) {
		refuse(t, testSeed(3), testPacketID, seal(t))
		_, err := OpenSeed(testSeed(3), testPacketID, seal(t))
		for _, want := range []string{"key of id " + SeedKeyID(key), "HONGBAO_SEED_KEY has key id " + SeedKeyID(testSeed(3))} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %q", err, want)
			}
		}
		if _, err = SealedSeed(testSeed(3), Packet{ID: testPacketID, Commitment: Commitment(DeriveSeed(key, testPacketID))}); !errors.Is(err,
			ErrConflict) || !strings.Contains(err.Error(), "HONGBAO_SEED_KEY of this process, key id "+SeedKeyID(testSeed(3))) {
			t.Errorf("a commitment of another key: %v", err)
		}
	})
	t.Run("ErrSealedSeed other packet", func(t *testing.T) { refuse(t, key, otherPacketID, seal(t)) })
	t.Run("ErrSealedSeed any changed bit", func(t *testing.T) {
		sealed := seal(t)
		for bit := range 8 * len(sealed) {
			changed := bytes.Clone(sealed)
			changed[bit/8] ^= 1 << (bit % 8)
			refuse(t, key, testPacketID, changed)
		}
	})
	t.Run("ErrSealedSeed any other length", func(t *testing.T) {
		sealed := seal(t)
		for n := range sealed {
			refuse(t, key, testPacketID, sealed[:n])
		}
		refuse(t, key, testPacketID, nil)
		refuse(t, key, testPacketID, append(sealed, 0))
	})
}

// positionPackets is the number of split packets of ten shares. It is large enough to put the bound
// well below the 12% that the last position has of the largest share when a doubled mean is not
// shuffled.
const positionPackets = 15_000

// luckOfPositions counts the position of the largest share, over packets with fixed seeds. Shares
// are claimed in the order of their index, so the position among the grabs is the index.
func luckOfPositions(t *testing.T, p SplitParams, split func(seed [32]byte) []money.Fen) (best []int64, most int64) {
	t.Helper()
	best = make([]int64, p.Count)
	untied := int64(0)
	for n := range uint64(positionPackets) {
		shares := split(testSeed(n))
		largest := slices.Max(shares)
		at := slices.Index(shares, largest)
		if slices.Contains(shares[at+1:], largest) {
			continue // equal amounts: the clock decides
		}
		untied++
		best[at]++
	}
	if untied < positionPackets*99/100 {
		t.Fatalf("only %d packets without a tie", untied)
	}
	return best, binomialBound(untied, 1, int64(p.Count), p.Count)
}

// TestFairnessOfPositions: no grab position wins the best share more often than chance allows. The
// bound is the exact binomial one for p < 1e-6 that any of the positions reaches it (Bonferroni);
// fixed seeds keep the test stable.
func TestFairnessOfPositions(t *testing.T) {
	t.Parallel()
	const count = 10
	for _, mode := range []SplitMode{SplitRandom, SplitNormal, SplitEven} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p := SplitParams{PacketID: testPacketID, Mode: mode, Total: 1_000_000_000, Count: count, Min: 1}
			best, most := luckOfPositions(t, p, func(seed [32]byte) []money.Fen { return mustSplit(t, seed, p) })
			for i, times := range best {
				if times > most {
					t.Errorf("position %d has the best share %d times of %d, more than %d", i, times, positionPackets, most)
				}
			}
			t.Logf("best share by position: %v, bound %d", best, most)
		})
	}
}

// TestFairnessOfPositionsIsSharp: the bound detects a bias. The same shares without the shuffle, in
// the order in which they are drawn, break it.
func TestFairnessOfPositionsIsSharp(t *testing.T) {
	t.Parallel()
	p := SplitParams{PacketID: testPacketID, Mode: SplitRandom, Total: 1_000_000_000, Count: 10, Min: 1}
	best, most := luckOfPositions(t, p, func(seed [32]byte) []money.Fen {
		shares := make([]money.Fen, p.Count)
		fillAround(shares, p.Min, p, newStream(seed, p.PacketID).doubledMean)
		return shares
	})
	if top := slices.Max(best); top <= most {
		t.Errorf("without the shuffle the luckiest position wins %d times, within the bound %d: too few packets", top, most)
	}
}
