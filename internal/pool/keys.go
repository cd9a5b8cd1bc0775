package pool

import (
	"fmt"
	"strconv"

	"hongbao/internal/packet"
)

// keyApps holds the copy of the apps and their key hashes. It belongs to no lane and is
// needed only while MySQL is away.
const keyApps = "hb:apps"

// Values of no lane that all lanes need have three copies, and are valid when two agree. On
// a Cluster with three or more masters the copies are on three of them, so that no single
// master blocks all lanes.
const (
	copies   = 3
	majority = copies/2 + 1
)

// copyTags are the hash tags of the copies, each in the middle of a third of the hash slots:
// on different masters for every even division among three or more.
var copyTags = func() (tags [copies]string) {
	for i := range tags {
		tags[i] = tagWithin("p"+strconv.Itoa(i), (4*i+1)*slots/(4*copies), (4*i+3)*slots/(4*copies)-1)
	}
	return tags
}()

// keyLanes is the key of the number of lanes.
func keyLanes(n int) string { return "hb:{" + copyTags[n] + "}:lanes" }

// keyFormat is the key of the data format's number.
func keyFormat(n int) string { return "hb:{" + copyTags[n] + "}:format" }

// keyWorker is the key of a worker slot's lease.
func keyWorker(slot, n int) string {
	return "hb:{" + copyTags[n] + "}:worker:" + strconv.Itoa(slot)
}

// keyBooks is the key of the copy of MySQL's restore counter, books.number.
func keyBooks(n int) string { return "hb:{" + copyTags[n] + "}:books" }

// slots is the number of hash slots of Redis Cluster.
const slots = 16384

// keyspace builds the keys of all lanes. Every key of a lane has the lane's hash tag, so
// that one script may use them on a Cluster.
type keyspace struct{ tags []string }

// newKeyspace computes the tags: lane i of n gets the i-th of n equal parts of the hash
// slots, so lanes are spread evenly over the masters.
func newKeyspace(lanes int) keyspace {
	width := len(strconv.Itoa(lanes - 1))
	if width < 2 {
		width = 2
	}
	k := keyspace{tags: make([]string, lanes)}
	for i := range k.tags {
		k.tags[i] = tagWithin(fmt.Sprintf("l%0*d", width, i), i*slots/lanes, (i+1)*slots/lanes-1)
	}
	return k
}

// tagWithin returns the first of name, name+"a", ... name+"z", name+"aa", ... whose hash
// slot is from low to high. It terminates, because CRC16 reaches every slot with four
// letters.
func tagWithin(name string, low, high int) string {
	for n := 0; ; n++ {
		tag := name + letters(n)
		if s := hashSlot(tag); s >= low && s <= high {
			return tag
		}
	}
}

// letters counts in letters: "", a, ... z, aa, ab, ...
func letters(n int) string {
	if n == 0 {
		return ""
	}
	n--
	return letters(n/26) + string(rune('a'+n%26))
}

// hashSlot returns the slot of a tag: CRC16 (XMODEM) modulo 16384.
func hashSlot(tag string) int {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// packetKeys are the keys of one packet and of its lane.
type packetKeys struct {
	packet   string // hash; a tombstone after retiring
	shares   string // string of packed shares (packet.ShareLen), taken from the left
	winners  string // hash: user id -> claim record
	eligible string // set of user ids
	wins     string // set of users who have won in a packet of the same campaign; only of campaign packets
	order    string // list of users in the order of their claims
	handoff  string // stream of the lane
	epoch    string // hash of the lane: epoch and fence
	live     string // sorted set of the lane: packet id -> created_at in ms
	claimed  string // sorted set of the lane: indexed claims by user, of packets that are not retired
	listed   string // of the lane: id of the last indexed hand-off
	staged   string // sorted set of the lane: packets that may be missing in MySQL
}

// of returns the keys of a packet; the id must be valid.
func (k keyspace) of(id string) packetKeys {
	lane := packet.Lane(id, len(k.tags))
	base := "hb:{" + k.tags[lane] + "}:packet:" + id
	return packetKeys{
		packet: base, shares: base + ":shares", winners: base + ":winners", eligible: base + ":eligible",
		wins: "hb:{" + k.tags[lane] + "}:wins:" + packet.CampaignPrefix(id), order: base + ":order",
		handoff: k.handoff(lane), epoch: k.epoch(lane), live: k.live(lane), claimed: k.claimed(lane),
		listed: k.listed(lane), staged: k.staged(lane),
	}
}

func (k keyspace) handoff(lane int) string { return "hb:{" + k.tags[lane] + "}:handoff" }
func (k keyspace) epoch(lane int) string   { return "hb:{" + k.tags[lane] + "}:epoch" }
func (k keyspace) live(lane int) string    { return "hb:{" + k.tags[lane] + "}:live" }
func (k keyspace) claimed(lane int) string { return "hb:{" + k.tags[lane] + "}:claimed" }
func (k keyspace) listed(lane int) string  { return "hb:{" + k.tags[lane] + "}:listed" }
func (k keyspace) staged(lane int) string  { return "hb:{" + k.tags[lane] + "}:staged" }

// memberPrefix returns the prefix of a user's members in the sorted sets claimed and staged;
// user "" means all users, in staged only. A member is prefix, time in ms with 15 digits,
// zero byte, packet id. All scores are 0, so the members of a user are in the order of time,
// then id. No id has a zero byte, so no prefix begins another.
func memberPrefix(app, user string) string { return app + "\x00" + user + "\x00" }

// memberSuffix returns the part of a member after its prefix.
func memberSuffix(ms int64, id string) string { return fmt.Sprintf("%015d\x00%s", ms, id) }

// keysOf returns the keys of a packet, or ErrGone for an invalid id.
func (p *Pool) keysOf(id string) (packetKeys, error) {
	if !packet.ValidID(id) {
		return packetKeys{}, ErrGone
	}
	return p.keys.of(id), nil
}
