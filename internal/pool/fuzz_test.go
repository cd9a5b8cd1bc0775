package pool

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

const fuzzedPacket = "0123456789abcdefghij"

// packedPart returns a packet's part of an entry of claims, as grab.lua writes it.
func packedPart(seq int64, at, shares string, users, profiles []byte, last bool) string {
	b := msgp.AppendInt64(msgp.AppendString(nil, "3"), seq)
	b = msgp.AppendBool(msgp.AppendString(msgp.AppendString(b, "shop"), at), last)
	return string(msgp.AppendString(msgp.AppendString(msgp.AppendString(b, shares), string(users)), string(profiles)))
}

// FuzzHandOff: any entry of a lane's stream is decoded or quarantined, whole or in part,
// without losing a claim, and a decoded entry is the same when written again.
func FuzzHandOff(f *testing.F) {
	users := msgp.AppendString(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "u1"), "小王")
	profiles := msgp.AppendString(msgp.AppendInt(msgp.AppendMapHeader(nil, 1), 2), `{"recipient":"r"}`)
	two := string(packet.AppendShare(packet.AppendShare(nil, 0, 5), 1, 7))
	const at = "1700000000000"
	f.Add("claims", fuzzedPacket, at, packedPart(1, at, two, users, profiles, true), "")
	zero := string(packet.AppendShare(packet.AppendShare(nil, 0, 5), 1, 0))
	f.Add("claims", fuzzedPacket, at, packedPart(1, at, zero, users, []byte{0x91, 0xa0}, false), "")
	huge := packedPart(1, "", "", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, []byte{0xdf, 0xff, 0xff, 0xff, 0xff}, false)
	f.Add("claims", fuzzedPacket, at, huge, "")
	f.Add("claims", fuzzedPacket, at, packedPart(1, at, two, users,
		msgp.AppendString(msgp.AppendInt(msgp.AppendMapHeader(nil, 1), 3), `{"recipient":"nobody's"}`), false), "")
	f.Add("created", "", "9223372036854775807", "", `{"id":"`+fuzzedPacket+`"}`)
	f.Add("created", "", at, "", `{"id":"`+fuzzedPacket+`","total_amount":1}`)
	f.Add("recalled", fuzzedPacket, "", "", "")
	f.Fuzz(func(t *testing.T, kind, id, at, part, encoded string) {
		m := redis.XMessage{ID: "1-1", Values: map[string]any{"packet_id": id, "packet": encoded, "created_at": at, "opens_at": at,
			"expires_at": at}}
		if kind == "claims" {
			m.Values = map[string]any{id: part}
		}
		m.Values[fieldKind] = kind
		handOffs, bad := decodeEntry(0, m)
		if bad != nil && !errors.Is(bad.Err, ErrMalformed) && !errors.Is(bad.Err, packet.ErrBadClaim) {
			t.Fatalf("%v", bad.Err)
		}
		if len(handOffs) == 0 {
			if claims, err := decodePart(id, part); bad == nil && (err != nil || len(claims.users) > 0) {
				t.Fatalf("%+v is neither decoded nor quarantined", m.Values)
			}
			return
		}
		h := handOffs[0]
		if c := h.Created; c != nil && (!packet.ValidID(c.ID) || c.CreatedAt.Year() > 9999 || c.CreatedAt.Year() < 1970) {
			t.Fatalf("created %+v", c)
		}
		if kind != "claims" {
			return
		}
		wrong := 0
		if bad != nil {
			wrong = len(bad.Values)
		}
		claims, err := decodePart(id, part)
		if all := len(claims.users); err != nil || len(h.Claims)+wrong > all || len(h.Claims) < all && bad == nil {
			t.Fatalf("%d claims and %d bad ones of %d, %v", len(h.Claims), wrong, all, err)
		}
	})
}

// FuzzReplies: reading any reply or key returns a result or a known error.
func FuzzReplies(f *testing.F) {
	f.Add("won", "0:5:1700000000000:MARK:{}", "state", "open", "packet", `{"id":"`+fuzzedPacket+`"}`, int64(1))
	f.Add("not_open_yet", "9223372036854775807", "retired", "1", "first", `{"status":201}`, int64(-1))
	f.Add("", "", "claimed", "x", "failure", "[", int64(1)<<62)
	f.Fuzz(func(t *testing.T, outcome, detail, name, value, other, otherValue string, n int64) {
		known := func(err error) {
			t.Helper()
			if err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, packet.ErrBadClaim) && !errors.Is(err, ErrInconsistent) &&
				!errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnavailable) {
				t.Fatalf("%T %v", err, err)
			}
		}
		_, err := decodeGrabbed(fuzzedPacket, "u", outcome, detail)
		known(err)
		for _, reply := range [][]any{{n, []any{name, value, other, otherValue}}, {n, []any{name}}, {outcome, n},
			{outcome, detail, value, otherValue, n}, {nil, nil}, {}} {
			_, err = decodeView(fuzzedPacket, reply)
			known(err)
			_, _, err = decodeRemainder(reply)
			known(err)
			_, _, err = decodeListed(reply)
			known(err)
			_, err = decodeStaged(packet.Packet{ID: fuzzedPacket}, "token", reply)
			known(err)
		}
	})
}
