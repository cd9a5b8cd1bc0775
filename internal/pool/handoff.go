package pool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

// Batch is the result of one read of hand-offs.
type Batch struct {
	// HandOffs are the entries; those with claims of several packets as one hand-off for each packet.
	HandOffs []packet.HandOff
	// Undecodable are entries, or all bad parts of an entry together. An entry with readable and
	// unreadable claims is in both lists with the same id.
	Undecodable []Undecodable
	// Last is the id of the last entry of the batch, decoded or not.
	Last string
}

// Empty reports whether the batch has no entries.
func (b Batch) Empty() bool { return len(b.HandOffs) == 0 && len(b.Undecodable) == 0 }

// Undecodable is an entry, or the part of one, that goes to the quarantine.
type Undecodable struct {
	EntryID string
	Lane    int
	Values  map[string]any // the undecoded fields; bytes that are no text are escaped
	Err     error          // wraps ErrMalformed or packet.ErrBadClaim
}

// Kinds and fields of entries, as the scripts write them:
//
//	create.lua  kind created, packet JSON, created_at, opens_at, expires_at in ms
//	grab.lua    kind claims, and for each packet with winners a field with its id, the part of that
//	            packet (claimsPart); an entry has at most maxBatch claims
//	recall.lua  kind recalled, packet_id
const fieldKind = "kind"

// decodeBatch decodes the entries of one lane. deleted are the ids of entries that are
// pending and deleted: they have no content.
func decodeBatch(lane int, messages []redis.XMessage) (b Batch, deleted []string) {
	for _, m := range messages {
		b.Last = m.ID
		if m.Values == nil {
			deleted = append(deleted, m.ID)
			continue
		}
		handOffs, bad := decodeEntry(lane, m)
		b.HandOffs = append(b.HandOffs, handOffs...)
		if bad != nil {
			b.Undecodable = append(b.Undecodable, *bad)
		}
	}
	return b, deleted
}

// decodeEntry decodes one entry. The claims of a hand-off are in the order of their share indices, in which
// they were won. bad has the parts that could not be decoded.
func decodeEntry(lane int, m redis.XMessage) (handOffs []packet.HandOff, bad *Undecodable) {
	rejectEntry := func(err error) ([]packet.HandOff, *Undecodable) {
		return nil, &Undecodable{EntryID: m.ID, Lane: lane, Values: readable(m.Values), Err: err}
	}
	switch kind := m.Values[fieldKind]; kind {
	case "created":
		created, err := decodeCreated(m.Values)
		if err != nil {
			return rejectEntry(err)
		}
		return []packet.HandOff{{EntryID: m.ID, Created: &created}}, nil
	case "recalled":
		id, _ := m.Values["packet_id"].(string)
		if !packet.ValidID(id) {
			return rejectEntry(fmt.Errorf("%w: recalled packet %q", ErrMalformed, id))
		}
		return []packet.HandOff{{EntryID: m.ID, Recalled: id}}, nil
	case "claims":
		if len(m.Values) < 2 {
			return rejectEntry(fmt.Errorf("%w: no claims", ErrMalformed))
		}
		return decodeClaims(lane, m)
	default:
		return rejectEntry(fmt.Errorf("%w: kind %q", ErrMalformed, kind))
	}
}

// readable returns fields as text without loss, for the JSON of the quarantine: values that are no
// UTF-8 as Go strings in quotes.
func readable(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for name, value := range values {
		if s, is := value.(string); is && !utf8.ValidString(s) {
			value = strconv.Quote(s)
		}
		out[name] = value
	}
	return out
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
		if ms < 0 || ms > packet.MaxMillis {
			return p, fmt.Errorf("%w: %s: %d ms", ErrMalformed, field, ms)
		}
		times[i] = ms
	}
	p.CreatedAt, p.OpensAt, p.ExpiresAt = fromMs(times[0]), fromMs(times[1]), fromMs(times[2])
	return p, nil
}

