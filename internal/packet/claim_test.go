package packet

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hongbao/internal/money"
)

const somePacket = "0123456789abcdefghij"

func TestClaimRoundTrip(t *testing.T) {
	text := rapid.Ptr(rapid.String(), true)
	rapid.Check(t, func(t *rapid.T) {
		want := Claim{
			PacketID: somePacket, UserID: rapid.StringN(1, -1, 64).Draw(t, "user"), ShareIndex: rapid.IntRange(0, MaxShares-1).Draw(t, "index"),
			Amount:    money.Fen(rapid.Int64Range(1, int64(money.Max)).Draw(t, "amount")),
			ClaimedAt: time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "at")).UTC(),
			Profile: Profile{Nickname: text.Draw(t, "nickname"), AvatarURL: text.Draw(t, "avatar"),
				Recipient: rapid.String().Draw(t, "recipient")},
		}
		profile, err := json.Marshal(want.Profile)
		if err != nil {
			t.Fatal(err)
		}
		// As grab.lua writes it.
		record := fmt.Sprintf("%d:%d:%d:MARK:%s", want.ShareIndex, want.Amount, want.ClaimedAt.UnixMilli(), profile)
		got, err := DecodeClaim(want.PacketID, want.UserID, record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q\nread   %+v, %v\nwrote %+v", record, got, err, want)
		}
	})
}

// TestR8_LargestClaim: 2^53-1 is read digit by digit, not through a float.
func TestR8_LargestClaim(t *testing.T) {
	c, err := DecodeClaim(somePacket, "u", "999999:9007199254740991:0:MARK:")
	if err != nil || c.Amount != money.Max || c.ShareIndex != 999_999 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDecodeClaimRefuses(t *testing.T) {
	const good = `0:1:1700000000000:MARK:{"recipient":"r"}`
	if _, err := DecodeClaim(somePacket, "u", good); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ packet, user, record string }{
		{somePacket, "u", ""}, {somePacket, "u", "0:1:2:M"}, {somePacket, "u", ":1:2:M:"}, {somePacket, "u", "0::2:M:"},
		{somePacket, "u", "0:1::M:"}, {somePacket, "u", "-1:1:2:M:"}, {somePacket, "u", "1000000:1:2:M:"},
		{somePacket, "u", "0:0:2:M:"}, {somePacket, "u", "0:-1:2:M:"}, {somePacket, "u", "0:1.5:2:M:"},
		{somePacket, "u", "0:1e3:2:M:"}, {somePacket, "u", "0:9223372036854775808:2:M:"}, {somePacket, "u", "0:1:x:M:"},
		{somePacket, "u", "0:1:2:M: "}, {somePacket, "u", "0:1:2:M:[]"}, {somePacket, "u", "0:1:2:M:{"},
		{somePacket, "u", `0:1:2:M:{"recipient":1}`}, {somePacket, "", good}, {"short", "u", good}, {strings.ToUpper(somePacket), "u", good},
	} {
		if c, err := DecodeClaim(tc.packet, tc.user, tc.record); !errors.Is(err, ErrBadClaim) {
			t.Errorf("%q of %q: %+v, %v", tc.record, tc.user, c, err)
		}
	}
}

func FuzzDecodeClaim(f *testing.F) {
	f.Add("u", `0:1:1700000000000:MARK:{"nickname":"n","recipient":"r"}`)
	f.Add("", "::::")
	f.Add("u", "0:1:9223372036854775807:MARK:")
	f.Fuzz(func(t *testing.T, user, record string) {
		c, err := DecodeClaim(somePacket, user, record)
		if err != nil {
			if !errors.Is(err, ErrBadClaim) {
				t.Errorf("%v", err)
			}
			return
		}
		if c.Amount <= 0 || c.ShareIndex < 0 || c.ShareIndex >= MaxShares || c.Account() == "" {
			t.Errorf("%q: %+v", record, c)
		}
		if year := c.ClaimedAt.Year(); year < 1970 || year > 9999 {
			t.Errorf("%q: claimed at %v, which no database takes", record, c.ClaimedAt)
		}
		profile, err := json.Marshal(c.Profile)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeClaim(somePacket, user, fmt.Sprintf("%d:%d:%d:MARK:%s", c.ShareIndex, c.Amount, c.ClaimedAt.UnixMilli(), profile))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%q: %+v, written again %+v, %v", record, c, again, err)
		}
	})
}

func TestAccount(t *testing.T) {
	if got := (Claim{UserID: "u"}).Account(); got != "u" {
		t.Errorf("%q", got)
	}
	if got := (Claim{UserID: "u", Profile: Profile{Recipient: "r"}}).Account(); got != "r" {
		t.Errorf("%q", got)
	}
}

func TestLuckier(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	// From the luckiest down: largest, then earliest, then lowest index.
	order := []Claim{
		{Amount: 9, ClaimedAt: at(5), ShareIndex: 7},
		{Amount: 8, ClaimedAt: at(1), ShareIndex: 9},
		{Amount: 8, ClaimedAt: at(2), ShareIndex: 1},
		{Amount: 8, ClaimedAt: at(2), ShareIndex: 2},
		{Amount: 1, ClaimedAt: at(0), ShareIndex: 0},
	}
	for i, a := range order {
		for j, b := range order {
			if got := Luckier(a, b); got != (i < j) {
				t.Errorf("%+v luckier than %+v: %t", a, b, got)
			}
		}
	}
}

// TestR8_PackedShares: every share is read as it was packed, up to 2^53-1 fen.
func TestR8_PackedShares(t *testing.T) {
	type share struct {
		index  int
		amount money.Fen
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(func(t *rapid.T) share {
			return share{rapid.IntRange(0, MaxShares-1).Draw(t, "index"), money.Fen(rapid.Int64Range(1, int64(money.Max)).Draw(t, "amount"))}
		})).Draw(t, "shares")
		var packed []byte
		for _, s := range want {
			packed = AppendShare(packed, s.index, s.amount)
		}
		if len(packed) != ShareLen*len(want) {
			t.Fatalf("%d bytes of %d shares", len(packed), len(want))
		}
		for i, s := range want {
			if index, amount, err := UnpackShare(string(packed), i); index != s.index || amount != s.amount || err != nil {
				t.Fatalf("share %d: %d, %d, %v, packed %+v", i, index, amount, err, s)
			}
		}
		if _, _, err := UnpackShare(string(packed), len(want)); !errors.Is(err, ErrBadClaim) {
			t.Fatalf("a share after the last: %v", err)
		}
	})
	for _, bad := range [][]byte{AppendShare(nil, MaxShares, 1), AppendShare(nil, 0, 0), AppendShare(nil, 0, money.Max+1)} {
		if index, amount, err := UnpackShare(string(bad), 0); !errors.Is(err, ErrBadClaim) {
			t.Errorf("%x: %d, %d, %v", bad, index, amount, err)
		}
	}
}
