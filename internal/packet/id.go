package packet

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

// IDLen is the length of every packet id in characters.
const IDLen = 20

// Digits is the base32hex alphabet in lower case: the characters of packet ids and order numbers.
// Its order is that of the digits' values.
const Digits = "0123456789abcdefghijklmnopqrstuv"

// NewID derives a packet id from the app's id salt and the Idempotency-Key of the create request
// (rule R1): the first 100 bits of HMAC-SHA256(salt, key) in base32hex. So a repeated request has
// the same keys, workflow ids and order numbers in every store.
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

// NewCampaignPacketID derives the id of a packet of a campaign. The first half is the campaign's,
// so that all packets of a campaign share a lane; the second half is that of NewID.
func NewCampaignPacketID(campaign string, salt []byte, key string) string {
	return CampaignPrefix(campaign) + NewID(salt, key)[IDLen/2:]
}

// CampaignPrefix returns the common prefix of all packet ids of a campaign: the first half, 50
// bits. The id must be valid; it need not be of a campaign's packet.
func CampaignPrefix(id string) string { return id[:IDLen/2] }

// ValidID reports whether s has the form of a packet id, whether or not such a packet exists.
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

// Lane returns the lane (0..lanes-1) of a packet: the value of its first two characters modulo the
// number of lanes. The id must be valid.
func Lane(id string, lanes int) int {
	hi := strings.IndexByte(Digits, id[0])
	lo := strings.IndexByte(Digits, id[1])
	return (hi<<5 | lo) % lanes
}
