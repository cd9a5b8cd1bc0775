package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

// Batch is the result of one read of hand-offs.
type Batch struct {
	HandOffs []packet.HandOff
	// Undecodable are entries, or parts of entries. An entry with readable and unreadable claims is
	// in both lists with the same id.
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
//	grab.lua    kind claims, packet_id, app, packed shares, at in ms, users in the order
//	            of shares as a MessagePack array, profiles as a MessagePack map
//	            from position in users (from 1) to JSON, or empty, last (1 when the packet's
//	            last share is among them), epoch of the lane and seq of the first claim; each
//	            further claim has the next seq (epoch and seq are missing in old entries)
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
		h, ok, bad := decodeEntry(lane, m)
		if ok {
			b.HandOffs = append(b.HandOffs, h)
		}
		if bad != nil {
			b.Undecodable = append(b.Undecodable, *bad)
		}
	}
	return b, deleted
}

// decodeEntry decodes one entry. The claims are in the order of their share indices, in which
// they were won. bad has the parts that could not be decoded; ok reports whether there is a
// hand-off.
func decodeEntry(lane int, m redis.XMessage) (h packet.HandOff, ok bool, bad *Undecodable) {
	h.EntryID = m.ID
	rejectEntry := func(err error) (packet.HandOff, bool, *Undecodable) {
		return packet.HandOff{}, false, &Undecodable{EntryID: m.ID, Lane: lane, Values: readable(m.Values), Err: err}
	}
	switch kind := m.Values[fieldKind]; kind {
	case "created":
		created, err := decodeCreated(m.Values)
		if err != nil {
			return rejectEntry(err)
		}
		h.Created = &created
		return h, true, nil
	case "recalled":
		id, _ := m.Values["packet_id"].(string)
		if !packet.ValidID(id) {
			return rejectEntry(fmt.Errorf("%w: recalled packet %q", ErrMalformed, id))
		}
		h.Recalled = id
		return h, true, nil
	case "claims":
		bad, err := decodeClaims(lane, m, &h)
		if err != nil {
			return rejectEntry(err)
		}
		return h, len(h.Claims)+len(h.SoldOut) > 0, bad
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

// decodeClaims fills in h from an entry of claims. err means that the whole entry is unreadable;
// bad has single unreadable claims.
func decodeClaims(lane int, m redis.XMessage, h *packet.HandOff) (bad *Undecodable, err error) {
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
	shares := field("shares")
	if len(shares) != packet.ShareLen*len(users) {
		return nil, fmt.Errorf("%w: %d bytes of shares for %d users", ErrMalformed, len(shares), len(users))
	}
	h.App = field("app")
	epoch, seq := decodeSeq(field("epoch"), field("seq"))
	for i, user := range users {
		index, amount, err := packet.UnpackShare(shares, i)
		var claim packet.Claim
		if err == nil {
			claim, err = packet.NewClaim(id, user, index, amount, field("at"), profiles[i+1])
		}
		if err != nil {
			if bad == nil {
				bad = &Undecodable{EntryID: m.ID, Lane: lane, Values: map[string]any{"packet_id": id, "at": field("at")}, Err: err}
			}
			bad.Values["claim:"+user] = fmt.Sprintf("%d:%d %s", index, amount, profiles[i+1])
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

// decodeSeq returns epoch and seq of an entry's first claim; 0 when the entry has none,
// which does not stop its payouts.
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
