package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

// Batch is what one reading call returns.
type Batch struct {
	HandOffs []packet.HandOff
	// Bad are the entries, or the parts of entries, that could not be decoded.
	// An entry with good and bad claims is in both lists under the same id.
	Bad []Bad
	// Last is the id of the last entry of the batch, good or bad.
	Last string
}

// Empty reports whether there is nothing in the batch.
func (b Batch) Empty() bool { return len(b.HandOffs) == 0 && len(b.Bad) == 0 }

// Bad is what could not be decoded, to be put aside for a person.
type Bad struct {
	EntryID string
	Lane    int
	Values  map[string]any // the fields that could not be decoded, as they are
	Err     error          // wraps ErrMalformed or packet.ErrBadClaim
}

// Kinds and fields of entries, as the scripts write them:
//
//	create.lua  kind created, packet JSON, created_at, opens_at, expires_at in ms
//	grab.lua    kind claims, packet_id, app, shares with blanks between, claimed at in ms,
//	            users who claimed them in the same order as a MessagePack array, profiles as
//	            a MessagePack map from place in it (from 1) to JSON or empty, last 1 when
//	            the packet's last share is among them, epoch of the lane and its seq with
//	            the first of them, the others each one more (not in entries of old)
//	recall.lua  kind recalled, packet_id
const fieldKind = "kind"

// decodeBatch decodes the entries of one lane. deleted are the ids of entries
// that are pending although they were deleted: they have no content any more.
func decodeBatch(lane int, messages []redis.XMessage) (b Batch, deleted []string) {
	for _, m := range messages {
		b.Last = m.ID
		if m.Values == nil {
			deleted = append(deleted, m.ID)
			continue
		}
		h, ok, bad := decodeEntry(lane, m)
		if ok {
			b.HandOffs = append(b.HandOffs, h)
		}
		if bad != nil {
			b.Bad = append(b.Bad, *bad)
		}
	}
	return b, deleted
}

// decodeEntry decodes one entry. The claims of a packet come out in the order in
// which they were won, which is that of their share indices. bad is nil unless
// something could not be decoded; ok reports whether there is a hand-off.
func decodeEntry(lane int, m redis.XMessage) (h packet.HandOff, ok bool, bad *Bad) {
	h.EntryID = m.ID
	whole := func(err error) (packet.HandOff, bool, *Bad) {
		return packet.HandOff{}, false, &Bad{EntryID: m.ID, Lane: lane, Values: m.Values, Err: err}
	}
	switch kind := m.Values[fieldKind]; kind {
	case "created":
		created, err := decodeCreated(m.Values)
		if err != nil {
			return whole(err)
		}
		h.Created = &created
		return h, true, nil
	case "recalled":
		id, _ := m.Values["packet_id"].(string)
		if !packet.ValidID(id) {
			return whole(fmt.Errorf("%w: recalled packet %q", ErrMalformed, id))
		}
		h.Recalled = id
		return h, true, nil
	case "claims":
		bad, err := decodeClaims(lane, m, &h)
		if err != nil {
			return whole(err)
		}
		return h, len(h.Claims)+len(h.SoldOut) > 0, bad
	default:
		return whole(fmt.Errorf("%w: kind %q", ErrMalformed, kind))
	}
}

func decodeCreated(values map[string]any) (packet.Packet, error) {
	var p packet.Packet
	encoded, _ := values["packet"].(string)
	if err := json.Unmarshal([]byte(encoded), &p); err != nil {
		return p, fmt.Errorf("%w: packet: %w", ErrMalformed, err)
	}
	if !packet.ValidID(p.ID) {
		return p, fmt.Errorf("%w: packet id %q", ErrMalformed, p.ID)
	}
	var times [3]int64
	for i, field := range []string{"created_at", "opens_at", "expires_at"} {
		s, _ := values[field].(string)
		ms, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return p, fmt.Errorf("%w: %s: %w", ErrMalformed, field, err)
		}
		if ms < 0 || ms > packet.MaxMs {
			return p, fmt.Errorf("%w: %s: %d ms", ErrMalformed, field, ms)
		}
		times[i] = ms
	}
	p.CreatedAt, p.OpensAt, p.ExpiresAt = fromMs(times[0]), fromMs(times[1]), fromMs(times[2])
	return p, nil
}

