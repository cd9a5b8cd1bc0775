package packet

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math/big"

	"hongbao/internal/money"
)

// This file is the second implementation of docs/fairness.md: plain rational arithmetic on
// unbounded integers, one HMAC per draw, no shared code with split.go. It is slow, and exists to
// disagree when split.go is wrong.

// naiveRandom produces the draws of one packet.
type naiveRandom struct {
	seed     [32]byte
	packetID string
	drawn    int64
}

func (r *naiveRandom) draw() *big.Int {
	block, part := r.drawn/4, r.drawn%4
	r.drawn++
	mac := hmac.New(sha256.New, r.seed[:])
	fmt.Fprintf(mac, "hongbao/split/v1%s", r.packetID)
	mac.Write(big.NewInt(block).FillBytes(make([]byte, 8)))
	return new(big.Int).SetBytes(mac.Sum(nil)[8*part : 8*part+8])
}

// below returns a uniform number from 0 to n-1.
func (r *naiveRandom) below(n *big.Int) *big.Int {
	two64 := new(big.Int).Lsh(big.NewInt(1), 64)
	reject := new(big.Int).Mod(two64, n)
	for {
		if x := r.draw(); x.Cmp(reject) >= 0 {
			return x.Mod(x, n)
		}
	}
}

// uniform returns a uniform number from 0 to floor(window).
func (r *naiveRandom) uniform(window *big.Rat) *big.Int {
	whole := new(big.Int).Quo(window.Num(), window.Denom())
	return r.below(whole.Add(whole, big.NewInt(1)))
}

// bell returns round(window * v), v a fraction from 0 to 1 with a bell shape.
func (r *naiveRandom) bell(window *big.Rat) *big.Int {
	sigma := big.NewInt(1 << 21)
	for {
		deviation := new(big.Int)
		for range 4 {
			x := r.draw()
			x.Rsh(x, 1)
			for range 3 {
				piece := new(big.Int).Mod(x, sigma)
				deviation.Add(deviation, piece)
				x.Rsh(x, 21)
			}
		}
		deviation.Sub(deviation, big.NewInt(6*(1<<21-1)))
		fraction := new(big.Rat).SetFrac(deviation, new(big.Int).Mul(big.NewInt(6), sigma))
		fraction.Add(fraction, big.NewRat(1, 2))
		if fraction.Sign() < 0 || fraction.Cmp(big.NewRat(1, 1)) > 0 {
			continue
		}
		fraction.Mul(fraction, window)
		fraction.Add(fraction, big.NewRat(1, 2))
		return new(big.Int).Quo(fraction.Num(), fraction.Denom())
	}
}

func naiveSplit(seed [32]byte, p SplitParams) []money.Fen {
	r := &naiveRandom{seed: seed, packetID: p.PacketID}
	total, count := big.NewInt(int64(p.Total)), big.NewInt(int64(p.Count))
	floor := big.NewInt(int64(p.Min))
	shares := make([]*big.Int, p.Count)
	switch p.Mode {
	case SplitEqual:
		for i := range shares {
			base, extra := new(big.Int).QuoRem(total, count, new(big.Int))
			if big.NewInt(int64(i)).Cmp(extra) < 0 {
				base.Add(base, big.NewInt(1))
			}
			shares[i] = base
		}
	case SplitEven:
		part := new(big.Int).Mul(count, floor)
		part.Sub(total, part)
		part.Quo(part, new(big.Int).Add(count, big.NewInt(1)))
		naiveFill(shares, total, floor.Add(floor, part), p.Max, r.uniform)
	case SplitRandom:
		naiveFill(shares, total, floor, p.Max, r.uniform)
	case SplitNormal:
		naiveFill(shares, total, floor, p.Max, r.bell)
	}
	for i := len(shares) - 1; i >= 1; i-- {
		j := r.below(big.NewInt(int64(i + 1))).Int64()
		shares[i], shares[j] = shares[j], shares[i]
	}
	result := make([]money.Fen, len(shares))
	for i, share := range shares {
		result[i] = money.Fen(share.Int64())
	}
	return result
}

// naiveFill draws all shares but the last one around the mean of what is left.
func naiveFill(shares []*big.Int, total, floor *big.Int, limit money.Fen, draw func(*big.Rat) *big.Int) {
	left := new(big.Int).Set(total)
	for i := range shares {
		if i == len(shares)-1 {
			shares[i] = left
			return
		}
		n := big.NewInt(int64(len(shares) - i))
		mean := new(big.Rat).SetFrac(left, n)
		toFloor := new(big.Rat).Sub(mean, new(big.Rat).SetInt(floor))
		share := new(big.Int)
		toCap := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(limit)), mean)
		if limit == 0 || toFloor.Cmp(toCap) <= 0 {
			share.Add(floor, draw(toFloor.Add(toFloor, toFloor)))
		} else {
			share.Sub(big.NewInt(int64(limit)), draw(toCap.Add(toCap, toCap)))
		}
		shares[i] = share
		left = new(big.Int).Sub(left, share)
	}
}
