package pool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"hongbao/packet"
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
//	grab.lua    kind claims, any number of "claim:<packet id>:<user id>" = claim
//	            record, and "last:<packet id>" for a packet whose last share is among them
//	recall.lua  kind recalled, packet_id
const (
	fieldKind   = "kind"
	claimPrefix = "claim:"
	lastPrefix  = "last:"
)

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
		bad = decodeClaims(lane, m, &h)
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
		times[i] = ms
	}
	p.CreatedAt, p.OpensAt, p.ExpiresAt = fromMs(times[0]), fromMs(times[1]), fromMs(times[2])
	return p, nil
}

// decodeClaims fills in the claims of h and returns the fields it could not decode.
func decodeClaims(lane int, m redis.XMessage, h *packet.HandOff) *Bad {
	var bad *Bad
	reject := func(field string, err error) {
		if bad == nil {
			bad = &Bad{EntryID: m.ID, Lane: lane, Values: map[string]any{}, Err: err}
		}
		bad.Values[field] = m.Values[field]
	}
	for field, value := range m.Values {
		if field == fieldKind {
			continue
		}
		if id, ok := strings.CutPrefix(field, lastPrefix); ok && packet.ValidID(id) {
			h.SoldOut = append(h.SoldOut, id)
			continue
		}
		owner, ok := strings.CutPrefix(field, claimPrefix)
		if !ok || len(owner) < packet.IDLen+1 || owner[packet.IDLen] != ':' {
			reject(field, fmt.Errorf("%w: field %q", ErrMalformed, field))
			continue
		}
		record, _ := value.(string)
		claim, err := packet.DecodeClaim(owner[:packet.IDLen], owner[packet.IDLen+1:], record)
		if err != nil {
			reject(field, err)
			continue
		}
		h.Claims = append(h.Claims, claim)
	}
	slices.Sort(h.SoldOut)
	slices.SortFunc(h.Claims, func(a, b packet.Claim) int {
		if c := strings.Compare(a.PacketID, b.PacketID); c != 0 {
			return c
		}
		return byShare(a, b)
	})
	if len(h.Claims)+len(h.SoldOut) == 0 && bad == nil {
		bad = &Bad{EntryID: m.ID, Lane: lane, Values: m.Values, Err: fmt.Errorf("%w: no claims", ErrMalformed)}
	}
	return bad
}