// decodeClaims fills in the claims of h. err says that the entry as a whole cannot
// be read; bad has the claims that cannot.
func decodeClaims(lane int, m redis.XMessage, h *packet.HandOff) (bad *Bad, err error) {
	field := func(name string) string {
		s, _ := m.Values[name].(string)
		return s
	}
	id := field("packet_id")
	if !packet.ValidID(id) {
		return nil, fmt.Errorf("%w: claims of packet %q", ErrMalformed, id)
	}
	users, err := decodeUsers([]byte(field("users")))
	if err != nil {
		return nil, err
	}
	profiles, err := decodeProfiles([]byte(field("profiles")), len(users))
	if err != nil {
		return nil, err
	}
	shares := strings.Split(field("shares"), " ")
	if len(shares) != len(users) {
		return nil, fmt.Errorf("%w: %d shares for %d users", ErrMalformed, len(shares), len(users))
	}
	h.App = field("app")
	epoch, seq := decodeSeq(field("epoch"), field("seq"))
	for i, share := range shares {
		claim, err := packet.NewClaim(id, users[i], share, field("at"), profiles[i+1])
		if err != nil {
			if bad == nil {
				bad = &Bad{EntryID: m.ID, Lane: lane, Values: map[string]any{"packet_id": id, "at": field("at")}, Err: err}
			}
			bad.Values["claim:"+users[i]] = share + " " + profiles[i+1]
			continue
		}
		if epoch > 0 {
			claim.Epoch, claim.Seq = epoch, seq+int64(i)
		}
		h.Claims = append(h.Claims, claim)
	}
	if field("last") == "1" {
		h.SoldOut = []string{id}
	}
	return bad, nil
}

// decodeSeq reads where in the lane's history the first claim of an entry was won; 0
// when the entry does not tell: that keeps nobody from being paid.
func decodeSeq(epoch, seq string) (int64, int64) {
	e, errEpoch := strconv.ParseInt(epoch, 10, 64)
	n, errSeq := strconv.ParseInt(seq, 10, 64)
	if errEpoch != nil || errSeq != nil || e < 1 || n < 1 {
		return 0, 0
	}
	return e, n
}

func decodeUsers(b []byte) ([]string, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || int(n) > maxBatch {
		return nil, fmt.Errorf("%w: %d users: %w", ErrMalformed, n, orMalformed(err))
	}
	users := make([]string, n)
	for i := range users {
		if users[i], b, err = msgp.ReadStringBytes(b); err != nil {
			return nil, fmt.Errorf("%w: user: %w", ErrMalformed, err)
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the users", ErrMalformed, len(b))
	}
	return users, nil
}

// decodeProfiles reads a map from place to profile. A script that packs such a map
// writes an array when the places are 1, 2, 3 and so on. A profile of nobody, or a
// second one, is an error: it would be somebody's whose account is not paid then.
func decodeProfiles(b []byte, users int) (map[int]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	array := msgp.NextType(b) == msgp.ArrayType
	var n uint32
	var err error
	if array {
		n, b, err = msgp.ReadArrayHeaderBytes(b)
	} else {
		n, b, err = msgp.ReadMapHeaderBytes(b)
	}
	if err != nil || int(n) > maxBatch {
		return nil, fmt.Errorf("%w: %d profiles: %w", ErrMalformed, n, orMalformed(err))
	}
	profiles := make(map[int]string, n)
	for i := range int(n) {
		place := i + 1
		if !array {
			if place, b, err = msgp.ReadIntBytes(b); err != nil {
				return nil, fmt.Errorf("%w: place of a profile: %w", ErrMalformed, err)
			}
		}
		if _, twice := profiles[place]; twice || place < 1 || place > users {
			return nil, fmt.Errorf("%w: profile of place %d of %d", ErrMalformed, place, users)
		}
		if profiles[place], b, err = msgp.ReadStringBytes(b); err != nil {
			return nil, fmt.Errorf("%w: profile: %w", ErrMalformed, err)
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the profiles", ErrMalformed, len(b))
	}
	return profiles, nil
}

func orMalformed(err error) error {
	if err == nil {
		err = errors.New("more than a call can have")
	}
	return err
}
