package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

// reflected is what encoding/json makes of a value. It escapes two line
// separators that JSON does not ask to be escaped; nothing else may differ.
func reflected(t interface{ Fatal(...any) }, v any) string {
	raw, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(string(raw))
}

// TestEncoders: what is written by hand is what encoding/json writes.
func TestEncoders(t *testing.T) {
	// No backslashes: before u2028 they would be taken for the escape.
	text := rapid.StringMatching(`[^\\]{0,20}`)
	t.Run("claim", rapid.MakeCheck(func(t *rapid.T) {
		c := renderClaim(packet.Claim{
			PacketID: rapid.StringMatching(`[0-9a-v]{20}`).Draw(t, "packet"), UserID: text.Draw(t, "user"),
			ShareIndex: rapid.IntRange(0, packet.MaxShares-1).Draw(t, "share"),
			Amount:     money.Fen(rapid.Int64Range(1, int64(money.Max)).Draw(t, "amount")),
			ClaimedAt:  time.UnixMilli(rapid.Int64Range(0, maxMs).Draw(t, "at")).In(time.FixedZone("", 3600)),
			Profile:    packet.Profile{Nickname: rapid.Ptr(text, true).Draw(t, "nickname"), AvatarURL: rapid.Ptr(text, true).Draw(t, "avatar")},
		}, payout.PayoutProgress{ID: rapid.StringMatching(`[ph][0-9a-v]{24}`).Draw(t, "payout"),
			Status:      rapid.SampledFrom(payout.Statuses).Draw(t, "status"),
			FailureCode: rapid.SampledFrom([]string{"", "account_frozen", "confirmation_expired", "declined"}).Draw(t, "failure")})
		c.Replayed, c.BestLuck = rapid.Bool().Draw(t, "replayed"), rapid.Bool().Draw(t, "luck")
		if got, want := string(encodeClaim(&c)), reflected(t, c); got != want {
			t.Fatalf("\n%s, want\n%s", got, want)
		}
	}))
	t.Run("problem", rapid.MakeCheck(func(t *rapid.T) {
		e := refuse(rapid.SampledFrom(catalogue).Draw(t, "code").code)
		if rapid.Bool().Draw(t, "rich") {
			e.fields, e.packetID, e.opensAt = []wire.FieldError{{Field: "a", Code: "b", Message: "c"}}, "p", time.UnixMilli(1)
		}
		instance, id := text.Draw(t, "instance"), text.Draw(t, "id")
		want := e.problem(instance, id)
		status, got := e.render(instance, id)
		if text := strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(string(got)); status != want.Status ||
			text != reflected(t, want) {
			t.Fatalf("\n%d %s, want\n%s", status, got, reflected(t, want))
		}
	}))
	if raw := encodeClaim(&wire.Claim{UserID: "\\ \" \x00 \xff \u2028 <&>"}); !jsontext.Value(raw).IsValid() {
		t.Errorf("%s", raw)
	}
}

// FuzzDecodeGrab: whatever the fast way takes, the slow way takes too, with the same
// result; what neither takes is refused with a known code.
func FuzzDecodeGrab(f *testing.F) {
	for _, body := range append(unusualGrabs, usualGrabs...) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		fast, ok := decodeGrab([]byte(body))
		if !ok {
			g, err := readGrab([]byte(body))
			if err != nil {
				refusedWell(t, body, err)
			} else if checkID(g.user) != nil || g.profile.Recipient != "" && checkID(g.profile.Recipient) != nil ||
				len(g.ticket) > ticket.MaxBytes || !json.Valid([]byte(body)) {
				t.Fatalf("%q: %+v", body, g)
			}
			return
		}
		o, err := readObject([]byte(body))
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		slow, err := grabFrom(o)
		if err != nil || fast.user != slow.user || fast.ticket != slow.ticket || !sameText(fast.profile.Nickname, slow.profile.Nickname) ||
			!sameText(fast.profile.AvatarURL, slow.profile.AvatarURL) || fast.profile.Recipient != slow.profile.Recipient {
			t.Fatalf("%q: %+v, the slow way %+v, %v", body, fast, slow, err)
		}
	})
}

func sameText(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

var usualGrabs = []string{
	`{"user_id":"u2"}`, `{"user_id":"u2","nickname":null,"avatar_url":null,"recipient":null}`,
	" {\n\"nickname\" : \"小王\" , \"user_id\":\"u\\u0032\"}\r\n",
	`{"user_id":"u","avatar_url":"https://h/x?a=1&b=2","recipient":"acct-1","nickname":""}`, `{"user_id":"u","avatar_url":"","nickname":""}`,
	`{"user_id":"u","ticket":"a.b.c"}`, `{"user_id":"u","ticket":null}`, `{"user_id":"u","ticket":""}`, `{"user_id":"u","ticket":"` +
		strings.Repeat("x", 2048) + `"}`,
}

var unusualGrabs = []string{
	``, `{`, `null`, `[]`, `"x"`, `{}`, `{"user_id":null}`, `{"user_id":""}`, `{"user_id":1}`, `{"user_id":"a","user_id":"a"}`,
	`{"user_id":"a","user\u005fid":"b"}`, `{"User_id":"a"}`, `{"user_id":"a","x":1}`, `{"user_id":"a"}{}`, `{"user_id":"a"} x`,
	`{"user_id":"a\u0000"}`, "{\"user_id\":\"\xff\"}", `{"user_id":"\ud800"}`, `{"user_id":"a","nickname":1}`, `{"user_id":"a","nickname":"` +
		strings.Repeat("x", 65) + `"}`, `{"user_id":"a","avatar_url":"ftp://h"}`,
	`{"user_id":"a","recipient":""}`, `{"user_id":"` + strings.Repeat("x", 65) + `"}`, `{"user_id":"a",}`, `{'user_id':"a"}`,
	`{"user_id":["a"]}`, `{"user_id":"a","ticket":1}`, `{"user_id":"a","ticket":"` + strings.Repeat("x", 2049) + `"}`,
	`{"user_id":"a","ticket":{}}`,
}

// TestDecodeGrab: what has no faults goes the fast way, what has any does not.
func TestDecodeGrab(t *testing.T) {
	for _, body := range usualGrabs {
		if _, ok := decodeGrab([]byte(body)); !ok {
			t.Errorf("%s goes the slow way", body)
		}
	}
	for _, body := range unusualGrabs {
		if _, ok := decodeGrab([]byte(body)); ok {
			t.Errorf("%s has no faults for the fast way", body)
		}
		if _, err := readGrab([]byte(body)); err == nil {
			t.Errorf("%s has no faults", body)
		}
	}
}
