package packet

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

// IDLen is the length of every packet id in characters.
const IDLen = 20

// Digits is the base32hex alphabet, lower case: the characters of packet ids
// and order numbers. It sorts like the numbers it stands for.
const Digits = "0123456789abcdefghijklmnopqrstuv"

// NewID derives a packet id from the app's id salt and the Idempotency-Key of
// the create request (rule R1): the first 100 bits of
// HMAC-SHA256(salt, key) in base32hex. The same request therefore meets the
// same keys, workflow ids and order numbers in every store, for ever.
func NewID(salt []byte, idempotencyKey string) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(idempotencyKey))
	sum := mac.Sum(nil)
	out := make([]byte, IDLen)
	var bits, acc uint
	next := 0
	for i := range out {
		if bits < 5 {
			acc = acc<<8 | uint(sum[next])
			next++
			bits += 8
		}
		bits -= 5
		out[i] = Digits[acc>>bits&31]
	}
	return string(out)
}

// NewCampaignPacketID derives the id of a packet of a campaign: its first half is the campaign's, so
// that the packets of a campaign are in one lane; the second half is NewID's.
func NewCampaignPacketID(campaign string, salt []byte, key string) string {
	return CampaignPrefix(campaign) + NewID(salt, key)[IDLen/2:]
}

// CampaignPrefix returns what all packets of a campaign have in common: the first half of the
// id, 50 bits. The id must be valid; it need not be of a campaign's packet.
func CampaignPrefix(id string) string { return id[:IDLen/2] }

// ValidID reports whether s has the form of a packet id. It says nothing about
// whether such a packet exists.
func ValidID(s string) bool {
	if len(s) != IDLen {
		return false
	}
	for i := range len(s) {
		if strings.IndexByte(Digits, s[i]) < 0 {
			return false
		}
	}
	return true
}

// Lane returns the lane (0..lanes-1) of a packet: the number its first two
// characters stand for, modulo the number of lanes. The id must be valid.
func Lane(id string, lanes int) int {
	hi := strings.IndexByte(Digits, id[0])
	lo := strings.IndexByte(Digits, id[1])
	return (hi<<5 | lo) % lanes
}
