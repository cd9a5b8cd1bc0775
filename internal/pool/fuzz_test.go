package pool

import (
	"errors"
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

const fuzzedPacket = "0123456789abcdefghij"

// FuzzHandOff: any entry of a lane's stream is decoded or quarantined, whole or in part,
// without losing a claim, and a decoded entry is the same when written again.
func FuzzHandOff(f *testing.F) {
	users := msgp.AppendString(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "u1"), "小王")
	profiles := msgp.AppendString(msgp.AppendInt(msgp.AppendMapHeader(nil, 1), 2), `{"recipient":"r"}`)
	two := string(packet.AppendShare(packet.AppendShare(nil, 0, 5), 1, 7))
	f.Add("claims", fuzzedPacket, two, "1700000000000", users, profiles, "1", "")
	zero := string(packet.AppendShare(packet.AppendShare(nil, 0, 5), 1, 0))
	f.Add("claims", fuzzedPacket, zero, "1700000000000", users, []byte{0x91, 0xa0}, "", "")
	f.Add("claims", fuzzedPacket, "", "", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, []byte{0xdf, 0xff, 0xff, 0xff, 0xff}, "", "")
	f.Add("claims", fuzzedPacket, two, "1700000000000", users,
		msgp.AppendString(msgp.AppendInt(msgp.AppendMapHeader(nil, 1), 3), `{"recipient":"nobody's"}`), "", "")
	f.Add("created", "", "", "9223372036854775807", []byte{}, []byte{}, "", `{"id":"`+fuzzedPacket+`"}`)
	f.Add("created", "", "", "1700000000000", []byte{}, []byte{}, "", `{"id":"`+fuzzedPacket+`","total_amount":1}`)
	f.Add("recalled", fuzzedPacket, "", "", []byte{}, []byte{}, "", "")
	f.Fuzz(func(t *testing.T, kind, id, shares, at string, users, profiles []byte, last, encoded string) {
		m := redis.XMessage{ID: "1-1", Values: map[string]any{fieldKind: kind, "packet_id": id, "shares": shares, "at": at,
			"users": string(users), "profiles": string(profiles),
			"last": last, "packet": encoded, "created_at": at, "opens_at": at, "expires_at": at}}
		h, ok, bad := decodeEntry(0, m)
		if bad != nil && !errors.Is(bad.Err, ErrMalformed) && !errors.Is(bad.Err, packet.ErrBadClaim) {
			t.Fatalf("%v", bad.Err)
		}
		if !ok {
			if bad == nil {
				t.Fatalf("%+v is neither decoded nor quarantined", m.Values)
			}
			return
		}
		if c := h.Created; c != nil && (!packet.ValidID(c.ID) || c.CreatedAt.Year() > 9999 || c.CreatedAt.Year() < 1970) {
			t.Fatalf("created %+v", c)
		}
		if kind != "claims" {
			return
		}
		wrong := 0
		if bad != nil {
			wrong = len(bad.Values) - 2
		}
		if all := len(shares) / packet.ShareLen; len(h.Claims)+wrong > all || len(h.Claims) < all && bad == nil {
			t.Fatalf("%d claims and %d bad ones of %d", len(h.Claims), wrong, all)
		}
		if bad != nil {
			return
		}
		again, ok, bad := decodeEntry(0, rewritten(m, h))
		if !ok || bad != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("%+v\nwritten again is %+v, %v", h, again, bad)
		}
	})
}

// rewritten is an entry of claims with its packed parts encoded again.
func rewritten(m redis.XMessage, h packet.HandOff) redis.XMessage {
	read, _ := decodeProfiles([]byte(m.Values["profiles"].(string)), len(h.Claims))
	users, profiles := msgp.AppendArrayHeader(nil, uint32(len(h.Claims))), msgp.AppendMapHeader(nil, uint32(len(read)))
	for i, c := range h.Claims {
		users = msgp.AppendString(users, c.UserID)
		if p, ok := read[i+1]; ok {
			profiles = msgp.AppendString(msgp.AppendInt(profiles, i+1), p)
		}
	}
	out := redis.XMessage{ID: m.ID, Values: map[string]any{}}
	for name, value := range m.Values {
		out.Values[name] = value
	}
	out.Values["users"], out.Values["profiles"] = string(users), string(profiles)
	return out
}

// FuzzReplies: reading any reply or key returns a result or a known error.
func FuzzReplies(f *testing.F) {
	f.Add("won", "0:5:1700000000000:MARK:{}", "state", "open", "packet", `{"id":"`+fuzzedPacket+`"}`, int64(1))
	f.Add("not_open_yet", "9223372036854775807", "retired", "1", "first", `{"status":201}`, int64(-1))
	f.Add("", "", "best", "x", "failure", "[", int64(1)<<62)
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
