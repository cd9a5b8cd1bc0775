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
		share := PoolShare{Index: want.ShareIndex, Amount: want.Amount, Sum: money.Max, Best: 7}.AppendText(nil)
		record := fmt.Sprintf("%s:%d:MARK:%s", share, want.ClaimedAt.UnixMilli(), profile)
		got, err := DecodeClaim(want.PacketID, want.UserID, record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q\nread   %+v, %v\nwrote %+v", record, got, err, want)
		}
	})
}

// TestR8_LargestClaim: 2^53-1 is read digit by digit, not through a float.
func TestR8_LargestClaim(t *testing.T) {
	c, err := DecodeClaim(somePacket, "u", "999999:9007199254740991:9007199254740991:999999:0:MARK:")
	if err != nil || c.Amount != money.Max || c.ShareIndex != 999_999 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDecodeClaimRefuses(t *testing.T) {
	const good = `0:1:1:0:1700000000000:MARK:{"recipient":"r"}`
	if _, err := DecodeClaim(somePacket, "u", good); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ packet, user, record string }{
		{somePacket, "u", ""}, {somePacket, "u", "0:1:1:0:2:M"}, {somePacket, "u", ":1:1:0:2:M:"}, {somePacket, "u", "0::1:0:2:M:"},
		{somePacket, "u", "0:1:1:0::M:"}, {somePacket, "u", "-1:1:1:0:2:M:"}, {somePacket, "u", "1000000:1:1:0:2:M:"},
		{somePacket, "u", "0:0:1:0:2:M:"}, {somePacket, "u", "0:-1:1:0:2:M:"}, {somePacket, "u", "0:1.5:1:0:2:M:"},
		{somePacket, "u", "0:1e3:1:0:2:M:"}, {somePacket, "u", "0:9223372036854775808:1:0:2:M:"}, {somePacket, "u", "0:1:1:0:x:M:"},
		{somePacket, "u", "0:1:1:0:2:M: "}, {somePacket, "u", "0:1:1:0:2:M:[]"}, {somePacket, "u", "0:1:1:0:2:M:{"},
		{somePacket, "u", `0:1:1:0:2:M:{"recipient":1}`}, {somePacket, "", good}, {"short", "u", good}, {strings.ToUpper(somePacket), "u", good},
	} {
		if c, err := DecodeClaim(tc.packet, tc.user, tc.record); !errors.Is(err, ErrBadClaim) {
			t.Errorf("%q of %q: %+v, %v", tc.record, tc.user, c, err)
		}
	}
}

func FuzzDecodeClaim(f *testing.F) {
	f.Add("u", `0:1:1:0:1700000000000:MARK:{"nickname":"n","recipient":"r"}`)
	f.Add("", "::::")
	f.Add("u", "0:1:1:0:9223372036854775807:MARK:")
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
		share := PoolShare{Index: c.ShareIndex, Amount: c.Amount}.AppendText(nil)
		again, err := DecodeClaim(somePacket, user, fmt.Sprintf("%s:%d:MARK:%s", share, c.ClaimedAt.UnixMilli(), profile))
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

// TestLoader: the counters of a pool after each share.
func TestLoader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Int64Range(1, 5), 1, 40).Draw(t, "amounts")
		var l ShareLoader
		var sum money.Fen
		best := Claim{}
		for i, a := range amounts {
			sum += money.Fen(a)
			if c := (Claim{ShareIndex: i, Amount: money.Fen(a)}); Luckier(c, best) {
				best = c
			}
			want := PoolShare{Index: i, Amount: money.Fen(a), Sum: sum, Best: best.ShareIndex}
			if got := l.Next(money.Fen(a)); got != want || l.Count() != i+1 {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}