// decodeClaims decodes each packet's part alone, in the order in which the grabs were won.
func decodeClaims(lane int, m redis.XMessage) (handOffs []packet.HandOff, bad *Undecodable) {
	reject := func(name, value string, err error) {
		if bad == nil {
			bad = &Undecodable{EntryID: m.ID, Lane: lane, Values: map[string]any{}, Err: err}
		}
		bad.Values[name] = value
	}
	for id, value := range m.Values {
		if id == fieldKind {
			continue
		}
		encoded, _ := value.(string)
		part, err := decodePart(id, encoded)
		if err != nil {
			reject(id, strconv.Quote(encoded), err)
			continue
		}
		h := packet.HandOff{EntryID: m.ID, App: part.app}
		for i, user := range part.users {
			index, amount, err := packet.UnpackShare(part.shares, i)
			var claim packet.Claim
			if err == nil {
				claim, err = packet.NewClaim(id, user, index, amount, part.at, part.profiles[i+1])
			}
			if err != nil {
				reject("claim:"+id+":"+user, fmt.Sprintf("%d:%d:%s %s", index, amount, part.at, part.profiles[i+1]), err)
				continue
			}
			if part.epoch > 0 {
				claim.Epoch, claim.Seq = part.epoch, part.seq+int64(i)
			}
			h.Claims = append(h.Claims, claim)
		}
		if part.last {
			h.SoldOut = []string{id}
		}
		if len(h.Claims)+len(h.SoldOut) > 0 {
			handOffs = append(handOffs, h)
		}
	}
	slices.SortFunc(handOffs, func(a, b packet.HandOff) int { return cmp.Compare(firstSeq(a), firstSeq(b)) })
	return handOffs, bad
}

// firstSeq returns the seq of the first claim.
func firstSeq(h packet.HandOff) int64 {
	if len(h.Claims) == 0 {
		return 0
	}
	return h.Claims[0].Seq
}

// claimsPart is a packet's part of an entry, written as MessagePack values in the order of these fields.
type claimsPart struct {
	epoch    int64  // of the lane; as text; 0: unknown
	seq      int64  // of the first claim; each further claim has the next one
	app      string // of the packet
	at       string // claimed at, in ms
	last     bool   // the packet's last share is among the claims
	shares   string // packed
	users    []string
	profiles map[int]string // JSON, by position in users, from 1
}

func decodePart(id, encoded string) (c claimsPart, err error) {
	if !packet.ValidID(id) {
		return c, fmt.Errorf("%w: claims of packet %q", ErrMalformed, id)
	}
	var epoch, users, profiles string
	b := []byte(encoded)
	read := func(to *string) {
		if err == nil {
			*to, b, err = msgp.ReadStringBytes(b)
		}
	}
	read(&epoch)
	if err == nil {
		c.seq, b, err = msgp.ReadInt64Bytes(b)
	}
	read(&c.app)
	read(&c.at)
	if err == nil {
		c.last, b, err = msgp.ReadBoolBytes(b)
	}
	read(&c.shares)
	read(&users)
	read(&profiles)
	if err == nil {
		c.epoch, err = strconv.ParseInt(epoch, 10, 64)
	}
	if err == nil && (len(b) > 0 || c.epoch < 0 || c.seq < 0) {
		err = fmt.Errorf("%d trailing bytes, epoch %d, seq %d", len(b), c.epoch, c.seq)
	}
	if err != nil {
		return c, fmt.Errorf("%w: part of packet %s: %w", ErrMalformed, id, err)
	}
	if c.users, err = decodeUsers([]byte(users)); err != nil {
		return c, err
	}
	if c.profiles, err = decodeProfiles([]byte(profiles), len(c.users)); err != nil {
		return c, err
	}
	if len(c.shares) != packet.ShareLen*len(c.users) {
		return c, fmt.Errorf("%w: %d bytes of shares for %d users", ErrMalformed, len(c.shares), len(c.users))
	}
	return c, nil
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
		return nil, fmt.Errorf("%w: %d trailing bytes after the users", ErrMalformed, len(b))
	}
	return users, nil
}

// decodeProfiles decodes a map from position to profile. A script packs positions 1, 2, 3
// and so on as an array. A profile without a user, or a second one of a user, is an error:
// otherwise a user's payout would miss its account.
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
		position := i + 1
		if !array {
			if position, b, err = msgp.ReadIntBytes(b); err != nil {
				return nil, fmt.Errorf("%w: position of a profile: %w", ErrMalformed, err)
			}
		}
		if _, twice := profiles[position]; twice || position < 1 || position > users {
			return nil, fmt.Errorf("%w: profile at position %d of %d", ErrMalformed, position, users)
		}
		if profiles[position], b, err = msgp.ReadStringBytes(b); err != nil {
			return nil, fmt.Errorf("%w: profile: %w", ErrMalformed, err)
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d trailing bytes after the profiles", ErrMalformed, len(b))
	}
	return profiles, nil
}

func orMalformed(err error) error {
	if err == nil {
		err = errors.New("more than one call can hold")
	}
	return err
}
