package packet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// splitDomain separates the split's use of the seed from every other use.
const splitDomain = "hongbao/split/v1"

// drawBytes is the size of one draw: a block of HMAC-SHA256 holds four.
const drawBytes = 8

// stream is the deterministic sequence of 64-bit draws of one packet:
// block k is HMAC-SHA256(seed, splitDomain | packet id | k as 8 bytes big
// endian), and each block is read as four big-endian numbers.
type stream struct {
	mac     hash.Hash
	message []byte // splitDomain | packet id | counter of the next block
	counter []byte // the last 8 bytes of message
	next    uint64
	block   []byte
	unread  []byte // what is left of block
}

func newStream(seed [32]byte, packetID string) *stream {
	message := append([]byte(splitDomain), packetID...)
	message = append(message, make([]byte, drawBytes)...)
	return &stream{
		mac:     hmac.New(sha256.New, seed[:]),
		message: message,
		counter: message[len(message)-drawBytes:],
		block:   make([]byte, 0, sha256.Size),
	}
}

// draw returns the next 64 bits of the stream.
func (s *stream) draw() uint64 {
	if len(s.unread) == 0 {
		binary.BigEndian.PutUint64(s.counter, s.next)
		s.next++
		// Reset keeps the keyed state, so that a block costs two compressions.
		s.mac.Reset()
		s.mac.Write(s.message)
		s.block = s.mac.Sum(s.block[:0])
		s.unread = s.block
	}
	x := binary.BigEndian.Uint64(s.unread)
	s.unread = s.unread[drawBytes:]
	return x
}

// upTo returns a uniform number from 0 to most, both included; most must be
// below 2^64-1. A plain remainder would prefer small numbers, so draws below
// 2^64 mod (most+1) are thrown away: what is left is a multiple of most+1
// numbers. It always consumes at least one draw, also for most = 0.
func (s *stream) upTo(most uint64) uint64 {
	n := most + 1
	reject := -n % n // 2^64 mod n, in 64 bits
	for {
		if x := s.draw(); x >= reject {
			return x % n
		}
	}
}

// The bell is the sum of 12 uniform pieces of 21 bits (Irwin-Hall). Its
// standard deviation is sqrt(2^42 - 1), as good as bellSigma, and the sum is
// symmetric about bellCentre exactly.
const (
	bellPieceBits = 21
	bellSigma     = 1 << bellPieceBits
	bellCentre    = 6 * (bellSigma - 1)
	// bellSpan is the width of the bell after cutting at 3 sigma on both sides.
	bellSpan = 6 * bellSigma
)

// bell returns a number from 0 to bellSpan, normally distributed about
// bellSpan/2 with standard deviation bellSpan/6 and cut off at both ends.
// Each try consumes four draws of three pieces; 1 try in 400 is outside.
func (s *stream) bell() uint64 {
	const mask = 1<<bellPieceBits - 1
	for {
		var sum uint64
		for range 4 {
			x := s.draw()
			// The lowest bit is not used: 3 pieces of 21 bits are 63.
			sum += x>>43 + x>>22&mask + x>>1&mask
		}
		const low = bellCentre - bellSpan/2
		if sum >= low && sum <= low+bellSpan {
			return sum - low
		}
	}
}
