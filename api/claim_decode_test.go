package api

import (
	"encoding/json"
	"strings"
	"testing"

	"hongbao/api/rest"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

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
				if r := rest.AsRefusal(err); r.Code != wire.CodeMalformedJSON && r.Code != wire.CodeInvalidRequest {
					t.Fatalf("%q: %v", body, err)
				}
			} else if rest.CheckID(g.user) != nil || g.profile.Recipient != "" && rest.CheckID(g.profile.Recipient) != nil ||
				len(g.ticket) > ticket.MaxBytes || !json.Valid([]byte(body)) {
				t.Fatalf("%q: %+v", body, g)
			}
			return
		}
		o, err := rest.ReadObject([]byte(body))
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
