package packet

import (
	"testing"

	"hongbao/internal/money"
)

// BenchmarkSplit splits the largest possible packet; the create benchmark needs this to take well
// under a second.
func BenchmarkSplit(b *testing.B) {
	for _, mode := range SplitModes {
		b.Run(string(mode), func(b *testing.B) {
			p := SplitParams{PacketID: testPacketID, Mode: mode, Total: money.Max, Count: MaxShares, Min: 1}
			for b.Loop() {
				if _, err := Split(testSeed(1), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
